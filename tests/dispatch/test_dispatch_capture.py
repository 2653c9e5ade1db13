"""Calls while another library captures a CUDA graph, on a device that lends and runs at once what is captured. The
real thing is in test_gpu_torch.py."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lending import (
    Array,
    World,
    doubler,
    filtered,
    loaded,
    make_world,
    ramp,
    weights,
    write_adder,
    write_filter,
)

from autotune.errors import UsageError

TABLE, SHIFT = np.arange(12, dtype=np.int32).reshape(3, 4), np.arange(4, dtype=np.int32)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = make_world(monkeypatch)
    made.stream = 7
    return made


@pytest.fixture
def adder(tmp_path: Path) -> Path:
    return write_adder(tmp_path / "adder")


def array(content: Any) -> Array:
    made = Array(content)
    made.stream = 7
    return made


def test_what_a_call_needs_is_made_beside_the_capture_once(world: World, adder: Path) -> None:
    """The table is stored by columns, so there is room to make and a move to record."""
    with loaded(adder) as kernel:
        for capture in (0, 31, 32):
            world.gpu.capture = capture
            for k in range(3):
                world.gpu.seen.clear()
                made = kernel(array(TABLE + k), array(SHIFT))
                np.testing.assert_array_equal(made.memory, TABLE + k + SHIFT)
                assert type(made) is Array
                if k == 0:
                    assert world.gpu.seen[-1:] == (["recorded from here"] if capture else ["bound"])
                else:
                    assert set(world.gpu.seen) == {("on", 7)}  # nothing is made, waited for or sent


def test_a_graph_keeps_its_room(world: World, adder: Path) -> None:
    with loaded(adder) as kernel:
        world.gpu.capture = 31
        kernel(array(TABLE), array(SHIFT))
        calls = kernel._calls
        (captured,) = calls._lasting.values()
        world.gpu.capture = 0
        for count in range(1, 12):  # more sizes than are kept ready
            kernel(array(np.ones((count, 4), np.int32)), array(SHIFT))
        assert list(calls._lasting.values()) == [captured]
        assert captured.execution.placed["table"].buffer.size
    assert not calls._lasting


def test_a_graph_has_constant_memory_of_its_own(world: World, tmp_path: Path) -> None:
    """It fills that whenever it is launched, and calls need not know when."""
    with (
        loaded(write_filter(tmp_path / "filter")) as kernel,
        kernel.prepare(array(ramp(64)), weights(1)) as handle,
    ):
        expected = filtered(ramp(64), weights(1))
        for capture, is_copied in ((0, True), (31, True), (0, False), (32, True), (32, True), (0, False)):
            world.gpu.capture = capture
            world.gpu.seen.clear()
            np.testing.assert_array_equal(handle(stream=7).memory, expected)
            assert (("constant", 7) in world.gpu.seen) is is_copied
            assert "synchronize" not in world.gpu.seen or not capture
        modules = [each.execution.module for each in (*handle._launchers.values(), *handle._lasting.values())]
        assert len({module.window.ctypes.data for module in modules}) == len(modules) == 3


def test_what_the_host_has_a_part_in_is_refused(world: World, adder: Path) -> None:
    with loaded(adder) as kernel:
        world.gpu.capture = 31
        for given, out, reason in (
            ((array(TABLE), SHIFT), None, "shift is an array of the host: give one on the GPU, or prepare"),
            ((array(TABLE), array(SHIFT)), np.empty_like(TABLE), "total comes to the host: give out="),
            (
                (array(TABLE.astype(np.int64)), array(SHIFT)),
                None,
                "table is copied through the host in axes=columns",
            ),
        ):
            with pytest.raises(UsageError, match=f"adder cannot be captured into a CUDA graph: {reason}"):
                kernel(*given, out=out)
        with pytest.raises(UsageError, match="prepare before a CUDA graph is captured"):
            kernel.prepare(array(TABLE))
        elsewhere = array(SHIFT)
        elsewhere.stream = 9
        with pytest.raises(UsageError, match="shift is made on another stream"):
            kernel(array(TABLE), elsewhere)


def test_a_plan_is_refused(world: World, tmp_path: Path) -> None:
    folder = doubler(tmp_path)
    (folder / "family.py").write_text("def plan(execution):\n    execution.launch('doubler')\n")
    with loaded(folder) as kernel:
        np.testing.assert_array_equal(kernel(array(ramp(9))).memory, 2 * ramp(9))
        world.gpu.capture = 31
        with pytest.raises(UsageError, match="its launches are driven by plan"):
            kernel(array(ramp(9)))


def test_prepared_content_that_a_graph_reads_is_refilled_in_place_or_not_at_all(
    world: World, adder: Path
) -> None:
    with loaded(adder) as kernel, kernel.prepare(TABLE) as half, kernel.prepare(TABLE, SHIFT) as whole:
        world.gpu.capture = 31
        half(array(SHIFT))
        whole(out=array(TABLE))
        world.gpu.capture = 0
        with pytest.raises(UsageError, match="a CUDA graph reads what was prepared"):
            half.refill(table=TABLE)
        whole.refill(table=TABLE + 1)
        out = array(TABLE)
        np.testing.assert_array_equal(whole(out=out, stream=7).memory, TABLE + 1 + SHIFT)


def test_a_capture_that_fails_says_nothing_against_the_gpu(world: World, tmp_path: Path) -> None:
    with loaded(doubler(tmp_path), device=None) as kernel:
        world.gpu.failing = "cuMemAlloc failed: operation not permitted when stream is capturing"
        with pytest.raises(UsageError, match="a CUDA graph is being captured"):
            kernel(array(ramp(10)))
        world.gpu.failing = ""
        assert type(kernel(array(ramp(10)))) is Array  # not on the cpu

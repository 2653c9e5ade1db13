"""Arrays of other libraries, on a device that lends: the kernels run on the cpu, in memory that a library which
calls itself cupy says is a GPU's. What is different on a real one is in test_gpu_dispatch.py."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from lending import Array, World, doubler, loaded, make_world, ramp, tuned, write_adder

from autotune.dispatch import prepared
from autotune.dispatch import tuned_kernel as dispatch
from autotune.errors import UsageError, WorkloadError
from autotune.layout.layout import Layout


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return make_world(monkeypatch)


@pytest.fixture
def adder(tmp_path: Path) -> Path:
    return write_adder(tmp_path / "adder")


# -- in kind ------------------------------------------------------------------------------------------------


def test_an_array_is_used_where_it_is_and_the_result_is_of_its_kind(world: World, tmp_path: Path) -> None:
    with loaded(doubler(tmp_path)) as kernel:
        result = kernel(Array(ramp(1000)))
        assert type(result) is Array
        np.testing.assert_array_equal(result.memory, 2 * ramp(1000))
        assert world.gpu.seen == ["bound"]  # nothing was placed, nothing copied


def test_the_next_call_only_changes_addresses(world: World, tmp_path: Path) -> None:
    with loaded(doubler(tmp_path)) as kernel:
        kernel(Array(ramp(1000)))
        for start in range(3):
            np.testing.assert_array_equal(kernel(Array(ramp(1000, start))).memory, 2 * ramp(1000, start))
        assert world.gpu.seen == ["bound"]
        np.testing.assert_array_equal(kernel(Array(ramp(999))).memory, 2 * ramp(999))
        np.testing.assert_array_equal(kernel(Array(ramp(1000, 5))).memory, 2 * ramp(1000, 5))
        assert world.gpu.seen == ["bound", "bound"]  # the first is still there


def test_options_and_scalars_that_stay_take_the_short_way(
    world: World, adder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named again with the same values they are not read; with others, or as others, they are."""
    read: list[Any] = []
    request = dispatch.request
    monkeypatch.setattr(dispatch, "request", lambda *given: read.append(given) or request(*given))
    table, shift = np.arange(12, dtype=np.int32).reshape(3, 4), np.arange(4, dtype=np.int32)

    def is_right(count: int, **named: Any) -> None:
        made = kernel(Array(table), Array(shift), **named)
        expected = table + named.get("sign", 1) * shift + int(named.get("bias", 0))
        np.testing.assert_array_equal(made.memory, expected)
        assert len(read) == count

    with loaded(adder) as kernel:
        for _ in range(3):
            is_right(1, bias=5)
        for _ in range(2):
            is_right(2, bias=6)
        is_right(3)
        is_right(3)
        for _ in range(2):
            is_right(4, sign=-1, bias=6)
        is_right(5, sign=-1)
        for count in (6, 7):
            is_right(count, bias=np.array(7))  # it may change in place
        with pytest.raises(WorkloadError, match="bias"):
            kernel(Array(table), Array(shift), bias=2.5)
        with pytest.raises(UsageError, match="bais"):
            kernel(Array(table), Array(shift), bais=7)


def test_prepared_with_a_scalar_that_stays(
    world: World, adder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, shift = np.arange(12, dtype=np.int32).reshape(3, 4), np.arange(4, dtype=np.int32)
    with loaded(adder) as kernel, kernel.prepare(table, bias=3) as handle:
        for bias in (3, 3, 4, 4, 3):
            made = handle(Array(shift)) if bias == 3 else handle(Array(shift), bias=bias)
            np.testing.assert_array_equal(made.memory, table + shift + bias)
        monkeypatch.setattr(prepared, "request", None)
        np.testing.assert_array_equal(handle(Array(shift)).memory, table + shift + 3)


def test_a_result_goes_where_it_is_told(world: World, tmp_path: Path) -> None:
    with loaded(doubler(tmp_path)) as kernel:
        out, other, host = Array(ramp(1000)), Array(ramp(1000)), ramp(1000)
        for _ in range(2):
            assert kernel(Array(ramp(1000, 1)), out=out) is out
            assert kernel(Array(ramp(1000, 2)), out=other) is other
            assert kernel(Array(ramp(1000, 3)), out={"y": host}) is host
            for start, array in enumerate((out.memory, other.memory, host), 1):
                np.testing.assert_array_equal(array, 2 * ramp(1000, start))
                array[:] = 0
        assert kernel(ramp(1000, 4), out=out) is out
        np.testing.assert_array_equal(out.memory, 2 * ramp(1000, 4))
        assert kernel(ramp(1000, 5), out=host) is host
        np.testing.assert_array_equal(host, 2 * ramp(1000, 5))
        assert type(kernel(ramp(1000))) is np.ndarray


def test_an_out_that_does_not_fit_is_refused(world: World, tmp_path: Path) -> None:
    with loaded(doubler(tmp_path)) as kernel:
        x = Array(ramp(10))
        for out, reason in (
            (Array(ramp(9)), r"of shape \(10,\), an array of float32 of shape \(9,\)"),
            (np.zeros(10), "an array of float64"),
            ([0.0] * 10, "y is a list"),
        ):
            with pytest.raises(WorkloadError, match=reason):
                kernel(x, out=out)
        gaps = Array(ramp(20))
        gaps.memory = gaps.memory[::2]
        with pytest.raises(WorkloadError, match="gaps"):
            kernel(x, out=gaps)
        with pytest.raises(UsageError, match="'z', which is no output of doubler"):
            kernel(x, out={"z": x})


@pytest.mark.parametrize("memory", ["texture", "constant"])
def test_layouts_in_other_memory(memory: str, world: World, tmp_path: Path) -> None:
    with loaded(doubler(tmp_path, memory)) as kernel:
        for start in range(3):
            np.testing.assert_array_equal(kernel(Array(ramp(1000, start))).memory, 2 * ramp(1000, start))
            np.testing.assert_array_equal(kernel(ramp(1000, start)), 2 * ramp(1000, start))


def test_what_cannot_be_done_there_goes_through_the_host_and_is_said_once(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "autotune"), loaded(doubler(tmp_path)) as kernel:
        x = Array(np.arange(100))
        for _ in range(3):
            np.testing.assert_array_equal(kernel(x).memory, 2 * ramp(100))
    said = [record.getMessage() for record in caplog.records if "through the host" in record.getMessage()]
    assert said == ["doubler: x is copied through the host: elements of int64, and float32 is declared"]
    with pytest.raises(WorkloadError, match="2 dimensions given, 1 needed"):
        kernel.bind(Array(np.zeros((2, 2), np.float32)))


def test_allpairs_packs_on_the_device(world: World) -> None:
    x = np.random.default_rng(3).integers(0, 3, (37, 101), np.int32)
    expected = (x[:, None] != x[None]).sum(-1)
    with tuned("allpairs") as kernel:
        for given in (Array(x), Array(x.astype(np.int8)), Array(np.asfortranarray(x))):
            np.testing.assert_array_equal(kernel(given).memory, expected)
        assert "upload" not in world.gpu.seen
        np.testing.assert_array_equal(kernel(Array(x), missing="masked").memory, expected)


class DLPackOnly:
    """Shows nothing but DLPack."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.memory.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


def test_an_array_that_only_knows_dlpack(world: World, tmp_path: Path) -> None:
    out = Array(ramp(1000))
    with loaded(doubler(tmp_path)) as kernel:
        for start in range(3):
            assert kernel(DLPackOnly(ramp(1000, start)), out=out) is out
            np.testing.assert_array_equal(out.memory, 2 * ramp(1000, start))
        assert "upload" not in world.gpu.seen
        assert kernel(DLPackOnly(np.arange(1000)), out=out) is out  # fetched by the device, for its elements
        np.testing.assert_array_equal(out.memory, 2 * ramp(1000))


def test_an_array_on_another_gpu_is_refused(world: World, tmp_path: Path) -> None:
    x, out = Array(ramp(10)), Array(ramp(10))
    x.device.id = 1
    with loaded(doubler(tmp_path)) as kernel:
        with pytest.raises(WorkloadError, match=r"x is on cuda:1 and the kernel on cuda:0.*device='cuda:1'"):
            kernel(x, out=out)
        with pytest.raises(WorkloadError, match="y is on cuda:1"):
            kernel(out, out=x)


def test_layouts_of_the_hosts_arrays_are_applied_on_the_device(
    world: World, adder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Layout.apply

    def apply(self: Layout, array: Any) -> Any:
        assert len(self.axes) == 1, f"{self.data.name} was moved about on the host"
        return plain(self, array)

    x = np.random.default_rng(3).integers(0, 3, (37, 101), np.int32)
    table, shift = np.arange(12, dtype=np.int32).reshape(3, 4), np.array([5, 6, 7, 8], np.int32)
    with tuned("allpairs") as kernel, loaded(adder) as add:
        with monkeypatch.context() as patch:
            patch.setattr(Layout, "apply", apply)
            for k in range(3):
                turned = np.roll(x, k, axis=1)
                np.testing.assert_array_equal(kernel(turned), (turned[:, None] != turned[None]).sum(-1))
            handle = add.prepare(table)
            np.testing.assert_array_equal(handle(shift), table + shift)
        with add.prepare(np.asfortranarray(table), shift) as handle:
            np.testing.assert_array_equal(handle(), table + shift)
    assert world.gpu.seen.count("upload") >= 2  # the calls after the first, into room that was kept


# -- streams ------------------------------------------------------------------------------------------------


def test_a_call_runs_on_the_callers_stream(world: World, tmp_path: Path) -> None:
    with loaded(doubler(tmp_path)) as kernel:
        x = Array(ramp(10))
        kernel(x)
        world.stream = x.stream = 71
        kernel(x)
        kernel(x)
        assert [s for s in world.gpu.seen if s != "bound"] == [("on", 71), ("on", 71)]
        world.gpu.seen.clear()
        kernel(x, stream=SimpleNamespace(__cuda_stream__=lambda: (0, 72)))
        assert world.gpu.seen[:2] == [("on", 72), ("wait for", 71)]  # it was made on another one
        with pytest.raises(UsageError, match="is no stream"):
            kernel(x, stream="0")


# -- what stays ---------------------------------------------------------------------------------------------


def test_prepared_data_are_stored_once(world: World, adder: Path) -> None:
    table, shift = np.arange(12, dtype=np.int32).reshape(3, 4), np.array([5, 6, 7, 8], np.int32)
    with loaded(adder) as kernel:
        with kernel.prepare(table) as handle:
            with pytest.raises(UsageError, match="shift of adder were not prepared"):
                handle.execution  # noqa: B018 - it raises
            for k in range(3):
                np.testing.assert_array_equal(handle(shift + k), table + shift + k)
                np.testing.assert_array_equal(handle(Array(shift + k)).memory, table + shift + k)
            np.testing.assert_array_equal(handle(shift=shift, bias=100), table + shift + 100)
            np.testing.assert_array_equal(handle(shift, sign=-1), table - shift)
            with pytest.raises(UsageError, match="table was prepared"):
                handle(shift, table=table)
        placed = world.gpu.seen.count("place")
        with kernel.prepare(Array(table)) as handle:
            assert type(handle(shift)) is Array
            for k in range(5):
                np.testing.assert_array_equal(handle(Array(shift * k)).memory, table + shift * k)
        assert world.gpu.seen.count("place") == placed + 2  # the table, and the first shift of the host
        with pytest.raises(UsageError, match="closed"):
            handle(shift)


def test_all_prepared_is_called_with_nothing(world: World, adder: Path) -> None:
    table, shift = np.arange(12, dtype=np.int32).reshape(3, 4), np.array([5, 6, 7, 8], np.int32)
    with loaded(adder) as kernel:
        handle = kernel.prepare(Array(table), Array(shift), bias=3)
        out = Array(np.zeros_like(table))
        assert handle(out=out) is out
        np.testing.assert_array_equal(out.memory, table + shift + 3)
        bound = world.gpu.seen.count("bound")
        np.testing.assert_array_equal(handle().memory, table + shift + 3)
        np.testing.assert_array_equal(handle().memory, table + shift + 3)
        assert world.gpu.seen.count("bound") == bound
        np.testing.assert_array_equal(handle(sign=-1, out=table.copy()), table - shift + 3)
        with pytest.raises(UsageError, match="from an array on the GPU"):
            handle.refill(shift=shift)
        host = kernel.prepare(table, shift)
        host.refill(shift=shift + 1)
        np.testing.assert_array_equal(host(), table + shift + 1)
        host.execution.run()
        assert host.variant.configuration["axes"] == "columns"
        beside = host.prepare_other(kernel.bind(table=host._kept.arrays["table"], shift=shift * 0))
        np.testing.assert_array_equal(beside(), table)
    handle.close()  # the kernel closed it already


def test_handles_beside_each_other_share_what_both_were_given(world: World, adder: Path) -> None:
    table, shift = np.arange(12, dtype=np.int32).reshape(3, 4), np.arange(4, dtype=np.int32)
    on_gpu = Array(np.repeat(table, 2, axis=1))
    spread = SimpleNamespace(
        __cuda_array_interface__={**on_gpu.__cuda_array_interface__, "shape": (3, 4), "strides": (32, 8)}
    )
    with loaded(adder) as kernel:
        handle = kernel.prepare(kernel.bind(table=spread, shift=shift))
        world.gpu.seen.clear()
        beside = handle.prepare_other(kernel.bind(table=spread, shift=shift + 1))
        assert world.gpu.seen.count("place") == 1  # of the shift
        np.testing.assert_array_equal(handle(), table + shift)
        np.testing.assert_array_equal(beside(), table + shift + 1)


def test_more_sizes_than_are_kept_ready(world: World, adder: Path) -> None:
    with loaded(adder) as kernel:
        for m in [*range(1, 20), *range(1, 20)]:
            table, shift = np.ones((2, m), np.int32), np.arange(m, dtype=np.int32)
            np.testing.assert_array_equal(kernel(Array(table), Array(shift)).memory, table + shift)

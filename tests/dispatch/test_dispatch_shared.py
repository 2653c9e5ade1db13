"""What calls share: threads, memory that runs out, a GPU that fails; on a device that lends (lending.py)."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lending import Array, World, doubler, loaded, make_world, ramp, write_adder

import autotune
from autotune.device.backend import LaunchError


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return make_world(monkeypatch)


@pytest.fixture
def adder(tmp_path: Path) -> Path:
    return write_adder(tmp_path / "adder")


# -- threads ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["lent", "host"])
def test_eight_threads(kind: str, world: World, tmp_path: Path) -> None:
    """1,000 calls each of which nothing may be another's: sizes, arrays and results of its own."""

    def calls(thread: int) -> int:
        right = 0
        for k in range(1000):
            x = ramp(16 + thread % 3, 10 * thread + k)
            y = kernel(Array(x)).memory if kind == "lent" else kernel(x)
            right += bool((y == 2 * x).all())
        return right

    with loaded(doubler(tmp_path)) as kernel, ThreadPoolExecutor(8) as threads:
        assert list(threads.map(calls, range(8))) == [1000] * 8


def test_eight_threads_share_a_handle(world: World, adder: Path) -> None:
    table = np.arange(12, dtype=np.int32).reshape(3, 4)

    def calls(thread: int) -> bool:
        shifts = [np.arange(4, dtype=np.int32) * (thread + k) for k in range(50)]
        return all(
            (handle(Array(s)).memory == table + s).all() and (handle(s).memory == table + s).all()
            for s in shifts
        )

    with loaded(adder) as kernel, kernel.prepare(Array(table)) as handle, ThreadPoolExecutor(8) as threads:
        assert all(threads.map(calls, range(8)))


# -- a GPU that fails ---------------------------------------------------------------------------------------


def test_a_failing_gpu_leaves_the_call_to_the_cpu(world: World, tmp_path: Path) -> None:
    with loaded(doubler(tmp_path), device=None) as kernel:
        assert kernel(ramp(10))[1] == 2
        world.gpu.failing = "an illegal memory access was encountered"
        with pytest.warns(UserWarning) as told:
            np.testing.assert_array_equal(kernel(Array(ramp(10))), 2 * ramp(10))
        assert "Host GPU failed, running on the cpu from now on: an illegal memory access" in str(
            told[0].message
        )
        assert "no usable policy file" in str(told[1].message)
        np.testing.assert_array_equal(kernel(ramp(10)), 2 * ramp(10))
        assert world.opened == ["auto", "cpu"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        named = autotune.load(tmp_path / "doubler", device="cuda")
    with named, pytest.raises(LaunchError, match="illegal"):
        named(ramp(10))


def test_a_closed_kernel_says_so(world: World, tmp_path: Path) -> None:
    kernel = loaded(doubler(tmp_path))
    kernel(Array(ramp(10)))
    kernel.close()
    kernel.close()
    with pytest.raises(autotune.AutotuneError, match="was closed; load it again"):
        kernel(Array(ramp(10)))


def test_what_is_kept_ready_gives_way_when_memory_runs_out(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device has room for three arrays of the host with their results."""
    held: list[int] = []
    place = type(world.gpu).place

    def scarce(gpu: Any, stored: Any, module: Any = None, guard: int = 0) -> Any:
        if len(held) >= 6:
            raise LaunchError("cannot place: out of memory")
        made = place(gpu, stored, module, guard)
        held.append(id(made))
        made.free = lambda: held.remove(id(made))
        return made

    monkeypatch.setattr(type(world.gpu), "place", scarce)
    with loaded(doubler(tmp_path)) as kernel:
        for count in (10, 11, 12, 13, 14, 10):
            np.testing.assert_array_equal(kernel(ramp(count)), 2 * ramp(count))
        held.extend([0] * 9)  # somebody else's
        with pytest.raises(LaunchError, match="out of memory"):
            kernel(ramp(15))
        del held[-9:]
        np.testing.assert_array_equal(kernel(ramp(15)), 2 * ramp(15))
    assert not held

"""Which device calls run on: the first GPU, or the cpu where there is none that works."""

import sys
from pathlib import Path

import numpy as np
import pytest
from fakes import write_family
from lending import Array, World, make_world

import autotune
from autotune.device import CpuBackend
from autotune.errors import DeviceError

pytestmark = pytest.mark.filterwarnings("ignore:no usable policy file")
CPU = CpuBackend(1).device.name


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return make_world(monkeypatch)


@pytest.fixture
def family(tmp_path: Path) -> Path:
    return write_family(tmp_path / "doubler")


def called(kernel: autotune.TunedKernel) -> str:
    """Where a call with numbers of the host runs."""
    x = np.arange(10, dtype=np.float32)
    np.testing.assert_array_equal(kernel(x), 2 * x)
    return kernel.device


def test_without_a_gpu_it_is_the_cpu_with_a_warning(family: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda", None)
    with pytest.warns(UserWarning, match="running on the cpu: ") as told:
        kernel = autotune.load(family)
    assert {warning.filename for warning in told} == {__file__}  # at the line that calls
    with kernel:
        assert called(kernel) == CPU
    with pytest.raises(DeviceError, match="PyCUDA is not usable"):
        autotune.load(family, device="cuda")


def test_a_gpu_that_fails_leaves_calls_to_the_cpu(world: World, family: Path) -> None:
    with autotune.load(family) as kernel:
        assert called(kernel) == "Host GPU"
        world.gpu.failing = "unspecified launch failure"
        with pytest.warns(UserWarning, match="Host GPU failed, running on the cpu from now on: unspecified"):
            assert called(kernel) == CPU
        assert called(kernel) == CPU
        assert world.opened == ["auto", "cpu"]
        given = kernel(Array(np.ones(10, np.float32)))
        np.testing.assert_array_equal(given, np.full(10, 2, np.float32))


def test_a_gpu_that_was_named_and_fails_is_an_error(world: World, family: Path) -> None:
    with autotune.load(family, device="cuda") as kernel:
        world.gpu.failing = "unspecified launch failure"
        with pytest.raises(DeviceError, match="unspecified launch failure"):
            kernel(np.ones(10, np.float32))
        assert world.opened == ["cuda"]

"""Constant memory of a binary: the window that its kernels may not read, and arrays of the source."""

from pathlib import Path
from typing import Any

import pytest

from autotune.device.backend import LaunchError
from autotune.device.cuda.memory import CudaModule, constant_window


class Failed(Exception):
    """What a driver raises."""


class Driver:
    Error = Failed


class Binary:
    def __init__(self, problem: str) -> None:
        self._problem = problem

    def get_global(self, _symbol: str) -> tuple[int, int]:
        if self._problem:
            raise Failed(self._problem)
        return 4096, 65536


def test_a_window_that_the_compiler_left_out_is_none():
    assert constant_window(Driver, Binary("")) == 4096
    assert constant_window(Driver, Binary("cuModuleGetGlobal failed: named symbol not found")) is None
    with pytest.raises(Failed, match="invalid context"):
        constant_window(Driver, Binary("cuModuleGetGlobal failed: invalid context"))


@pytest.mark.parametrize(
    ("image", "problem", "found"),
    [
        (b"\0weights\0", "", (4096, 65536)),
        (b"\0other\0", "", None),  # the compiler left it out
        (b"\0_ZN38_INTERNAL_0b_4_k_cu_conv7weightsE\0", "", (4096, 65536)),
        (b"\0weights\0", "named symbol not found", "declare it without static"),
    ],
)
def test_an_array_of_the_source_is_found_by_its_name_in_the_binary(
    image: bytes, problem: str, found: object, tmp_path: Path
) -> None:
    path = tmp_path / "k.cubin"
    path.write_bytes(image)
    window: Any = None
    module = CudaModule(path, Binary(problem), window, {}, driver=Driver)
    if isinstance(found, str):
        with pytest.raises(LaunchError, match=found):
            module.variable("weights")
    else:
        assert module.variable("weights") == module.variable("weights") == found

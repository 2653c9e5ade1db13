"""Constant memory of a binary whose kernels read none of it."""

import pytest

from autotune.device.cuda.memory import constant_window


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

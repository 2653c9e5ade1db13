"""How far a result is off, by hand."""

import math

import numpy as np
import pytest

from autotune.measure.deviation import relative_error


@pytest.mark.parametrize(
    ("got", "expected", "error"),
    [
        ([1, 2, 4], [1, 2, 4], 0),
        ([1, 2.5, 4], [1, 2, 4], 0.125),  # over the largest magnitude, not over its own
        ([1, 2, -4], [1, 2, 4], 2),
        ([0.25, 0], [0, 0], 0.25),
        ([1, 7, math.nan], [1, math.inf, math.nan], 0),  # what is not finite does not count
        ([1, math.inf], [1, 2], None),
        ([math.nan, 2], [1, 2], None),
        ([1.0], [math.nan], None),
    ],
)
def test_relative_error(got: list[float], expected: list[float], error: float | None) -> None:
    assert relative_error(np.array(got, np.float32), np.array(expected, np.float32)) == error

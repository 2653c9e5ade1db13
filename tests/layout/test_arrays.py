"""Inputs as they were declared."""

import numpy as np
import pytest
from layouts import data, record

from autotune.errors import WorkloadError
from autotune.layout.arrays import canonical


@pytest.mark.parametrize("declared", [data("int32"), record("float32", "uint32")], ids=["plain", "record"])
def test_what_is_as_declared_stays_the_same_object(declared):
    """Arrays on a device are shared by those who give the same object."""
    array = np.zeros(4, np.dtype(declared.dtype.descr if declared.record else declared.dtype.str))
    assert canonical(declared, array) is array
    assert canonical(declared, array[::2]).flags.c_contiguous


def test_what_is_not_becomes_it():
    assert canonical(data("int32"), [1, 2]).dtype == np.int32
    with pytest.raises(WorkloadError, match=r"value 300 is outside the range of uint8"):
        canonical(data("uint8"), [300])


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("float32", np.array([1e300]), "values of float64 are beyond the range of float32: scale them"),
        (
            "float32",
            np.array([2**24 + 1]),
            r"int64 have more digits than float32 holds.* array.astype\('float32'\)",
        ),
        ("float32", np.array([2**63 - 1]), "more digits than float32 holds"),
        ("float64", np.ma.array([1.0, 2.0], mask=[False, True]), r"masked elements.* array.filled\(0\)"),
    ],
)
def test_no_number_becomes_another_one_without_a_word(kind: str, given: np.ndarray, said: str) -> None:
    with pytest.raises(WorkloadError, match=said):
        canonical(data(kind), given)


@pytest.mark.parametrize(
    "given",
    [np.array([0.1, np.inf, np.nan]), np.array([2**24, -7]), np.ma.array([1.0, 2.0]), np.array([True])],
)
def test_rounding_is_what_a_narrower_float_does(given: np.ndarray) -> None:
    np.testing.assert_array_equal(canonical(data("float32"), given), np.asarray(given).astype(np.float32))

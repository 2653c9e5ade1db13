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

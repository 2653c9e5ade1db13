"""Suffix arrays, in linear space and near linear time, by the one package that only this family needs."""

import numpy as np
from numpy.typing import NDArray

from autotune.family import UsageError, pip_install

__all__ = ["suffix_array"]


def suffix_array(text: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Where the suffixes of ``text`` begin, in their order; ``text`` is contiguous and may be written to. Raises
    UsageError where pydivsufsort is not installed."""
    try:
        from pydivsufsort import divsufsort  # type: ignore[import-untyped]  # noqa: PLC0415  # of an extra
    except ImportError:
        raise UsageError(
            "the suffix array of a reference needs pydivsufsort, which is not installed: "
            f"{pip_install('mummergpu')}"
        ) from None
    found: NDArray[np.int32] = divsufsort(text)
    return found

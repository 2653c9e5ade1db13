"""Where the leaves that begin with each word of k letters lie: a table for the upper levels of a suffix tree."""

import ctypes
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.family import library

__all__ = ["table_letters", "tables"]

# 4 bytes an entry: 256 MiB.
_MOST_LETTERS = 13

_SOURCE = Path(__file__).resolve().with_suffix(".cpp")


def table_letters(characters: int, min_match_length: int) -> tuple[int, int]:
    """How many letters the words of the coarse and of the fine table have, for a text of so many characters: the words
    are at most a quarter as many as letters, and 4 to 16 times as many; none is longer than a match has to be."""
    even = max(1, (max(1, characters - 1).bit_length() + 1) // 2)  # 4**even >= characters
    fine = min(even + 1, min_match_length, _MOST_LETTERS)
    return min(max(1, even - 1), fine), fine


def tables(codes: NDArray[np.uint8], min_match_length: int) -> dict[str, NDArray[np.uint32]]:
    """``coarse_table`` and ``fine_table`` of ``codes``, as family.yaml declares them: (4**k + 1,) uint32, entry w how
    many leaves come before the word w, whose first letter counts most. A suffix that ends within a word counts as if
    T followed, after which it comes. Raises CompilerError when there is no C++ compiler or it fails."""
    coarse, fine = table_letters(codes.size, min_match_length)
    text = np.ascontiguousarray(codes, np.uint8)
    table = np.zeros(4**fine + 1, np.uint32)
    library(_SOURCE).tables_count(
        ctypes.c_void_p(text.ctypes.data),
        ctypes.c_uint64(text.size),
        ctypes.c_uint32(fine),
        ctypes.c_void_p(table.ctypes.data),
    )
    return {"coarse_table": np.ascontiguousarray(table[:: 4 ** (fine - coarse)]), "fine_table": table}

"""The order of a text's suffixes, by the host's threads: suffix_array.cpp, which the host's C++ compiler makes when it
is first needed."""

import ctypes
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import library

__all__ = ["suffix_array"]

_SEPARATOR = 4
_KEY_LETTERS, _BLOCK = 29, 64  # suffix_array.cpp
_MOST_WORD_LETTERS = 8
_MOST_RANGES = 256
_LEAST_POSITIONS, _LEAST_WORDS = 64 * _BLOCK, 64  # of a range

_SOURCE = Path(__file__).resolve().with_suffix(".cpp")


def suffix_array(text: NDArray[np.uint8], threads: int = 0) -> NDArray[np.uint32]:
    """Where the suffixes of ``text`` begin, in their order: by their letters (0 to 3) up to a separator (4), which
    comes after every letter, and separators by their positions, so that suffixes with equal letters are in the order
    of the text. Separators themselves come last. ``text`` ends with one.

    ``threads`` work, 0 stands for every core this process may use. The time grows as n log n, whatever repeats. Memory
    is 14 bytes for each character of DNA, 46 where every letter is the same. Raises MemoryError, CompilerError when
    there is no C++ compiler or it fails.
    """
    assert text.dtype == np.uint8 and text.flags.c_contiguous and text[-1] == _SEPARATOR
    with ThreadPoolExecutor(threads or len(os.sched_getaffinity(0))) as pool:
        return _Sorting(pool, text).suffixes()


class _Sorting:
    """The functions of suffix_array.cpp in their order, on ranges in threads."""

    def __init__(self, pool: ThreadPoolExecutor, text: NDArray[np.uint8]) -> None:
        length = text.size
        self._pool, self._functions = pool, library(_SOURCE)
        self._separators = np.flatnonzero(text == _SEPARATOR)
        self._letters = length - self._separators.size
        blocks = -(-length // _BLOCK) + 1
        word_letters = min(_MOST_WORD_LETTERS, max(1, (length.bit_length() - 1) // 2))
        self._arrays: dict[str, NDArray[Any]] = {
            "text": text,
            "packed": np.zeros(2 * blocks, np.uint64),
            "marks": np.zeros(blocks, np.uint64),
            "places": np.zeros(4**word_letters, np.uint32),
            "suffixes": np.empty(length, np.uint32),
            "ranks": np.empty(length, np.uint32),
            "heads": np.empty(self._letters, np.uint32),
        }
        addresses = {name: array.ctypes.data for name, array in self._arrays.items()}
        depth = word_letters + _KEY_LETTERS
        self._sort = _Sort(length=length, word_letters=word_letters, depth=depth, **addresses)

    def suffixes(self) -> NDArray[np.uint32]:
        suffixes, ranks = self._arrays["suffixes"], self._arrays["ranks"]
        last = self._letters + np.arange(self._separators.size, dtype=np.uint32)
        suffixes[self._letters :], ranks[self._separators] = self._separators, last
        positions = _ranges(ranks.size, _LEAST_POSITIONS)
        self._each("pack", positions)
        self._each("count", positions)
        self._call("places")
        self._each("deal", positions)
        words = _ranges(self._arrays["places"].size, _LEAST_WORDS)
        with _groups(self._functions, len(words)) as groups, _groups(self._functions, len(words)) as left:
            self._each("words", [(*word, group) for word, group in zip(words, groups, strict=True)])
            while any(group.count for group in groups):
                self._each("split", zip(groups, left, strict=True))
                self._each("rank", zip(groups))
                groups, left = left, groups  # noqa: PLW2901  # both are freed, whichever way round
                self._sort.depth *= 2
        return suffixes

    def _each(self, name: str, arguments: Any) -> None:
        """A call for each of ``arguments``."""
        for _ in self._pool.map(lambda given: self._call(name, *given), arguments):
            pass

    def _call(self, name: str, *arguments: Any) -> None:
        given = (ctypes.c_uint64(a) if isinstance(a, int) else ctypes.byref(a) for a in arguments)
        function = self._functions[f"suffix_array_{name}"]
        if function(ctypes.byref(self._sort), *given) and name in ("words", "split"):
            raise MemoryError(f"no memory left to sort the {self._letters:,} suffixes of a reference")


class _Sort(ctypes.Structure):
    """suffix_array.cpp: Sort."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("length", "word_letters", "depth")),
        *(
            (name, ctypes.c_void_p)
            for name in ("text", "packed", "marks", "places", "suffixes", "ranks", "heads")
        ),
    )


class _Groups(ctypes.Structure):
    """suffix_array.cpp: Groups."""

    _fields_ = (("all", ctypes.c_void_p), ("count", ctypes.c_uint64), ("room", ctypes.c_uint64))


@contextmanager
def _groups(functions: ctypes.CDLL, count: int) -> Iterator[list[_Groups]]:
    made = [_Groups() for _ in range(count)]
    try:
        yield made
    finally:
        for groups in made:
            functions.suffix_array_free(ctypes.byref(groups))


def _ranges(count: int, least: int) -> list[tuple[int, int]]:
    size = least * max(1, -(-count // (_MOST_RANGES * least)))
    return [(begin, min(begin + size, count)) for begin in range(0, count, size)]

"""Functions that tests tune: a measuring process imports this module."""

import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float32]


def scaled(
    x: Numbers, y: Numbers, factor: float, *, chunk: int, how: str = "right", other: Numbers | None = None
) -> None:
    """y = factor x, or what goes wrong."""
    if how == "crashes":
        os.abort()
    if how == "hangs":
        time.sleep(3600)
    if how == "raises":
        raise RuntimeError("no such tile")
    if how == "reads_wrong":
        y[:] = x
        return
    if how == "leaves_out":
        y[1:] = x[1:] * factor
        return
    if how == "writes_input":
        y[:] = x * factor
        x[0] += 1
        return
    for begin in range(0, len(x), chunk):
        y[begin : begin + chunk] = x[begin : begin + chunk] * factor


def accumulated(x: Numbers, total: Numbers, *, twice: bool) -> None:
    """total += x: what is read and written; ``twice`` is wrong."""
    total += x
    if twice:
        total += x


def summed(x: Numbers, *, parts: int) -> dict[str, Any]:
    """Results that are given back: a number and an array."""
    halves = np.array_split(x, parts)
    return {"sum": float(sum(half.sum(dtype=np.float64) for half in halves)), "squares": x * x}


def copied(x: Numbers, y: Numbers, *, parts: int) -> None:
    """What is in x before is in y afterwards, a pattern too."""
    y[:] = x


def ranked(x: Numbers, out: NDArray[np.int32], *, parts: int) -> None:
    """Writes whole numbers."""
    out[:] = np.argsort(x) + 1


def silent(x: Numbers, *, parts: int) -> None:
    """Neither writes nor gives anything back."""


def changing(x: Numbers, *, parts: int) -> Numbers:
    """Another shape with another configuration."""
    return x[:parts].copy()


def viewed(matrix: Numbers, sums: Numbers, *, order: str) -> None:
    """Sums of the rows of a matrix of any strides."""
    sums[:] = matrix.sum(axis=1) if order == "rows" else sum(matrix[:, j] for j in range(matrix.shape[1]))


def contiguous(matrix: Numbers, sums: Numbers, *, order: str) -> None:
    """Takes for granted that the last index is contiguous."""
    flat = np.lib.stride_tricks.as_strided(matrix, (matrix.size,), (matrix.itemsize,))
    sums[:] = flat.reshape(matrix.shape).sum(axis=1)


def gathered(links: NDArray[np.int32], values: Numbers, out: Numbers, *, parts: int) -> None:
    """out[i] = values[links[i]]."""
    out[:] = values[links]


def tensors(x: Any, mask: Any, out: Any, *, parts: int) -> Any:
    """Of torch: 16 bits, and bool."""
    out.copy_(x * mask)
    return x + x


def options_of(given: Mapping[str, Any]) -> str:
    """Not a function to tune: what arguments it has."""
    return ", ".join(given)


def halved(x: Any, out: Any, *, factor: float) -> None:
    """Rounded to the elements of ``out``."""
    out.copy_(x.float() * factor)


def fragile(x: Numbers, y: Numbers, *, parts: int) -> None:
    """Takes its process down where x is another than it was."""
    if x[0] != 0:
        os.abort()
    y[:] = x + 1


class Opened:
    """Doubles, in a process in which its libraries were opened before."""

    __name__ = "opened"
    is_open = False

    def open_libraries(self) -> None:
        Opened.is_open = True

    def __call__(self, x: Numbers, y: Numbers, *, chunk: int) -> None:
        if not Opened.is_open:
            raise RuntimeError("it was not opened")
        y[:] = x * 2

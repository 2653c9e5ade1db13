"""curve: cells one behind the other along a Morton or a Hilbert curve (host side of ``curve.cuh``).

A curve of side 2n is 2^rank curves of side n. Morton's joins them unchanged, in the order of their corners' bits;
Hilbert's turns and mirrors them so that each cell is a neighbour of the one before it: J. Skilling, "Programming the
Hilbert curve", AIP Conference Proceedings 707 (2004); the device runs that paper's loop over the bits of an index.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from autotune.errors import FamilyError, UnknownName

CURVES = ("morton", "hilbert")
_MOST_RANK = 3


@dataclass(frozen=True)
class Curve:
    """``kind`` through blocks of ``side`` cells along each axis of ``along``, which are two or three positions of a
    shape, from the slowest to the fastest; the blocks lie row by row. The side is a power of two; 0 stands for the
    smallest that takes the fewest cells along one of these axes, so that one block is as wide as the array there."""

    header: ClassVar[str] = "autotune/curve.cuh"
    kind: str
    along: tuple[int, ...]
    side: int = 0

    def side_of(self, cells: Sequence[int]) -> int:
        """Return the curve's side for an array of ``cells`` by axis."""
        return self.side or 1 << (min(cells[axis] for axis in self.along) - 1).bit_length()

    def places(self, side: int) -> NDArray[np.int64]:
        """Where each cell of a block is on the curve: one index for each axis of ``along``."""
        places = np.zeros((1,) * len(self.along), np.int64)
        while len(places) < side:
            places = _double(places, self.kind)
        return places

    def place(self, cell: Sequence[NDArray[np.int64]], side: int) -> NDArray[np.int64]:
        """As ``places``, of some cells."""
        found: NDArray[np.int64] = self.places(side)[tuple(cell)]
        return found

    @property
    def cpp(self) -> str:
        return f"autotune::{self.kind.capitalize()}"


def curve_of(value: object, shape: Sequence[str], where: str) -> Curve | None:
    """What a layout policy's value says for an array of the extents ``shape``: ``none``, or a kind and the side of a
    block behind it, or both with the extents it runs ``along`` (all, where there are two or three). Raises FamilyError,
    UnknownName."""
    told = dict(value) if isinstance(value, dict) else {"curve": value}
    names = told.pop("along", None)
    text = str(told.pop("curve", ""))
    matched = re.fullmatch(r"(morton|hilbert)([0-9]*)", text)
    if told or not (text == "none" or matched):
        known = ("none", *CURVES, *(f"{kind}<side>" for kind in CURVES), "{curve: …, along: [extents]}")
        raise UnknownName("curve layout", value, known, where)
    if not matched:
        return None
    side = int(matched[2] or 0)
    if matched[2] and (side < 2 or side & (side - 1)):
        raise FamilyError(f"{where}: curve {text}: a block's side is a power of two of at least 2")
    along = tuple(range(len(shape))) if names is None else _find_axes(names, shape, where)
    if not 2 <= len(along) <= _MOST_RANK:
        raise FamilyError(
            f"{where}: a curve runs through two or three extents, and these are {len(along)} "
            f"({', '.join(shape[axis] for axis in along)}): name those in means, as in {{curve: {text}, along: "
            f"[{', '.join(shape[:2])}]}}"
        )
    return Curve(matched[1], along, side)


def _find_axes(names: object, shape: Sequence[str], where: str) -> tuple[int, ...]:
    """The axes that are named. Raises FamilyError, UnknownName."""
    if not isinstance(names, list) or not set(names) <= set(shape):
        raise UnknownName("extents of a curve", names, shape, where)
    if len(set(shape)) < len(shape):
        raise FamilyError(
            f"{where}: the extents {', '.join(shape)} repeat, so their names do not identify the axes of a curve"
        )
    return tuple(axis for axis, name in enumerate(shape) if name in names)


def _double(places: NDArray[np.int64], kind: str) -> NDArray[np.int64]:
    """The curve of twice the side."""
    rank, half = places.ndim, len(places)
    made = np.empty((2 * half,) * rank, np.int64)
    for corner in np.ndindex((2,) * rank):
        number, part = _part(places, corner) if kind == "hilbert" else (corner, places)
        first = int("".join(map(str, number)), 2) * places.size
        np.add(part, first, out=made[tuple(slice(bit * half, (bit + 1) * half) for bit in corner)])
    return made


def _part(places: NDArray[np.int64], corner: tuple[int, ...]) -> tuple[list[int], NDArray[np.int64]]:
    """Of a Hilbert curve: the bits of the number that the part at ``corner`` has, and the curve in it."""
    axes, mirrored = list(range(len(corner))), [False] * len(corner)  # what each index is made from
    for axis, bit in enumerate(corner):
        if bit:
            mirrored[0] = not mirrored[0]
        else:
            axes[0], axes[axis] = axes[axis], axes[0]
            mirrored[0], mirrored[axis] = mirrored[axis], mirrored[0]
    part = np.flip(places, tuple(axis for axis, is_mirrored in enumerate(mirrored) if is_mirrored))
    part = part.transpose(np.argsort(axes))
    number = [sum(corner[: axis + 1]) % 2 for axis in range(len(corner))]
    return number, places.size - 1 - part if number[-1] else part

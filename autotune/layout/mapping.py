"""Which element of the storage an index is: the order of the axes, padding, tiles, curves, steps of indices (host side
of ``mapping.cuh``, ``tile.cuh``, ``curve.cuh``).

The stages are always in this order. Steps, such as a swizzle, move indices to other indices. Each index is cut into
a tile and a place within it; a curve cuts the tiles' indices once more, into blocks and a place on the curve. What is
left counts the blocks, row by row. So the tile is what is closest together: blocks, then the curve, then the tile.
"""

import math
from collections.abc import Mapping as Map
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from autotune.layout.curve import Curve

TILE_HEADER = "autotune/tile.cuh"


class Step(Protocol):
    """What moves each index of an array to another one, no two to the same. ``name`` says it in a message; rows are
    rounded up to a multiple of ``span``, so that a step may leave an extent, and those that do so come last."""

    @property
    def name(self) -> str: ...
    @property
    def header(self) -> str:
        """Return the header of the layout library that declares its type."""

    @property
    def span(self) -> int: ...

    def move(self, at: Sequence[Any], axes: Sequence[int], extents: Sequence[int], /) -> list[Any]:
        """Where the index ``at`` goes: whole numbers or arrays of them, one for each axis of the array, which lie in
        the order ``axes``."""

    def cpp(self, mapping: str, axes: Sequence[int], /) -> str:
        """The C++ type of a ``mapping`` that takes this step first."""

    def host_cpp(self, axes: Sequence[int], /) -> str:
        """The same for the host of an export: C++ statements that change ``at``, of an array with ``extents``."""

    @property
    def device(self) -> Map[str, int]:
        """What transform.cu is given of it; nothing where only the host takes the step."""


@dataclass(frozen=True)
class Grid:
    """A mapping at one size, by axis of the array. ``tile`` elements of an index are in a tile and ``side`` tiles in a
    block of a curve (1 where no curve runs); ``counts`` blocks are there, ``strides`` elements apart, ``elements`` in
    all, of which ``plus`` behind each row of blocks are nobody's."""

    tile: tuple[int, ...]
    side: tuple[int, ...]
    counts: tuple[int, ...]
    strides: tuple[int, ...]
    elements: int
    plus: int = 0

    @property
    def padded(self) -> tuple[int, ...]:
        """What each extent is rounded up to."""
        return tuple(math.prod(lengths) for lengths in zip(self.counts, self.side, self.tile, strict=True))

    @property
    def cut(self) -> tuple[int, ...]:
        """Split each index into block, cell and element of its tile."""
        return tuple(n for each in zip(self.counts, self.side, self.tile, strict=True) for n in each)


_MOST_GRIDS = 16  # kept of a mapping


@dataclass(frozen=True)
class Mapping:
    """``axes`` from the slowest to the contiguous one; the contiguous extent is rounded up to a multiple of
    ``padding``, and each row of blocks has ``plus`` elements more. ``tile`` has a size for each axis."""

    axes: tuple[int, ...]
    padding: int = 1
    plus: int = 0
    tile: tuple[int, ...] = ()
    curve: Curve | None = None
    steps: tuple[Step, ...] = ()

    @property
    def is_strided(self) -> bool:
        """Whether an index is a sum of strides."""
        return not (self.tile or self.curve or self.steps)

    @cached_property
    def along(self) -> tuple[int, ...]:
        """The axes of the curve, slowest first."""
        return tuple(axis for axis in self.axes if self.curve and axis in self.curve.along)

    @cached_property
    def _grids(self) -> dict[tuple[int, ...], Grid]:
        return {}

    def grid(self, extents: Sequence[int]) -> Grid:
        """At these extents. A call asks for the same one several times, and the next call again."""
        sizes = tuple(extents)
        if (grid := self._grids.get(sizes)) is None:
            if len(self._grids) >= _MOST_GRIDS:
                self._grids.clear()
            grid = self._grids[sizes] = self._make_grid(sizes)
        return grid

    def _make_grid(self, extents: Sequence[int]) -> Grid:
        tile = self.tile or (1,) * len(extents)
        side = [1] * len(extents)
        if self.curve:
            cells = [-(-n // size) for n, size in zip(extents, tile, strict=True)]
            for axis in self.along:
                side[axis] = self.curve.side_of(cells)
        steps = [size * length for size, length in zip(tile, side, strict=True)]
        unit = math.prod(steps)  # elements of a block
        last = self.axes[-1]
        rounded = math.lcm(steps[last], self.padding, *(each.span for each in self.steps))
        counts = [-(-n // step) for n, step in zip(extents, steps, strict=True)]
        counts[last] = -(-extents[last] // rounded) * rounded // steps[last]
        strides, apart = [0] * len(extents), unit
        for axis in reversed(self.axes):
            strides[axis] = apart
            apart *= counts[axis]
            apart += self.plus if axis == last else 0
        return Grid(tuple(tile), tuple(side), tuple(counts), tuple(strides), apart, self.plus)

    def element(self, indices: Sequence[Any], extents: Sequence[int]) -> Any:
        """The element at ``indices``, whole numbers or arrays of them, one for each axis."""
        grid, at = self.grid(extents), self._move(indices, extents)
        element: Any = 0
        cell: list[Any] = []
        inner = 1
        for axis in reversed(self.axes):
            tiled, within = at[axis] // grid.tile[axis], at[axis] % grid.tile[axis]
            element = element + tiled // grid.side[axis] * grid.strides[axis] + within * inner
            inner *= grid.tile[axis]
            if axis in self.along:
                cell.insert(0, tiled % grid.side[axis])
        if self.curve:
            element = element + self.curve.place(cell, grid.side[self.along[0]]) * inner
        return element

    # -- whole arrays, as they are moved on the host ------------------------------------------------------

    def arrange(self, array: NDArray[Any]) -> NDArray[Any]:
        """The elements of ``array`` in the order in which they are stored; zeros where none is."""
        grid = self.grid(array.shape)
        if self.steps or grid.padded != array.shape:
            padded = np.zeros(grid.padded, array.dtype)
            padded[self._find_elements(array.shape)] = array
            array = padded
        blocks = array.reshape(grid.cut).transpose(self._order)
        if self.curve:
            line = blocks.reshape(-1, math.prod(grid.side), math.prod(grid.tile))
            blocks = np.empty_like(line)
            blocks[:, self._places(grid)] = line
        rows = blocks.reshape(-1, grid.counts[self.axes[-1]] * math.prod(grid.side) * math.prod(grid.tile))
        if grid.plus:
            rows = np.concatenate([rows, np.zeros((len(rows), grid.plus), rows.dtype)], axis=1)
        return rows.reshape(-1)

    def restore(self, stored: NDArray[Any], extents: Sequence[int]) -> NDArray[Any]:
        """The array of ``extents`` back from its elements as they are stored: the inverse of ``arrange``."""
        grid = self.grid(extents)
        row = grid.counts[self.axes[-1]] * math.prod(grid.side) * math.prod(grid.tile)
        line = stored.reshape(-1, row + grid.plus)[:, :row]
        if self.curve:
            line = line.reshape(-1, math.prod(grid.side), math.prod(grid.tile))[:, self._places(grid)]
        blocks = line.reshape([grid.cut[place] for place in self._order])
        array = blocks.transpose(np.argsort(self._order)).reshape(grid.padded)
        found: NDArray[Any] = array[self._find_elements(extents)]
        return found

    @cached_property
    def _order(self) -> tuple[int, ...]:
        """Where the indices of ``Grid.cut`` go: blocks, cells, elements of a tile, each from the slowest axis on."""
        return tuple(3 * axis + part for part in range(3) for axis in self.axes)

    def _places(self, grid: Grid) -> NDArray[np.int64]:
        assert self.curve is not None
        return self.curve.places(grid.side[self.along[0]]).reshape(-1)

    def _move(self, indices: Sequence[Any], extents: Sequence[int]) -> list[Any]:
        """Where the steps lead to."""
        at = list(indices)
        for step in self.steps:
            at = step.move(at, self.axes, extents)
        return at

    def _find_elements(self, extents: Sequence[int]) -> tuple[Any, ...]:
        """Where the elements of an array of these extents are among those that pad it."""
        inside = tuple(map(slice, extents))
        return tuple(self._move(np.ogrid[inside], extents)) if self.steps else inside

    # -- what the compiler needs to know ------------------------------------------------------------------

    def compute_known_strides(self, extents: Sequence[int]) -> tuple[int, ...]:
        """The strides at ``extents``, 0 where an extent of 0, which is not known yet, decides one."""
        if self.curve and not self.curve.side and not all(extents[axis] for axis in self.along):
            return (0,) * len(extents)
        strides = list(self.grid([extent or 1 for extent in extents]).strides)
        unknown = [place for place, axis in enumerate(self.axes) if not extents[axis]]
        for axis in self.axes[: max(unknown, default=0)]:
            strides[axis] = 0
        return tuple(strides)

    def cpp(self, extents: str, strides: str) -> str:
        """The C++ type, of the types of its extents and strides."""
        tile = self.tile or (1,) * len(self.axes)
        sizes = f"autotune::Extents<{', '.join(map(str, tile))}>"
        made = f"autotune::Strided<{extents}, {strides}>"
        if self.curve:
            along = ", ".join(map(str, self.along))
            made = f"autotune::Curved<{self.curve.cpp}, {self.curve.side}, {sizes}, {made}, {along}>"
        if self.tile:
            within = ", ".join(map(str, Mapping(self.axes).compute_known_strides(tile)))
            made = (
                f"autotune::Tiled<autotune::Strided<{sizes}, autotune::Strides<unsigned, {within}>>, {made}>"
            )
        for step in reversed(self.steps):
            made = step.cpp(made, self.axes)
        return made

    @property
    def headers(self) -> tuple[str, ...]:
        """Those of the layout library that the type needs beyond ``array.cuh``."""
        tile, curve = (TILE_HEADER,) * bool(self.tile), (self.curve.header,) if self.curve else ()
        return (*tile, *curve, *(step.header for step in self.steps))

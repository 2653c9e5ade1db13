"""The host's transform, by cases: it puts every element where the formula says that the proofs are about, and gets it
back from there.

What a shape decides in it is how many blocks lie along each axis and how much the last one lacks; all else is a
permutation that does not depend on the shape. So the cases are, for each axis: one block or several, the last one full,
one element short of that, or with one element.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
from claims import _fold
from whole import Refuted

from autotune.layout.curve import Curve
from autotune.layout.layout import Layout


def real(layout: Layout) -> Layout:
    """With the curve that an opaque one stands for."""
    curve = layout.curve
    return replace(layout, curve=Curve(curve.kind, curve.along, curve.side)) if curve else layout


def shapes(layout: Layout) -> Iterator[tuple[int, ...]]:
    """A shape for each case, as a kernel sees it."""
    mapping, rank = layout.mapping, len(layout.axes)
    units = [tile * (mapping.curve.side or 4 if mapping.curve and axis in mapping.along else 1)
             for axis, tile in enumerate(mapping.tile or (1,) * rank)]  # fmt: skip
    last = mapping.axes[-1]
    units[last] = math.lcm(units[last], mapping.padding, *(step.span for step in mapping.steps))
    few = 2 if rank > 2 else 3
    choices = [sorted({1, unit - 1, unit, unit + 1, few * unit} - {0}) for unit in units]
    if layout.lanes > 1:  # a run that is full, and one that is not
        choices[last] = sorted({*choices[last], layout.lanes - 1, layout.lanes, layout.lanes + 1})
    choices = [[size] if size else sizes for size, sizes in zip(layout.sizes, choices, strict=True)]
    for shape in product(*choices):
        if layout.grid(shape).elements <= 1 << 16:
            yield shape


def host_moves_as_it_says(layout: Layout) -> int:
    """How many cases were looked at. Raises Refuted."""
    layout, count = real(layout), 0
    line = replace(layout, dims="1d")
    for extents in shapes(layout):
        count += 1
        where = f"extents {extents}"
        numbers = np.arange(1, math.prod(extents) + 1, dtype=np.int64).reshape(extents)
        stored = layout.mapping.arrange(numbers)
        elements = layout.mapping.element(np.indices(extents, sparse=True), extents)
        expected = np.zeros(layout.grid(extents).elements, np.int64)
        expected[elements] = numbers
        _same(stored, expected, f"{where}: elements")
        _same(layout.mapping.restore(stored, extents), numbers, f"{where}: elements back")
        parts = np.arange(1, len(stored) * layout.parts + 1).reshape(len(stored), layout.parts)
        stride = layout._part_stride(len(stored))
        run = max(layout.lanes, 1)
        texels = np.zeros(-(-stride // run) * run * layout.parts, np.int64)
        expected = texels.copy()
        layout._move(parts, texels, stride, out=True)
        for part in range(layout.parts):
            expected[line.compute_address(np.arange(len(stored)), part, stride)] = parts[:, part]
        _same(texels, expected, f"{where}: texels")
        back = np.zeros_like(parts)
        layout._move(back, texels, stride, out=False)
        _same(back, parts, f"{where}: texels back")
        if layout.is_plane:
            _check_plane(layout, len(texels), where)
    return count


def _check_plane(layout: Layout, count: int, where: str) -> None:
    width, rows = layout.data.plane
    texels = np.arange(-(-count // (width * rows)) * width * rows).astype(layout._texel)
    expected = np.zeros_like(texels)
    expected[_fold(layout, np.arange(len(texels)))] = texels
    _same(layout.plane(texels).view(layout._texel), expected, f"{where}: plane")


def _same(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    if not np.array_equal(found, expected):
        raise Refuted(f"{what}: not where the formula says")

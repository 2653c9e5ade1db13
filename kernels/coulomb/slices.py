"""A map's slices on several devices: a unit is as many slices as a thread has points in."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from autotune.family import Execution, Units

__all__ = ["units_of"]


def units_of(names: Mapping[str, Any], add_slices: Callable[[Execution, int, int], None]) -> Units:
    """The cost of a unit is its evaluations: every point takes every atom, in a last unit of fewer slices those of the
    slices that are not there too. ``names`` binds extents, policies, options and scalars;
    ``add_slices(execution, first, count)`` adds all atoms to slices, which begin at zero here."""
    depth, slices = int(names["points_z"]), int(names["nz"])
    points = int(names["nx"]) * int(names["ny"])
    edges = np.minimum(np.arange(0, slices + depth, depth, dtype=np.int64), slices)
    most = names["slices_per_launch"]

    def run(execution: Execution, first: int, count: int) -> None:
        low, high = int(edges[first]), int(edges[first + count])
        execution.zero("potential", low, high - low)
        add_slices(execution, low, high - low)

    return Units(
        costs=np.full(len(edges) - 1, float(points * depth * int(names["atom"]))),
        run=run,
        batch=len(edges) - 1 if most == "all" else max(1, int(most) // depth),
        parts={"potential": edges * points},
    )

"""Inputs, launches and reference of the coulomb map family."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from autotune.family import Application, Execution, family_module, on_demand

from . import exact
from .accuracy import checked_accuracy

__all__ = ["application", "inputs", "plan", "ragged", "reference"]

_BLOCKS = 1056  # of a launch, where a level has fewer cubes: eight for each multiprocessor of a large GPU
_ATOMS = 2048  # of a block, at least, where several share those of a cube


def inputs(parameters: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """A structure and a lattice as the coulomb family takes them, and ``accuracy`` (1e-6)."""
    given = {name: value for name, value in parameters.items() if name != "accuracy"}
    made = family_module("coulomb", "inputs").inputs_of(given, root)
    atoms = made["atoms"]
    counts = np.array([made["nx"], made["ny"], made["nz"]])
    return {
        **made,
        "accuracy": checked_accuracy(parameters.get("accuracy", 1e-6)),
        "least": exact.least_size(atoms, counts, made["spacing"]),
    }


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of small inputs of the same spacing: an atom on the only point, lattices that end within a cube, one
    that most atoms are far from."""
    spacing = parameters.get("spacing", 1.0)
    for atoms, box, lattice in ((1, 1, [1, 1, 1]), (33, 8, [129, 17, 9]), (4097, 64, [17, 5, 33])):
        yield {"cloud": atoms, "box": box, "seed": atoms, "spacing": spacing, "lattice": lattice}


# ---- launches


@dataclass(frozen=True)
class Level:
    """``first`` is the level's first cube among those of all levels."""

    number: int
    first: int
    cells: int


def levels_of(counts: tuple[int, int, int], cell: int) -> list[Level]:
    """From the smallest cubes to the level that has one, or to the seventh."""
    found: list[Level] = []
    first = 0
    for number in range(7):
        edge = cell << number
        nx, ny, nz = (-(-count // edge) for count in counts)
        found.append(Level(number, first, nx * ny * nz))
        first += nx * ny * nz
        if nx * ny * nz == 1:
            break
    return found


def plan(execution: Execution) -> None:
    """Atoms are sorted; from the top level down each cube takes the atoms that are far for the first time, and what the
    cube around it has; then points."""
    names = execution.names
    execution.zero("share")
    if names["method"] == "expansions":
        execution.zero("box")
        execution.zero("starts")
        for kernel in ("find_box", "lay_grid", "count_atoms", "begin_cells", "sort_atoms"):
            execution.launch(kernel)
        execution.zero("expansions")
        execution.zero("amounts")
        _expand(execution, levels_of((names["nx"], names["ny"], names["nz"]), names["cell"]))
    execution.launch("sum_points")


def _expand(execution: Execution, levels: list[Level]) -> None:
    atoms = int(execution.names["atom"])
    for level in reversed(levels):
        at = {"level": level.number, "cells": level.cells, "first_cell": level.first}
        parts = max(1, min(_BLOCKS // level.cells, atoms // _ATOMS))
        execution.launch("expand", levels=len(levels), parts=parts, **at)
        if level is not levels[-1]:
            execution.launch("shift", first_outer=levels[level.number + 1].first, **at)


# ---- reference and application

reference = exact.reference


@on_demand
def application() -> Application:
    """A map of a structure."""
    from .app.run import run  # noqa: PLC0415  # a sweep needs none of it

    return run

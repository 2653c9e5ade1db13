"""Inputs, launches and reference of the coulomb family."""

from collections.abc import Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from autotune.family import Application, Execution, on_demand

from . import exact
from .inputs import inputs_of

__all__ = ["application", "inputs", "plan", "ragged", "reference", "units"]

inputs = inputs_of


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of small inputs of the same spacing: an atom on the only point, rows that end behind a block, more
    atoms than constant memory holds at a time. Few points near so many atoms: float32 loses digits close to one."""
    spacing = parameters.get("spacing", 1.0)
    for atoms, lattice in ((1, [1, 1, 1]), (33, [129, 17, 9]), (257, [31, 7, 5]), (4097, [5, 1, 17])):
        yield {"cloud": atoms, "seed": atoms, "spacing": spacing, "lattice": lattice}


# ---- launches


def plan(execution: Execution) -> None:
    """The map is cleared; each launch adds a window of atoms to some slices."""
    execution.zero("potential")
    run_slices(execution, 0, int(execution.names["nz"]))


def run_slices(execution: Execution, first: int, count: int) -> None:
    """Add all atoms to slices ``first`` .. ``first + count - 1``."""
    most = execution.names["slices_per_launch"]
    step = count if most == "all" else int(most)
    for first_atom, atom_count in execution.windows("atom"):
        for slice_ in range(first, first + count, step):
            launch = {"first_slice": slice_, "first_atom": first_atom, "atom_count": atom_count}
            if execution.names["precalculate"] == "slice":
                execution.launch("precalculate", **launch)
            execution.launch("coulomb", slices=min(step, first + count - slice_), **launch)


def units(_arrays: Mapping[str, NDArray[Any]], names: Mapping[str, Any]) -> Any:
    """What several devices share: see slices.units_of."""
    from .slices import units_of  # noqa: PLC0415  # one device needs none of it

    return units_of(names, run_slices)


# ---- reference and application

reference = exact.reference


@on_demand
def application() -> Application:
    """A map of a structure."""
    from .app.run import run  # noqa: PLC0415  # a sweep needs none of it

    return run

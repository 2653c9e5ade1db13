"""Inputs, orders, plan, reference and application of the eri family."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import Application, UnknownName, WorkloadError, find_data, on_demand

from . import basis, molecules
from .arrays import arrays_of
from .cost_model import calibrated, chunked, efficiency, equal_counts, whole_subclasses
from .expansion import orders
from .launches import plan, sends
from .pieces import subclass_launches, units
from .reference import reference
from .shells import placed_shells
from .transfer import transfer

__all__ = [
    "application", "calibrated", "chunked", "efficiency", "equal_counts", "inputs", "orders", "plan", "ragged",
    "reference", "sends", "subclass_launches", "transfer", "units", "whole_subclasses",
]  # fmt: skip

_PARAMETERS = ("geometry", "waters", "basis", "shells", "output", "seed")


def inputs(parameters: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """``geometry: FILE.xyz`` or ``waters: N``, a cluster on a grid; ``basis: NAME`` or FILE.json; ``shells: s`` leaves
    shells of other momenta out, ``all`` refuses them; ``output: coulomb_exchange`` makes a random symmetric density
    from ``seed``, and goes with the option of that name. Raises WorkloadError, UnknownName."""
    for name in parameters:
        if name not in _PARAMETERS:
            raise UnknownName("parameter", name, _PARAMETERS, "family eri")
    wanted = str(parameters.get("shells", "s"))
    if wanted == "sp":
        raise WorkloadError(
            "shells: sp is family eri_sp's, which takes the same parameters: name it as the family"
        )
    molecule, chosen = molecule_and_basis(parameters, root)
    placed = placed_shells(molecule, chosen, wanted)
    output = parameters.get("output", "integrals")
    if output not in ("integrals", "coulomb_exchange"):
        raise UnknownName("output", output, ("integrals", "coulomb_exchange"), "family eri")
    if output == "integrals":
        return arrays_of(placed)
    return arrays_of(placed, density(len(placed), int(parameters.get("seed", 0))))


def molecule_and_basis(
    parameters: Mapping[str, Any], root: Path, highest: int = 0
) -> tuple[molecules.Molecule, basis.Basis]:
    """What ``geometry`` or ``waters``, and ``basis`` say, with shells of momenta up to ``highest``. Raises
    WorkloadError, UnknownName."""
    if ("geometry" in parameters) == ("waters" in parameters) or "basis" not in parameters:
        raise WorkloadError(
            f"parameters {sorted(parameters)} do not make an input: give basis, and either geometry: FILE.xyz or "
            "waters: N"
        )
    if "waters" in parameters:
        count = parameters["waters"]
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 4096:
            raise WorkloadError(f"waters must be a whole number from 1 to 4096, found {count!r}")
        molecule = molecules.water_cluster(count)
    else:
        molecule = molecules.read_xyz(find_data(str(parameters["geometry"]), root))
    name = str(parameters["basis"])
    path = str(find_data(name, root)) if name.endswith(".json") else name
    return molecule, basis.read(path, molecule.elements, highest)


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of waters, of one and of several subclasses, with the output that is asked for."""
    kept = {name: value for name, value in parameters.items() if name in ("output", "seed")}
    for waters, name in ((1, "sto-3g"), (1, "6-31g"), (3, "sto-3g")):
        yield {**kept, "waters": waters, "basis": name}


def density(shells: int, seed: int) -> NDArray[np.float64]:
    """A random symmetric matrix with elements between -1 and 1."""
    made = np.random.default_rng(seed).uniform(-1, 1, (shells, shells))
    return (made + made.T) / 2


@on_demand
def application() -> Application:
    """Integrals or matrices of a molecule."""
    from .app.run import run  # noqa: PLC0415  # a sweep needs none of it

    return run

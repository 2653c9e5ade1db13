"""Inputs, orders, plan and reference of the eri_sp family."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import UnknownName, family_module

from .arrays import arrays_of
from .launches import orders, plan
from .reference import reference

__all__ = ["inputs", "orders", "plan", "ragged", "reference"]

_PARAMETERS = ("geometry", "waters", "basis", "output", "seed")
_OUTPUTS = ("integrals", "coulomb_exchange")


def inputs(parameters: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """As family eri's, with the s and p shells of the basis; one that has others is refused. ``output:
    coulomb_exchange`` makes a random symmetric density from ``seed``, and goes with the option of that name. Raises
    WorkloadError, UnknownName."""
    for name in parameters:
        if name not in _PARAMETERS:
            raise UnknownName("parameter", name, _PARAMETERS, "family eri_sp")
    molecule, basis = family_module("eri", "family").molecule_and_basis(parameters, root, highest=1)
    placed = family_module("eri", "shells").placed_shells(molecule, basis, "all")
    output = parameters.get("output", "integrals")
    if output not in _OUTPUTS:
        raise UnknownName("output", output, _OUTPUTS, "family eri_sp")
    if output == "integrals":
        return arrays_of(placed)
    return arrays_of(placed, density(placed, int(parameters.get("seed", 0))))


def density(placed: Any, seed: int) -> NDArray[np.float64]:
    """A random symmetric matrix with elements between -1 and 1."""
    functions = sum(2 * shell.momentum + 1 for _, shell in placed)
    made: NDArray[np.float64] = family_module("eri", "family").density(functions, seed)
    return made


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of waters, of one and of several numbers of primitives, with the output that is asked for."""
    kept = {name: value for name, value in parameters.items() if name in ("output", "seed")}
    for waters, name in ((1, "sto-3g"), (1, "6-31g"), (3, "sto-3g")):
        yield {**kept, "waters": waters, "basis": name}

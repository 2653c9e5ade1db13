"""A workload's parameters made atoms and a lattice."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from autotune.family import WorkloadError, find_data

from .lattice import around, centred
from .structures import Structure, read_structure, replicated

__all__ = ["inputs_of"]

_FROM_FILE = {"structure", "charge_column", "first", "copies", "gap"}
_GENERATED = {"cloud", "box", "seed"}
_LATTICE = {"spacing", "padding", "lattice"}


def inputs_of(parameters: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Atoms: ``structure: FILE`` (PQR, or PDB with ``charge_column``), of it the ``first: N``, ``copies: [x, y, z]``
    times with ``gap`` angstrom between; or ``cloud: N`` atoms spread evenly over a ``box`` of so many angstrom, charges
    uniform in -1..1, with a ``seed``. Lattice: ``spacing`` and either ``padding``, both in angstrom, or
    ``lattice: [nx, ny, nz]`` points around the middle."""
    kind = _GENERATED if "cloud" in parameters else _FROM_FILE
    if not ({"cloud", "structure"} & parameters.keys() and {"padding", "lattice"} & parameters.keys()) or (
        parameters.keys() - kind - _LATTICE
    ):
        raise WorkloadError(
            f"parameters {sorted(parameters)} do not make an input: give structure: FILE (with first, copies, gap, "
            "charge_column) or cloud: N (with box, seed), and spacing with padding or lattice: [nx, ny, nz]"
        )
    structure = _cloud(parameters) if "cloud" in parameters else _from_file(parameters, root)
    spacing = parameters.get("spacing", 1.0)
    if "lattice" in parameters:
        return centred(structure, spacing, parameters["lattice"]).inputs(structure)
    return around(structure, spacing, parameters["padding"]).inputs(structure)


def _cloud(parameters: Mapping[str, Any]) -> Structure:
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    atoms = _whole(parameters["cloud"], "cloud")
    positions = generator.uniform(0, float(parameters.get("box", 64.0)), (atoms, 3))
    return Structure(positions, generator.uniform(-1, 1, atoms))


def _from_file(parameters: Mapping[str, Any], root: Path) -> Structure:
    path = find_data(str(parameters["structure"]), root)
    read = read_structure(path, str(parameters.get("charge_column", "beta")))
    first = _whole(parameters.get("first", len(read.charges)), "first")
    taken = Structure(read.positions[:first], read.charges[:first])
    copies = parameters.get("copies", [1, 1, 1])
    if not isinstance(copies, list) or len(copies) != 3:
        raise WorkloadError(f"copies must be three whole numbers, along x, y and z, found {copies!r}")
    x, y, z = (_whole(count, "copies") for count in copies)
    return replicated(taken, (x, y, z), float(parameters.get("gap", 3.0)))


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise WorkloadError(f"{name} must be a whole number of at least 1, found {value!r}")
    return value

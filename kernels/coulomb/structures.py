"""Charged atoms from files: PQR, and PDB with the charges in the column of the temperature factor or the occupancy."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.family import UnknownName, WorkloadError

__all__ = ["CHARGE_COLUMNS", "Structure", "read_structure", "replicated"]

_PDB_COLUMNS = {"x": (30, 38), "y": (38, 46), "z": (46, 54), "occupancy": (54, 60), "beta": (60, 66)}
CHARGE_COLUMNS = ("beta", "occupancy")


@dataclass(frozen=True)
class Structure:
    """``positions`` (atoms, 3) in angstrom and ``charges`` (atoms,) in elementary charges, both float64."""

    positions: NDArray[np.float64]
    charges: NDArray[np.float64]


def read_structure(path: Path, charge_column: str = "beta") -> Structure:
    """The ATOM and HETATM records of the first model of a file.

    ``.pdb`` and ``.ent`` are PDB (wwPDB format 3.3: fixed columns), with charges where ``charge_column`` says. All else
    is PQR (APBS: fields by white space; the last five are x y z charge radius, what comes before may or may not name a
    chain). Raises WorkloadError with the line's number, UnknownName for a charge column there is not.
    """
    if charge_column not in CHARGE_COLUMNS:
        raise UnknownName("charge column", charge_column, CHARGE_COLUMNS)
    is_pdb = path.suffix.lower() in (".pdb", ".ent")
    rows = []
    try:
        with path.open(encoding="ascii") as lines:
            for number, line in _atom_lines(lines):
                row = _pdb_row(line, charge_column) if is_pdb else _pqr_row(line)
                if row is None or not np.isfinite(row).all():
                    raise WorkloadError(_refusal(path, number, line, is_pdb, charge_column))
                rows.append(row)
    except OSError as problem:
        raise WorkloadError(f"{path} cannot be read: {problem.strerror or problem}") from None
    except UnicodeDecodeError as problem:
        raise WorkloadError(
            f"{path} is no text in ASCII ({problem.reason} at byte {problem.start}), so no PQR or PDB file"
        ) from None
    if not rows:
        raise WorkloadError(f"{path} holds no atoms: a line of one begins with ATOM or HETATM")
    table = np.array(rows)
    return Structure(table[:, :3].copy(), table[:, 3].copy())


def _atom_lines(lines: Iterator[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, 1):
        if line.startswith("ENDMDL"):
            return
        if line.startswith(("ATOM", "HETATM")):
            yield number, line


def _pqr_row(line: str) -> tuple[float, ...] | None:
    """x, y, z, charge; None where the line is malformed."""
    fields = line.split()
    # Record, number, name, residue, (chain,) residue number, five figures. Where a figure is missing, what is in the
    # place of the residue number is none.
    if not (10 <= len(fields) <= 11 and re.fullmatch(r"-?\d+[A-Za-z]?", fields[-6])):
        return None
    try:
        x, y, z, charge, _radius = (float(field) for field in fields[-5:])
    except ValueError:
        return None
    return x, y, z, charge


def _pdb_row(line: str, charge_column: str) -> tuple[float, ...] | None:
    try:
        return tuple(float(line[slice(*_PDB_COLUMNS[name])]) for name in ("x", "y", "z", charge_column))
    except ValueError:
        return None


def _refusal(path: Path, number: int, line: str, is_pdb: bool, charge_column: str) -> str:
    needed = (
        f"x, y and z are needed in columns 31 to 54 and the charge in the {charge_column} column"
        if is_pdb
        else "record, number, name, residue, chain (optional), residue number, x, y, z, charge and radius are needed, "
        "with white space between them"
    )
    return f"{path}, line {number}: {line.rstrip()!r} is no atom: {needed}, all figures finite"


def replicated(structure: Structure, copies: tuple[int, int, int], gap: float) -> Structure:
    """``structure`` side by side, ``copies`` times along x, y and z with ``gap`` angstrom between the boxes."""
    size = np.ptp(structure.positions, axis=0) + gap
    grid = np.stack(np.meshgrid(*(np.arange(n) for n in copies), indexing="ij"), axis=-1).reshape(-1, 3)
    positions = (structure.positions[None] + (grid * size)[:, None]).reshape(-1, 3)
    return Structure(positions, np.tile(structure.charges, len(grid)))

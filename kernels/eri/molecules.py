"""Molecules: XYZ files, and clusters of water on a grid. Positions are in bohr."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.family import UnknownName, WorkloadError

from .basis import SYMBOLS

__all__ = ["BOHR", "Molecule", "read_xyz", "water_cluster"]

BOHR = 0.529177210903  # angstrom; CODATA 2018
_FARTHEST = 1e6  # angstrom

# Water as measured: O-H 0.9572 angstrom, H-O-H 104.52 degrees.
_BOND, _ANGLE = 0.9572, math.radians(104.52)
_GRID = 3.1  # angstrom between molecules


@dataclass(frozen=True)
class Molecule:
    """Element symbols and (atoms, 3) positions in bohr."""

    elements: tuple[str, ...]
    positions: NDArray[np.float64]


def water_cluster(count: int) -> Molecule:
    """The first ``count`` places of the smallest cube of a grid that holds so many, x slowest, 3.1 angstrom apart;
    each water has its experimental shape and the same orientation."""
    side = next(n for n in range(1, count + 1) if n**3 >= count)
    water = np.array(
        [
            [0.0, 0.0, 0.0],
            [_BOND * math.sin(_ANGLE / 2), 0.0, _BOND * math.cos(_ANGLE / 2)],
            [-_BOND * math.sin(_ANGLE / 2), 0.0, _BOND * math.cos(_ANGLE / 2)],
        ]
    )
    places = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)[:count]
    positions = (places[:, None, :] * _GRID + water[None]).reshape(-1, 3) / BOHR
    return Molecule(("O", "H", "H") * count, positions)


def read_xyz(path: Path) -> Molecule:
    """An XYZ file: the number of atoms, a comment, then symbol and x y z in angstrom in each line. Raises
    WorkloadError with the line that is wrong."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise WorkloadError(f"geometry {path} cannot be read: {problem}") from None
    head = lines[0].strip() if lines else ""
    if not (head.isascii() and head.isdigit() and len(head) < 10 and int(head) > 0):
        raise WorkloadError(f"geometry {path}, line 1: {head!r}; an XYZ file begins with its number of atoms")
    count = int(head)
    rows = lines[2 : 2 + count]
    if len(rows) < count or any(line.strip() for line in lines[2 + count :]):
        raise WorkloadError(
            f"geometry {path}: line 1 says {count} atoms, and {sum(bool(line.strip()) for line in lines[2:])} lines "
            "of atoms follow the comment in line 2"
        )
    elements, positions = [], np.empty((count, 3))
    for number, line in enumerate(rows):
        where = f"geometry {path}, line {number + 3}"
        words = line.split()
        try:
            positions[number] = [float(words[place]) for place in (1, 2, 3)]
        except (ValueError, IndexError):
            raise WorkloadError(f"{where}: {line!r}; an element and x y z in angstrom are needed") from None
        symbol = words[0].capitalize() if words else ""
        if symbol not in SYMBOLS:
            raise UnknownName("element", words[0] if words else "", SYMBOLS, where)
        if not (np.abs(positions[number]) <= _FARTHEST).all():
            raise WorkloadError(f"{where}: {line!r}; coordinates must be numbers within 1e6 angstrom")
        elements.append(symbol)
    return Molecule(tuple(elements), positions / BOHR)

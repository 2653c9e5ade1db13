"""The lattice a potential is wanted on, and atoms as the kernels take them: relative to its origin."""

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

from .structures import Structure

__all__ = ["ATOM", "MAP_BYTES_PER_POINT", "Lattice", "around", "centred"]

ATOM = np.dtype([(name, np.float32) for name in "xyzq"])
MAP_BYTES_PER_POINT = 4

_MOST_POINTS = 2**31
_FARTHEST = 1e5  # angstrom: float32 tells apart 0.01 A there, and no farther


@dataclass(frozen=True)
class Lattice:
    """Points at ``origin + (column, row, slice) * spacing``, in angstrom; ``counts`` are nx, ny, nz. ``spacing`` is a
    float32, as the kernels multiply with."""

    origin: tuple[float, float, float]
    counts: tuple[int, int, int]
    spacing: float

    @property
    def points(self) -> int:
        return math.prod(self.counts)

    def atoms(self, structure: Structure) -> NDArray[np.void]:
        """(atoms,) records of x, y, z from the origin and q, float32. Raises WorkloadError."""
        shifted = structure.positions - np.array(self.origin)
        if not (np.isfinite(shifted).all() and np.isfinite(structure.charges).all()):
            raise WorkloadError("a coordinate or a charge is not finite: every atom needs x, y, z and q")
        if (farthest := float(np.abs(shifted).max())) > _FARTHEST:
            raise WorkloadError(
                f"an atom is {farthest:g} angstrom from the lattice's origin along an axis; at most {_FARTHEST:g} "
                "can be told apart in float32: cut the structure"
            )
        atoms = np.empty(len(shifted), ATOM)
        for axis, name in enumerate("xyz"):
            atoms[name] = shifted[:, axis]
        atoms["q"] = structure.charges
        return atoms

    def inputs(self, structure: Structure) -> dict[str, Any]:
        """What a kernel takes: the atoms and the scalars."""
        nx, ny, nz = self.counts
        return {"atoms": self.atoms(structure), "nx": nx, "ny": ny, "nz": nz, "spacing": self.spacing}


def around(structure: Structure, spacing: Any, padding: Any) -> Lattice:
    """The lattice that holds every atom with at least ``padding`` angstrom to each side. Raises WorkloadError."""
    step = _spacing(spacing)
    room = _length("padding", padding)
    if room < 0:
        raise WorkloadError(f"padding is {room:g}: angstrom of at least 0 are needed")
    low, high = structure.positions.min(axis=0) - room, structure.positions.max(axis=0) + room
    nx, ny, nz = (int(n) for n in np.ceil((high - low) / step) + 1)
    return _checked(Lattice(tuple(low.tolist()), (nx, ny, nz), step))


def centred(structure: Structure, spacing: Any, counts: Any) -> Lattice:
    """A lattice of ``counts`` points along x, y and z around the middle of the structure. Raises WorkloadError."""
    step = _spacing(spacing)
    if (
        not isinstance(counts, (list, tuple))
        or len(counts) != 3
        or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in counts)
    ):
        raise WorkloadError(f"lattice must be three whole numbers of at least 1, found {counts!r}")
    middle = (structure.positions.min(axis=0) + structure.positions.max(axis=0)) / 2
    origin = middle - step * (np.array(counts) - 1) / 2
    nx, ny, nz = counts
    return _checked(Lattice(tuple(origin.tolist()), (nx, ny, nz), step))


def _spacing(value: Any) -> float:
    step = _length("spacing", value)
    if not 1e-3 <= step <= 1e3:
        raise WorkloadError(f"spacing is {step:g}: angstrom from 0.001 to 1000 are needed")
    return float(np.float32(step))


def _length(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise WorkloadError(f"{name} is {value!r}: a number in angstrom is needed") from None
    if not math.isfinite(number):
        raise WorkloadError(f"{name} is {number}: a finite number in angstrom is needed")
    return number


def _checked(lattice: Lattice) -> Lattice:
    if lattice.points >= _MOST_POINTS:
        raise WorkloadError(
            f"a lattice of {_text(lattice)} has {lattice.points:,} points, and fewer than {_MOST_POINTS:,} are "
            "possible: take a larger spacing or a smaller padding"
        )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if lattice.points * MAP_BYTES_PER_POINT > memory:
        raise WorkloadError(
            f"a lattice of {_text(lattice)} takes {lattice.points * MAP_BYTES_PER_POINT:,} bytes, and this machine has "
            f"{memory:,}: take a larger spacing or a smaller padding"
        )
    return lattice


def _text(lattice: Lattice) -> str:
    return " x ".join(str(n) for n in lattice.counts)

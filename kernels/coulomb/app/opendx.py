"""OpenDX maps, as APBS writes and VMD, PyMOL and APBS's tools read them."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..lattice import Lattice

__all__ = ["write_dx"]

_VALUES_AT_ONCE = 3 << 18


def write_dx(path: Path, lattice: Lattice, potential: NDArray[Any], about: str) -> None:
    """``potential`` (slices, rows, columns) at the points of ``lattice``: origin and spacing in angstrom, values with
    the nine digits that give a float32 back, the slices fastest (OpenDX user's guide, appendix B). ``about``
    becomes a comment. Raises OSError."""
    nx, ny, nz = lattice.counts
    origin = " ".join(f"{value:.6f}" for value in lattice.origin)
    header = "\n".join(
        [
            *(f"# {line}" for line in about.splitlines()),
            f"object 1 class gridpositions counts {nx} {ny} {nz}",
            f"origin {origin}",
            f"delta {lattice.spacing:.9g} 0 0",
            f"delta 0 {lattice.spacing:.9g} 0",
            f"delta 0 0 {lattice.spacing:.9g}",
            f"object 2 class gridconnections counts {nx} {ny} {nz}",
            f"object 3 class array type double rank 0 items {lattice.points} data follows",
        ]
    )
    values = np.ascontiguousarray(potential.transpose(2, 1, 0)).reshape(-1)
    with path.open("w", encoding="ascii") as file:
        file.write(header + "\n")
        for first in range(0, values.size, _VALUES_AT_ONCE):
            file.write(_lines(values[first : first + _VALUES_AT_ONCE]))
        file.write(
            'attribute "dep" string "positions"\n'
            'object "regular positions regular connections" class field\n'
            'component "positions" value 1\n'
            'component "connections" value 2\n'
            'component "data" value 3\n'
        )


def _lines(values: NDArray[Any]) -> str:
    """Three values a line."""
    whole, rest = divmod(values.size, 3)
    text = "%.8e %.8e %.8e\n" * whole + ("%.8e " * rest + "\n" if rest else "")
    return text % tuple(values.tolist())

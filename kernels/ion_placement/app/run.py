"""``autotune run ion_placement -i structure=FILE -i ions=SOD:200,CLA:150 -o FILE.pdb``: ions around a structure.

The potential is the coulomb family's tuned kernel's, in float64; the ions are this family's."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import TunedKernel, UnknownName, UsageError, WorkloadError, family_module

from ..exact import NOWHERE
from ..solute import excluded_near
from ..species import charges_of, parse_ions

__all__ = ["Request", "parse", "run"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """Lengths are in angstrom: how far ions stay ``from_solute``, the structure's atoms, and ``between`` each other.
    ``charges`` is where a PDB file has them."""

    structure: Path
    ions: str
    spacing: str = "1.0"
    padding: str = "10.0"
    from_solute: float = 5.0
    between: float = 5.0
    charges: str = "beta"


def parse(given: Mapping[str, str]) -> Request:
    """The texts of the command line. Raises UnknownName, UsageError."""
    names = [field.name for field in fields(Request)]
    for name in given:
        if name not in names:
            raise UnknownName("input", name, names, "family ion_placement")
    for name, what in (("structure", "FILE"), ("ions", "SOD:200,CLA:150")):
        if not given.get(name):
            raise UsageError(f"-i {name}={what} is needed: structure and ions have no default")
    parse_ions(given["ions"])
    lengths = {name: _length(name, given[name]) for name in ("from_solute", "between") if name in given}
    return Request(**{**given, **lengths, "structure": Path(given["structure"])})  # type: ignore[arg-type]


def _length(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise UsageError(f"-i {name}={text}: angstrom of at least 0 are needed")
    return number


def run(
    given: Mapping[str, str],
    output: Path | None,
    open_kernel: Callable[..., TunedKernel],
    note: Callable[[str], None],
) -> None:
    """Place what ``given`` asks for, write ``output`` as PDB and sum up through ``note``. What can be seen to be wrong
    is refused before ``open_kernel`` is called. Raises UsageError, UnknownName, WorkloadError, what the device raises,
    and OSError from writing."""
    begin = time.perf_counter()
    request = parse(given)
    if output is None:
        raise UsageError("the ions go to a PDB file: name it with -o FILE.pdb")
    names, charges = parse_ions(request.ions), charges_of(request.ions)
    structure = family_module("coulomb", "structures").read_structure(request.structure, request.charges)
    lattice = family_module("coulomb", "lattice").around(structure, request.spacing, request.padding)
    inputs = lattice.inputs(structure)
    kernel = open_kernel()
    ready = time.perf_counter()
    map_ = open_kernel("coulomb")(**inputs, precision="float64").astype(np.float64)
    open_ = excluded_near(map_, inputs["atoms"], lattice.spacing, request.from_solute)
    mapped = time.perf_counter()
    places = kernel(potential=open_, charges=charges, spacing=lattice.spacing, exclusion=request.between)
    done = time.perf_counter()
    if np.any(places == NOWHERE):
        raise WorkloadError(
            f"{int(np.sum(places != NOWHERE))} of {len(names)} ions are placed and no point is left: take fewer ions, "
            "a larger padding, or a smaller distance from_solute or between"
        )
    positions = _positions(places, lattice)
    output.write_text(_pdb(names, positions), encoding="ascii")
    nx, ny, nz = lattice.counts
    note(f"ion placement on {kernel.device}")
    note(
        f"structure    {request.structure.name}: {len(structure.charges):,} atoms, net charge "
        f"{structure.charges.sum():+.2f} e; with the ions {structure.charges.sum() + charges.sum():+.2f} e"
    )
    note(f"lattice      {nx} x {ny} x {nz} points, {lattice.spacing:g} A apart")
    note(f"ions         {len(names):,}: {request.ions}")
    note(
        f"seconds      {done - begin:.3f}: potential {mapped - ready:.3f}, ions {done - mapped:.3f}, with compiling"
    )


def _positions(places: NDArray[np.uint32], lattice: Any) -> NDArray[np.float64]:
    """(ions, 3): x, y, z in angstrom as the structure has them."""
    nx, ny, _ = lattice.counts
    lines = places.astype(np.int64)
    points = np.stack([lines % nx, lines // nx % ny, lines // (nx * ny)], axis=1)
    return np.asarray(np.array(lattice.origin) + points * lattice.spacing)


def _pdb(names: list[str], positions: NDArray[np.float64]) -> str:
    """One HETATM record for each ion (wwPDB format 3.3); residue numbers begin anew after 9,999. Raises WorkloadError
    where a coordinate does not fit in its columns."""
    if positions.min() <= -1000 or positions.max() >= 10000:
        raise WorkloadError("an ion lies beyond -999.999 .. 9999.999 angstrom, which a PDB file cannot hold")
    lines = [
        f"HETATM{number:5d} {name:<4s} {name:<4s}I{(number - 1) % 9999 + 1:4d}    {x:8.3f}{y:8.3f}{z:8.3f}"
        f"{1:6.2f}{0:6.2f}"
        for number, (name, (x, y, z)) in enumerate(zip(names, positions.tolist(), strict=True), 1)
    ]
    return "\n".join([*lines, "END", ""])

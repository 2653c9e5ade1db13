"""``autotune run coulomb -i structure=FILE -i spacing=A -i padding=A -o FILE``: the potential around a structure, as an
OpenDX map (.dx) or a numpy array (.npy)."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.family import TunedKernel, UnknownName, UsageError

from ..lattice import Lattice, around
from ..structures import CHARGE_COLUMNS, Structure, read_structure
from .opendx import write_dx

__all__ = ["Request", "parse", "potential_of", "run"]

_FORMATS = (".dx", ".npy")
_PRECISIONS = ("float32", "compensated", "float64")


@dataclass(frozen=True, kw_only=True)
class Request:
    """``spacing`` and ``padding`` are in angstrom, as they were written; ``charges`` is where a PDB file has them."""

    structure: Path
    spacing: str = "1.0"
    padding: str = "10.0"
    charges: str = CHARGE_COLUMNS[0]
    precision: str = _PRECISIONS[0]


def parse(given: Mapping[str, str]) -> Request:
    """The texts of the command line. Raises UnknownName and UsageError; figures are checked with the lattice."""
    names = [field.name for field in fields(Request)]
    for name in given:
        if name not in names:
            raise UnknownName("input", name, names, "family coulomb")
    if not given.get("structure"):
        raise UsageError("-i structure=FILE is needed: a PQR file, or a PDB file with charges")
    for name, allowed in (("charges", CHARGE_COLUMNS), ("precision", _PRECISIONS)):
        if given.get(name, allowed[0]) not in allowed:
            raise UnknownName(f"value of {name}", given[name], allowed)
    return Request(**{**given, "structure": Path(given["structure"])})  # type: ignore[arg-type]


def run(
    given: Mapping[str, str],
    output: Path | None,
    open_kernel: Callable[[], TunedKernel],
    note: Callable[[str], None],
) -> None:
    """The map of what ``given`` names to ``output``, and a summary through ``note``. What can be seen to be wrong is
    refused before ``open_kernel`` is called. Raises UsageError, UnknownName, WorkloadError, what the device raises, and
    OSError from writing."""
    begin = time.perf_counter()
    request = parse(given)
    kind = _format(output)
    assert output is not None
    structure = read_structure(request.structure, request.charges)
    lattice = around(structure, request.spacing, request.padding)
    inputs = lattice.inputs(structure)
    kernel = open_kernel()
    ready = time.perf_counter()
    potential = potential_of(kernel, inputs, request.precision)
    seconds = time.perf_counter() - ready
    if kind == ".npy":
        with output.open("wb") as file:
            np.save(file, potential)
    else:
        write_dx(output, lattice, potential, _about(request, structure))
    evaluations = lattice.points * len(structure.charges)
    nx, ny, nz = lattice.counts
    note(f"coulomb on {kernel.device}")
    note(
        f"structure    {request.structure.name}: {len(structure.charges):,} atoms, net charge "
        f"{structure.charges.sum():+.2f} e"
    )
    note(f"lattice      {nx} x {ny} x {nz} points, {lattice.spacing:g} A apart, origin {_place(lattice)}")
    note(f"potential    {potential.min():.4g} to {potential.max():.4g} e/A")
    note(
        f"seconds      {time.perf_counter() - begin:.3f}: the map {seconds:.3f} with compiling and copies "
        f"({evaluations / seconds:.3g} evaluations a second)"
    )


def potential_of(kernel: TunedKernel, inputs: Mapping[str, object], precision: str) -> NDArray[np.float32]:
    """(nz, ny, nx) float32, in elementary charges per angstrom."""
    made: NDArray[np.float32] = kernel(**inputs, precision=precision)
    return made


def _format(output: Path | None) -> str:
    if output is None:
        raise UsageError("the map goes to a file: name it with -o FILE.dx or -o FILE.npy")
    suffix = output.suffix
    if suffix not in _FORMATS:
        raise UsageError(
            f"the name of the map ends in {suffix or 'nothing'}; it must end in {' or '.join(_FORMATS)}"
        )
    return suffix


def _about(request: Request, structure: Structure) -> str:
    return (
        f"electrostatic potential of {request.structure.name}, {len(structure.charges)} atoms, in vacuum\n"
        "in elementary charges per angstrom; times 332.0637 it is kcal/mol/e, times 560.46 kT/e at 298.15 K"
    )


def _place(lattice: Lattice) -> str:
    return " ".join(f"{value:.3f}" for value in lattice.origin)

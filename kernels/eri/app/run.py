"""``autotune run eri -i geometry=FILE.xyz -i basis=6-31g -o integrals.npz``: the integrals of a molecule, or with
``-i density=FILE.npy`` (or ``-i output=coulomb_exchange``, with the identity) its Coulomb and exchange matrices. With
``-i shells=sp`` family eri_sp makes them, unless all shells are s."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from autotune.family import TunedKernel, UnknownName, UsageError, family_module, read_npy

from .. import basis, molecules
from ..arrays import arrays_of
from ..shells import highest_momentum, left_out, placed_shells

__all__ = ["run"]

_NAMES = ("geometry", "basis", "shells", "output", "density", "accuracy")
_OUTPUTS = ("integrals", "coulomb_exchange")


def run(
    given: Mapping[str, str],
    output: Path | None,
    open_kernel: Callable[..., TunedKernel],
    note: Callable[[str], None],
) -> None:
    """Compute what ``given`` asks for, write ``output`` (.npz) and sum up through ``note``. All input is checked before
    ``open_kernel`` is called. Raises UsageError, UnknownName, WorkloadError, and what the device raises."""
    for name in given:
        if name not in _NAMES:
            raise UnknownName("input", name, _NAMES, "family eri")
    for name, what in (("geometry", "FILE.xyz"), ("basis", f"{'|'.join(basis.SHIPPED)}|FILE.json")):
        if not given.get(name):
            raise UsageError(f"-i {name}={what} is needed: geometry and basis have no default")
    if output is None:
        raise UsageError("the result goes to a file: name it with -o FILE.npz")
    wanted = given.get("output", "coulomb_exchange" if "density" in given else "integrals")
    if wanted not in _OUTPUTS:
        raise UnknownName("output", wanted, _OUTPUTS, "family eri")
    if "density" in given and wanted == "integrals":
        raise UsageError("-i density is for -i output=coulomb_exchange; integrals need none")
    molecule = molecules.read_xyz(Path(given["geometry"]))
    shells = given.get("shells", "s")
    chosen = basis.read(given["basis"], molecule.elements, highest_momentum(shells))
    placed = placed_shells(molecule, chosen, shells)
    momenta = np.array([shell.momentum for _, shell in placed], np.int64)
    options = {"output": wanted, "accuracy": given.get("accuracy", "float64")}
    if momenta.any() and options.pop("accuracy") != "float64":
        raise UsageError(
            f"-i accuracy={given['accuracy']} is for s shells; with p shells there is float64 alone"
        )
    density = None
    if wanted == "coulomb_exchange":
        density = np.eye(int((2 * momenta + 1).sum()))
        if "density" in given:
            density = np.asarray(read_npy(Path(given["density"]), "-i density"), np.float64)
    family = "eri_sp" if momenta.any() else "eri"
    arrays = _of_s_and_p(placed, density) if momenta.any() else arrays_of(placed, density)
    counts = [f"{count} {letter}" for letter, count in zip("sp", np.bincount(momenta), strict=False) if count]
    note(f"shells       {' and '.join(counts)} shells of {len(molecule.elements)} atoms in {chosen.name}")
    others = left_out(molecule, chosen)
    if others:
        note(
            f"left out     {'; '.join(others)} (only {' and '.join('sp'[: len(counts)])} shells are integrated)"
        )
    if momenta.any():
        note(f"work         {arrays['quartets']:,} quartets of shells, {arrays['different']:,} integrals")
    else:
        note(f"work         {arrays['work_units']:,} work-units, {arrays['components']:,} components")
    kernel = open_kernel("" if family == "eri" else family)
    inputs = kernel.bind(**arrays, **options)
    results = kernel.run(inputs)
    about = {
        "elements": np.array(molecule.elements),
        "positions_bohr": molecule.positions,
        "shell_atoms": np.repeat(
            np.arange(len(molecule.elements)), [len(chosen.shells[element]) for element in molecule.elements]
        ),
        "shell_momenta": momenta,
        "basis": np.array(chosen.name),
        "left_out": np.array(others, dtype=str),
    }
    names = ("integrals",) if wanted == "integrals" else ("coulomb", "exchange")
    with output.open("wb") as file:
        np.savez(file, **{name: results[name] for name in names}, **about)  # type: ignore[arg-type]
    taken, _ = kernel.explain(inputs)
    assert taken.configuration is not None
    note(f"{family} on {kernel.device}: {taken.configuration.id} ({taken.match})")
    for name in names:
        note(f"{name:12} {results[name].dtype} {results[name].shape}")


def _of_s_and_p(placed: Any, density: Any) -> dict[str, Any]:
    """The arrays of family eri_sp."""
    made: dict[str, Any] = family_module("eri_sp", "arrays").arrays_of(placed, density)
    return made

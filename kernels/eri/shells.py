"""The s shells of a molecule in a basis, each at its atom."""

from collections.abc import Sequence

from autotune.family import UnknownName, WorkloadError

from .basis import Basis, Shell
from .molecules import Molecule

__all__ = ["left_out", "placed_shells"]


def placed_shells(molecule: Molecule, basis: Basis, wanted: str = "s") -> list[tuple[Sequence[float], Shell]]:
    """(centre in bohr, shell) for every s shell of every atom, in their order. ``wanted`` is s, or all: then a basis
    with shells of other momenta for an element that is there is refused. Raises UnknownName, WorkloadError."""
    if wanted not in ("s", "all"):
        raise UnknownName("shells", wanted, ("s", "all"), "family eri")
    others = left_out(molecule, basis)
    if wanted == "all" and others:
        raise WorkloadError(
            f"basis {basis.name} has shells that are not supported: {'; '.join(others)}. Only the class (ss|ss) is: "
            "take shells=s to have the s shells alone, or a basis without others"
        )
    return [
        (tuple(position.tolist()), shell)
        for element, position in zip(molecule.elements, molecule.positions, strict=True)
        for shell in basis.shells[element]
    ]


def left_out(molecule: Molecule, basis: Basis) -> list[str]:
    """What the elements have beside s shells: ``O: 2 p``."""
    found = ((element, basis.left_out[element]) for element in dict.fromkeys(molecule.elements))
    return [f"{element}: {', '.join(others)}" for element, others in found if others]

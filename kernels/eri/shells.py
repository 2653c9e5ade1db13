"""The s and p shells of a molecule in a basis, each at its atom."""

from collections.abc import Sequence

from autotune.family import UnknownName, WorkloadError

from .basis import Basis, Shell
from .molecules import Molecule

__all__ = ["highest_momentum", "left_out", "placed_shells"]

_HIGHEST = {"s": 0, "sp": 1, "all": 1}


def highest_momentum(wanted: str) -> int:
    """Of the shells that are taken from a basis: ``wanted`` is s, sp or all. Raises UnknownName."""
    if wanted not in _HIGHEST:
        raise UnknownName("shells", wanted, tuple(_HIGHEST), "family eri")
    return _HIGHEST[wanted]


def placed_shells(molecule: Molecule, basis: Basis, wanted: str = "s") -> list[tuple[Sequence[float], Shell]]:
    """(centre in bohr, shell) for every shell of every atom, in their order. ``wanted`` is s or sp, or all: then a
    basis that has more for an element that is there than was taken is refused. Raises UnknownName, WorkloadError."""
    highest_momentum(wanted)
    others = left_out(molecule, basis)
    if wanted == "all" and others:
        raise WorkloadError(
            f"basis {basis.name} has shells that are not supported: {'; '.join(others)}. Take shells=s or shells=sp "
            "to have the s shells alone, or s and p, or a basis without others"
        )
    return [
        (tuple(position.tolist()), shell)
        for element, position in zip(molecule.elements, molecule.positions, strict=True)
        for shell in basis.shells[element]
    ]


def left_out(molecule: Molecule, basis: Basis) -> list[str]:
    """What the elements have beside the shells that were taken: ``O: 2 p``."""
    found = ((element, basis.left_out[element]) for element in dict.fromkeys(molecule.elements))
    return [f"{element}: {', '.join(others)}" for element, others in found if others]

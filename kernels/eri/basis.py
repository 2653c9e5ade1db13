"""Contracted Gaussian s and p shells of elements, from a basis set in the JSON of the Basis Set Exchange.

Three basis sets ship in ``basis/``. Any other is a JSON file (as its web site gives them), or a name where the
``basis_set_exchange`` package is installed; a run needs neither.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.family import AutotuneError, UnknownName, WorkloadError, suggestion

__all__ = ["SHIPPED", "SYMBOLS", "Basis", "Shell", "contracted", "read"]

_FOLDER = Path(__file__).parent / "basis"
SHIPPED = tuple(sorted(path.stem for path in _FOLDER.glob("*.json")))
SYMBOLS: tuple[str, ...] = (
    "H", "He", "Li", "Be", "B", "C", "N", "O", "F", "Ne", "Na", "Mg", "Al", "Si", "P", "S", "Cl", "Ar",
    "K", "Ca", "Sc", "Ti", "V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Ga", "Ge", "As", "Se", "Br", "Kr",
)  # fmt: skip
_LETTERS = "spdfghi"


@dataclass(frozen=True)
class Shell:
    """One contracted s function, or three p functions (``momentum`` 1): exponents in bohr^-2, and the coefficients of
    *unnormalised* primitives exp(-a r^2), or x exp(-a r^2), so that a function's norm is one."""

    exponents: tuple[float, ...]
    coefficients: tuple[float, ...]
    momentum: int = 0


@dataclass(frozen=True)
class Basis:
    """``shells`` by element; ``left_out`` names each element's shells of other angular momenta ("2 p")."""

    name: str
    shells: Mapping[str, tuple[Shell, ...]]
    left_out: Mapping[str, tuple[str, ...]]


def read(name: str, elements: Sequence[str], highest: int = 0) -> Basis:
    """The shells of ``elements`` with momenta up to ``highest`` (0 or 1) in basis ``name``: one that ships, a
    FILE.json, or any that the package basis_set_exchange knows. An element's s shells are first. Raises UnknownName,
    WorkloadError."""
    content = _content(name)
    shells, left_out = {}, {}
    for element in dict.fromkeys(elements):
        entry = content.get(str(SYMBOLS.index(element) + 1), {})
        if not isinstance(entry, dict) or not entry.get("electron_shells"):
            raise WorkloadError(f"basis {name} has no shells for {element}; take another basis")
        shells[element], left_out[element] = _of_element(
            entry["electron_shells"], highest, f"basis {name}: {element}"
        )
    return Basis(name, shells, left_out)


def contracted(
    exponents: Sequence[float], coefficients: Sequence[float], where: str, momentum: int = 0
) -> Shell:
    """Normalised functions of normalised primitives with these coefficients. Raises WorkloadError.

    <a|b> = (2 sqrt(ab) / (a + b))^(l + 1.5) for normalised primitives of momentum l = 0 or 1; a primitive's norm is
    (2a/pi)^0.75 (2 sqrt(a))^l.
    """
    if not exponents or len(exponents) != len(coefficients):
        raise WorkloadError(
            f"{where}: {len(exponents)} exponents and {len(coefficients)} coefficients; as many of both are needed, "
            "at least one"
        )
    for exponent in exponents:
        if not (math.isfinite(exponent) and exponent > 0):
            raise WorkloadError(f"{where}: exponent {exponent:g}; an exponent is a number above 0")
    if not all(map(math.isfinite, coefficients)):
        raise WorkloadError(f"{where}: coefficients {list(coefficients)}; they must be numbers")
    used = [(a, c) for a, c in zip(exponents, coefficients, strict=True) if c]
    norm = math.fsum(
        c * d * (2 * math.sqrt(a * b) / (a + b)) ** (momentum + 1.5) for a, c in used for b, d in used
    )
    if not used or norm <= 0:
        raise WorkloadError(f"{where}: the coefficients {list(coefficients)} make a function that is zero")
    scaled = tuple(
        c / math.sqrt(norm) * (2 * a / math.pi) ** 0.75 * (2 * math.sqrt(a)) ** momentum for a, c in used
    )
    return Shell(tuple(a for a, _ in used), scaled, momentum)


def _of_element(listed: Any, highest: int, where: str) -> tuple[tuple[Shell, ...], tuple[str, ...]]:
    found: list[Shell] = []
    others: dict[str, int] = {}
    try:
        for shell in listed:
            momenta = [int(momentum) for momentum in shell["angular_momentum"]]
            columns = shell["coefficients"]
            momenta = momenta if len(momenta) == len(columns) else momenta * len(columns)
            exponents = [float(text) for text in shell["exponents"]]
            for momentum, column in zip(momenta, columns, strict=True):
                if momentum > highest:
                    letter = _LETTERS[momentum] if momentum < len(_LETTERS) else f"l={momentum}"
                    others[letter] = others.get(letter, 0) + 1
                else:
                    found.append(contracted(exponents, [float(text) for text in column], where, momentum))
    except AutotuneError:
        raise
    except (KeyError, TypeError, ValueError) as problem:
        raise WorkloadError(
            f"{where}: a shell is not as the Basis Set Exchange writes it ({type(problem).__name__}: {problem}); "
            "needed are angular_momentum, exponents and coefficients"
        ) from None
    found.sort(key=lambda shell: shell.momentum)
    return tuple(found), tuple(f"{count} {letter}" for letter, count in others.items())


def _content(name: str) -> Mapping[str, Any]:
    path = _FOLDER / f"{name.lower()}.json" if name.lower() in SHIPPED else Path(name)
    if path.suffix == ".json":
        try:
            elements = json.loads(path.read_text(encoding="utf-8"))["elements"]
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise WorkloadError(f"basis file {path} cannot be used: {problem}") from None
        if isinstance(elements, dict) and elements:
            return elements
        raise WorkloadError(f"basis file {path} is empty: it names no element")
    try:
        import basis_set_exchange  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: PLC0415
    except ImportError:
        raise UnknownName(
            "basis", name, (*SHIPPED, "FILE.json", "any other once basis_set_exchange is installed")
        ) from None
    try:
        return dict(basis_set_exchange.get_basis(name)["elements"])
    except KeyError:
        close = suggestion(name, basis_set_exchange.get_all_basis_names())
        raise WorkloadError(
            f"unknown basis {name!r}{close}; {', '.join(SHIPPED)} ship, FILE.json is one of your own, and others go by "
            "their names in the Basis Set Exchange"
        ) from None

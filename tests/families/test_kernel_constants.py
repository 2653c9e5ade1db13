"""Numbers that kernels spell out in many digits: what they stand for, to the last bit, and how near the quotients are
to the Boys function."""

import re
from collections.abc import Sequence
from decimal import Decimal, localcontext
from functools import cache
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[2] / "kernels"
FOLDERS = ("eri", "eri_sp", "coulomb_map", "include")
LONG = re.compile(r"(?<![\w.])\d+\.\d{7,}(?:e[-+]?\d+)?f?\b")
DIGITS = 40


@cache
def pi() -> Decimal:
    """By Machin's formula."""

    def arccot(x: int) -> Decimal:
        terms = [(-1) ** k / (Decimal(2 * k + 1) * Decimal(x) ** (2 * k + 1)) for k in range(DIGITS)]
        return sum(terms, Decimal(0))

    with localcontext() as context:
        context.prec = DIGITS + 5
        return 4 * (4 * arccot(5) - arccot(239))


def exact() -> dict[str, Decimal]:
    """What a kernel may spell out, by what it is."""
    with localcontext() as context:
        context.prec = DIGITS
        return {
            "sqrt(2 pi^2.5)": (2 * pi() ** 2 * pi().sqrt()).sqrt(),
            "sqrt(pi)/2": pi().sqrt() / 2,
            "pi": pi(),
            "sqrt(1/2)": Decimal("0.5").sqrt(),
            "sqrt(3)/2": Decimal(3).sqrt() / 2,
            "2^-24, the unit roundoff of float32": Decimal(2) ** -24,
            "the Bohr radius in angstrom, CODATA 2018": Decimal("0.529177210903"),
        }


def spelt_out(path: Path) -> list[float]:
    return [float(found.rstrip("f")) for found in LONG.findall(path.read_text(encoding="utf-8"))]


SPELT_OUT = {
    path.relative_to(KERNELS).as_posix(): found
    for folder in FOLDERS
    for path in sorted((KERNELS / folder).rglob("*"))
    if path.suffix in (".cu", ".cuh", ".hpp", ".py") and path.stem != "boys" and (found := spelt_out(path))
}


def test_there_are_numbers_to_check() -> None:
    assert {
        "include/chemistry/repulsion.cuh",
        "coulomb_map/cells.cuh",
        "eri/molecules.py",
    } <= SPELT_OUT.keys()


@pytest.mark.parametrize("path", SPELT_OUT)
def test_a_number_is_what_it_stands_for_to_the_last_bit(path: str) -> None:
    known = {float(value): name for name, value in exact().items()}
    assert [number for number in SPELT_OUT[path] if number not in known] == [], f"known are {known}"


# ---- the Boys functions: coefficients are nobody's constants, so what they make is compared


def coefficients(family: str, name: str) -> list[Decimal]:
    """Of the array ``name`` in the family's boys.cuh, as the doubles that a compiler makes of them."""
    source = (KERNELS / family / "boys.cuh").read_text(encoding="utf-8")
    (body,) = re.findall(rf"constexpr double {name}\[\] = {{([^}}]*)}}", source)
    return [Decimal(float(word)) for word in body.split(",")]


def value(powers: Sequence[Decimal], t: Decimal) -> Decimal:
    total = Decimal(0)
    for power in reversed(powers):
        total = total * t + power
    return total


def f0(t: Decimal) -> Decimal:
    """exp(-t) sum over k of (2t)^k / (1 3 5 ... (2k+1)), whose terms are all positive."""
    term = total = Decimal(1)
    for k in range(1, 300):
        term *= 2 * t / (2 * k + 1)
        total += term
    return total * (-t).exp()


@pytest.mark.parametrize(("family", "end", "within"), [("eri", 28, "3.9e-15"), ("eri_sp", 40, "1e-15")])
def test_a_quotient_is_the_boys_function(family: str, end: int, within: str) -> None:
    """Without the rounding of a kernel's own arithmetic."""
    over, under = coefficients(family, "over"), coefficients(family, "under")
    with localcontext() as context:
        context.prec = DIGITS
        for step in range(40 + 1):
            t = Decimal(end) * step * step / 40**2  # most of them where F0 bends most
            expected = f0(t)
            assert abs(value(over, t) / value(under, t) - expected) <= Decimal(within) * expected, t


def test_half_a_root_of_pi_is_that() -> None:
    source = (KERNELS / "include" / "chemistry" / "repulsion.cuh").read_text(encoding="utf-8")
    (found,) = re.findall(r"half_root_pi = ([\d.]+);", source)
    assert float(found) == float(exact()["sqrt(pi)/2"])

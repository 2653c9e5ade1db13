"""Index arithmetic: a sum of products, and how it falls apart into the indices of an array of several extents.

``(z * h + y) * w + x`` is [z, y, x] of an array whose strides are h * w, w and 1. Nothing is evaluated and nothing is
proved here: an address is the same whatever is taken for its stride, and whether an index stays in its row is seen
when the kernel runs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from autotune.adopt.source import Span

_LOOSE = "?<>=&|^~!,"  # those that a sum binds closer than, and two of one operand
_MOST_EXTENTS = 4  # of an array


@dataclass(frozen=True)
class Factor:
    """What is taken as a whole, or ``inner``, a sum in parentheses. ``key`` tells equal ones; ``span`` is where it
    stands in the file, None where a macro wrote it; ``spelling`` is what to write then. ``declared`` is where the
    variable is declared that it names; ``is_block`` where that is the number of a block."""

    key: str = ""
    span: Span | None = None
    spelling: str = ""
    value: int | None = None
    declared: int | None = None
    is_invariant: bool = False
    is_block: bool = False
    is_parameter: bool = False
    inner: "Sum" = ()


@dataclass(frozen=True)
class Term:
    """A product, added or (``sign`` -1) taken away."""

    sign: int
    factors: tuple[Factor, ...]

    def remove_factor(self, stride: Factor) -> "Term | None":
        """What it is times ``stride``; None where it is no such product."""
        for number, factor in enumerate(self.factors):
            if factor.key == stride.key:
                return replace(self, factors=(*self.factors[:number], *self.factors[number + 1 :]))
        return None


Sum = tuple[Term, ...]


def make_sum(factor: Factor) -> Sum:
    return (Term(1, (factor,)),)


ZERO = make_sum(Factor("#0", spelling="0", value=0))


def get_only_factor(sum_: Sum) -> Factor | None:
    """The factor that the sum is; None where it is more than one, or none."""
    return sum_[0].factors[0] if len(sum_) == 1 and len(sum_[0].factors) == 1 and sum_[0].sign > 0 else None


def negate(sum_: Sum) -> Sum:
    return tuple(replace(term, sign=-term.sign) for term in sum_)


def product(left: Sum, right: Sum) -> Sum:
    """Of both, where one with a sign or several terms is put in parentheses."""
    return (Term(1, (*_factors(left), *_factors(right))),)


def _factors(sum_: Sum) -> tuple[Factor, ...]:
    return sum_[0].factors if len(sum_) == 1 and sum_[0].sign > 0 else (Factor(inner=sum_),)


def expand(sum_: Sum) -> Iterator[Term]:
    """With each term that is a sum in parentheses as the terms of it."""
    for term in sum_:
        inner = term.factors[0].inner if len(term.factors) == 1 else ()
        yield from (inner if term.sign > 0 else negate(inner)) or (term,)


def divide(sum_: Sum, stride: Factor) -> tuple[Sum, Sum]:
    """Quotient and remainder: ``sum_`` is quotient * stride + remainder."""
    parts = [(term, term.remove_factor(stride)) for term in sum_]
    quotient = tuple(part for _, part in parts if part is not None)
    return tuple(expand(quotient)), tuple(term for term, part in parts if part is None)


def strides(indices: Sequence[Sum]) -> list[Factor]:
    """The strides that all ``indices`` of one array share, innermost first, as factors of one another."""
    strides: list[Factor] = []
    while len(strides) < _MOST_EXTENTS - 1 and (stride := _find_common_factor(indices)) is not None:
        strides.append(stride)
        indices = [divide(index, stride)[0] for index in indices]
    return strides


def _find_common_factor(indices: Sequence[Sum]) -> Factor | None:
    """The invariant factor that most terms have, where at least half of the indices that are not 0 have it."""
    known: dict[str, Factor] = {}
    with_it, of_terms = Counter[str](), Counter[str]()
    for index in indices:
        here = [factor for term in index if len(term.factors) > 1 for factor in _strides_of(term)]
        for factor in here:
            known.setdefault(factor.key, factor)
        of_terms.update(factor.key for factor in here)
        with_it.update({factor.key for factor in here})
    for index in indices:  # the next row: i + n where another index is i + 2 * n
        single = {t.factors[0].key for t in index if len(t.factors) == 1 and t.factors[0].is_parameter}
        products = {factor.key for term in index if len(term.factors) > 1 for factor in term.factors}
        with_it.update((single - products) & known.keys())
    fitting = [key for key in known if 2 * with_it[key] >= sum(map(bool, indices))]
    return known[max(fitting, key=lambda key: (with_it[key], of_terms[key]))] if fitting else None


def _strides_of(product: Term) -> Iterator[Factor]:
    for factor in product.factors:
        others = [other for other in product.factors if other is not factor]
        is_share = not factor.is_parameter and all(o.is_block or o.value is not None for o in others)
        if factor.is_invariant and not is_share and (factor.value is None or 2 <= factor.value <= 1 << 20):
            yield factor  # but for a block's share of a line, which is no row


def split(index: Sum, by: Sequence[Factor]) -> list[Sum]:
    """One index for each extent, outermost first."""
    indices: list[Sum] = []
    for stride in by:
        index, remainder = divide(index, stride)
        indices.append(remainder)
    return [index, *reversed(indices)]


def write(sum_: Sum, text: Callable[[Factor], str]) -> str:
    """The sum as C++ text; ``text`` gives that of what is taken as a whole."""
    parts: list[str] = []
    for term in sum_:
        is_tight = len(term.factors) > 1 or term.sign < 0
        said = " * ".join(_write(f, text, is_tight, len(sum_) > 1) for f in term.factors) or "1"
        sign = (" + " if term.sign > 0 else " - ") if parts else "" if term.sign > 0 else "-"
        parts.append(sign + said)
    return "".join(parts) or "0"


def _write(factor: Factor, text: Callable[[Factor], str], is_tight: bool, is_added: bool) -> str:
    """``is_tight`` where it is multiplied or taken away."""
    if factor.inner:
        said = write(factor.inner, text)
        return f"({said})" if is_tight else said
    said, depth = text(factor), 0
    operators = f"{_LOOSE}+-/%" if is_tight else _LOOSE if is_added else ","
    for place, letter in enumerate(said):  # whether one of the operators stands outside of brackets
        depth += (letter in "([") - (letter in ")]")
        is_arrow = letter in "<>-" and said[place - 1 : place + 2] == "->"
        if depth == 0 and letter in operators and not is_arrow:
            return f"({said})"
    return said


def names(sum_: Iterable[Term]) -> Iterator[Factor]:
    """Everything in the sum that is taken as a whole."""
    for term in sum_:
        for factor in term.factors:
            yield from names(factor.inner) if factor.inner else (factor,)

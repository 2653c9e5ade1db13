"""Index arithmetic: a sum of products, and how it falls apart into the indices of an array of several extents.

``(z * h + y) * w + x`` is [z, y, x] of an array whose strides are h * w, w and 1. Nothing is evaluated and nothing is
proved here: an address is the same whatever is taken for its stride, and whether an index stays in its row is seen
when the kernel runs.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

Span = tuple[int, int]
_LOOSE = "?<>=&|^~!,"  # those that a sum binds closer than, and two of one operand


@dataclass(frozen=True)
class Expression:
    """``operator`` is ``+ - *`` with two operands, ``neg`` with one, or empty for anything that is taken as a whole.
    ``key`` tells equal ones; ``span`` is where it stands in the file, None where a macro wrote it; ``spelling`` is
    what to write then. ``declared`` is where the variable is declared that it names; ``is_block`` where that is the
    number of a block."""

    key: str
    operator: str = ""
    operands: tuple["Expression", ...] = ()
    span: Span | None = None
    spelling: str = ""
    value: int | None = None
    declared: int | None = None
    is_invariant: bool = False
    is_block: bool = False
    is_parameter: bool = False


@dataclass(frozen=True)
class Term:
    """A product, added or (``sign`` -1) taken away."""

    sign: int
    factors: tuple[Expression, ...]

    def without(self, stride: Expression) -> "Term | None":
        """What it is times ``stride``; None where it is no such product."""
        for number, factor in enumerate(self.factors):
            if factor.key == stride.key:
                return replace(self, factors=(*self.factors[:number], *self.factors[number + 1 :]))
        return None


Sum = tuple[Term, ...]


def terms(expression: Expression, sign: int = 1) -> Sum:
    """The expression as a sum of products."""
    match expression.operator:
        case "+":
            return tuple(term for operand in expression.operands for term in terms(operand, sign))
        case "-":
            left, right = expression.operands
            return (*terms(left, sign), *terms(right, -sign))
        case "neg":
            return terms(expression.operands[0], -sign)
        case _:
            return (Term(sign, tuple(factors(expression))),)


def factors(expression: Expression) -> list[Expression]:
    if expression.operator == "*":
        return [factor for operand in expression.operands for factor in factors(operand)]
    return [expression]


def opened(sum_: Sum) -> Sum:
    """With each term that is a sum in parentheses as the terms of it."""
    found: list[Term] = []
    for term in sum_:
        if len(term.factors) == 1 and term.factors[0].operator in ("+", "-", "neg"):
            found.extend(terms(term.factors[0], term.sign))
        else:
            found.append(term)
    return tuple(found)


def divided(sum_: Sum, stride: Expression) -> tuple[Sum, Sum]:
    """Quotient and remainder: ``sum_`` is quotient * stride + remainder."""
    quotient: list[Term] = []
    remainder: list[Term] = []
    for term in sum_:
        other = term.without(stride)
        (remainder if other is None else quotient).append(term if other is None else other)
    return opened(tuple(quotient)), tuple(remainder)


def strides(indices: Sequence[Sum], most: int = 4) -> list[Expression]:
    """The strides that all ``indices`` of one array share, innermost first, as factors of one another."""
    found: list[Expression] = []
    rest = list(indices)
    while len(found) < most - 1:
        stride = _shared(rest)
        if stride is None:
            break
        found.append(stride)
        rest = [divided(index, stride)[0] for index in rest]
    return found


def _shared(indices: Sequence[Sum]) -> Expression | None:
    """The invariant factor that most terms have, where at least half of the indices that are not 0 have it."""
    counts: dict[str, tuple[int, int, Expression]] = {}
    for index in indices:
        here: set[str] = set()
        for term in index:
            for factor in term.factors if len(term.factors) > 1 else ():
                if not factor.is_invariant or (factor.value is not None and not 2 <= factor.value <= 1 << 20):
                    continue
                others = [other for other in term.factors if other is not factor]
                if not factor.is_parameter and all(o.is_block or o.value is not None for o in others):
                    continue  # a block's share of a line, and no row
                with_it, of_terms, _ = counts.get(factor.key, (0, 0, factor))
                counts[factor.key] = (with_it + (factor.key not in here), of_terms + 1, factor)
                here.add(factor.key)
    for index in indices:  # a row that is one further: i + n beside i + 2 * n
        alone = {
            term.factors[0].key for term in index if len(term.factors) == 1 and term.factors[0].is_parameter
        }
        products = {factor.key for term in index if len(term.factors) > 1 for factor in term.factors}
        for key in (alone - products) & counts.keys():
            counts[key] = (counts[key][0] + 1, *counts[key][1:])
    known = [index for index in indices if index]
    fitting = [found for found in counts.values() if 2 * found[0] >= len(known)]
    if not fitting:
        return None
    return max(fitting, key=lambda found: (found[0], found[1]))[2]


def split(index: Sum, by: Sequence[Expression]) -> list[Sum]:
    """One index for each extent, outermost first."""
    found: list[Sum] = []
    for stride in by:
        index, remainder = divided(index, stride)
        found.append(remainder)
    return [index, *reversed(found)]


def written(sum_: Sum, text: Callable[[Expression], str]) -> str:
    """The sum as C++ text; ``text`` gives that of what is taken as a whole."""
    parts: list[str] = []
    for term in sum_:
        is_tight = len(term.factors) > 1 or term.sign < 0
        product = " * ".join(_factor(f, text, is_tight, len(sum_) > 1) for f in term.factors) or "1"
        if parts:
            parts += [" + " if term.sign > 0 else " - ", product]
        else:
            parts.append(product if term.sign > 0 else f"-{product}")
    return "".join(parts) or "0"


def _factor(expression: Expression, text: Callable[[Expression], str], is_tight: bool, is_added: bool) -> str:
    """``is_tight`` where it is multiplied or taken away."""
    said = text(expression)
    operators = f"{_LOOSE}+-/%" if is_tight else _LOOSE if is_added else ","
    loose = expression.operator in ("+", "-", "neg") and is_tight
    return f"({said})" if loose or (not expression.operator and _is_loose(said, operators)) else said


def _is_loose(text: str, operators: str) -> bool:
    """Whether one of the operators stands outside of brackets."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if (
            depth == 0
            and letter in operators
            and not (letter in "<>-" and text[place - 1 : place + 2] == "->")
        ):
            return True
    return False


def names(sum_: Iterable[Term]) -> list[Expression]:
    """Everything in the sum that is taken as a whole."""
    found: list[Expression] = []

    def visit(expression: Expression) -> None:
        if expression.operator:
            for operand in expression.operands:
                visit(operand)
        else:
            found.append(expression)

    for term in sum_:
        for factor in term.factors:
            visit(factor)
    return found

"""Whole numbers that stand for any number, and what follows from what is known of them.

A ``Whole`` can be added, multiplied, divided and compared as an int can, so the code of the project runs on it and
returns a formula: a sum of products of unknown numbers. z3 decides sums. Each product of two or more unknown numbers
is one more unknown number to it, of which ``Facts`` says what the proofs need: 0 <= a <= most gives (most - a) b >= 0.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import z3

FIRST_SECONDS, SECONDS = 2, 30  # for one question, which takes some thousandths of one

Product = tuple[str, ...]  # names of unknown numbers, sorted; none for 1


class Refuted(Exception):
    """A claim does not follow; the message has numbers for which it is wrong."""


class Facts:
    """What is known of some whole numbers."""

    def __init__(self) -> None:
        self._solver = z3.Solver()
        self._solver.set("timeout", 1000 * FIRST_SECONDS)
        self._unknown: dict[str, z3.ArithRef] = {}
        self._most: dict[Any, list[Whole]] = {}
        self._quotients: dict[Any, tuple[Whole, Whole]] = {}
        # By the number that z3 has for the claim, which is kept: another claim would get its number.
        self._answers: dict[int, tuple[z3.BoolRef, bool]] = {}
        self._multiples: dict[tuple[Product, int], z3.ArithRef] = {}
        self._products: set[Any] = set()
        self._dividends: list[tuple[Whole, Any, Any]] = []
        self.asked = 0

    # -- numbers ----------------------------------------------------------------------------------------

    def number(self, name: str, least: int = 0) -> "Whole":
        """A number that may be any from ``least`` on."""
        made = self._made(f"{name}#{len(self._unknown)}" if name in self._unknown else name)
        self.know(made >= least)
        return made

    def _made(self, name: str, term: z3.ArithRef | None = None) -> "Whole":
        self._unknown.setdefault(name, z3.Int(name) if term is None else term)
        return Whole(self, {(name,): 1})

    def whole(self, number: "Number") -> "Whole":
        return number if isinstance(number, Whole) else Whole(self, {(): int(number)} if number else {})

    def apply(self, function: z3.FuncDeclRef, *numbers: "Number") -> "Whole":
        """Apply a function of which only the facts given to ``know`` are known."""
        term = function(*(self.whole(each).term for each in numbers))
        return self._made(term.sexpr(), term)

    def term(self, product: Product) -> z3.ArithRef:
        """A product as z3 knows it."""
        return self._unknown[product[0]] if len(product) == 1 else z3.Int("*".join(product))

    def multiple(self, product: Product, factor: int) -> z3.ArithRef:
        """``factor`` times a product, as z3 knows it; made once."""
        if (made := self._multiples.get((product, factor))) is None:
            made = factor * self.term(product) if product else z3.IntVal(factor)
            self._multiples[product, factor] = made
        return made

    def know(self, fact: Any) -> None:
        self._solver.add(fact)
        # What follows still does.
        self._answers = {key: each for key, each in self._answers.items() if each[1]}

    def limit(self, number: "Whole", most: "Number") -> None:
        """Know that a number is not larger than ``most``, and use that in products."""
        self.know(number <= most)
        self._most.setdefault(number.key, []).append(self.whole(most))

    @contextmanager
    def supposing(self, *facts: Any) -> Iterator[None]:
        """Know more for a while. What is learnt and made meanwhile is forgotten with it."""
        most = {key: each[:] for key, each in self._most.items()}
        before = most, self._quotients.copy(), self._products.copy(), self._dividends[:], self._answers
        self._solver.push()
        for fact in facts:
            self.know(fact)
        try:
            yield
        finally:
            self._most, self._quotients, self._products, self._dividends, self._answers = before
            self._solver.pop()

    # -- questions --------------------------------------------------------------------------------------

    def follows(self, claim: Any) -> bool:
        """Whether the claim follows."""
        if isinstance(claim, bool):
            return claim
        key = claim.get_id()
        if key not in self._answers:
            self._answers[key] = claim, self._denied(claim)[0] == z3.unsat
        return self._answers[key][1]

    def show(self, claim: Any, what: str) -> None:
        """Raise Refuted unless the claim follows."""
        claim = z3.BoolVal(claim) if isinstance(claim, bool) else claim
        answer, found = self._denied(claim, wants_numbers=True)
        if answer == z3.unsat:
            return
        if found is None:
            raise Refuted(f"{what}: not shown in {SECONDS} s")
        named = sorted((str(each), str(found[each])) for each in found.decls() if each.arity() == 0)
        raise Refuted(f"{what}: not so for " + ", ".join(f"{name} = {value}" for name, value in named[:16]))

    def example(self, number: "Whole") -> int | None:
        """One value that the number can have."""
        _, found = self._denied(z3.BoolVal(False), wants_numbers=True)
        return None if found is None else int(found.eval(number.term, model_completion=True).as_long())

    def _denied(self, claim: Any, wants_numbers: bool = False) -> tuple[Any, Any]:
        """Whether what is known and the opposite of a claim go together, and numbers for which they do."""
        self.asked += 1
        self._solver.push()
        self._solver.add(z3.Not(claim))
        answer, solver = self._solver.check(), self._solver
        if answer == z3.unknown:  # from the begin, which is slower where both end
            solver = z3.Solver()
            solver.set("timeout", 1000 * SECONDS)
            solver.add(*self._solver.assertions())
            answer = solver.check()
        found = solver.model() if wants_numbers and answer == z3.sat else None
        self._solver.pop()
        return answer, found

    # -- what arithmetic adds ---------------------------------------------------------------------------

    def divide(self, number: "Whole", by: "Number") -> "tuple[Whole, Whole]":
        """Quotient and rest, of a division that rounds down; the same two for the same numbers."""
        divisor = self.whole(by)
        if number.is_known and divisor.is_known:
            found = divmod(number.known, divisor.known)
            return self.whole(found[0]), self.whole(found[1])
        key = number.key, divisor.key
        if key not in self._quotients:
            self._quotients.update((key, each) for each in self._known_quotient(number, by))
        if key not in self._quotients:
            self._dividends.append((number, divisor.key, key))
            quotient, rest = (self._made(f"{kind}{len(self._unknown)}") for kind in ("quotient", "rest"))
            self._quotients[key] = quotient, rest
            self.know(rest >= 0)
            self.limit(rest, by - 1)
            self.know(number == quotient * by + rest)
            if self.follows(number >= 0):
                self.know(quotient >= 0)
        return self._quotients[key]

    def _known_quotient(self, number: "Whole", by: "Number") -> "Iterator[tuple[Whole, Whole]]":
        """Those of the same number, where that was divided in another form."""
        for other, divisor, key in self._dividends:
            if divisor == self.whole(by).key and number.names & other.names and self.follows(number == other):
                yield self._quotients[key]
                return

    def product(self, a: "Whole", b: "Whole") -> "Whole":
        """a * b, with what is known of it."""
        made = a.times(b)
        if a.is_known or b.is_known or (a.key, b.key) in self._products:
            return made
        self._products |= {(a.key, b.key), (b.key, a.key)}
        if self.follows(z3.And(a >= 0, b >= 0)):
            self.know(made >= 0)
            for one, other in ((a, b), (b, a)):
                if self.follows(one >= 1):
                    self.know(made >= other)
                for most in self._most.get(one.key, ()):
                    self.know((most - one).times(other) >= 0)
        return made

    def apart(self, a: "Whole", b: "Whole", factor: "Whole") -> None:
        """Know that a * factor is larger than b * factor by the factor or more, as a > b is known, and factor >= 0."""
        self.know((a - b - 1).times(factor) >= 0)

    def alike(self, a: "Whole", b: "Whole", factor: "Whole") -> None:
        """Know that a * factor is b * factor, as a == b is known."""
        self.know(a.times(factor) == b.times(factor))


class Whole:
    """A number of which ``facts`` knows something: a sum of products with a whole factor each."""

    def __init__(self, facts: Facts, sum_of: Mapping[Product, int]) -> None:
        self.facts, self._sum = facts, sum_of

    @cached_property
    def key(self) -> Any:
        """The same for the same sum."""
        return tuple(sorted(self._sum.items()))

    @cached_property
    def names(self) -> set[str]:
        """Of the unknown numbers in it."""
        return {name for product in self._sum for name in product}

    @property
    def is_known(self) -> bool:
        return not self._sum or list(self._sum) == [()]

    @property
    def known(self) -> int:
        return self._sum.get((), 0)

    @cached_property
    def term(self) -> Any:
        parts = [self.facts.multiple(p, k) for p, k in self._sum.items()]
        return z3.Sum(parts) if len(parts) > 1 else parts[0] if parts else z3.IntVal(0)

    def times(self, other: "Whole") -> "Whole":
        """The product, of which no more is known."""
        found: dict[Product, int] = {}
        for p, k in self._sum.items():
            for q, m in other._sum.items():
                joined = tuple(sorted(p + q))
                found[joined] = found.get(joined, 0) + k * m
        return Whole(self.facts, {p: k for p, k in found.items() if k})

    def __add__(self, other: "Number") -> "Whole":
        found = dict(self._sum)
        for p, k in self.facts.whole(other)._sum.items():
            found[p] = found.get(p, 0) + k
        return Whole(self.facts, {p: k for p, k in found.items() if k})

    __radd__ = __add__

    def __neg__(self) -> "Whole":
        return Whole(self.facts, {p: -k for p, k in self._sum.items()})

    def __sub__(self, other: "Number") -> "Whole":
        return self + -other

    def __rsub__(self, other: "Number") -> "Whole":
        return -self + other

    def __mul__(self, other: "Number") -> "Whole":
        return self.facts.product(self, self.facts.whole(other))

    __rmul__ = __mul__

    def __floordiv__(self, by: "Number") -> "Whole":
        return self if isinstance(by, int) and by == 1 else self.facts.divide(self, by)[0]

    def __mod__(self, by: "Number") -> "Number":
        return 0 if isinstance(by, int) and by == 1 else self.facts.divide(self, by)[1]

    def __xor__(self, other: "Number") -> "Whole":
        return exclusive_or(self, self.facts.whole(other))

    __rxor__ = __xor__

    def __eq__(self, other: Any) -> Any:
        return self.term == self.facts.whole(other).term

    def __ne__(self, other: Any) -> Any:
        return self.term != self.facts.whole(other).term

    def __le__(self, other: "Number") -> Any:
        return self.term <= self.facts.whole(other).term

    def __lt__(self, other: "Number") -> Any:
        return self.term < self.facts.whole(other).term

    def __ge__(self, other: "Number") -> Any:
        return self.term >= self.facts.whole(other).term

    def __gt__(self, other: "Number") -> Any:
        return self.term > self.facts.whole(other).term

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return str(self.term)


Number = int | Whole


def exclusive_or(number: Whole, other: Whole) -> Whole:
    """``number ^ other``, where ``other`` has few bits: those of ``number`` above them stay. Of the low bits it is
    known that the result has no more, and that the same again gives back the number (see ``xor_lemma``)."""
    facts = number.facts
    bits = next((b for b in range(1, 33) if facts.follows(z3.And(other >= 0, other < 2**b))), None)
    if bits is None:
        raise Refuted(f"{number} ^ {other}: the right side is not known to be small")
    high, low = facts.divide(number, 2**bits)
    function = z3.Function(f"xor{bits}", z3.IntSort(), z3.IntSort(), z3.IntSort())
    mixed = facts.apply(function, low, other)
    facts.know(z3.And(mixed >= 0, mixed < 2**bits, function(mixed.term, other.term) == low.term))
    return high * 2**bits + mixed


def xor_lemma() -> None:
    """What ``exclusive_or`` takes for known, of 32 bits. Raises Refuted."""
    a, b = z3.BitVecs("a b", 32)
    solver = z3.Solver()
    solver.add((a ^ b) ^ b != a)
    if solver.check() != z3.unsat:
        raise Refuted("x ^ y ^ y is x")

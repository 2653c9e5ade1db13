"""What is claimed of bits: the place of a cell on a curve, and elements in words. Numbers are words of 32 or 64 bits
here, with all their bits unknown, and z3 looks for bits that make a claim wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np
import z3
from accessors import CUDA, compiled
from ir import Instruction, Module
from machine import Machine
from whole import Facts, Refuted

from autotune.layout.bit_packing import PACKINGS, Packing
from autotune.layout.curve import CURVES, _part


class BitMachine(Machine):
    """Runs compiled code on words of unknown bits, as the hardware does."""

    def __init__(self, module: Module) -> None:
        super().__init__(module, Facts())

    def exact(self, value: Any, bits: int) -> Any:
        return value

    def decide(self, claim: Any) -> bool:
        if isinstance(claim, z3.ExprRef):
            claim = z3.simplify(claim == 1 if z3.is_bv(claim) else claim)
            assert z3.is_true(claim) or z3.is_false(claim), f"a way that depends on bits: {claim}"
            return z3.is_true(claim)
        return bool(claim)

    def _ring(self, text: str, registers: Any, work: Callable[[Any, Any], Any]) -> Any:
        a, b, bits = self._two(text, registers)
        made = work(a, b)
        return made % 2**bits if isinstance(made, int) else made

    _and = lambda self, text, registers: self._ring(text, registers, lambda a, b: a & b)  # noqa: E731
    _or = lambda self, text, registers: self._ring(text, registers, lambda a, b: a | b)  # noqa: E731
    _xor = lambda self, text, registers: self._ring(text, registers, lambda a, b: a ^ b)  # noqa: E731
    _shl = lambda self, text, registers: self._ring(text, registers, lambda a, b: a << b)  # noqa: E731

    def _lshr(self, text: str, registers: Any) -> Any:
        return self._ring(text, registers, lambda a, b: z3.LShR(a, b) if z3.is_bv(a) else a >> b)

    def _icmp(self, text: str, registers: Any) -> Any:
        order, _, rest = text.removeprefix("samesign ").partition(" ")
        a, b, bits = self._two(rest, registers)
        if isinstance(a, int) and isinstance(b, int):
            return super()._icmp(text, registers)
        a, b = (z3.BitVecVal(each, bits) if isinstance(each, int) else each for each in (a, b))
        work = {"eq": a == b, "ne": a != b, "ult": z3.ULT(a, b), "ule": z3.ULE(a, b), "ugt": z3.UGT(a, b)}
        return z3.If(work[order], z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))

    def _select(self, text: str, registers: Any) -> Any:
        from ir import split, typed

        condition, first, second = split(text)
        chosen = self._operand(condition, registers)
        a, b, bits = (
            self._operand(first, registers),
            self._operand(second, registers),
            int(typed(first)[0][1:]),
        )
        if isinstance(chosen, int):
            return a if chosen else b
        return z3.If(chosen == 1, z3.BitVecVal(a, bits) if isinstance(a, int) else a,
                     z3.BitVecVal(b, bits) if isinstance(b, int) else b)  # fmt: skip

    def _zext(self, text: str, registers: Any) -> Any:
        value, kind, target = self._cast(text, registers)
        more = int(target[1:]) - int(kind[1:])
        return value if isinstance(value, int) else z3.ZeroExt(more, value)

    def _sext(self, text: str, registers: Any) -> Any:
        value, kind, target = self._cast(text, registers)
        if isinstance(value, int):
            return super()._sext(text, registers)
        return z3.SignExt(int(target[1:]) - int(kind[1:]), value)

    def _trunc(self, text: str, registers: Any) -> Any:
        value, _, target = self._cast(text, registers)
        bits = int(target[1:])
        return value % 2**bits if isinstance(value, int) else z3.Extract(bits - 1, 0, value)


def _run(module: Module, name: str, *given: Any) -> Any:
    return BitMachine(module).call(module.functions[f"@{name}"], list(given))


def _show(claim: Any, what: str, seconds: int = 60) -> None:
    solver = z3.SolverFor("QF_BV")
    solver.set("timeout", 1000 * seconds)
    solver.add(z3.Not(claim))
    answer = solver.check()
    if answer == z3.sat:
        raise Refuted(f"{what}: not so for {solver.model()}")
    if answer == z3.unknown:
        raise Refuted(f"{what}: not shown ({solver.reason_unknown()})")


# -- curves -----------------------------------------------------------------------------------------------

_WIDTHS = {32: "unsigned", 64: "unsigned long long"}


def curve_text() -> str:
    """C++ text with a function of each curve, rank and width, of a cell and a side."""
    lines = [CUDA, '#include "autotune/curve.cuh"\n']
    for kind, rank, (bits, index) in product(CURVES, (2, 3), _WIDTHS.items()):
        given = ", ".join(f"{index} c{axis}" for axis in range(rank))
        cell = ", ".join(f"c{axis}" for axis in range(rank))
        lines.append(
            f'extern "C" {index} {kind}{rank}_{bits}({given}, {index} side) {{ const {index} cell[] = {{{cell}}}; '
            f"return autotune::{kind.capitalize()}::place(cell, side); }}\n"
        )
    return "".join(lines)


_Bit = frozenset[tuple[int, int]] | None
_NONE: _Bit = frozenset()


@dataclass(frozen=True, eq=False)
class Joined:
    """A word of which each bit is the sum (exclusive or) of some bits (word, bit) of the given words; None where it is
    anything else, which a mask has to take away."""

    bits: tuple[_Bit, ...]

    @staticmethod
    def word(number: int, count: int, bits: int) -> "Joined":
        """Word ``number``, of which ``count`` bits may be set."""
        return Joined(tuple(frozenset({(number, k)}) if k < count else _NONE for k in range(bits)))

    def __xor__(self, other: "Joined") -> "Joined":
        pairs = zip(self.bits, other.bits, strict=True)
        return Joined(tuple(None if a is None or b is None else a ^ b for a, b in pairs))

    def __or__(self, other: "Joined") -> "Joined":
        pairs = zip(self.bits, other.bits, strict=True)
        return Joined(tuple((b if a == _NONE else a if b == _NONE else None) for a, b in pairs))

    def __and__(self, mask: int) -> "Joined":
        return Joined(tuple(bit if mask >> k & 1 else _NONE for k, bit in enumerate(self.bits)))

    def __lshift__(self, by: int) -> "Joined":
        return Joined(((_NONE,) * by + self.bits)[: len(self.bits)])

    def __rshift__(self, by: int) -> "Joined":
        return Joined(self.bits[by:] + (_NONE,) * by)

    def __add__(self, other: "Joined") -> "Joined":
        joined = self | other
        first = next((k for k, bit in enumerate(joined.bits) if bit is None), len(joined.bits))
        return Joined(
            tuple(bit if k < first else None for k, bit in enumerate(joined.bits))
        )  # a carry goes upwards

    def __mul__(self, factor: int) -> "Joined":
        made = self & 0
        for k in range(factor.bit_length()):
            if factor >> k & 1:
                made = made + (self << k)
        return made

    def of(self, words: Sequence[int]) -> int:
        """The number that it is for these words. Raises Refuted."""
        if None in self.bits:
            raise Refuted("a bit is no sum of bits")
        return sum(sum(words[w] >> b & 1 for w, b in bit or ()) % 2 << k for k, bit in enumerate(self.bits))


class StepMachine(BitMachine):
    """Goes step by step: where the way comes round again, or out of a loop, ``steps`` has what the words are there, and
    the unknown ones of their own that they are from there on. Behind the last of ``count`` they are ``Joined``."""

    def __init__(self, module: Module, count: int) -> None:
        super().__init__(module)
        self.count = count
        self.steps: list[tuple[list[Any], list[Any]]] = []

    def _joined(
        self, label: str, steps: Sequence[Instruction], before: str, registers: Any
    ) -> dict[str, Any]:
        found = super()._joined(label, steps, before, registers)
        words = {name: value for name, value in found.items() if isinstance(value, z3.BitVecRef)}
        if words:
            sizes = [value.size() for value in words.values()]
            fresh: list[Any] = [z3.BitVec(f"x{len(self.steps)}_{k}", size) for k, size in enumerate(sizes)]
            if len(self.steps) + 1 == self.count:
                fresh = [Joined.word(k, self.count, size) for k, size in enumerate(sizes)]
            self.steps.append((list(words.values()), fresh))
            found |= dict(zip(words, fresh, strict=True))
        return found


def morton_joins_bits(module: Module, rank: int, bits: int) -> None:
    """Bit k of index number a of the cell is bit ``rank k + rank - 1 - a`` of the place, as far as there are bits; so
    each cell has a place of its own, and the host's curve of twice the side is alike: its corner is the highest bits.
    """
    log = bits // rank
    cell = [z3.ZeroExt(bits - log, z3.BitVec(f"c{axis}", log)) for axis in range(rank)]
    place = _run(module, f"morton{rank}_{bits}", *cell, 2**log)
    for k, axis in product(range(log), range(rank)):
        at = rank * k + rank - 1 - axis
        _show(z3.Extract(at, at, place) == z3.Extract(k, k, cell[axis]), f"morton: bit {k} of index {axis}")
    if bits > rank * log:
        _show(z3.LShR(place, rank * log) == 0, "morton: no more bits")
    for corner in product((0, 1), repeat=rank):
        if host_part("morton", corner) != (
            int("".join(map(str, corner)), 2),
            [*range(rank)],
            [False] * rank,
            False,
        ):
            raise Refuted("the host's curve has another corner")


def hilbert_is_the_hosts(module: Module, rank: int, bits: int) -> None:
    """The compiled curve of each side is the host's. The code turns the cell's bits, from the highest to the lowest,
    and then joins them. Of a cell in a corner of a block of side 2n it is shown, for each n, that

    1. the first turn makes of it the corner and the cell that the host's part has there,
    2. a turn at a lower bit leaves the corner, and does to the rest what it does without one,
    3. joined, which is a sum (exclusive or) of bits, a corner is its number, and ones below where the host has the part
       backwards; the rest has bits below those of the number alone.

    So the place in the block of side 2n is made of the place in that of side n as the host makes it. By induction each
    cell has a place of its own, as the numbers of the corners are 0 .. 2^rank - 1, each once."""
    log = bits // rank
    cell = [z3.BitVec(f"c{axis}", bits) for axis in range(rank)]
    machine = StepMachine(module, log)
    joined = machine.call(module.functions[f"@hilbert{rank}_{bits}"], [*cell, 2**log if log < bits else 0])
    steps = machine.steps
    order = [next(k for k, value in enumerate(steps[0][0]) if value.eq(each)) for each in cell]
    if len(steps) != log:  # log - 1 turns, and what is joined behind them
        raise Refuted(f"hilbert: {len(steps) - 1} turns")

    def turned(step: int, words: Sequence[Any]) -> list[Any]:
        """What one turn makes of a cell."""
        names = [(steps[step][1][order[axis]], words[axis]) for axis in range(rank)]
        return [z3.substitute(steps[step + 1][0][k], *names) for k in order]

    def join(words: Sequence[int]) -> int:
        return int(joined.of([words[order.index(place)] for place in range(rank)]))

    numbers = set()
    for k in range(log):
        low = [
            z3.ZeroExt(bits - k, z3.BitVec(f"l{axis}", k)) if k else z3.BitVecVal(0, bits)
            for axis in range(rank)
        ]
        for corner in product((0, 1), repeat=rank):
            number, axes, mirrored, is_reversed = host_part("hilbert", corner)
            numbers.add(number)
            whole = [each + (bit << k) for each, bit in zip(low, corner, strict=True)]
            part = [2**k - 1 - each if flip else each for each, flip in zip(low, mirrored, strict=True)]
            wanted = [part[axis] + (corner[place] << k) for place, axis in enumerate(axes)]
            if 1 <= k < log:
                made = turned(log - 1 - k, whole)
                _show(
                    z3.And(*(a == b for a, b in zip(made, wanted, strict=True))),
                    f"hilbert: turn {2**k}, {corner}",
                )
            backwards = 2 ** (rank * k) - 1 if is_reversed else 0
            if join([bit << k for bit in corner]) != number << rank * k | backwards:
                raise Refuted(f"hilbert: joined, {2**k}, {corner}")
        if any(
            bit and at >= rank * (b + 1) for at, bit in enumerate(joined.bits) for _, b in bit or () if b == k
        ):
            raise Refuted(f"hilbert: bit {k} of an index reaches beyond its number")
        if 1 <= k < log:
            words, step = [z3.BitVec(f"w{axis}", bits) for axis in range(rank)], log - 1 - k
            mask = 2 ** (k + 1) - 1
            alone = turned(step, [word & mask for word in words])
            both = zip(turned(step, words), alone, words, strict=True)
            _show(
                z3.And(*(a == (word & ~mask) | b for a, b, word in both)),
                f"hilbert: turn {2**k} is of low bits",
            )
    if numbers != set(range(2**rank)):
        raise Refuted(f"hilbert: the corners have the numbers {sorted(numbers)}")


def host_part(kind: str, corner: Sequence[int]) -> tuple[int, list[int], list[bool], bool]:
    """What the host makes of a smaller curve in a corner: (its number among the parts, which index of the corner is
    each index of the smaller one, which of the corner's are mirrored, whether it runs backwards). Raises Refuted where
    it is none of that."""
    rank = len(corner)
    if kind == "morton":
        return int("".join(map(str, corner)), 2), [*range(rank)], [False] * rank, False
    found = set()
    for side in (4, 8):
        small = (
            np.random.default_rng(side).permutation(side**rank).reshape((side,) * rank)
        )  # like no part of itself
        number, part = _part(small, tuple(corner))
        found.add((int("".join(map(str, number)), 2), *_likeness(small, part)))
    if len(found) != 1:
        raise Refuted(f"{kind}: a corner's part depends on the side")
    number, axes, mirrored, is_reversed = found.pop()
    return number, list(axes), list(mirrored), is_reversed


def _likeness(small: Any, part: Any) -> tuple[tuple[int, ...], tuple[bool, ...], bool]:
    side, rank = len(small), small.ndim
    cells = np.indices(part.shape)
    for axes, mirrored, is_reversed in product(
        permutations(range(rank)), product((False, True), repeat=rank), (False, True)
    ):
        at = [side - 1 - cells[axis] if mirrored[axis] else cells[axis] for axis in range(rank)]
        like = small[tuple(at[axis] for axis in axes)]
        like = small.size - 1 - like if is_reversed else like
        if np.array_equal(like, part):
            return axes, mirrored, is_reversed
    raise Refuted("a part is not the smaller curve, turned and mirrored")


# -- packings -----------------------------------------------------------------------------------------------


def packing_text() -> str:
    """C++ text with functions of each packing, whose words are given as 32-bit numbers."""
    lines = [CUDA, '#include "autotune/packing.cuh"\n']
    for packing in PACKINGS.values():
        words = packing.word_bytes // 4
        one, other = (", ".join(f"unsigned {name}{k}" for k in range(words)) for name in "ab")
        made = {name: ", ".join(f"{name}{k}" for k in range(words)) for name in "ab"}
        begin = "{{{" if packing.planar else ""
        ends = "}}}" if packing.planar else ""
        kind = packing.cpp
        a, b = (f"{kind}::Word {begin[:1] and '{{'}{made[name]}{ends[:1] and '}}'}" if packing.planar else made[name]
                for name in "ab")  # fmt: skip
        for k in range(packing.elements):
            lines.append(
                f'extern "C" unsigned {packing.name}_element{k}({one}) {{ return {kind}::element({a}, {k}); }}\n'
            )
            lines.append(
                f'extern "C" unsigned {packing.name}_filled{k}(unsigned value) '
                f"{{ return {kind}::element({kind}::filled(value), {k}); }}\n"
            )
        lines.append(
            f'extern "C" unsigned {packing.name}_differ({one}, {other}) {{ return {kind}::differ({a}, {b}); }}\n'
        )
    return "".join(lines)


def bit_places(packing: Packing) -> dict[tuple[int, int], int]:
    """Where the host puts each bit of each element: (element, bit) to the bit of the word. Packing joins bits and moves
    them, whatever they are, so one set bit at a time shows all."""
    found = {}
    for k, bit in product(range(packing.elements), range(packing.bits)):
        values = np.zeros(packing.elements, np.int64)
        values[k] = 1 << bit
        words = packing.pack(values).reshape(-1)
        places = [32 * w + b for w, word in enumerate(words.tolist()) for b in range(32) if word >> b & 1]
        if len(places) != 1:
            raise Refuted(f"packing {packing.name}: bit {bit} of element {k} is in the bits {places}")
        found[k, bit] = places[0]
        if int(packing.unpack(packing.pack(values)).reshape(-1)[k]) != values[k]:
            raise Refuted(f"packing {packing.name}: element {k} does not come back")
    if len(set(found.values())) != len(found):
        raise Refuted(f"packing {packing.name}: two bits are in one place")
    return found


def packing_is_the_hosts(module: Module, packing: Packing) -> None:
    """The compiled code reads each element of any word where the host put it, and fills and compares as it says."""
    words = [z3.BitVec(f"w{k}", 32) for k in range(packing.word_bytes // 4)]
    more = [z3.BitVec(f"v{k}", 32) for k in range(packing.word_bytes // 4)]
    value = z3.BitVec("value", 32)
    places = bit_places(packing)
    differ = _run(module, f"{packing.name}_differ", *words, *more)
    fields = []
    for k in range(packing.elements):
        element = _run(module, f"{packing.name}_element{k}", *words)
        other = _run(module, f"{packing.name}_element{k}", *more)
        host = z3.BitVecVal(0, 32)
        for bit in range(packing.bits):
            word, place = divmod(places[k, bit], 32)
            host = host | (z3.LShR(words[word], place) & 1) << bit
        _show(element == host, f"packing {packing.name}: element {k}")
        filled = _run(module, f"{packing.name}_filled{k}", value)
        fits = z3.ULE(value, 2**packing.bits - 1)
        _show(z3.Implies(fits, filled == value), f"packing {packing.name}: filled, element {k}")
        top = 0 if packing.planar or packing.bits == 32 else packing.bits - 1
        mark = z3.LShR(differ, (k if packing.planar else k * packing.bits) + top) & 1
        fields.append(1 << (k if packing.planar else k * packing.bits) + top)
        _show((mark == 1) == (element != other), f"packing {packing.name}: differ, element {k}")
    _show(
        differ & (2**32 - 1 - sum(fields)) == 0,
        f"packing {packing.name}: differ has one bit for each element",
    )


# -- swizzles -----------------------------------------------------------------------------------------------

SPANS = tuple(
    (1 << bits, 32 >> bits) for bits in range(1, 6)
)  # groups and their width: the words of all banks


def swizzle_text() -> str:
    """C++ text with the column function of each swizzle of 32 words."""
    return '#include "autotune/swizzle.cuh"\n' + "".join(
        f'extern "C" unsigned swizzle{groups}(unsigned row, unsigned column) '
        f"{{ return autotune::Xor<{groups}, {width}>::column(row, column); }}\n"
        for groups, width in SPANS
    )


def swizzle_has_no_conflicts(module: Module, groups: int, width: int) -> None:
    """Of words in rows of whole spans: threads along a row have each bank once; so have, by vectors of ``width`` words
    along a column, as many threads as there are groups, from any row on."""
    row, column, one, other = (z3.BitVec(name, 32) for name in ("row", "column", "one", "other"))

    def bank(at_row: Any, at_column: Any) -> Any:
        return _run(module, f"swizzle{groups}", at_row, at_column) & 31

    begin, word = column & ~z3.BitVecVal(31, 32), column & ~z3.BitVecVal(width - 1, 32)
    lanes = z3.And(one != other, z3.ULT(one, 32), z3.ULT(other, 32))
    apart = bank(row, begin + one) != bank(row, begin + other)
    _show(z3.Implies(lanes, apart), f"swizzle xor{groups}x{width}: along a row")
    lanes = z3.And(one != other, z3.ULT(one, groups), z3.ULT(other, groups))
    apart = z3.LShR(bank(row + one, word) ^ bank(row + other, word), width.bit_length() - 1) != 0
    _show(z3.Implies(lanes, apart), f"swizzle xor{groups}x{width}: along a column")
    for k in range(width):
        _show(bank(row, word + k) == bank(row, word) + k, f"swizzle xor{groups}x{width}: a vector is one")


def compiled_bits(changed: Mapping[str, tuple[str, str]] = {}) -> Module:
    """All of them, compiled; with selections in place of branches."""
    text = curve_text() + packing_text().replace(CUDA, "") + swizzle_text()
    return compiled(text, changed, "-O1")

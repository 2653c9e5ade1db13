"""Compiled code run on numbers that stand for any number.

What is exact and what wraps is kept apart: sums and products are formed as whole numbers, which are right but for a
multiple of 2^bits; where the code divides, compares or widens, the number itself has to have that many bits, and it is
shown that it has (``Facts.show``), or the run ends with Refuted.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3
from ir import Function, Instruction, Module, split, typed
from whole import Facts, Number, Refuted, Whole


@dataclass(frozen=True, eq=False)
class Place:
    """A byte of memory outside: ``offset`` from where ``base`` points to."""

    base: str
    offset: Number


@dataclass(frozen=True)
class Bytes:
    """A value put together of bytes: (value, bytes of that value, which of them it is) each."""

    parts: tuple[tuple[Any, int, int] | None, ...]


@dataclass(frozen=True, eq=False)
class Read:
    """What was read outside."""

    place: Any
    size: int


@dataclass(frozen=True)
class Real:
    """A floating point number: a whole number, and how much more."""

    whole: Any
    more: float = 0.0


@dataclass(eq=False)
class Room:
    """Local memory, byte by byte."""

    name: str
    bytes: dict[int, tuple[Any, int, int]] = field(default_factory=dict)

    def store(self, offset: int, value: Any, size: int) -> None:
        if isinstance(value, Bytes):
            for k, part in enumerate(value.parts):
                if part is not None:
                    self.bytes[offset + k] = part
            return
        for k in range(size):
            self.bytes[offset + k] = (value, size, k)

    def load(self, offset: int, size: int) -> Any:
        parts = tuple(self.bytes.get(offset + k) for k in range(size))
        first = parts[0]
        if (
            first
            and first[1] == size
            and all(p and p[0] is first[0] and p[2] == k for k, p in enumerate(parts))
        ):
            return first[0]
        if all(p and p[1] == 1 and isinstance(p[0], int) for p in parts):  # as memset left them
            return int.from_bytes(bytes(p[0] for p in parts if p), "little")
        return Bytes(parts)


@dataclass(frozen=True)
class Pointer:
    room: Any  # a Room, or the name of what is outside
    offset: Any = 0


@dataclass(frozen=True)
class Event:
    """An access outside: ``kind`` load or store, or the name of what is called; its ``place`` or arguments; bytes."""

    kind: str
    place: Any
    value: Any
    size: int


class Stopped(Exception):
    """The way that was taken is at its end: another decision is to be taken."""


class Machine:
    """Runs functions of a ``module``. ``calls`` are what functions do that have no body there, by a part of their name;
    ``outside`` are globals whose content is not known, by a part of their name."""

    def __init__(self, module: Module, facts: Facts, calls: Mapping[str, Callable[..., Any]] = {}) -> None:
        self.module, self.facts, self.calls = module, facts, calls
        self.outside = ("constant_window", "dynamic_shared")
        self.events: list[Event] = []
        self._rooms: dict[str, Room] = {}
        self._decisions: list[bool] = []
        self._taken = 0

    def ways(self, name: str, arguments: Callable[[], list[Any]]) -> Iterator[tuple[Any, list[Event]]]:
        """(what the function returns, what it does outside), once for each way that it can take; facts know what is so
        on that way while it is looked at."""
        pending: list[list[bool]] = [[]]
        while pending:
            self._decisions, self._taken, self._pending = pending.pop(), 0, pending
            self.events, self._rooms = [], {}
            with self.facts.supposing():
                result = self.call(self.module.functions[name], arguments())
                yield result, self.events

    def decide(self, claim: Any) -> bool:
        """Whether the claim holds; where both may be, one way first and the other later."""
        if isinstance(claim, (bool, int)):
            return bool(claim)
        if self.facts.follows(claim):
            return True
        if self.facts.follows(z3.Not(claim)):
            return False
        if self._taken == len(self._decisions):
            self._pending.append([*self._decisions, False])
            self._decisions.append(True)
        chosen = self._decisions[self._taken]
        self._taken += 1
        self.facts.know(claim if chosen else z3.Not(claim))
        return chosen

    # -- running ----------------------------------------------------------------------------------------

    def call(self, function: Function, arguments: list[Any]) -> Any:
        registers = dict(zip(function.parameters, arguments, strict=True))
        label, before = function.entry, ""
        while True:
            registers |= self._joined(label, function.blocks[label], before, registers)
            for step in function.blocks[label]:
                if step.op == "br":
                    parts = split(step.text)
                    if len(parts) == 1:
                        target = parts[0]
                    else:
                        chosen = self.decide(self._truth(self._operand(parts[0], registers)))
                        target = parts[1] if chosen else parts[2]
                    before, label = label, target.removeprefix("label %")
                    break
                if step.op == "ret":
                    return None if step.text == "void" else self._operand(step.text, registers)
                if step.op == "unreachable":
                    raise Refuted("a place is reached that cannot be")
                if step.op != "phi":
                    registers[step.result] = self._run(step, registers)

    def _joined(
        self, _label: str, steps: Sequence[Instruction], before: str, registers: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What the registers are that depend on where the way comes from."""
        found = {}
        for step in steps:
            if step.op != "phi":
                break
            kind, rest = typed(step.text)
            for pair in split(rest):
                value, _, source = pair[1:-1].rpartition(",")
                if source.strip() == f"%{before}":
                    found[step.result] = self._value(kind, value.strip(), registers)
        return found

    def _run(self, step: Instruction, registers: dict[str, Any]) -> Any:
        run = getattr(self, f"_{step.op}", None)
        if run is None:
            raise NotImplementedError(f"{step.op} {step.text}")
        return run(step.text, registers)

    def _operand(self, text: str, registers: Mapping[str, Any]) -> Any:
        return self._value(*typed(text), registers)

    def _value(self, kind: str, value: str, registers: Mapping[str, Any]) -> Any:
        if value.startswith("%"):
            return registers[value]
        if value.startswith("@"):
            return self._global(value)
        if value in ("true", "false"):
            return int(value == "true")
        if value in ("null", "zeroinitializer"):
            return 0
        if value in ("undef", "poison"):
            return Bytes((None,) * self.module.size(kind))
        if kind in ("float", "double"):
            return Real(0, float(value) if not value.startswith("0x") else float("nan"))
        if value.startswith("getelementptr"):
            inner = value[value.index("(") + 1 : value.rindex(")")]
            return self._getelementptr(inner, registers)
        return int(value) % 2 ** _bits(kind)

    def _global(self, name: str) -> Pointer:
        if any(each in name for each in self.outside):
            return Pointer(next(each for each in self.outside if each in name))
        if name not in self._rooms:
            room = self._rooms[name] = Room(name)
            for offset, size, number in self.module.initial[name]:
                room.store(offset, number % 2 ** (8 * size), size)
        return Pointer(self._rooms[name])

    # -- memory -----------------------------------------------------------------------------------------

    def _alloca(self, text: str, _: Any) -> Pointer:
        return Pointer(Room(text))

    def _store(self, text: str, registers: Any) -> None:
        value_text, pointer_text = split(text)[:2]
        size = self.module.size(typed(value_text)[0])
        value, pointer = self._operand(value_text, registers), self._operand(pointer_text, registers)
        self.put(pointer, value, size)

    def put(self, pointer: Pointer, value: Any, size: int) -> None:
        if isinstance(pointer.room, Room):
            pointer.room.store(pointer.offset, value, size)
        else:
            self.events.append(Event("store", Place(pointer.room, pointer.offset), value, size))

    def _load(self, text: str, registers: Any) -> Any:
        kind, pointer_text = split(text)[:2]
        return self.get(self._operand(pointer_text, registers), self.module.size(kind))

    def get(self, pointer: Pointer, size: int) -> Any:
        if isinstance(pointer.room, Room):
            return pointer.room.load(pointer.offset, size)
        place = Place(pointer.room, pointer.offset)
        self.events.append(Event("load", place, None, size))
        return Read(place, size)

    def _getelementptr(self, text: str, registers: Any) -> Pointer:
        text = re.sub(r"^((inbounds|nuw|nusw) )+", "", text)
        kind, pointer_text, *indices = split(text)
        pointer = self._operand(pointer_text, registers)
        if isinstance(pointer, int):
            pointer = Pointer("null", pointer)
        offset: Number = pointer.offset
        for place, index_text in enumerate(indices):
            index = self._operand(index_text, registers)
            bits = _bits(typed(index_text)[0])
            if place == 0:
                offset = offset + self._signed(index, bits) * self.module.size(kind)
            elif kind[0] in "[<" and not kind.startswith("<{"):
                members = self.module.members(kind)
                offset = offset + self._signed(index, bits) * self.module.size(members[0][1])
                kind = members[0][1]
            else:
                begin, kind = self.module.members(kind)[index]
                offset = offset + begin
        return Pointer(pointer.room, offset)

    # -- arithmetic -------------------------------------------------------------------------------------

    def exact(self, value: Any, bits: int) -> Any:
        """The value, which is shown to be one of 0 .. 2^bits - 1."""
        if isinstance(value, Whole):
            self.facts.show(z3.And(value >= 0, value < 2**bits), f"a number has {bits} bits")
        return value

    def _signed(self, value: Any, bits: int) -> Any:
        if isinstance(value, int):
            return value - 2**bits if value >= 2 ** (bits - 1) else value
        return value

    def _two(self, text: str, registers: Any) -> tuple[Any, Any, int]:
        text = re.sub(r"^((nuw|nsw|exact|disjoint|samesign) )+", "", text)
        first, second = split(text)
        kind, value = typed(first)
        return self._value(kind, value, registers), self._value(kind, second, registers), _bits(kind)

    def _ring(self, text: str, registers: Any, work: Callable[[Any, Any], Any]) -> Any:
        a, b, bits = self._two(text, registers)
        if isinstance(a, int) and isinstance(b, int):
            return work(a, b) % 2**bits
        return work(self._signed(a, bits), self._signed(b, bits))

    def _add(self, text: str, registers: Any) -> Any:
        return self._ring(text, registers, lambda a, b: a + b)

    def _sub(self, text: str, registers: Any) -> Any:
        return self._ring(text, registers, lambda a, b: a - b)

    def _mul(self, text: str, registers: Any) -> Any:
        return self._ring(text, registers, lambda a, b: a * b)

    def _shl(self, text: str, registers: Any) -> Any:
        a, b, bits = self._two(text, registers)
        assert isinstance(b, int), "a shift by a number that is not known"
        return (a << b) % 2**bits if isinstance(a, int) else a * 2**b

    def _exact(self, text: str, registers: Any, work: Callable[[Any, Any], Any]) -> Any:
        a, b, bits = self._two(text, registers)
        return work(self.exact(a, bits), self.exact(b, bits))

    def _udiv(self, text: str, registers: Any) -> Any:
        return self._exact(text, registers, lambda a, b: self._whole_division(a, b)[0])

    def _urem(self, text: str, registers: Any) -> Any:
        return self._exact(text, registers, lambda a, b: self._whole_division(a, b)[1])

    def _whole_division(self, a: Any, b: Any) -> tuple[Any, Any]:
        if isinstance(b, Whole):
            self.facts.show(b > 0, "no division by 0")
            return self.facts.divide(self.facts.whole(a), b)
        return a // b, a % b

    def _sdiv(self, text: str, registers: Any) -> Any:
        return self._whole_division(*self._without_sign(text, registers))[0]

    def _srem(self, text: str, registers: Any) -> Any:
        return self._whole_division(*self._without_sign(text, registers))[1]

    def _without_sign(self, text: str, registers: Any) -> tuple[Any, Any]:
        """Two operands, neither of which is negative as a number with a sign."""
        a, b, bits = self._two(text, registers)
        for each in (a, b):
            if isinstance(each, int):
                assert each < 2 ** (bits - 1), text
            self.exact(each, bits - 1)
        return a, b

    def _ashr(self, text: str, registers: Any) -> Any:
        self._without_sign(text, registers)
        return self._lshr(text, registers)

    def _lshr(self, text: str, registers: Any) -> Any:
        a, b, bits = self._two(text, registers)
        assert isinstance(b, int), "a shift by a number that is not known"
        if isinstance(a, Smeared):
            return Shifted(a, b)
        if b == 0:
            return a
        if isinstance(a, int):
            return a >> b
        shifted = self.exact(a, bits) // 2**b
        self._origin[shifted.key] = a, b
        return shifted

    def _and(self, text: str, registers: Any) -> Any:
        a, b, _ = self._two(text, registers)
        if isinstance(a, int) and not isinstance(b, int):
            a, b = b, a
        if isinstance(a, int):
            return a & b
        assert isinstance(b, int), "a mask that is not known"
        assert b & (b + 1) == 0, f"mask {b:#x} is not of the lowest bits"
        return a % (b + 1)

    def _or(self, text: str, registers: Any) -> Any:
        a, b, bits = self._two(text, registers)
        if isinstance(a, int) and isinstance(b, int):
            return a | b
        if (smeared := self._smear(a, b, bits)) is not None:
            return smeared
        low = next((k for k in range(bits + 1) if self.facts.follows(self.facts.whole(b) < 2**k)), None)
        assert low is not None
        self.facts.show(self.facts.whole(a) % 2**low == 0, "bits that are joined are apart")
        return a + b

    def _xor(self, text: str, registers: Any) -> Any:
        a, b, bits = self._two(text, registers)
        if isinstance(a, int) and isinstance(b, int):
            return a ^ b
        return self.exact(a, bits) ^ self.exact(b, bits)

    # x | x >> 1 | x >> 2 ..., by doubled steps, is the number with all bits set below the highest of x (``lemmas``)

    @property
    def _origin(self) -> dict[Any, tuple[Any, int]]:
        return self.__dict__.setdefault("_origins", {})

    def _smear(self, a: Any, b: Any, bits: int) -> Any:
        if isinstance(a, Whole) and isinstance(b, Whole):
            of, shift = self._origin.get(b.key, (None, 0))
            if shift == 1 and of is not None and of.key == a.key:
                return self._filled(Smeared(a, 2), bits)
        if isinstance(a, Smeared) and isinstance(b, Shifted) and b.of is a and b.by == a.reach:
            return self._filled(Smeared(a.of, 2 * a.reach), bits)
        return None

    def _filled(self, smeared: "Smeared", bits: int) -> Any:
        if smeared.reach < bits:
            return smeared
        likely = self._length(smeared.of)
        for length in sorted(range(bits + 1), key=lambda each: each != likely):
            low = 2 ** (length - 1) if length else 0
            if self.decide(z3.And(smeared.of >= low, smeared.of < 2**length)):
                return 2**length - 1
        raise Refuted("a number without a highest bit")

    def _length(self, number: Whole) -> int:
        """The bits of the number, where they are always as many; any other number where not."""
        found = self.facts.example(number)
        return -1 if found is None else found.bit_length()

    def _icmp(self, text: str, registers: Any) -> Any:
        order, _, rest = text.removeprefix("samesign ").partition(" ")
        a, b, bits = self._two(rest, registers)
        if order[0] == "s":
            a, b = self._signed(a, bits), self._signed(b, bits)
            assert isinstance(a, int) and isinstance(b, int), "an order with signs"
        elif not isinstance(a, Pointer):
            a, b = self.exact(a, bits), self.exact(b, bits)
        work: dict[str, Callable[[Any, Any], Any]] = {
            "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y,
            "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
        }  # fmt: skip
        found = work[order if order in work else order[1:]](a, b)
        return int(found) if isinstance(found, bool) else found

    def _truth(self, value: Any) -> Any:
        return bool(value) if isinstance(value, int) else value

    def _select(self, text: str, registers: Any) -> Any:
        condition, first, second = split(text)
        chosen = self.decide(self._truth(self._operand(condition, registers)))
        return self._operand(first if chosen else second, registers)

    def _cast(self, text: str, registers: Any) -> tuple[Any, str, str]:
        text = re.sub(r"^((nuw|nsw|nneg) )+", "", text)
        value, _, target = text.rpartition(" to ")
        return self._operand(value, registers), typed(value)[0], target

    def _zext(self, text: str, registers: Any) -> Any:
        value, kind, _ = self._cast(text, registers)
        return self.exact(value, _bits(kind))

    def _sext(self, text: str, registers: Any) -> Any:
        value, kind, target = self._cast(text, registers)
        if isinstance(value, Whole):
            self.facts.show(z3.And(value >= 0, value < 2 ** (_bits(kind) - 1)), "a number has no sign")
            return value
        return self._signed(value, _bits(kind)) % 2 ** _bits(target)

    def _trunc(self, text: str, registers: Any) -> Any:
        value, _, target = self._cast(text, registers)
        return value % 2 ** _bits(target) if isinstance(value, int) else value

    def _bitcast(self, text: str, registers: Any) -> Any:
        return self._cast(text, registers)[0]

    _inttoptr = _ptrtoint = _bitcast

    def _uitofp(self, text: str, registers: Any) -> Real:
        value, kind, target = self._cast(text, registers)
        digits = {"float": 24, "double": 53}[target]
        return Real(self.exact(self.exact(value, _bits(kind)), digits))

    def _sitofp(self, text: str, registers: Any) -> Real:
        return self._uitofp(text, registers)

    def _fadd(self, text: str, registers: Any) -> Real:
        first, second = split(text)
        a, b = self._operand(first, registers), self._value(typed(first)[0], second, registers)
        return Real(a.whole + b.whole, a.more + b.more)

    # -- values of several parts ------------------------------------------------------------------------

    def _extractvalue(self, text: str, registers: Any) -> Any:
        first, index = split(text)
        kind, _ = typed(first)
        value, (offset, member) = self._operand(first, registers), self.module.members(kind)[int(index)]
        return self._part(value, self.module.size(kind), offset, self.module.size(member))

    def _insertvalue(self, text: str, registers: Any) -> Any:
        first, second, index = split(text)
        kind, _ = typed(first)
        room = Room("value")
        room.store(0, self._operand(first, registers), self.module.size(kind))
        offset, member = self.module.members(kind)[int(index)]
        room.store(offset, self._operand(second, registers), self.module.size(member))
        return room.load(0, self.module.size(kind))

    def _part(self, value: Any, size: int, offset: int, count: int) -> Any:
        room = Room("value")
        room.store(0, value, size)
        return room.load(offset, count)

    # -- calls ------------------------------------------------------------------------------------------

    def _call(self, text: str, registers: Any) -> Any:
        begin = text.index("@")
        matched = re.match(r'@("[^"]*"|[\w.$]+)\(', text[begin:])
        assert matched, text
        name = f"@{matched[1]}"
        arguments_text = text[begin + matched.end() : text.rindex(")")]
        given = split(arguments_text)
        if name.startswith(("@llvm.memcpy", "@llvm.memmove")):
            return self._copy(*(self._operand(each, registers) for each in given[:3]))
        if name.startswith(("@llvm.lifetime", "@llvm.assume", "@llvm.experimental")):
            return None
        values = [self._operand(each, registers) for each in given]
        if name.startswith("@llvm.memset"):
            to, byte, size = values[:3]
            for k in range(size):
                to.room.store(to.offset + k, byte, 1)
            return None
        if name.startswith("@llvm.ctpop"):
            assert isinstance(values[0], int), "bits of a number that is not known"
            return values[0].bit_count()
        for part, work in self.calls.items():
            if part in name:
                return work(self, name, *values)
        if name not in self.module.functions:
            self.events.append(Event(name, tuple(values), None, 0))
            return Read(Place(name, len(self.events)), 0)
        return self.call(self.module.functions[name], values)

    def _copy(self, to: Pointer, source: Pointer, size: int) -> None:
        if isinstance(source.room, Room) and isinstance(to.room, Room):
            to.room.store(
                to.offset, Bytes(tuple(source.room.bytes.get(source.offset + k) for k in range(size))), size
            )
        else:
            self.put(to, self.get(source, size), size)


@dataclass(frozen=True, eq=False)
class Smeared:
    """``of`` joined with itself shifted by 0 .. ``reach`` - 1."""

    of: Whole
    reach: int


@dataclass(frozen=True, eq=False)
class Shifted:
    of: Smeared
    by: int


def _bits(kind: str) -> int:
    return 64 if kind == "ptr" else int(kind[1:])


def smear_lemma() -> None:
    """What ``_filled`` takes for known. Raises Refuted."""
    x = z3.BitVec("x", 32)
    filled = x
    for shift in (1, 2, 4, 8, 16):
        filled = filled | z3.LShR(filled, shift)
    solver = z3.Solver()
    is_right = z3.And(
        filled & (filled + 1) == 0, z3.ULE(x, filled), z3.Or(x == 0, z3.UGT(x, z3.LShR(filled, 1)))
    )
    solver.add(z3.Not(is_right))
    if solver.check() != z3.unsat:
        raise Refuted("x | x >> 1 | ... fills all bits below the highest")

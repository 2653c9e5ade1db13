"""LLVM's intermediate language, as far as clang uses it for the layout library."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property


@dataclass(frozen=True)
class Instruction:
    """``result`` is the register that it sets, empty for none; ``text`` all behind that."""

    result: str
    op: str
    text: str


@dataclass
class Function:
    name: str
    parameters: tuple[str, ...]
    blocks: dict[str, list[Instruction]] = field(default_factory=dict)
    entry: str = ""


class Module:
    """Functions, types and constants of a file in that language."""

    def __init__(self, text: str) -> None:
        self.functions: dict[str, Function] = {}
        self._types: dict[str, str] = {}
        self.globals: dict[str, str] = {}
        self._sizes: dict[str, tuple[int, int]] = {}
        at: Function | None = None
        label = ""
        for written in text.splitlines():
            line = written.split(" ; ")[0].rstrip() if not written.startswith("@") else written
            if line.startswith("define "):
                at, label = _function(line)
                self.functions[at.name] = at
            elif line == "}":
                at = None
            elif at is not None and (matched := re.fullmatch(r"([\w.]+):\s*(;.*)?", line)):
                label = matched[1]
                at.blocks[label] = []
            elif at is not None and line.strip():
                at.blocks[label].append(_instruction(line.strip()))
            elif matched := re.fullmatch(r"(%\S+|%\".*?\") = type (.*)", line):
                self._types[matched[1]] = matched[2]
            elif matched := re.match(r"(@\S+) = (.*)", line):
                self.globals[matched[1]] = matched[2]

    def size(self, kind: str) -> int:
        """Bytes of a type."""
        return self._measured(kind)[0]

    def _measured(self, kind: str) -> tuple[int, int]:
        """(bytes, alignment)."""
        if kind not in self._sizes:
            self._sizes[kind] = self._measure(kind)
        return self._sizes[kind]

    def _measure(self, kind: str) -> tuple[int, int]:
        simple = {"ptr": 8, "float": 4, "double": 8, "half": 2}
        if kind in simple:
            return simple[kind], simple[kind]
        if matched := re.fullmatch(r"i(\d+)", kind):
            size = 1 if int(matched[1]) < 8 else int(matched[1]) // 8
            return size, min(size, 8)
        if matched := re.fullmatch(r"\[(\d+) x (.*)\]", kind):
            size, align = self._measured(matched[2])
            return int(matched[1]) * size, align
        if matched := re.fullmatch(r"<(\d+) x (\S+)>", kind):
            size = int(matched[1]) * self._measured(matched[2])[0]
            return size, size
        end, most = 0, 1
        for offset, member in self.members(kind):
            size, align = self._measured(member)
            end, most = offset + size, max(most, 1 if self._is_packed(kind) else align)
        return -(-end // most) * most, most

    def _is_packed(self, kind: str) -> bool:
        return self._types.get(kind, kind).startswith("<{")

    def members(self, kind: str) -> list[tuple[int, str]]:
        """(offset, type) of each member of a structure or an array."""
        if matched := re.fullmatch(r"\[(\d+) x (.*)\]", kind):
            return [(k * self.size(matched[2]), matched[2]) for k in range(int(matched[1]))]
        if matched := re.fullmatch(r"<(\d+) x (\S+)>", kind):
            return [(k * self.size(matched[2]), matched[2]) for k in range(int(matched[1]))]
        body = self._types.get(kind, kind)
        inner = re.fullmatch(r"<?\{\s*(.*?)\s*\}>?", body)
        if not inner:
            raise ValueError(f"no structure: {kind} = {body}")
        found, offset = [], 0
        for member in split(inner[1]):
            size, align = self._measured(member)
            offset = offset if self._is_packed(kind) else -(-offset // align) * align
            found.append((offset, member))
            offset += size
        return found

    @cached_property
    def initial(self) -> Mapping[str, list[tuple[int, int, int]]]:
        """(offset, bytes, number) of each constant."""
        found = {}
        for name, text in self.globals.items():
            if matched := re.search(r"\bconstant (.*?)(?:, comdat.*)?, align \d+$", text):
                kind, value = typed(matched[1])
                found[name] = list(self._numbers(kind, value, 0))
        return found

    def _numbers(self, kind: str, value: str, offset: int) -> list[tuple[int, int, int]]:
        if re.fullmatch(r"i\d+", kind):
            number = {"true": 1, "false": 0, "zeroinitializer": 0}.get(value)
            return [(offset, self.size(kind), int(value) if number is None else number)]
        if kind in ("ptr", "float", "double"):
            return []
        made: list[tuple[int, int, int]] = []
        items = split(value.strip()[1:-1]) if value[:1] in "[{" else ()
        for number, (begin, member) in enumerate(self.members(kind)):
            text = typed(items[number])[1] if items else "zeroinitializer"
            made += self._numbers(member, text, offset + begin)
        return made


@cache
def split(text: str) -> tuple[str, ...]:
    """At commas that are in no bracket and no quotes."""
    parts, depth, quoted, begin = [], 0, False, 0
    for place, sign in enumerate(text):
        if sign == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif sign in "([{<":
            depth += 1
        elif sign in ")]}>":
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append(text[begin:place].strip())
            begin = place + 1
    last = text[begin:].strip()
    return tuple([*parts, last] if last else parts)


_WORDS = re.compile(
    r"\s*(?:noundef|nonnull|nocapture|readonly|readnone|writeonly|signext|zeroext|noalias|returned|inreg|dead_on_unwind"
    r"|writable|(?:align|dereferenceable|dereferenceable_or_null|sret|byval|captures|nofpclass|range)"
    r"(?:\((?:[^()]|\([^()]*\))*\)|\s\d+))(?=\s|$)"
)


@cache
def typed(text: str) -> tuple[str, str]:
    """(type, value) of an operand, without its attributes."""
    text = text.strip()
    end = _type_end(text)
    kind, rest = text[:end], text[end:]
    while matched := _WORDS.match(rest):
        rest = rest[matched.end() :]
    return kind, rest.strip()


def _type_end(text: str) -> int:
    """Where the type at the begin of ``text`` ends."""
    if text[0] in "[{<":
        depth = 0
        for place, sign in enumerate(text):
            depth += (sign in "[{<") - (sign in "]}>")
            if depth == 0:
                return place + 1
    if text.startswith('%"'):
        return text.index('"', 2) + 1
    matched = re.match(r"[%\w.$:]+", text)
    assert matched, text
    return matched.end()


def _function(line: str) -> tuple[Function, str]:
    begin = line.index("@")
    matched = re.match(r'@("[^"]*"|[\w.$]+)\(', line[begin:])
    assert matched, line
    inner, depth = begin + matched.end(), 1
    place = inner
    while depth:
        depth += (line[place] == "(") - (line[place] == ")")
        place += 1
    parameters = tuple(typed(each)[1] for each in split(line[inner : place - 1]))
    label = str(len(parameters))
    made = Function(f"@{matched[1]}", parameters, {label: []}, label)
    return made, label


def _instruction(line: str) -> Instruction:
    result = ""
    if matched := re.match(r"(%[\w.]+) = ", line):
        result, line = matched[1], line[matched.end() :]
    line = re.sub(r"(, ![\w.]+ !\d+)+$", "", line)
    line = re.sub(r"(, ![\w.]+ !\d+)+", "", line)
    op, _, text = line.partition(" ")
    if op in ("tail", "musttail", "notail"):
        op, _, text = text.partition(" ")
    return Instruction(result, op, text)

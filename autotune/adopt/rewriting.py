"""The kernel's text with accessors in the place of pointers; all other text as it was, byte for byte."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from autotune.adopt.accesses import Access, Pointer
from autotune.adopt.elements import find_half
from autotune.adopt.expression import Factor, split, write
from autotune.adopt.function import Function
from autotune.adopt.source import CudaSource, Span, children, identifiers, kind, span, type_kind, walk


@dataclass
class Text:
    """A source and the places to replace in it. A place may contain others: its new text includes theirs."""

    source: CudaSource
    edits: dict[Span, Callable[[], str]] = field(default_factory=dict)

    def replace(self, place: Span, text: str | Callable[[], str]) -> None:
        self.edits[place] = text if callable(text) else lambda: text

    def read_between(self, begin: int, end: int) -> str:
        """The text from one place to another, with the edits in it."""
        parts, at = [], begin
        for place in self._find_outermost(begin, end):
            parts += [self.source.text(at, place[0]), self.edits[place]()]
            at = place[1]
        return "".join([*parts, self.source.text(at, end)])

    def _find_outermost(self, begin: int, end: int) -> Iterator[Span]:
        inside = (place for place in self.edits if begin <= place[0] and place[1] <= end)
        at = begin
        for place in sorted(inside, key=lambda place: (place[0], -place[1])):
            if place[0] >= at:
                yield place
                at = max(at, place[1])

    def factor(self, factor: Factor) -> str:
        """What is taken as a whole in an index, as it is written there."""
        return factor.spelling if factor.span is None else self.read_between(*factor.span)


@dataclass
class Invariants:
    """Indices that a loop does not change: the rewritten loop declares each once, next to its own variable. A compiler
    copies ``min(max(y, 0), height - 1)`` into each branch if every access has it. Only ``min`` and ``max`` of int
    values are moved."""

    text: Text
    function: Function
    names: dict[tuple[Span, str], str] = field(default_factory=dict)

    def name(self, index: str, place: Span, array: str) -> str:
        """The name of the index of an access, or the index itself where it has none."""
        called = set(re.findall(r"(\w+)\s*\(", index))
        named = identifiers(index) - called
        if not called or not called <= {"min", "max"} or not re.fullmatch(r"[\w\s+*(),-]+", index):
            return index
        source = self.text.source
        bodies = ((c, span(children(c)[-1])) for c in walk(self.function.body, "FOR_STMT"))
        loops = [c for c, body in bodies if body[0] <= place[0] and place[1] <= body[1]]
        if not loops or source.macro_around(place):
            return index
        loop, first = span(loops[-1]), children(loops[-1])[0]
        declared = children(first) if kind(first) == "DECL_STMT" else []
        end = span(first)[1] - 1
        if [type_kind(c) for c in declared] != ["INT"] or source.text(end, end + 1) != ";":
            return index
        variables = [v for v in self.function.variables.values() if v.name in named]
        is_older = all(type_kind(v.cursor) == "INT" and v.place <= loop[0] for v in variables)
        is_changed = any(loop[0] < at < loop[1] for v in variables for at in v.changes)
        if named != {v.name for v in variables} or not is_older or is_changed:
            return index
        if (loop, index) not in self.names:
            taken = identifiers(source.text()) | {*self.names.values()}
            numbers = (f"{array}_index{number or ''}" for number in range(len(self.names) + len(taken) + 1))
            self.names[loop, index] = next(name for name in numbers if name not in taken)
            added = [f", {name} = {text}" for (of, text), name in self.names.items() if of == loop]
            self.text.replace((end, end), "".join(added))
        return self.names[loop, index]


def rewrite_accesses(
    text: Text, pointer: Pointer, by: list[Factor], record: str, invariants: Invariants | None = None
) -> None:
    """Edit every access of an array with these inner strides, of elements of this struct; those of a kernel with its
    invariants."""
    for access in pointer.accesses:
        known = {}
        if invariants and by:
            for number, index in enumerate(split(access.index, by)):
                said = write(index, lambda each: each.spelling or text.source.text(*(each.span or (0, 0))))
                if (name := invariants.name(said, access.place, pointer.name)) != said:
                    known[number] = name
        text.replace(access.place, partial(_rewrite, text, pointer, access, by, record, known))
    for place in pointer.removed:
        declared = text.source.text(*place)
        text.replace(place, f"/* {declared.replace('*/', '* /')} */" if "\n" not in declared else "")


def _rewrite(
    text: Text, pointer: Pointer, access: Access, by: list[Factor], record: str, known: dict[int, str]
) -> str:
    said = enumerate(index_texts(text, pointer, access, by))
    name, indices = pointer.name, ", ".join(known.get(number, index) for number, index in said)
    if access.use == "load":
        loaded = f"{name}.load({indices})"
        return f"{half}({loaded})" if (half := find_half(pointer.element)) else f"{loaded}{access.tail}"
    if access.use in ("store", "add"):
        assert access.value is not None
        return f"{name}.{access.use}({text.read_between(*access.value)}, {indices})"
    place = f"autotune::field<&{record}::{access.member}>" if access.member else "autotune::element"
    return f"{'&' if access.use == 'address' else ''}{place}({name}, {indices})"


def index_texts(text: Text, pointer: Pointer, access: Access, by: list[Factor]) -> list[str]:
    """Return the indices of an access; for an array with one extent, the source's own text."""
    if not by and access.given is not None and not pointer.removed:
        begin, end = access.given.extent.start.offset, access.given.extent.end.offset
        inside = access.use == "store" or (access.place[0] < begin and end < access.place[1])
        if inside and text.source.macro_around((begin, end)) in (None, (begin, end)):
            return [text.read_between(begin, end)]
    return [write(index, text.factor) for index in split(access.index, by)]

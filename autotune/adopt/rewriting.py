"""The kernel's text with accessors in the place of pointers; all other text as it was, byte for byte."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from autotune.adopt.accesses import Access, Pointer
from autotune.adopt.elements import find_half
from autotune.adopt.expression import Factor, split, write
from autotune.adopt.source import CudaSource, Span


@dataclass
class Text:
    """A source with places that are written anew. A place may hold others: what is written there asks for their
    text."""

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


def rewrite_accesses(text: Text, pointer: Pointer, by: list[Factor], record: str) -> None:
    """Edit every access of an array with these inner strides, of elements of this struct."""
    for access in pointer.accesses:
        text.replace(access.place, partial(_rewrite, text, pointer, access, by, record))
    for place in pointer.removed:
        declared = text.source.text(*place)
        text.replace(place, f"/* {declared.replace('*/', '* /')} */" if "\n" not in declared else "")


def _rewrite(text: Text, pointer: Pointer, access: Access, by: list[Factor], record: str) -> str:
    name, indices = pointer.name, ", ".join(index_texts(text, pointer, access, by))
    if access.use == "load":
        loaded = f"{name}.load({indices})"
        return f"{half}({loaded})" if (half := find_half(pointer.element)) else f"{loaded}{access.tail}"
    if access.use in ("store", "add"):
        assert access.value is not None
        return f"{name}.{access.use}({text.read_between(*access.value)}, {indices})"
    place = f"autotune::field<&{record}::{access.member}>" if access.member else "autotune::element"
    return f"{'&' if access.use == 'address' else ''}{place}({name}, {indices})"


def index_texts(text: Text, pointer: Pointer, access: Access, by: list[Factor]) -> list[str]:
    """The indices of an access; as they stand where the array has one extent."""
    if not by and access.given is not None and not pointer.removed:
        begin, end = access.given.extent.start.offset, access.given.extent.end.offset
        inside = access.use == "store" or (access.place[0] < begin and end < access.place[1])
        if inside and text.source.macro_around((begin, end)) in (None, (begin, end)):
            return [text.read_between(begin, end)]
    return [write(index, text.factor) for index in split(access.index, by)]

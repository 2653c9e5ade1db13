"""The kernel's text with accessors in the place of pointers; all other text as it was, byte for byte."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from autotune.adopt.accesses import Access
from autotune.adopt.arrays import Array
from autotune.adopt.expression import Expression, Span, terms, written
from autotune.adopt.source import Source


@dataclass
class Text:
    """A source with places that are written anew. A place may hold others: what is written there asks for their
    text."""

    source: Source
    edits: dict[Span, Callable[[], str]] = field(default_factory=dict)

    def replace(self, place: Span, text: str | Callable[[], str]) -> None:
        self.edits[place] = text if callable(text) else lambda: text

    def between(self, begin: int, end: int, but: Span | None = None) -> str:
        """The text from one place to another, with the edits that lie in it; not the edit ``but`` itself."""
        parts, at = [], begin
        for place in self._outermost(begin, end, but):
            parts += [self.source.text(at, place[0]), self.edits[place]()]
            at = place[1]
        return "".join([*parts, self.source.text(at, end)])

    def _outermost(self, begin: int, end: int, but: Span | None) -> Iterable[Span]:
        inside = [place for place in self.edits if begin <= place[0] and place[1] <= end and place != but]
        at = begin
        for place in sorted(inside, key=lambda place: (place[0], -place[1])):
            if place[0] >= at:
                yield place
                at = max(at, place[1])

    def expression(self, expression: Expression) -> str:
        """What is taken as a whole in an index, as it is written there."""
        if expression.operator:
            return written(terms(expression), self.expression)
        if expression.span is None:
            return expression.spelling
        return self.between(*expression.span)


def rewrite_accesses(text: Text, array: Array, record: str = "") -> None:
    """Edit every access of the array."""
    for access in array.pointer.accesses:
        text.replace(access.place, _maker(text, array, access, record or array.record))
    for place in array.pointer.removed:
        declared = text.source.text(*place)
        text.replace(place, f"/* {declared.replace('*/', '* /')} */" if "\n" not in declared else "")


def _maker(text: Text, array: Array, access: Access, record: str) -> Callable[[], str]:
    def made() -> str:
        name = array.name
        indices = ", ".join(index_texts(text, array, access))
        match access.use:
            case "load":
                return f"{name}.load({indices}){access.tail}"
            case "store":
                assert access.value is not None
                return f"{name}.store({text.between(*access.value)}, {indices})"
            case "add":
                assert access.value is not None
                return f"{name}.add({text.between(*access.value)}, {indices})"
        place = f"autotune::field<&{record}::{access.member}>" if access.member else "autotune::element"
        prefix = "&" if access.use == "address" else ""
        return f"{prefix}{place}({name}, {indices})"

    return made


def index_texts(text: Text, array: Array, access: Access) -> list[str]:
    """The indices of an access; as they stand where the array has one extent."""
    if not array.by and access.given is not None and len(access.index) and not array.pointer.removed:
        begin, end = access.given.extent.start.offset, access.given.extent.end.offset
        inside = access.place[0] < begin and end < access.place[1] if access.use != "store" else True
        if inside and text.source.macro_around((begin, end)) in (None, (begin, end)):
            return [text.between(begin, end)]
    return [written(index, text.expression) for index in array.indices(access)]


def parameter_text(name: str, policy: str = "") -> str:
    """The parameter of a kernel that takes an accessor."""
    return f"typename Policy::{policy or name} {name}"

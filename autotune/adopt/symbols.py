"""Arrays that a source has itself and a host program fills: what they are declared as."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from autotune.adopt.elements import record_fields, type_name
from autotune.adopt.source import Cursor


@dataclass(frozen=True)
class Symbol:
    """``counts`` are its extents; ``fields`` by name where it holds records."""

    name: str
    counts: tuple[int, ...]
    type: str = ""
    record: str = ""
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def shape(self) -> list[str]:
        """The names of its extents."""
        if len(self.counts) == 1:
            return [f"{self.name}_count"]
        return [f"{self.name}_count_{number}" for number in range(len(self.counts))]

    def declared(self) -> str:
        """Its line of family.yaml."""
        fields = ", ".join(f"{name}: {type_}" for name, type_ in self.fields.items())
        element = f"record: {self.record}, fields: {{{fields}}}" if self.record else f"type: {self.type}"
        return f"  {self.name}: {{role: input, {element}, shape: [{', '.join(self.shape)}], access: symbol}}"


def symbols_of(cursors: Iterable[Cursor]) -> tuple[Symbol, ...]:
    """Those whose elements family.yaml has words for."""
    found = []
    for cursor in cursors:
        element, counts = cursor.type.get_canonical(), []
        while element.kind.name == "CONSTANTARRAY":
            counts.append(int(element.element_count))
            element = element.element_type.get_canonical()
        name, sizes = str(cursor.spelling), tuple(counts) or (1,)
        if type_ := type_name(element):
            found.append(Symbol(name, sizes, type_))
        elif element.kind.name == "RECORD":
            fields, why = record_fields(element)
            if not why:
                found.append(Symbol(name, sizes, "", str(element.get_declaration().spelling), fields))
    return tuple(found)

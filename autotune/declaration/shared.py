"""The arrays in shared memory that a family declares: their elements and extents, and the layouts they can take."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from autotune.declaration.data import check_choice
from autotune.declaration.expression import Expression
from autotune.declaration.space import Constraint
from autotune.errors import FamilyError, UnknownName
from autotune.layout import SCALAR_TYPES, Data, Field

EXTENTS = ("plane", "row", "column")


@dataclass(frozen=True)
class SharedData:
    """``sizes`` are those of the extents of ``data``, made of options, policies and constant extents."""

    data: Data
    sizes: tuple[Expression, ...]

    def extents(self, names: Mapping[str, Any]) -> tuple[int, ...]:
        """The extents with ``names`` bound."""
        return tuple(size.integer(names) for size in self.sizes)

    @property
    def constraints(self) -> Iterator[Constraint]:
        """No extent is empty."""
        for name, size in zip(self.data.shape, self.sizes, strict=True):
            text = f"({size.text}) >= 1"
            yield Constraint(
                Expression(text, self.data.name),
                f"{self.data.name}: extent {name}, {size.text}, is at least 1",
            )


def read_shared(name: str, value: Mapping[str, Any], known: Collection[str], where: str) -> SharedData:
    """A shared array from its part of ``family.yaml``, sizes made of ``known`` names. Raises FamilyError,
    UnknownName."""
    place = f"{where}: shared {name}"
    if value["type"] not in SCALAR_TYPES:
        raise UnknownName("type", value["type"], SCALAR_TYPES, place)
    sizes = tuple(Expression(str(size), f"{place}: shape").require(known) for size in value["shape"])
    fields, fixed = (Field("", value["type"]),), value.get("layout", {})
    data = Data(name=name, role="shared", fields=fields, shape=EXTENTS[-len(sizes) :], fixed=fixed)
    if empty := [size.text for size in sizes if not size.names and size.integer({}) < 1]:
        raise FamilyError(f"{place}: an extent of {empty[0]}: each is a whole number of at least 1")
    for layout, choice in fixed.items():
        check_choice(place, data, layout, choice)
    return SharedData(data, sizes)

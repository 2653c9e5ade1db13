"""swizzle: columns change places within their row, in each row others (host side of ``swizzle.cuh``).

The columns of a row lie in groups of ``width``; group g of row r goes to where group ``g ^ (r % groups)`` was. Threads
that read one column of several rows so find it in different banks of shared memory, or sectors of a line.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from autotune.errors import FamilyError, UnknownName
from autotune.layout.dimension import step_dimension


@dataclass(frozen=True)
class Swizzle:
    """``groups`` of ``width`` columns change places; both are powers of two."""

    header: ClassVar[str] = "autotune/swizzle.cuh"
    name: ClassVar[str] = "a swizzle"
    groups: int
    width: int = 1

    def __str__(self) -> str:
        return f"xor{self.groups}x{self.width}"

    @property
    def span(self) -> int:
        """Columns that change places among themselves: rows are whole numbers of them."""
        return self.groups * self.width

    def column(self, row: Any, column: Any) -> Any:
        """Return where a column of a row is stored, or which column is stored there: whole numbers, or arrays."""
        return column ^ (row % self.groups * self.width)

    def move(self, at: Sequence[Any], axes: Sequence[int], _extents: Sequence[int]) -> list[Any]:
        row, column = axes[-2:]
        return [self.column(at[row], each) if axis == column else each for axis, each in enumerate(at)]

    def cpp(self, mapping: str, axes: Sequence[int]) -> str:
        row, column = axes[-2:]
        return f"autotune::Swizzled<{mapping}, {row}, {column}, {self.groups}, {self.width}>"

    def host_cpp(self, axes: Sequence[int]) -> str:
        row, column = axes[-2:]
        return f"at[{column}] ^= at[{row}] % {self.groups} * {self.width};"

    @property
    def device(self) -> Mapping[str, int]:
        return {"groups": self.groups, "width_of_group": self.width}


def parse_swizzle(value: object, shape: Sequence[str], where: str) -> Swizzle | None:
    """What a layout policy's value says: ``none``, ``xor<groups>``, ``xor<groups>x<width>``. Raises FamilyError,
    UnknownName."""
    if value == "none":
        return None
    matched = re.fullmatch(r"xor([0-9]+)(?:x([0-9]+))?", str(value))
    if not matched:
        raise UnknownName("swizzle layout", value, ("none", "xor<groups>", "xor<groups>x<width>"), where)
    swizzle = Swizzle(int(matched[1]), int(matched[2] or 1))
    for what, number in (("groups", swizzle.groups), ("width", swizzle.width)):
        if number < 1 or number & (number - 1):
            raise FamilyError(f"{where}: swizzle {value}: {what} {number} is not a power of two")
    if len(shape) < 2:
        raise FamilyError(
            f"{where}: swizzle {value}: an array of one extent ({shape[0]}) has no rows to swizzle"
        )
    return None if swizzle.groups == 1 else swizzle


SWIZZLE = step_dimension(
    "swizzle",
    Swizzle,
    lambda value, data, where: parse_swizzle(value, data.shape, where),
    Swizzle.header,
    probes=("xor2x2",),
)

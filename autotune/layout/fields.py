"""records: groups of fields, each of which is stored together and apart from the others (host side of
``fields.cuh``)."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

import numpy as np

from autotune.errors import FamilyError, UnknownName

FIELDS_HEADER = "autotune/fields.cuh"
WIDEST = 16  # bytes of one access; each group's run begins at a multiple


@dataclass(frozen=True)
class FieldGroups:
    """A record's texels by their numbers in it: each group's in the order in which they lie together. A group has a run
    of its own, the runs lie in the order of the groups. The texel is as wide as all fields allow."""

    texel_bytes: int
    groups: tuple[tuple[int, ...], ...]

    @staticmethod
    def make(names: Sequence[Sequence[str]], fields: Sequence[tuple[str, int]]) -> "FieldGroups":
        """From the names of each group's fields and the (name, bytes) of all, which lie one behind the other."""
        begins = accumulate((size for _, size in fields), initial=0)
        found = {name: (begin, size) for begin, (name, size) in zip(begins, fields, strict=False)}
        pieces = [list(_join(found[name] for name in group)) for group in names]
        texel = math.gcd(WIDEST, *(number for piece in chain(*pieces) for number in piece))
        groups = tuple(
            tuple(part for begin, size in group for part in range(begin // texel, (begin + size) // texel))
            for group in pieces
        )
        return FieldGroups(texel, groups)

    def place(self, part: int) -> tuple[int, int, int]:
        """Of a texel of the record: how many lie in the groups before its own, how many in its own, which of those it
        is."""
        before = 0
        for group in self.groups:
            if part in group:
                return before, len(group), group.index(part)
            before += len(group)
        raise IndexError(part)

    def offset(self, element: Any, part: Any, part_stride: int) -> Any:
        """The texel of ``part`` of ``element``; works on integers and on arrays."""
        table = np.array([self.place(each) for each in range(sum(map(len, self.groups)))])
        before, count, within = (table[part, column] for column in range(3))
        return before * part_stride + element * count + within

    def part_stride(self, elements: int) -> int:
        """Return the texels of the run of one part of ``elements`` elements."""
        unit = WIDEST // self.texel_bytes
        return -(-elements // unit) * unit

    @property
    def cpp(self) -> str:
        groups = (f"autotune::Together<{', '.join(map(str, group))}>" for group in self.groups)
        return f"Apart<{', '.join(groups)}>"


def _join(fields: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """(begin, bytes) of each, or of several where one follows the other in the record as well."""
    begin, size = next(fields)
    for other, more in fields:
        if other == begin + size:
            size += more
        else:
            yield begin, size
            begin, size = other, more
    yield begin, size


def names_of(value: str) -> list[list[str]]:
    """The fields of each group of a value of ``records`` that names them, ``x+y+z-mass``; none for any other value."""
    is_named = re.fullmatch(r"[A-Za-z_]\w*(?:[+-][A-Za-z_]\w*)+", value)
    return [group.split("+") for group in value.split("-")] if is_named else []


def check_groups(value: str, fields: Sequence[str], where: str) -> None:
    """Raise FamilyError, UnknownName for a value of ``records`` that does not have each field in one group."""
    names = names_of(value)
    given = list(chain(*names))
    for name in given:
        if name not in fields:
            raise UnknownName("field", name, fields, f"{where}: records {value}")
    for name in fields:
        if given.count(name) != 1:
            times = "in no group" if name not in given else "in it more than once"
            raise FamilyError(
                f"{where}: records {value}: field {name} is {times}; each of {', '.join(fields)} has to be in "
                f"one, as in {'+'.join(fields[:-1])}-{fields[-1]}"
            )
    if names == [list(fields)]:
        raise FamilyError(f"{where}: records {value}: all fields in one group are aos; write that")

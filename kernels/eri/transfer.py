"""The bytes that one call sends to the device and gets back: the article's figure, from configuration and sizes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .arrays import PAIR, PRIMITIVE, PRIMITIVE_PAIR, SHELL
from .expansion import COMPONENT, WORK_UNIT
from .tiles import PAIR_RUN

__all__ = ["Transfer", "transfer"]

_REAL = 8


@dataclass(frozen=True)
class Transfer:
    """Bytes by what they are: ``molecule`` (geometry, basis, pairs), ``tables`` made on the host, ``lists`` of work,
    and what comes ``back``."""

    molecule: int
    tables: int
    lists: int
    back: int

    @property
    def sent(self) -> int:
        return self.molecule + self.tables + self.lists


def transfer(configuration: Mapping[str, Any], sizes: Mapping[str, Any]) -> Transfer:
    """``sizes`` are the extents and scalars of the input. Lists go in equal parts, the last of them filled up."""
    molecule = (
        sizes["shell"] * SHELL.itemsize
        + sizes["primitive"] * PRIMITIVE.itemsize
        + sizes["pair"] * PAIR.itemsize
    )
    tables = 0
    if configuration["pair_table"] == "host":
        tables += sizes["primitive_pair"] * PRIMITIVE_PAIR.itemsize
    if configuration["boys"] == "loaded_rational":
        tables += sizes["coefficient"] * _REAL
    if configuration["granularity"] == "tile":
        tables += sizes["run"] * PAIR_RUN.itemsize
    lists = 0
    if configuration["expansion"] == "work_units":
        lists = _in_parts(sizes["work_units"], sizes["listed_unit"]) * WORK_UNIT.itemsize
    if configuration["expansion"] == "components":
        lists = _in_parts(sizes["components"], sizes["listed_component"]) * COMPONENT.itemsize
    if not sizes["digested"]:
        return Transfer(molecule, tables, lists, int(sizes["listed"]) * _REAL)
    matrix = sizes["matrix"] ** 2 * _REAL
    return Transfer(molecule + matrix, tables, lists, 2 * matrix)


def _in_parts(count: int, part: int) -> int:
    return -(-int(count) // part) * part

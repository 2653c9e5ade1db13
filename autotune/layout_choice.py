"""Which layout choices a declaration may make: values that exist, that the array can take, each made once."""

import re
from collections.abc import Mapping
from typing import Any

from autotune.data import Data
from autotune.errors import FamilyError, UnknownName
from autotune.layout import DIMS, MEMORIES
from autotune.packing import PACKINGS
from autotune.space import Policy

__all__ = ["GROUPINGS", "check_choice", "check_views", "one_choice_each"]

GROUPINGS = ("split", "merged")


def check_choice(place: str, data: Data, layout: str, choice: Any) -> None:
    """Raise when ``choice`` is no value of the layout dimension, or none that ``data`` can take."""
    allowed = {"memory": MEMORIES, "dims": DIMS, "grouping": GROUPINGS, "packing": tuple(PACKINGS)}.get(
        layout
    )
    if allowed and choice not in allowed:
        raise UnknownName(f"{layout} layout", choice, allowed, place)
    if layout == "records" and not re.fullmatch(r"aos|soa|aosoa[1-9][0-9]*", str(choice)):
        raise UnknownName("records layout", choice, ("aos", "soa", "aosoa<lanes>"), place)
    if layout in ("vector", "padding") and not (isinstance(choice, int) and choice >= 1):
        raise FamilyError(f"{place}: {layout} {choice!r} is not a whole number of at least 1")
    if data.of and (layout != "memory" or choice == "constant"):
        raise FamilyError(
            f"{place}: {data.name} is a view of {data.of}, whose elements stay where they are: only its memory can be "
            "chosen, global, readonly or texture"
        )
    if data.of and choice == "texture" and len(data.shape) > 2:
        raise FamilyError(
            f"{place}: {data.name} has {len(data.shape)} extents, and the texture of a view has one or two"
        )
    if layout == "memory" and choice != "global" and data.role not in ("input", "view"):
        raise FamilyError(
            f"{place}: {choice} memory cannot be written, and {data.name} has role {data.role}; only global can"
        )
    if layout == "axes" and not (
        isinstance(choice, list) and sorted(map(str, choice)) == sorted(set(data.shape))
    ):
        raise UnknownName("axes layout", choice, [list(data.shape), "in any order"], place)
    if layout == "axes" and len(set(data.shape)) < len(data.shape):
        raise FamilyError(
            f"{place}: the extents of {data.name} repeat, so their names give its axes no order"
        )
    if layout in ("packing", "vector"):
        if not data.packed:
            raise FamilyError(f"{place}: data {data.name} names no packed extent to join elements along")
        if data.dtype.kind not in "iu":
            raise FamilyError(
                f"{place}: data {data.name} holds {data.dtype}, and only whole numbers can be packed"
            )


def check_views(data: Mapping[str, Data], policies: tuple[Policy, ...], where: str) -> None:
    """Raise for a view of what is no scratch array, or of one whose elements a layout moves: a view finds them by its
    own shape, in canonical order."""
    scratch = [array.name for array in data.values() if array.role == "scratch"]
    for array in data.values():
        if not array.of:
            continue
        place = f"{where}: data {array.name}"
        if array.of not in scratch:
            raise UnknownName("scratch array", array.of, scratch, f"{place}: of")
        drivers = [f"its own layout ({name})" for name in data[array.of].fixed if name != "memory"]
        drivers += [f"policy {p.name}" for p in policies if array.of in p.data and p.layout != "memory"]
        if drivers:
            raise FamilyError(
                f"{place}: {drivers[0]} moves the elements of {array.of}, and a view has to find them in order; take "
                "it away"
            )


def one_choice_each(data: Mapping[str, Data], policies: tuple[Policy, ...], where: str) -> None:
    """A layout dimension of an array has one driver; a vector width joins words, so it needs a packing."""
    drivers = {(layout, name): "its own layout" for name, array in data.items() for layout in array.fixed}
    for policy in policies:
        for name in policy.data:
            driver = drivers.setdefault((policy.layout, name), f"policy {policy.name}")
            if driver != f"policy {policy.name}":
                raise FamilyError(
                    f"{where}: policy {policy.name} and {driver} both choose the {policy.layout} of {name}"
                )
    for (layout, name), driver in drivers.items():
        if layout == "vector" and ("packing", name) not in drivers:
            raise FamilyError(f"{where}: {driver} sets the vector width of {name}, which has no packing")

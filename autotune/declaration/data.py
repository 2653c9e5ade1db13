"""The arrays that a family declares: their elements and shape, the layouts they can take, views of scratch arrays,
windows; each read from its part of ``family.yaml`` and held against the rules."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from autotune.declaration.images import check_dims, sampling_of
from autotune.declaration.space import Policy
from autotune.errors import FamilyError, UnknownName
from autotune.layout import (
    ELEMENTS,
    MAPPING_KINDS,
    Data,
    Field,
    allowed_storages,
    check_groups,
    check_value,
    mapping_choice,
    names_of,
    storage_of,
)


def check_choice(place: str, data: Data, layout: str, choice: Any) -> None:
    """Raise when ``choice`` is no value of the layout dimension, or none that ``data`` can take."""
    check_value(layout, choice, place)
    if layout == "records" and names_of(str(choice)):
        if not data.record:
            raise FamilyError(
                f"{place}: {data.name} has no fields to group: declare record and fields, or take aos"
            )
        check_groups(choice, [each.name for each in data.fields], place)
    if layout in MAPPING_KINDS:
        mapping_choice(layout, choice, data.shape, place)
    if layout == "vector" and not (isinstance(choice, int) and choice >= 1):
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
    if layout == "dims":
        check_dims(place, data, choice)
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
    if layout == "storage":
        _check_storage(place, data, choice)


def _check_storage(place: str, data: Data, choice: str) -> None:
    """Raise for numbers that cannot be stored like this."""
    if data.sampling is not None:
        raise FamilyError(
            f"{place}: {data.name} is an image, whose numbers a texture reads as they are declared: take image or the "
            "storage away"
        )
    types = {field.type for field in data.fields}
    if len(types) > 1 or not types <= {"float32", "float64"}:
        raise FamilyError(
            f"{place}: data {data.name} holds {data.dtype}, and a storage is for float32 or float64 alone, plain or as "
            "all fields of a record"
        )
    (declared,) = types
    if choice not in allowed_storages(declared):
        raise UnknownName(f"storage of {declared}", choice, allowed_storages(declared), place)
    storage = storage_of(choice, declared)
    if storage is None or not storage.is_scaled or data.role == "input":
        return
    if storage.by_row or data.low is None:
        raise FamilyError(
            f"{place}: {data.name} has role {data.role}, and what a kernel writes as {choice} needs a scale before it "
            "is there: declare its range: [smallest, largest], and leave out those by_row"
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
        if layout == "storage" and ("grouping", name) in drivers:
            raise FamilyError(
                f"{where}: {driver} sets the storage of {name}, and {drivers['grouping', name]} may merge it with "
                "others as it is declared: leave one of them out"
            )


def data_of(name: str, value: Mapping[str, Any], where: str) -> Data:
    place = f"{where}: data {name}"
    if ("type" in value) == ("record" in value) or ("record" in value) != ("fields" in value):
        raise FamilyError(f"{place}: give either type, or record with fields")
    if "record" in value:
        members = {key: {"type": f} if isinstance(f, str) else f for key, f in value["fields"].items()}
        fields = tuple(_field(key, member, place) for key, member in members.items())
    else:
        fields = (_field("", {**value, "type": _KERNEL_TYPES.get(value["type"], value["type"])}, place),)
    element = value.get("type", "") if value.get("type") in ELEMENTS else ""
    if element and "storage" in value.get("layout", {}):
        raise FamilyError(f"{place}: type {element} is a storage already: declare float32 to choose another")
    low, high = value.get("range", (None, None))
    if value.get("packed", "") not in ("", *value["shape"]):
        raise UnknownName("extent", value["packed"], value["shape"], f"{place}: packed")
    if "record" in value and ("range" in value or "packed" in value):
        raise FamilyError(f"{place}: range and packed are for plain elements, and this one holds records")
    _check_view(value, place)
    plane = value.get("plane", {})
    data = Data(
        name=name,
        role=value["role"],
        fields=fields,
        shape=tuple(value["shape"]),
        record=value.get("record", ""),
        packed=value.get("packed", ""),
        low=low,
        high=high,
        index_bits=value.get("index_bits", 32),
        constant_bytes=value.get("constant_bytes", 65536),
        plane=(plane.get("width", 4096), plane.get("rows", 1)),
        element=element,
        fixed={**value.get("layout", {}), **({"storage": element} if element else {})},
        of=value.get("of", ""),
        pitch=value.get("pitch", ""),
        sampling=sampling_of(value, place),
        doc=value.get("doc", ""),
    )
    if data.record and np.dtype([(f.name, f.type) for f in fields], align=True) != data.dtype:
        raise FamilyError(
            f"{place}: a C++ compiler would pad this record; order its fields by size and fill it up"
        )
    for layout, choice in data.fixed.items():
        check_choice(place, data, layout, choice)
    return data


_KERNEL_TYPES = dict.fromkeys(ELEMENTS, "float32")  # what a kernel reads of a narrower element


def _field(name: str, value: Mapping[str, Any], place: str) -> Field:
    field = Field(name, value["type"], value.get("link", ""), value.get("none"))
    if field.link and np.dtype(field.type).kind not in "iu":
        raise FamilyError(f"{place}: a link is a whole number, and {name or 'this one'} is {field.type}")
    if field.none is not None:
        if not field.link:
            raise FamilyError(f"{place}: none is for links: it is the number that stands for none")
        limits = np.iinfo(field.type)
        if not limits.min <= field.none <= limits.max:
            raise FamilyError(f"{place}: none {field.none} is outside the range of {field.type}")
    return field


_NOT_OF_A_VIEW = (
    "record",
    "range",
    "packed",
    "link",
    "none",
    "constant_bytes",
    "plane",
    "image",
    "zero",
    "windowed",
)


def _check_view(value: Mapping[str, Any], place: str) -> None:
    """Raise FamilyError when what makes a view is there without the rest of it."""
    if (value["role"] == "view") != ("of" in value):
        raise FamilyError(f"{place}: role view and of go together: of names the scratch array that is viewed")
    if "pitch" in value and not ("of" in value and len(value["shape"]) > 1):
        raise FamilyError(f"{place}: pitch says how far apart the rows of a view of two or more extents lie")
    if "of" in value and (wrong := [key for key in _NOT_OF_A_VIEW if key in value]):
        raise FamilyError(f"{place}: {wrong[0]} is not for views, which have no content of their own")


def windowed_of(data: Mapping[str, Any], policies: tuple[Policy, ...], where: str) -> dict[str, str]:
    """The extent along which each array that says so may be cut, by the array's name."""
    found = {name: value["windowed"] for name, value in data.items() if "windowed" in value}
    for name, extent in found.items():
        place = f"{where}: data {name}"
        if extent not in data[name]["shape"]:
            raise UnknownName("extent", extent, data[name]["shape"], f"{place}: windowed")
        if data[name]["role"] != "input":
            raise FamilyError(f"{place}: windowed is for inputs, and this one has role {data[name]['role']}")
    for policy in policies:
        for name in found.keys() & set(policy.data) if policy.layout == "grouping" else ():
            raise FamilyError(
                f"{where}: policy {policy.name}: {name} is windowed, and what is cut into windows cannot be merged"
            )
    return found

"""The arrays that a family declares: their elements and shape, the layouts they can take, views of scratch arrays,
windows; each read from its part of ``family.yaml`` and held against the rules."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from autotune.declaration.space import Policy
from autotune.errors import FamilyError, UnknownName
from autotune.layout import DIMENSIONS, ELEMENTS, SAME, Data, Field, Sampling, SharedLayout


def check_choice(place: str, data: Data, layout: str, choice: Any) -> None:
    """Raise when ``choice`` is no value of the layout dimension, or none that ``data`` can take."""
    if layout not in DIMENSIONS:
        raise UnknownName("layout", layout, [*DIMENSIONS, "order"], place)
    if data.role == "shared" and layout not in SharedLayout.DIMENSIONS:
        raise UnknownName("layout of an array in shared memory", layout, SharedLayout.DIMENSIONS, place)
    if not (data.of and _is_settled(place, data, layout, choice)):
        DIMENSIONS[layout].meaning(choice, data, place)


def _is_settled(place: str, data: Data, layout: str, choice: Any) -> bool:
    """Whether the choice leaves a view as its array is. Raises FamilyError for one that it cannot make."""
    if data.converted:
        own = [dimension.name for dimension in DIMENSIONS.values() if dimension.is_of_views]
        if layout not in own or choice == "constant":
            raise FamilyError(
                f"{place}: {data.name} is a converted view of {data.of}, which chooses its {', '.join(own)} (not "
                "constant), each also same; everything else is as its array declares it"
            )
        return bool(choice == SAME)
    if layout != "memory" or choice == "constant":
        raise FamilyError(
            f"{place}: {data.name} is a view of {data.of}, whose elements stay where they are: only its memory can be "
            "chosen, global, readonly or texture"
        )
    if choice == "texture" and len(data.shape) > 2:
        raise FamilyError(
            f"{place}: {data.name} has {len(data.shape)} extents, and the texture of a view has one or two"
        )
    return False


def check_views(
    data: Mapping[str, Data], policies: tuple[Policy, ...], sometimes: Collection[str], where: str
) -> None:
    """Raise for a view of what is no scratch array, or of one whose elements a layout moves: a view finds them by its
    own shape, in canonical order. Those that are ``sometimes`` used may be of such an array where they are not. A
    converted one finds them in any layout but a surface's."""
    scratch = [array.name for array in data.values() if array.role == "scratch"]
    for array in data.values():
        place = f"{where}: data {array.name}"
        if array.converted and data[array.of].role == "scratch":
            dims = [p.name for p in policies if p.layout == "dims" and array.of in p.data]
            if dims or "dims" in data[array.of].fixed:
                raise FamilyError(
                    f"{place}: {array.of} may be a surface ({', '.join(dims) or 'its own dims'}), which cannot be "
                    "converted: remove its dims"
                )
        if not array.is_view:
            continue
        if array.of not in scratch:
            raise UnknownName("scratch array", array.of, scratch, f"{place}: of")
        if array.name in sometimes:
            continue
        drivers = [f"its own layout ({name})" for name in data[array.of].fixed if name != "memory"]
        drivers += [f"policy {p.name}" for p in policies if array.of in p.data and p.layout != "memory"]
        if drivers:
            raise FamilyError(
                f"{place}: {drivers[0]} moves the elements of {array.of}, and a view needs them in order; remove "
                "it"
            )


def declare_converted(
    data: Mapping[str, Data],
    accesses: Mapping[str, str],
    kernels: Collection[str],
    is_plain: bool,
    where: str,
) -> dict[str, Data]:
    """``data`` with each converted view as its array is declared. Raises FamilyError for a view whose elements or shape
    are others, or of what cannot be converted: an output, an array that is cut into windows, one without accessor."""
    declared = dict(data)
    for name, view in data.items():
        if not view.converted:
            continue
        place = f"{where}: data {name}"
        if is_plain:
            raise FamilyError(
                f"{place}: a source with choices: macros is compiled unmodified, and cannot convert views"
            )
        known = [d.name for d in data.values() if d.role in ("input", "scratch")]
        if view.of not in known:
            raise UnknownName("input or scratch array", view.of, known, f"{place}: of")
        array = data[view.of]
        if array.sampling:
            raise FamilyError(
                f"{place}: {view.of} is an image, which is read by its own rules and not converted"
            )
        elements = (view.shape, view.record, view.dtype, view.element)
        if elements != (array.shape, array.record, array.dtype, array.element):
            raise FamilyError(
                f"{place}: a converted view has the elements and the shape of its array: {view.of} has "
                f"{array.record or array.dtype} of [{', '.join(array.shape)}]"
            )
        if view.of in accesses:
            raise FamilyError(
                f"{place}: {view.of} has access {accesses[view.of]}, and only what kernels read by accessors has a "
                "layout to convert"
            )
        if (kernel := f"convert_{name}") in kernels:
            raise FamilyError(
                f"{place}: the kernel that converts it is called {kernel}: rename the family's own"
            )
        declared[name] = replace(
            array, name=name, role="view", of=view.of, converted=True, fixed=view.fixed, doc=view.doc
        )
    return declared


def check_drivers(data: Mapping[str, Data], policies: tuple[Policy, ...], where: str) -> None:
    """A layout dimension of an array has one driver, has the other that it needs, and none that it excludes."""
    drivers = {(layout, name): "its own layout" for name, array in data.items() for layout in array.fixed}
    for policy in policies:
        for name in policy.data:
            driver = drivers.setdefault((policy.layout, name), f"policy {policy.name}")
            if driver != f"policy {policy.name}":
                raise FamilyError(
                    f"{where}: policy {policy.name} and {driver} both choose the {policy.layout} of {name}"
                )
    for (layout, name), driver in drivers.items():
        dimension = DIMENSIONS.get(layout)
        if dimension and dimension.needs and (dimension.needs, name) not in drivers:
            raise FamilyError(
                f"{where}: {driver} sets the {layout} of {name}, which has no {dimension.needs}"
            )
        for other, why in dimension.not_with.items() if dimension else ():
            if (other, name) in drivers:
                raise FamilyError(
                    f"{where}: {driver} sets the {layout} of {name}, and {drivers[other, name]} {why}: remove one "
                    "of them"
                )


_NORMALISED = ("int8", "uint8", "int16", "uint16")


def read_sampling(value: Mapping[str, Any], place: str) -> Sampling | None:
    """``image`` of an array; None where it says nothing. Raises FamilyError for what no texture can do."""
    if "image" not in value:
        return None
    sampling = Sampling(**value["image"])
    element = value.get("type", f"the record {value.get('record')}")
    if value["role"] != "input":
        raise FamilyError(
            f"{place}: image says what a kernel reads beyond the edge of an input, and this has role {value['role']}; "
            "an output becomes a surface by its layout, dims: image"
        )
    if len(value["shape"]) not in (2, 3):
        raise FamilyError(f"{place}: an image has two or three extents, and this has {len(value['shape'])}")
    if "packed" in value:
        raise FamilyError(f"{place}: an image cannot be packed; remove image or packed")
    if sampling.is_normalised and element not in _NORMALISED:
        raise FamilyError(
            f"{place}: image: read: normalised is for {', '.join(_NORMALISED)}, and this holds {element}"
        )
    if sampling.is_linear and element != "float32" and not sampling.is_normalised:
        raise FamilyError(
            f"{place}: image: filter: linear is for float32, or for integers with read: normalised, and this holds "
            f"{element}"
        )
    return sampling


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
    if "record" in value and "packed" in value:
        raise FamilyError(f"{place}: packed is for plain elements, and this one holds records")
    if "range" in value and len({field.type for field in fields}) > 1:
        raise FamilyError(
            f"{place}: its fields are of several types, and a range is for numbers of one: remove the range"
        )
    _check_view(value, place)
    plane = value.get("plane", {})
    told = ("record", "packed", "index_bits", "constant_bytes", "of", "pitch", "converted", "doc")
    data = Data(
        name=name,
        role=value["role"],
        fields=fields,
        shape=tuple(value["shape"]),
        low=low,
        high=high,
        plane=(plane.get("width", 4096), plane.get("rows", 1)),
        element=element,
        fixed={**value.get("layout", {}), **({"storage": element} if element else {})},
        sampling=read_sampling(value, place),
        **{key: value[key] for key in told if key in value},
    )
    if data.record and np.dtype([(f.name, f.type) for f in fields], align=True) != data.dtype:
        raise FamilyError(
            f"{place}: a C++ compiler would pad this record; order its fields by size and pad it explicitly"
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
            raise FamilyError(f"{place}: `none` is for links: it is the number that means none")
        limits = np.iinfo(field.type)
        if not limits.min <= field.none <= limits.max:
            raise FamilyError(f"{place}: none {field.none} is outside the range of {field.type}")
    return field


_NOT_OF_A_VIEW = [
    "record", "image", "range", "packed", "link", "none", "constant_bytes", "plane", "zero", "windowed",
]  # fmt: skip
_NOT_OF_A_CONVERTED_VIEW = [*_NOT_OF_A_VIEW[1:], "pitch", "access", "index_bits", "begins_as"]


def _check_view(value: Mapping[str, Any], place: str) -> None:
    """Raise FamilyError when what makes a view is there without the rest of it."""
    if (value["role"] == "view") != ("of" in value):
        raise FamilyError(f"{place}: role view and of go together: of names the scratch array that is viewed")
    if "pitch" in value and not ("of" in value and len(value["shape"]) > 1):
        raise FamilyError(
            f"{place}: pitch is the distance between rows, so the view needs two or more extents"
        )
    if "converted" in value and "of" not in value:
        raise FamilyError(f"{place}: converted is for views: of names the array that is converted")
    never = _NOT_OF_A_CONVERTED_VIEW if "converted" in value else _NOT_OF_A_VIEW
    if "of" in value and (wrong := [key for key in never if key in value]):
        raise FamilyError(f"{place}: {wrong[0]} is not for views, which have no content of their own")


def read_windowed(data: Mapping[str, Any], policies: tuple[Policy, ...], where: str) -> dict[str, str]:
    """The extent along which each array that says so may be cut, by the array's name."""
    windowed = {name: value["windowed"] for name, value in data.items() if "windowed" in value}
    for name, extent in windowed.items():
        place = f"{where}: data {name}"
        if extent not in data[name]["shape"]:
            raise UnknownName("extent", extent, data[name]["shape"], f"{place}: windowed")
        if data[name]["role"] != "input":
            raise FamilyError(f"{place}: windowed is for inputs, and this one has role {data[name]['role']}")
        if views := [key for key, value in data.items() if value.get("of") == name]:
            raise FamilyError(f"{place}: it is windowed, and {views[0]} is a converted view of all of it")
    for policy in policies:
        for name in windowed.keys() & set(policy.data) if policy.layout == "grouping" else ():
            raise FamilyError(
                f"{where}: policy {policy.name}: {name} is windowed, and what is cut into windows cannot be merged"
            )
    return windowed

"""What a declaration leaves to be written out: ``values: auto`` of a policy, every way to group the fields of a record;
a number or an expression in a shape, which becomes an extent with a name; and what the baseline, the kernel that a
family is held against, shares with it."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from autotune.errors import FamilyError
from autotune.layout import every_grouping

AUTO = "auto"


def written_out(content: dict[str, Any], where: str) -> dict[str, Any]:
    """A family's declaration with an extent for each size in a shape that has no name, and with the values that each
    policy with ``values: auto`` has. Raises FamilyError for one that does not choose how records lie, or for records
    with other fields or too many of them."""
    content = _named_extents(content)
    policies = content["policies"]
    chosen = {
        name: {**policy, "values": _values(policy, content["data"], f"{where}: policy {name}")}
        for name, policy in policies.items()
        if policy["values"] == AUTO
    }
    return {**content, "policies": {**policies, **chosen}} if chosen else content


_IN_WORDS = {"//": " over ", "+": " plus ", "-": " minus ", "*": " times "}


def _named_extents(content: dict[str, Any]) -> dict[str, Any]:
    data: Mapping[str, Mapping[str, Any]] = content["data"]
    sizes = dict.fromkeys(str(size).strip() for array in data.values() for size in array["shape"])
    names = {size: size for size in sizes if size.isidentifier()}
    if len(names) == len(sizes):
        return content
    taken = {*names, *data, *content["policies"]}
    taken |= {name for section in ("extents", "scalars", "options") for name in content.get(section, {})}
    extents = dict(content.get("extents", {}))
    for size in [size for size in sizes if size not in names]:
        text = size
        for sign, word in _IN_WORDS.items():
            text = text.replace(sign, word)
        name = "_".join(re.findall(r"\w+", text)) or "extent"
        name = name if name.isidentifier() else f"extent_{name}"
        while name in taken:
            name += "_"
        taken.add(name)
        names[size] = name
        extents[name] = {"value": size}
    shaped = {
        key: {**array, "shape": [names[str(size).strip()] for size in array["shape"]]}
        for key, array in data.items()
    }
    return {**content, "data": shaped, "extents": extents}


def _values(policy: Mapping[str, Any], data: Mapping[str, Any], where: str) -> list[str]:
    if policy.get("layout") != "records":
        raise FamilyError(
            f"{where}: values: auto is for layout: records, every way to group a record's fields; list the values"
        )
    fields = [_fields(data.get(name, {})) for name in policy.get("data", ())]
    if not fields or not fields[0] or any(each != fields[0] for each in fields):
        names = ", ".join(policy.get("data", ())) or "no array"
        raise FamilyError(
            f"{where}: values: auto needs arrays of records with the same fields; data names {names}"
        )
    return every_grouping(fields[0], where)


def _fields(data: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [
        (name, np.dtype(field if isinstance(field, str) else field["type"]).itemsize)
        for name, field in data.get("fields", {}).items()
    ]


_OF_ACCESSORS = frozenset(
    (
        "access",
        "layout",
        "packed",
        "windowed",
        "plane",
        "image",
        "constant_bytes",
        "index_bits",
        "used",
        "symbol",
    )
)


def baseline_content(content: Mapping[str, Any]) -> dict[str, Any]:
    """What family.yaml would say of the baseline alone: the family's data in their own order, by pointers, and one
    configuration of a source that is compiled unmodified."""
    told = dict(content["baseline"])
    symbols: Mapping[str, str] = told.pop("symbols", {})
    begins: Mapping[str, str] = told.pop("begins_as", {})
    data = {}
    for name, value in content["data"].items():
        if value["role"] == "view":
            continue
        kept = {key: each for key, each in value.items() if key not in _OF_ACCESSORS}
        if "zero" in kept:
            kept["zero"] = "1"  # its condition may read what the baseline does not choose
        if name in begins:
            kept["begins_as"] = begins[name]
        data[name] = {**kept, "access": "symbol", "symbol": symbols[name]} if name in symbols else kept
    shared = ("extents", "scalars", "launch", "options")
    return {
        "family": content["family"],
        "source": told.pop("source"),
        "choices": "macros",
        "compile_options": told.pop("compile_options", content.get("compile_options", ())),
        **{key: content[key] for key in shared if key in content},
        "data": data,
        "policies": {
            name: {"values": [value], "default": value} for name, value in told.pop("define", {}).items()
        },
        "kernels": {told.pop("kernel"): {key: value for key, value in told.items() if key != "doc"}},
    }

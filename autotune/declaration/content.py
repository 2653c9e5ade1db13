"""What a declaration leaves to be written out: a number or an expression in a shape, which becomes an extent with a
name; types that depend on options; and what the baseline, the kernel that a family is held against, shares with it."""

import re
from collections.abc import Mapping
from itertools import product
from typing import Any

from autotune.declaration.expression import Expression
from autotune.errors import FamilyError
from autotune.layout import SCALAR_TYPES

_IN_WORDS = {"//": " over ", "+": " plus ", "-": " minus ", "*": " times "}


def name_extents(content: dict[str, Any]) -> dict[str, Any]:
    """A family's declaration with an extent for each size in a shape that has no name."""
    data: Mapping[str, Mapping[str, Any]] = content["data"]
    sizes = dict.fromkeys(str(size).strip() for array in data.values() for size in array["shape"])
    names = {size: size for size in sizes if size.isidentifier()}
    if len(names) == len(sizes):
        return content
    taken = {*names, *data, *content["policies"]}
    taken |= {
        name
        for section in ("extents", "scalars", "launch", "options", "compiled", "structs", "shared")
        for name in content.get(section, {})
    }
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


def resolve_types(
    content: Mapping[str, Any],
) -> tuple[tuple[str, ...], tuple[str, ...], dict[tuple[str | int, ...], Mapping[str, Any]]]:
    """Work out types that are expressions of options. Raises FamilyError for what is none, or reads something else.

    Returns:
        What has such a type, the options that are read, and for each combination of their values, the one of the
        defaults first, ``content`` with the types as they are then.
    """
    options = content.get("options", {})
    made: dict[tuple[str | int, ...], Mapping[str, Any]] = {}
    types = {
        (section, name): Expression(text, f"family {content['family']}: {name}: type")
        for section in ("data", "scalars", "launch")
        for name, value in content.get(section, {}).items()
        if (text := value.get("type", "")) and not text.isidentifier()
    }
    read = {each for one in types.values() for each in one.require({*options, *SCALAR_TYPES}).names}
    by = [name for name in options if name in read]
    for values in product(*(dict.fromkeys([options[n]["default"], *options[n]["values"]]) for n in by)):
        told, chosen = dict(content), dict(zip(by, values, strict=True))
        for (section, name), expression in types.items():
            kind = expression.evaluate({**{each: each for each in SCALAR_TYPES}, **chosen})
            if kind not in SCALAR_TYPES:
                given = ", ".join(f"{option}={value}" for option, value in chosen.items())
                allowed = f"it can be {', '.join(SCALAR_TYPES)}"
                raise FamilyError(
                    f"{expression.where}: {expression.text!r} is {kind!r} with {given}; {allowed}"
                )
            told[section] = {**told[section], name: {**told[section][name], "type": kind}}
        made[values] = told
    return tuple(name for _, name in types), tuple(by), made


_OF_ACCESSORS = frozenset([
    "access", "layout", "packed", "windowed", "plane", "image", "constant_bytes", "index_bits", "used", "symbol",
])  # fmt: skip


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

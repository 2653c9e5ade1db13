"""What a declaration leaves to be written out: a number or an expression in a shape, which becomes an extent with a
name; types that depend on options; and what the baseline, the kernel that a family is held against, shares with it."""

import re
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from autotune.declaration.expression import Expression
from autotune.errors import FamilyError
from autotune.layout import SCALAR_TYPES

_IN_WORDS = {"//": " over ", "+": " plus ", "-": " minus ", "*": " times "}


def named_extents(content: dict[str, Any]) -> dict[str, Any]:
    """A family's declaration with an extent for each size in a shape that has no name."""
    data: Mapping[str, Mapping[str, Any]] = content["data"]
    sizes = dict.fromkeys(str(size).strip() for array in data.values() for size in array["shape"])
    names = {size: size for size in sizes if size.isidentifier()}
    if len(names) == len(sizes):
        return content
    taken = {*names, *data, *content["policies"]}
    taken |= {
        name
        for section in ("extents", "scalars", "launch", "options", "compiled", "structs")
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


Types = Mapping[tuple[str, str], Expression]  # by section and name


def types_by_options(content: Mapping[str, Any]) -> Types:
    """Find the types that are expressions: of arrays, scalars and numbers of a launch.

    Args:
        content: a family's declaration.

    Returns:
        The expressions, by the section and the name of what has the type.

    Raises:
        FamilyError: for an expression that reads more than options and the names of types.
    """
    known = {*content.get("options", {}), *SCALAR_TYPES}
    return {
        (section, name): Expression(text, f"family {content['family']}: {name}: type").require(known)
        for section in ("data", "scalars", "launch")
        for name, value in content.get(section, {}).items()
        if (text := value.get("type", "")) and not text.isidentifier()
    }


def combinations(content: Mapping[str, Any], names: Iterable[str]) -> list[dict[str, Any]]:
    """Every combination of the values of options, that of their defaults first."""
    options = {name: content["options"][name] for name in names}
    values = [dict.fromkeys([each["default"], *each["values"]]) for each in options.values()]
    return [dict(zip(options, chosen, strict=True)) for chosen in product(*values)]


def with_types(content: Mapping[str, Any], types: Types, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Give ``content`` the types that the ``chosen`` options make of ``types``. Raises FamilyError for what is none."""
    made = dict(content)
    for (section, name), expression in types.items():
        kind = expression.evaluate({**{each: each for each in SCALAR_TYPES}, **chosen})
        if kind not in SCALAR_TYPES:
            given = ", ".join(f"{option}={value}" for option, value in chosen.items())
            raise FamilyError(
                f"{expression.where}: {expression.text!r} is {kind!r} with {given}; it can be {', '.join(SCALAR_TYPES)}"
            )
        made[section] = {**made[section], name: {**made[section][name], "type": kind}}
    return made


_OF_ACCESSORS = frozenset(
    [
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
    ]
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

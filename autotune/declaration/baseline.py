"""A kernel that a family is held against: what a user has today, timed in the same run beside the control."""

from collections.abc import Mapping
from typing import Any

_OF_ACCESSORS = (
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


def baseline_content(content: Mapping[str, Any]) -> dict[str, Any]:
    """What family.yaml would say of the baseline alone: the family's data in their own order, by pointers, and one
    configuration of a source that is compiled as it stands."""
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

"""What the templates of an export are filled with: a family's declaration and its winners in C++'s words."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autotune.compile import Variant, element_type, enumeration
from autotune.declaration import Expression, Family, Tolerance, Value
from autotune.export.choices import Choices, Row, Winner, identifier
from autotune.export.cpp_expression import Kind, translate
from autotune.export.orders import order_parts
from autotune.layout import DIMENSIONS, SCALAR_TYPES, Data, Field, Layout

_WIDEST = 118
_PLAIN = Layout(  # what layout.h has as it begins
    data=Data(name="", role="input", fields=(Field("", "int32"),), shape=("i",))
)


def winner_parts(
    winner: Winner, free: Mapping[str, tuple[str, Kind]], declared: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    variant = winner.variant
    family = variant.family
    bound: dict[str, Value] = {**variant.configuration, **dict(variant.options)}

    def write_whole(expression: Expression) -> str:
        found = translate(expression, bound, free)
        return found.text if isinstance(found.value, int) else f"whole({found.text})"

    def write_three(items: Sequence[Expression]) -> str:
        return ", ".join([*(write_whole(item) for item in items), "1", "1"][:3])

    options = ",".join(f"{name}={value}" for name, value in variant.options)
    return {
        "name": winner.name,
        "about": winner.about,
        "id": variant.configuration.id + (f"; {options}" if options else ""),
        "options": places_of(declared, dict(variant.options)),
        "policy": _policy(variant, winner.name),
        "layouts": [{"cpp": identifier(name), "members": members(item)} for name, item in variant.layouts.items()],
        "buffers": [str(_owner(variant, name)) for name in family.data],
        "constraints": [
            (found.text, quote(" ".join(constraint.reason.split())))
            for constraint in family.space.constraints
            if (found := translate(constraint.require, bound, free)).value is not True
        ],
        "geometries": [
            {
                "kernel": kernel.name,
                "grid": write_three(kernel.grid),
                "block": write_three(kernel.block),
                "shared_bytes": write_whole(kernel.shared_bytes),
            }
            for kernel in family.kernels.values()
        ],
        "cleared": [
            translate(family.zero[name], bound, free).truth if name in family.zero else "false"
            for name in family.data
        ],
    }  # fmt: skip


def quote(text: str) -> str:
    """``text`` as a C++ string literal: what is not printable is a question mark."""
    escaped = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
    return '"' + "".join(escaped.get(c, c if c.isprintable() else "?") for c in text) + '"'


def _owner(variant: Variant, name: str) -> int:
    """The place of the first array of the group that ``name`` is in; its own where it is in none."""
    names = list(variant.family.data)
    group = next((group for group in variant.groups if name in group), (name,))
    return min(names.index(member) for member in group)


def _policy(variant: Variant, name: str) -> str:
    lines = variant.source.struct.replace(variant.source.name, name).splitlines()[1:-1]
    return "\n".join(
        line if len(line) <= _WIDEST else line.replace(", autotune::", ",\n      autotune::")
        for line in lines
    )


def members(layout: Layout) -> list[tuple[str, str]]:
    """Return the members of ``Layout`` (layout.h) that differ from its defaults. Raises FamilyError for a layout that
    it cannot describe."""
    usual = _host_layout(_PLAIN)
    needed = [(name, _cpp(each)) for name, each in _host_layout(layout).items() if usual.get(name) != each]
    return [("name", f'"{layout.data.name}"'), *needed]


def _host_layout(layout: Layout) -> dict[str, Any]:
    data = layout.data
    parts = {
        "element_bytes": data.dtype.itemsize,
        "texel_bytes": layout.texel_bytes,
        "index_bits": data.index_bits,
        "constant_bytes": data.constant_bytes,
        "constant_offset": layout.constant_offset,
        "steps": [
            f"[](tuned::Shape& at, [[maybe_unused]] const tuned::Shape& extents) {{ {step.host_cpp(layout.axes)} }}"
            for step in layout.steps
        ],
        "span": math.lcm(*(step.span for step in layout.steps)),
    }
    for dimension in DIMENSIONS.values():
        parts.update(dimension.host_members(layout))
    return parts


def _cpp(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "{" + ", ".join(map(_cpp, value)) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value!r}f" if isinstance(value, float) else str(value)


def places_of(declared: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> list[str]:
    """Each option's value by its place among the declared ones, as its enumeration counts them."""
    return [str(option["values"].index(str(options[option["declared"]]))) for option in declared]


def parts(choices: Choices) -> dict[str, Any]:
    """Names as the templates use them. Raises FamilyError for an expression that has no C++ form."""
    family = choices.family
    free = _free(family)
    # A tolerance may read more than options and policies: that is known only with an input.
    within = family.tolerances({**family.space.control, **family.choose_options({})})
    arrays = [_array(family, data, i, within) for i, data in enumerate(family.data.values())]
    options = [_option(option) for option in family.options.values()]
    return {
        **order_parts(choices),
        "family": family,
        "ns": identifier(family.name),
        "c": {"name": f"tuned_{identifier(family.name)}", "macro": f"TUNED_{identifier(family.name).upper()}"},
        "options": options,
        "records": _records(family),
        "given_extents": [identifier(name) for name in _list_given_extents(family)],
        "extents": [identifier(name) for name in family.extents],
        "computed_extents": _list_computed(family, {n: e for n, e in family.extents.items() if e is not None}, free),
        "scalars": [{"name": identifier(s.name), "kind": _kind(s.type)} for s in family.scalars.values()],
        "given_scalars": [
            {"name": identifier(s.name), "type": _element(s.type), "default": s.default}
            for s in family.scalars.values()
            if s.value is None
        ],
        "computed_scalars": _list_computed(
            family, {s.name: s.value for s in family.scalars.values() if s.value is not None}, free
        ),
        "arrays": arrays,
        "inputs": [array for array in arrays if array["role"] == "input"],
        "outputs": [array for array in arrays if array["role"] == "output"],
        "kernels": [_kernel(family, name) for name in family.kernels],
        "features": [
            {"name": name, "text": translate(expression, {}, free).text}
            for name, expression in family.features.items()
        ],
        "winners": [winner_parts(winner, free, options) for winner in choices.winners],
        "entries": [_row(row, options) for row in choices.entries],
        "fallbacks": [_row(row, options) for row in choices.fallbacks],
        "has_constant": any(
            layout.memory == "constant" for w in choices.winners for layout in w.variant.layouts.values()
        ),
        "ranges": any(data.low is not None for data in family.inputs),
        "has_preset": any(row.rule == "preset" for row in choices.fallbacks),
        "headers": list(dict.fromkeys(h for w in choices.winners for h in w.variant.headers)),
        "choices": choices,
        "chosen_options": "{" + ", ".join(f"static_cast<int>(problem.{o['name']})" for o in options) + "}",
    }  # fmt: skip


def problem_values(family: Family, sizes: Mapping[str, int], options: Mapping[str, Any],
                   scalars: Mapping[str, float]) -> list[tuple[str, str]]:  # fmt: skip
    """What an example sets of ``Problem``: (member, C++ value)."""
    scope = f"tuned::{identifier(family.name)}"
    return [
        *((identifier(name), str(sizes[name])) for name in _list_given_extents(family)),
        *((identifier(s.name), repr(scalars[s.name])) for s in family.scalars.values() if s.value is None),
        *(
            (identifier(name), f"{scope}::{enumeration(name)}::{identifier(str(v))}")
            for name, v in options.items()
        ),
    ]


# -- the declaration ----------------------------------------------------------------------------------------


def _list_given_extents(family: Family) -> list[str]:
    """Those that the caller's arrays have and that are not the same for every input."""
    named = {extent for data in family.inputs for extent in data.shape} - family.constants
    return [name for name in family.extents if name in named]


def _kind(type_name: str) -> Kind:
    return "real" if "float" in type_name else "whole"


def _free(family: Family) -> dict[str, tuple[str, Kind]]:
    """Extents and scalars as expressions read them: members of ``Values``."""
    found: dict[str, tuple[str, Kind]] = {name: (f"v.{identifier(name)}", "whole") for name in family.extents}
    for scalar in family.scalars.values():
        found[scalar.name] = (f"v.{identifier(scalar.name)}", _kind(scalar.type))
    return found


def _list_computed(
    family: Family, expressions: Mapping[str, Expression], free: Mapping[str, tuple[str, Kind]]
) -> list[Any]:
    return [
        {
            "name": identifier(name),
            "text": _choose_by_options(family, expression, free),
            "source": expression.text,
        }
        for name, expression in expressions.items()
    ]


def _choose_by_options(family: Family, expression: Expression, free: Mapping[str, tuple[str, Kind]]) -> str:
    """The expression for the options that ``problem`` has: one for each combination of those that it reads."""
    read = [option for option in family.options.values() if option.name in expression.names]
    texts = []
    for values in itertools.product(*(option.values for option in read)):
        bound = {option.name: value for option, value in zip(read, values, strict=True)}
        asked = " && ".join(
            f"problem.{identifier(option.name)} == {enumeration(option.name)}::{identifier(str(value))}"
            for option, value in zip(read, values, strict=True)
        )
        texts.append((asked, translate(expression, bound, free).text))
    *others, (_, last) = texts
    return "".join(f"{asked} ? ({text}) : " for asked, text in others) + (f"({last})" if others else last)


def _option(option: Any) -> dict[str, Any]:
    values = [str(value) for value in option.values]
    return {
        "name": identifier(option.name),
        "declared": option.name,
        "doc": option.doc,
        "type": enumeration(option.name),
        "values": values,
        "enumerators": [identifier(value) for value in values],
        "default": identifier(str(option.default)),
    }


def _element(type_name: str) -> str:
    return {"float32": "float", "float64": "double"}.get(type_name, f"std::{type_name}_t")


def c_element(cpp: str, prefix: str = "", is_record: bool = False) -> str:
    """An array's element in C, where a record is ``prefix`` and its name; a number's type."""
    return f"{prefix}_{cpp}" if is_record else cpp.removeprefix("std::")


def _records(family: Family) -> list[dict[str, Any]]:
    return [
        {"name": name, "fields": [(_element(field.type), identifier(field.name)) for field in fields]}
        for name, fields in {
            data.record: data.fields for data in (*family.inputs, *family.outputs) if data.record
        }.items()
    ]


def _array(family: Family, data: Data, place: int, within: Mapping[str, Tolerance]) -> dict[str, Any]:
    low = high = None
    number = data.fields[0].type
    if data.low is not None and data.high is not None:
        of = int if np.dtype(number).kind in "iu" else float
        low, high = repr(of(data.low)), repr(of(data.high))
    return {
        "name": data.name,
        "cpp": identifier(data.name),
        "role": data.role,
        "place": place,
        "element": data.record or _element(number),
        "number": _element(number),
        "numbers": len(data.fields),
        "is_record": bool(data.record),
        "shape": [_size(family, extent) for extent in data.shape],
        "extents": [identifier(extent) for extent in data.shape],
        "low": low,
        "high": high,
        "compared": [_describe_comparison(data, f.name, within) for f in data.fields]
        if data.role == "output"
        else [],
    }


def _describe_comparison(data: Data, name: str, within: Mapping[str, Tolerance]) -> dict[str, str]:
    """A number of each element of an output, as C++ writes it, and the Tolerance that it has."""
    tolerance = within[f"{data.name}.{name}" if data.record else data.name]
    bounds = (repr(each) for each in (tolerance.relative, tolerance.absolute, tolerance.share))
    return {
        "member": f".{identifier(name)}" if data.record else "",
        "tolerance": f"{{{', '.join(bounds)}, Nan::{tolerance.nan}}}",
    }


def _size(family: Family, extent: str) -> str:
    """An extent as a comment has it: its name, or the number that it always is."""
    value = family.extents[extent]
    return value.text if value is not None and extent in family.constants else extent


def _kernel(family: Family, name: str) -> dict[str, Any]:
    places = {data: i for i, data in enumerate(family.data)}

    def argument(item: str) -> str:
        if item in places and item in family.accesses:
            kind = element_type(family.data[item])
            return f"reinterpret_cast<{kind}*>(arrays[{places[item]}]->handle())"
        if item in places:
            return (
                f"accessor<typename Policy::{item}>(rooms[{places[item]}], arrays[{places[item]}]->handle())"
            )
        return f"static_cast<{SCALAR_TYPES[family.number_type(item)]}>(v.{identifier(item)})"

    kernel = family.kernels[name]
    arguments = [argument(item) for item in kernel.arguments]
    if kernel.struct:
        arguments = [f"typename Policy::{kernel.struct}{{{', '.join(arguments)}}}"]
    return {"name": name, "template": f"::{name.removeprefix('::')}", "arguments": arguments}


# -- the table ----------------------------------------------------------------------------------------------


def _row(row: Row, options: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    features = ["none" if math.isnan(value) else repr(value) for value in row.features]
    return vars(row) | {"options": places_of(options, row.options), "features": features}

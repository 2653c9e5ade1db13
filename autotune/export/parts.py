"""What the templates of an export are filled with: a family's declaration and its winners in C++'s words."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autotune.compile import Variant, element_type, enumeration
from autotune.declaration import Expression, Family, FamilyKernel, Tolerance, Value
from autotune.export.choices import Choices, Row, Winner, identifier
from autotune.export.cpp_expression import Kind, translate
from autotune.export.orders import order_parts
from autotune.layout import DIMENSIONS, SCALAR_TYPES, Data, Field, Layout

Free = Mapping[str, tuple[str, Kind]]  # a name that is open in an expression: its C++ text and kind

_WIDEST = 118
_PLAIN = Layout(  # what layout.h has as it begins
    data=Data(name="", role="input", fields=(Field("", "int32"),), shape=("i",))
)


def winner_parts(winner: Winner, free: Free) -> dict[str, Any]:
    """What the templates need of a winner besides itself."""
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
        **vars(winner),
        "id": variant.configuration.id + (f"; {options}" if options else ""),
        "options": places_of(family, dict(variant.options)),
        "policy": _policy(variant, winner.name),
        "layouts": {name: members(item) for name, item in variant.layouts.items()},
        "buffers": [str(_owner(variant, name)) for name in family.data],
        "constraints": [
            (found.text, quote(" ".join(constraint.reason.split())))
            for constraint in family.space.constraints
            if (found := translate(constraint.require, bound, free)).value is not True
        ],
        "geometries": {
            name: (write_three(kernel.grid), write_three(kernel.block), write_whole(kernel.shared_bytes))
            for name, kernel in family.kernels.items()
        },
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
    head = "[](tuned::Shape& at, [[maybe_unused]] const tuned::Shape& extents)"
    parts = {
        "element_bytes": data.dtype.itemsize, "texel_bytes": layout.texel_bytes,
        "index_bits": data.index_bits, "constant_bytes": data.constant_bytes,
        "constant_offset": layout.constant_offset,
        "steps": [f"{head} {{ {step.host_cpp(layout.axes)} }}" for step in layout.steps],
        "span": math.lcm(*(step.span for step in layout.steps)),
    }  # fmt: skip
    for dimension in DIMENSIONS.values():
        parts.update(dimension.host_members(layout))
    return parts


def _cpp(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "{" + ", ".join(map(_cpp, value)) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value!r}f" if isinstance(value, float) else str(value)


def places_of(family: Family, options: Mapping[str, Any]) -> list[int]:
    """Each option's value by its place among the declared ones, as its enumeration counts them."""
    declared = family.options.values()
    return [[str(value) for value in one.values].index(str(options[one.name])) for one in declared]


def parts(choices: Choices) -> dict[str, Any]:
    """Names as the templates use them. Raises FamilyError for an expression that has no C++ form."""
    family, winners = choices.family, choices.winners
    free = _free(family)
    # A tolerance may read more than options and policies: that is known only with an input.
    within = family.tolerances({**family.space.control, **family.choose_options({})})
    arrays = [_array(family, data, i, within) for i, data in enumerate(family.data.values())]
    scalars, outputs = family.scalars.values(), [array for array in arrays if array["role"] == "output"]
    return {
        **order_parts(choices),
        "family": family,
        "ns": identifier(family.name),
        "c": {"name": f"tuned_{identifier(family.name)}", "macro": f"TUNED_{identifier(family.name).upper()}"},
        "options": family.options.values(),
        "records": {data.record: data.fields for data in (*family.inputs, *family.outputs) if data.record},
        "given_extents": _list_given_extents(family),
        "computed_extents": _list_computed(family, family.extents, free),
        "given_scalars": [scalar for scalar in scalars if scalar.value is None],
        "computed_scalars": _list_computed(family, {one.name: one.value for one in scalars}, free),
        "arrays": arrays,
        "inputs": [array for array in arrays if array["role"] == "input"],
        "outputs": outputs,
        "arguments": {name: _arguments(family, kernel) for name, kernel in family.kernels.items()},
        "features": {name: translate(each, {}, free).text for name, each in family.features.items()},
        "winners": [winner_parts(winner, free) for winner in winners],
        "entries": [_row(family, row) for row in choices.entries],
        "fallbacks": [_row(family, row) for row in choices.fallbacks],
        "has_constant": any(one.memory == "constant" for w in winners for one in w.variant.layouts.values()),
        "ranges": any(data.low is not None for data in family.inputs),
        "has_preset": any(row.rule == "preset" for row in choices.fallbacks),
        "headers": list(dict.fromkeys(header for w in winners for header in w.variant.headers)),
        "choices": choices,
    }  # fmt: skip


def problem_values(family: Family, sizes: Mapping[str, int], options: Mapping[str, Any],
                   scalars: Mapping[str, float]) -> list[tuple[str, str]]:  # fmt: skip
    """What an example sets of ``Problem``: (member, C++ value)."""
    scope = f"tuned::{identifier(family.name)}"
    words = {name: f"{enumeration(name)}::{identifier(str(value))}" for name, value in options.items()}
    return [
        *((identifier(name), str(sizes[name])) for name in _list_given_extents(family)),
        *((identifier(s.name), repr(scalars[s.name])) for s in family.scalars.values() if s.value is None),
        *((identifier(name), f"{scope}::{word}") for name, word in words.items()),
    ]


def _list_given_extents(family: Family) -> list[str]:
    """Those that the caller's arrays have and that are not the same for every input."""
    named = {extent for data in family.inputs for extent in data.shape} - family.constants
    return [name for name in family.extents if name in named]


def _free(family: Family) -> dict[str, tuple[str, Kind]]:
    """Extents and scalars as expressions read them: members of ``Values``."""
    found: dict[str, tuple[str, Kind]] = {name: (f"v.{identifier(name)}", "whole") for name in family.extents}
    for name, scalar in family.scalars.items():
        found[name] = f"v.{identifier(name)}", "real" if "float" in scalar.type else "whole"
    return found


def _list_computed(
    family: Family, expressions: Mapping[str, Expression | None], free: Free
) -> list[tuple[str, str, str]]:
    """The name, its value in C++, and what the family says of it, of those that are computed."""
    computed = ((name, each) for name, each in expressions.items() if each is not None)
    return [(name, _choose_by_options(family, each, free), each.text) for name, each in computed]


def _choose_by_options(family: Family, expression: Expression, free: Free) -> str:
    """The expression for the options that ``problem`` has: one for each combination of those that it reads."""
    read = [option for option in family.options.values() if option.name in expression.names]
    texts = []
    for values in itertools.product(*(option.values for option in read)):
        bound = {option.name: value for option, value in zip(read, values, strict=True)}
        words = {name: f"{enumeration(name)}::{identifier(str(value))}" for name, value in bound.items()}
        asked = " && ".join(f"problem.{identifier(name)} == {word}" for name, word in words.items())
        texts.append((asked, translate(expression, bound, free).text))
    *others, (_, last) = texts
    return "".join(f"{asked} ? ({text}) : " for asked, text in others) + (f"({last})" if others else last)


def number_type(type_name: str) -> str:
    """A number's type in C++."""
    return {"float32": "float", "float64": "double"}.get(type_name, f"std::{type_name}_t")


def c_element(cpp: str, prefix: str = "", is_record: bool = False) -> str:
    """An array's element in C, where a record is ``prefix`` and its name; a number's type."""
    return f"{prefix}_{cpp}" if is_record else cpp.removeprefix("std::")


def _array(family: Family, data: Data, place: int, within: Mapping[str, Tolerance]) -> dict[str, Any]:
    number = data.fields[0].type
    compared = data.fields if data.role == "output" else ()
    is_whole, ends = np.dtype(number).kind in "iu", (data.low, data.high)
    return {
        **{name: getattr(data, name) for name in ("name", "role", "record", "fields", "shape")},
        "place": place,
        "cpp": identifier(data.name),
        "number": number_type(number),
        "element": data.record or number_type(number),
        "sizes": " x ".join(_size(family, extent) for extent in data.shape),
        "range": [repr(int(each) if is_whole else float(each)) for each in ends if each is not None],
        "compared": [_describe_comparison(data, each.name, within) for each in compared],
    }  # fmt: skip


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


def _arguments(family: Family, kernel: FamilyKernel) -> list[str]:
    """What a kernel is launched with, in C++."""
    places = {data: i for i, data in enumerate(family.data)}

    def write(item: str) -> str:
        if item not in places:
            return f"static_cast<{SCALAR_TYPES[family.number_type(item)]}>(v.{identifier(item)})"
        handle = f"arrays[{places[item]}]->handle()"
        if item in family.accesses:
            return f"reinterpret_cast<{element_type(family.data[item])}*>({handle})"
        return f"accessor<typename Policy::{item}>(rooms[{places[item]}], {handle})"

    arguments = [write(item) for item in kernel.arguments]
    return [f"typename Policy::{kernel.struct}{{{', '.join(arguments)}}}"] if kernel.struct else arguments


def _row(family: Family, row: Row) -> dict[str, Any]:
    features = ["none" if math.isnan(value) else repr(value) for value in row.features]
    return vars(row) | {"options": places_of(family, row.options), "features": features}

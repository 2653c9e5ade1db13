"""family.py of an adopted kernel: random inputs, small odd sizes, and orders where links lead to places."""

import re
from collections.abc import Iterable

from autotune.adopt.arrays import Array
from autotune.adopt.declaration import Declaration
from autotune.adopt.elements import Element
from autotune.adopt.host import replace_names
from autotune.adopt.source import identifiers
from autotune.adopt.templates import render


def inputs_module(declaration: Declaration) -> str:
    """The module's text."""
    given = [*declaration.inputs, *declaration.in_place]
    made = {array.name: _write_array(declaration, array) for array in given}
    for symbol in declaration.symbols:
        made[symbol.name] = _write_random(symbol.element, _shape(map(str, symbol.counts)), "3")
    elements = [a.element for a in given] + [symbol.element for symbol in declaration.symbols]
    records = {element.record: element.fields for element in elements if element.record}
    used = {name for call in made.values() for name in re.findall(r"\w+(?=\(generator)", call)}
    return render(
        "family.py.jinja", records=records, made=made, used=used, small=_write_odd_sizes(declaration),
        order=_order(declaration),
    )  # fmt: skip


def _write_array(declaration: Declaration, array: Array) -> str:
    """The call that gives an array its content."""
    texts = {name: _number(declaration, name) for name in {*array.shape, array.link} if name}
    shape = _shape(texts[name] for name in array.shape)
    if array.is_walked:
        return f"walks(generator, {_dtype(array.element)}, {shape}, {array.ends_at})"
    is_bool = array.pointer.element.get_canonical().kind.name == "BOOL"
    below = texts[array.link] if array.link else "2" if is_bool else "3"
    if array.is_ascending and "int" in array.element.type:
        return f"np.sort({_write_random(array.element, shape, f'{below} + 1')}, axis=None).reshape({shape})"
    return _write_random(array.element, shape, below)


def _write_random(element: Element, shape: str, below: str) -> str:
    kind = "records" if element.record else "reals" if "float" in element.type else "wholes"
    return f"{kind}(generator, {_dtype(element)}, {shape}{f', {below}' if kind == 'wholes' else ''})"


def _dtype(element: Element) -> str:
    return element.record.upper() or f"np.{element.type.replace('bfloat16', 'float32')}"


def _shape(counts: Iterable[str]) -> str:
    parts = [*counts]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _number(declaration: Declaration, name: str) -> str:
    text = re.sub(r"ceil_div\((.+?), (\w+)\)", r"-(-(\1) // \2)", declaration.arrays.extents[name].text)
    return replace_names(text, {word: f'parameters["{word}"]' for word in identifiers(text)})


def _write_odd_sizes(declaration: Declaration) -> list[str]:
    """Small odd sizes, those of the runs; none where a scalar that a workload gives decides a size, too."""
    small, texts = declaration.small, [e.text for e in declaration.arrays.extents.values()]
    used = {name for text in (*declaration.geometry.grid, *texts) for name in re.findall(r"\w+", text)}
    fixed = {n for n in declaration.scalars if n not in used or len({sizes.get(n) for sizes in small}) == 1}
    if not small or declaration.scalars.keys() & small[0].keys() - fixed:
        return []
    return [", ".join(f'"{n}": {value}' for n, value in sizes.items() if n not in fixed) for sizes in small]


def _order(declaration: Declaration) -> dict[str, str]:
    """The links whose targets can be reordered, and how many targets there are; empty where there are none."""
    if not declaration.linked:
        return {}
    extent = declaration.linked[0]
    links = (a.name for a in declaration.inputs if a.link == extent and declaration.is_link(a))
    holder = next(a for a in declaration.arrays.all.values() if extent in a.shape)
    return {
        "links": ", ".join(f'arrays["{name}"].reshape(-1)' for name in links),
        "size": f'arrays["{holder.name}"].shape[{holder.shape.index(extent)}]',
    }

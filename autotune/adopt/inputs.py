"""family.py of an adopted kernel: random inputs, small odd sizes, and orders where links lead to places."""

import re
from collections.abc import Iterable

from autotune.adopt.arrays import Array
from autotune.adopt.declaration import Declaration, replaced
from autotune.adopt.elements import Element
from autotune.adopt.source import identifiers

_HEAD = '''"""Inputs for trying the kernel out: random numbers, and links that lead somewhere."""

import numpy as np

{records}

def inputs(parameters, _root):
    """Every input by name."""
    generator = np.random.default_rng(parameters["seed"])
    made = {{}}
{made}
    return made
'''
_GENERATORS = {
    "reals": """

def reals(generator, dtype, shape):
    return generator.uniform(0.5, 1.5, shape).astype(dtype)
""",
    "wholes": """

def wholes(generator, dtype, shape, below):
    return generator.integers(0, below, shape).astype(dtype)
""",
    "records": """

def records(generator, dtype, shape):
    made = np.zeros(shape, dtype)
    for name in dtype.names:
        whole = dtype[name].kind in "iu"
        made[name] = generator.integers(0, 3, shape) if whole else generator.uniform(0.5, 1.5, shape)
    return made
""",
    "walks": '''

def walks(generator, dtype, shape, end):
    """Each element leads to one before it, and the first to the end: no walk goes round."""
    places = np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1))
    whole = (generator.random(shape) * places).astype(np.int64)
    whole[0] = end
    if np.dtype(dtype).names is None:
        return whole.astype(dtype)
    made = records(generator, dtype, shape)
    for name in dtype.names:
        if dtype[name].kind in "iu":
            made[name] = whole
    return made
''',
}
_RAGGED = '''

def ragged(parameters):
    """Small odd sizes, on which winners are proved."""
'''
_ORDERS = '''

def first_use(arrays):
    """permutation[new] = old: what the links name first comes first, then the rest."""
    named = np.concatenate([{links}, np.arange({size})])
    _, first = np.unique(named, return_index=True)
    return named[np.sort(first)]


orders = {{"first_use": first_use}}
'''


def inputs_module(declaration: Declaration) -> str:
    """The module's text."""
    given = [*declaration.inputs, *declaration.in_place]
    made = {array.name: _made(declaration, array) for array in given}
    for symbol in declaration.symbols:
        made[symbol.name] = _random(symbol.element, _shape(map(str, symbol.counts)), "3")
    elements = [a.element for a in given] + [symbol.element for symbol in declaration.symbols]
    records = {
        e.record: ", ".join(f'("{f}", np.{t})' for f, t in e.fields.items()) for e in elements if e.record
    }
    text = _HEAD.format(
        records="".join(f"{name.upper()} = np.dtype([{fields}])\n" for name, fields in records.items()),
        made="\n".join(f'    made["{name}"] = {call}' for name, call in made.items()),
    )
    used = [name for name in _GENERATORS if f"{name}(" in text or (name == "records" and "walks(" in text)]
    return "".join([text, *(_GENERATORS[name] for name in used), _ragged(declaration), _orders(declaration)])


def _made(declaration: Declaration, array: Array) -> str:
    """The call that gives an array its content."""
    texts = {name: _number(declaration, name) for name in {*array.shape, array.link} if name}
    shape = _shape(texts[name] for name in array.shape)
    if array.is_walked:
        return f"walks(generator, {_dtype(array.element)}, {shape}, {array.ends_at})"
    is_bool = array.pointer.element.get_canonical().kind.name == "BOOL"
    below = texts[array.link] if array.link else "2" if is_bool else "3"
    if array.is_ascending and "int" in array.element.type:
        return f"np.sort({_random(array.element, shape, f'{below} + 1')}, axis=None).reshape({shape})"
    return _random(array.element, shape, below)


def _random(element: Element, shape: str, below: str) -> str:
    kind = "records" if element.record else "reals" if "float" in element.type else "wholes"
    return f"{kind}(generator, {_dtype(element)}, {shape}{f', {below}' if kind == 'wholes' else ''})"


def _dtype(element: Element) -> str:
    return element.record.upper() or f"np.{element.type}"


def _shape(counts: Iterable[str]) -> str:
    parts = [*counts]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _number(declaration: Declaration, name: str) -> str:
    text = declaration.arrays.extents[name].text
    return replaced(text, {word: f'parameters["{word}"]' for word in identifiers(text)})


def _ragged(declaration: Declaration) -> str:
    """Small odd sizes, those of the runs; none where a scalar that a workload gives decides a size, too."""
    small, texts = declaration.small, [e.text for e in declaration.arrays.extents.values()]
    used = {name for text in (*declaration.geometry.grid, *texts) for name in re.findall(r"\w+", text)}
    fixed = {n for n in declaration.scalars if n not in used or len({sizes.get(n) for sizes in small}) == 1}
    if not small or declaration.scalars.keys() & small[0].keys() - fixed:
        return ""
    given = (", ".join(f'"{n}": {value}' for n, value in sizes.items() if n not in fixed) for sizes in small)
    return _RAGGED + "".join(f"    yield {{**parameters, {sizes}}}\n" for sizes in given)


def _orders(declaration: Declaration) -> str:
    if not declaration.linked:
        return ""
    extent = declaration.linked[0]
    links = (a.name for a in declaration.inputs if a.link == extent and declaration.is_link(a))
    holder = next(a for a in declaration.arrays.all.values() if extent in a.shape)
    return _ORDERS.format(
        links=", ".join(f'arrays["{name}"].reshape(-1)' for name in links),
        size=f'arrays["{holder.name}"].shape[{holder.shape.index(extent)}]',
    )

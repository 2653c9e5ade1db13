"""family.py of an adopted kernel: random inputs, small odd sizes, and orders where links lead to places."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from autotune.adopt.arrays import Array
from autotune.adopt.declaration import Declaration
from autotune.adopt.symbols import Symbol


@dataclass
class InputsModule:
    declaration: Declaration

    def text(self) -> str:
        """The module."""
        lines = ['"""Inputs for trying the kernel out: random numbers, and links that lead somewhere."""', "",
                 "import numpy as np", ""]  # fmt: skip
        given = [*self.declaration.inputs, *self.declaration.in_place]
        held: list[Array | Symbol] = [*given, *self.declaration.symbols]
        records = {a.record: a.fields for a in held if a.record}
        for name, fields_ in records.items():
            fields = ", ".join(f'("{f}", np.{t})' for f, t in fields_.items())
            lines.append(f"{constant(name)} = np.dtype([{fields}])")
        lines += ["", "", "def inputs(parameters, _root):", '    """Every input by name."""',
                  '    generator = np.random.default_rng(parameters["seed"])', "    made = {}"]  # fmt: skip
        for array in given:
            lines += self._made(array)
        for symbol in self.declaration.symbols:
            shape = f"({', '.join(map(str, symbol.counts))},)"
            element = constant(symbol.record) if symbol.record else f"np.{symbol.type}"
            kind = "records" if symbol.record else "reals" if "float" in symbol.type else "wholes"
            last = ", 3" if kind == "wholes" else ""
            lines.append(f'    made["{symbol.name}"] = {kind}(generator, {element}, {shape}{last})')
        lines += ["    return made", "", ""]
        for type_ in sorted({a.type or "record" for a in held}):
            lines += _GENERATORS["record" if type_ == "record" else "whole" if "int" in type_ else "real"]
        if any(a.is_walked for a in given):
            lines += [*_GENERATORS["record"], *_GENERATORS["walk"]]
        lines = [*_once(lines), *self._ragged()]
        if self.declaration.linked:
            lines += self._orders()
        return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines).rstrip() + "\n")

    def _ragged(self) -> list[str]:
        """Small odd sizes, those of the runs; not where a scalar that a workload gives decides a size, too."""
        launch, extents = self.declaration.geometry.grid, self.declaration.arrays.extents.values()
        used = {name for text in (*launch, *(e.text for e in extents)) for name in re.findall(r"\w+", text)}
        constant_ones = {
            n
            for n in self.declaration.scalars
            if n not in used or len({sizes.get(n) for sizes in self.declaration.small}) == 1
        }
        if not self.declaration.small or any(
            name in self.declaration.scalars for name in self.declaration.small[0].keys() - constant_ones
        ):
            return []
        lines = ["", "", "def ragged(parameters):", '    """Small odd sizes, on which winners are proved."""']
        for sizes in self.declaration.small:
            texts = ", ".join(
                f'"{name}": {value}' for name, value in sizes.items() if name not in constant_ones
            )
            lines.append(f"    yield {{**parameters, {texts}}}")
        return lines

    def _made(self, array: Array) -> list[str]:
        parts = [self._number(name) for name in array.shape]
        shape = f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        name = array.name
        if array.is_walked:
            element = constant(array.record) if array.record else f"np.{array.type}"
            return [f'    made["{name}"] = walks(generator, {element}, {shape}, {array.ends_at})']
        if array.record:
            return [f'    made["{name}"] = records(generator, {constant(array.record)}, {shape})']
        if "float" in array.type:
            return [f'    made["{name}"] = reals(generator, np.{array.type}, {shape})']
        below = self._number(array.link) if array.link else "2" if array.is_bool else "3"
        made = f"wholes(generator, np.{array.type}, {shape}, {below}{' + 1' if array.is_ascending else ''})"
        return [
            f'    made["{name}"] = {f"np.sort({made}, axis=None).reshape({shape})" if array.is_ascending else made}'
        ]

    def _number(self, name: str) -> str:
        text = self.declaration.arrays.extents[name].text
        return re.sub(r"[A-Za-z_]\w*", lambda found: f'parameters["{found[0]}"]', text)

    def _orders(self) -> list[str]:
        lines = ["", "", "def first_use(arrays):",
                 '    """permutation[new] = old: what the links name first comes first, then the rest."""']  # fmt: skip
        extent = self.declaration.linked[0]
        links = [a.name for a in self.declaration.inputs if a.link == extent and self.declaration.is_link(a)]
        holder = next(a for a in self.declaration.arrays.all.values() if extent in a.shape)
        size = f'arrays["{holder.name}"].shape[{holder.shape.index(extent)}]'
        each = ", ".join(f'arrays["{name}"].reshape(-1)' for name in links)
        return [*lines, f"    named = np.concatenate([{each}, np.arange({size})])",
                "    _, first = np.unique(named, return_index=True)", "    return named[np.sort(first)]", "", "",
                'orders = {"first_use": first_use}']  # fmt: skip


_GENERATORS = {
    "real": ["def reals(generator, dtype, shape):",
             "    return generator.uniform(0.5, 1.5, shape).astype(dtype)", "", ""],
    "whole": ["def wholes(generator, dtype, shape, below):",
              "    return generator.integers(0, below, shape).astype(dtype)", "", ""],
    "record": ["def records(generator, dtype, shape):", "    made = np.zeros(shape, dtype)",
               "    for name in dtype.names:",
               '        whole = dtype[name].kind in "iu"',
               "        made[name] = generator.integers(0, 3, shape) if whole else generator.uniform(0.5, 1.5, shape)",
               "    return made", "", ""],
    "walk": ["def walks(generator, dtype, shape, end):",
             '    """Each element leads to one before it, and the first to the end: no walk goes round."""',
             "    places = np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1))",
             "    whole = (generator.random(shape) * places).astype(np.int64)", "    whole[0] = end",
             "    if np.dtype(dtype).names is None:", "        return whole.astype(dtype)",
             "    made = records(generator, dtype, shape)", "    for name in dtype.names:",
             '        if dtype[name].kind in "iu":', "            made[name] = whole", "    return made", "", ""],
}  # fmt: skip


def _once(lines: list[str]) -> Iterator[str]:
    """Each function once."""
    seen: set[str] = set()
    skip = False
    for line in lines:
        if line.startswith("def "):
            skip = line in seen
            seen.add(line)
        if not skip:
            yield line


def constant(name: str) -> str:
    return name.upper()

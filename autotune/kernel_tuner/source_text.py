"""The text of a kernel from Kernel Tuner or T1, with its headers, the macros before it, and the compiler's options."""

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from autotune.declaration import Expression, source_files
from autotune.errors import FamilyError

_MOST_HEADERS = 100
_SIGNS: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/"}


def headers(text: str, folders: Sequence[Path]) -> dict[str, str]:
    """The texts of the headers that it includes by name in quotes, as far as they lie in ``folders``, with theirs."""
    texts: dict[str, str] = {}
    left = [text]
    while left and len(texts) < _MOST_HEADERS:
        for name in source_files.find_quoted_includes(left.pop()):
            path = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if path is not None and name not in texts and ".." not in Path(name).parts:
                texts[name] = path.read_text(encoding="utf-8")
                left.append(texts[name])
    return texts


def prologue(text: str, defined: Mapping[str, str], grid: Sequence[str], known: Sequence[str]) -> str:
    """What goes ahead of ``text``: the macros that are ``defined``, and the blocks in x, y and z where it reads them.
    ``known`` are the macros that there are anyway."""
    lines = [f"#define {name} {value}" for name, value in defined.items() if name not in known]
    for axis, blocks in zip("xyz", grid, strict=False):
        name = f"grid_size_{axis}"
        if name not in known and re.search(rf"\b{name}\b", text):
            lines.append(f"#define {name} {_integer_code(blocks, name)}")
    return "".join(f"{line}\n" for line in [*lines, "#line 1"])


def own_options(given: Sequence[str]) -> list[str]:
    """Without what autotune says itself: where headers lie, and the language's version."""
    return [one for one in given if not one.startswith("-I") and not one.lstrip("-").startswith("std=")]


def _integer_code(blocks: str, name: str) -> str:
    """An expression of whole numbers as C++."""

    def code(node: ast.expr) -> str:
        match node:
            case ast.Constant(value=int()) | ast.Name():
                return ast.unparse(node)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
                return f"({code(left)} {_SIGNS[type(op)]} {code(right)})"
            case ast.Call(func=ast.Name(id="int"), args=[whole]):
                return code(whole)
            case ast.Call(func=ast.Name(id="ceil_div"), args=[over, by]):
                return f"(({code(over)} + {code(by)} - 1) / {code(by)})"
        raise FamilyError(
            f"the source reads {name}, and {blocks!r} is not made of whole numbers, names and + - * //: take gridDim "
            "in the source"
        )

    return code(Expression(blocks).tree)

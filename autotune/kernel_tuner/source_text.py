"""What goes with a kernel that Kernel Tuner or T1 names: the headers beside its text, and the macros ahead of it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from autotune.declaration import Expression, quoted_includes
from autotune.errors import FamilyError

_MOST_HEADERS = 100


def headers(text: str, folders: Sequence[Path]) -> dict[str, str]:
    """The texts of the headers that it includes by name in quotes, as far as they lie in ``folders``, with theirs."""
    found: dict[str, str] = {}
    left = [text]
    while left and len(found) < _MOST_HEADERS:
        for name in quoted_includes(left.pop()):
            path = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if path is not None and name not in found and ".." not in Path(name).parts:
                found[name] = path.read_text(encoding="utf-8")
                left.append(found[name])
    return found


def prologue(text: str, defined: Mapping[str, str], grid: Sequence[str], known: Sequence[str]) -> str:
    """What goes ahead of ``text``: the macros that are ``defined``, and the blocks in x, y and z where it reads them.
    ``known`` are the macros that there are anyway."""
    lines = [f"#define {name} {value}" for name, value in defined.items() if name not in known]
    for axis, blocks in zip("xyz", grid, strict=False):
        name = f"grid_size_{axis}"
        if name not in known and re.search(rf"\b{name}\b", text):
            lines.append(f"#define {name} ({_integer_code(blocks, name)})")
    return "".join(f"{line}\n" for line in [*lines, "#line 1"])


def _integer_code(blocks: str, name: str) -> str:
    """An expression of whole numbers as C++."""
    code = blocks
    while found := re.search(r"ceil_div\(", code):
        over, by, end = _arguments(code, found.end())
        code = f"{code[: found.start()]}((({over.strip()}) + ({by.strip()}) - 1) / ({by.strip()})){code[end + 1 :]}"
    plain = code.replace("//", "/")
    if re.search(r"[^\w\s()+*/-]|\b(if|else|and|or|not|in)\b", plain) or re.search(r"(?<!/)/(?!/)", blocks):
        raise FamilyError(
            f"the source reads {name}, and {Expression(blocks).text!r} is not made of whole numbers, names and "
            "+ - * //: take gridDim in the source"
        )
    return plain


def _arguments(code: str, start: int) -> tuple[str, str, int]:
    """The two arguments of a call whose bracket opens before ``start``, and where it closes."""
    depth, comma = 1, start
    for at in range(start, len(code)):
        depth += (code[at] in "([") - (code[at] in ")]")
        if code[at] == "," and depth == 1:
            comma = at
        if depth == 0:
            return code[start:comma], code[comma + 1 : at], at
    raise FamilyError(f"{code!r} has a bracket that is not closed")

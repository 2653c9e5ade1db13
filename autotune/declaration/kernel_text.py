"""What a kernel's text says of itself, read by its looks: parameters, what is written, headers beside it.

No compiler is asked. What is guessed wrong is seen when the kernel runs: a write to an input, or an output that depends
on what it held before, is a wrong result.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autotune.declaration.expression import Expression
from autotune.errors import FamilyError

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_MOST_HEADERS = 100


@dataclass(frozen=True)
class Parameter:
    """One of a kernel. ``role`` is what a pointer is for: input, output, or inout for what is read and written;
    ``is_certain`` is false where the body hands an input on, and what happens to it there is not looked at. ``text`` is
    how it is written there."""

    name: str
    is_pointer: bool
    role: str = ""
    is_certain: bool = True
    text: str = field(default="", compare=False)


def signature(text: str, kernel: str) -> tuple[Parameter, ...]:
    """The parameters of ``kernel`` in ``text``; empty where its definition cannot be found."""
    bare = _COMMENT.sub(" ", text)
    name = kernel.partition("<")[0].strip()
    for found in re.finditer(rf"\b{re.escape(name)}\s*\(", bare):
        end = _closing(bare, found.end() - 1)
        begin = re.compile(r"\s*\{").match(bare, end + 1)
        if end < 0 or begin is None:
            continue
        body = bare[begin.end() : _closing(bare, begin.end() - 1)]
        parts = [" ".join(part.split()) for part in _parts(bare[found.end() : end])]
        return tuple(replace(_parameter(part, body), text=part) for part in parts if part)
    return ()


_CPP = {
    "int8": ("signed char", "char", "int8_t"),
    "uint8": ("unsigned char", "uint8_t", "uchar"),
    "int16": ("short", "short int", "int16_t"),
    "uint16": ("unsigned short", "uint16_t", "ushort"),
    "int32": ("int", "int32_t"),
    "uint32": ("unsigned int", "unsigned", "uint32_t", "uint"),
    "int64": ("long long", "long", "int64_t", "long long int", "ptrdiff_t"),
    "uint64": ("unsigned long long", "unsigned long", "uint64_t", "size_t", "std::size_t", "ulong"),
    "float32": ("float",),
    "float64": ("double",),
}


def another_type(parameter: str, declared: str, *, is_pointer: bool) -> str:
    """The type that a parameter, as it is written, should have for what is ``declared``; empty where it has that, or
    its own is none of C++'s."""
    words = re.sub(r"\b(?:const|volatile|__restrict__|restrict|signed)\b", " ", parameter)
    match = re.fullmatch(r"\s*([\w ]+?)\s*(\**)\s*(\w+)\s*(\[\s*\])?\s*", words)
    if match is None or declared not in _CPP:
        return ""
    kind = " ".join(match[1].split())
    points = len(match[2]) + bool(match[4])
    known = {one for names in _CPP.values() for one in names}
    if points == is_pointer and (kind not in known or kind in _CPP[declared]):
        return ""
    return f"{_CPP[declared][0]}{'*' if is_pointer else ''}"


def _closing(text: str, start: int) -> int:
    """Where the bracket at ``start`` is closed; -1 where it is not."""
    opens = text[start]
    closes = {"(": ")", "{": "}"}[opens]
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == opens) - (text[at] == closes)
        if depth == 0:
            return at
    return -1


def _parts(text: str) -> list[str]:
    """At the commas outside of brackets."""
    parts, depth, last = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "<([{") - (character in ">)]}")
        if character == "," and depth == 0:
            parts.append(text[last:at])
            last = at + 1
    return [*parts, text[last:]]


def _parameter(text: str, body: str) -> Parameter:
    words = re.findall(r"[A-Za-z_]\w*", text.partition("=")[0])
    name = words[-1] if words else ""
    is_pointer = "*" in text or "[" in text
    if not is_pointer:
        return Parameter(name, is_pointer)
    is_constant = bool(re.search(r"\bconst\b[^*]*\*|^[^*]*\bconst\b[^*]*\[", text))
    return Parameter(name, is_pointer, "input") if is_constant else _used(name, body)


def _used(name: str, body: str) -> Parameter:
    """What the body does with a pointer: every mention is an assignment to an element, some are, or none."""
    mentions = len(re.findall(rf"\b{name}\b", body))
    assigned = updated = 0
    for found in re.finditer(rf"\b{name}\b\s*\[", body):
        end = _bracket(body, found.end() - 1)
        rest = body[end + 1 : end + 40].lstrip()
        member = re.match(r"\.\w+\s*", rest)
        rest = rest[member.end() :] if member else rest
        if re.match(r"=(?!=)", rest):
            assigned += 1
        elif re.match(r"([-+*/%&|^]|<<|>>)=|\+\+|--", rest):
            updated += 1
    assigned += len(re.findall(rf"(?<![\w)\]])\*\s*{name}\s*=(?!=)", body))
    passed = len(re.findall(rf"[(,]\s*&?\s*{name}\b\s*(\[[^\]]*\]|\+[^,)]*)?\s*[,)]", body))
    aliased = len(re.findall(rf"\*\s*\w+\s*=\s*[^;=]*\b{name}\b", body))
    if assigned and assigned == mentions:
        return Parameter(name, True, "output")
    is_written = bool(assigned or updated)
    return Parameter(name, True, "inout" if is_written else "input", is_written or not (passed or aliased))


def _bracket(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "[") - (text[at] == "]")
        if depth == 0:
            return at
    return len(text)


def headers(text: str, folders: Sequence[Path]) -> dict[str, str]:
    """The texts of the headers that it includes by name in quotes, as far as they lie in ``folders``, with theirs."""
    found: dict[str, str] = {}
    left = [text]
    while left and len(found) < _MOST_HEADERS:
        for name in _INCLUDE.findall(left.pop()):
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
        end = _closing(code, found.end() - 1)
        over, by = _parts(code[found.end() : end])
        code = f"{code[: found.start()]}((({over.strip()}) + ({by.strip()}) - 1) / ({by.strip()})){code[end + 1 :]}"
    plain = code.replace("//", "/")
    if re.search(r"[^\w\s()+*/-]|\b(if|else|and|or|not|in)\b", plain) or re.search(r"(?<!/)/(?!/)", blocks):
        raise FamilyError(
            f"the source reads {name}, and {Expression(blocks).text!r} is not made of whole numbers, names and "
            "+ - * //: take gridDim in the source"
        )
    return plain

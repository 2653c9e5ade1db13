"""What a kernel's text says of itself, read by its looks: its parameters, and which of them it writes to.

No compiler is asked. What is guessed wrong is seen when the kernel runs: a write to an input, or an output that depends
on what it held before, is a wrong result.
"""

import re
from dataclasses import dataclass, field, replace

from autotune.layout import CPP_NAMES

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CONSTANT = re.compile(r"\bconst\b[^*]*\*|^[^*]*\bconst\b[^*]*\[")


@dataclass(frozen=True)
class Parameter:
    """One of a kernel. ``role`` is what a pointer is for: input, output, or inout for what is read and written;
    ``is_certain`` is false where the body hands an input on, and what happens to it there is not looked at. ``text`` is
    how it is written there, ``at`` where it begins."""

    name: str
    is_pointer: bool
    role: str = ""
    is_certain: bool = True
    text: str = field(default="", compare=False)
    at: int = field(default=0, compare=False)

    @property
    def is_constant(self) -> bool:
        """Whether it is a pointer to what cannot be written."""
        return bool(_CONSTANT.search(self.text))


@dataclass(frozen=True)
class Definition:
    """A kernel as a text defines it: its parameters, and where its statements begin and end."""

    parameters: tuple[Parameter, ...]
    begin: int
    end: int


def blank_comments(text: str) -> str:
    """C++ with comments as blanks, so that every place stays where it was."""
    return _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def signature(text: str, kernel: str) -> tuple[Parameter, ...]:
    """The parameters of ``kernel`` in ``text``; empty where its definition cannot be found."""
    bare, name = blank_comments(text), kernel.partition("<")[0].strip()
    found = definition(bare, name) or definition(bare, name, ahead="")  # a macro may say __global__
    return found.parameters if found else ()


def definition(bare: str, name: str, ahead: str = r"\b__global__\b[^;{}]*?") -> Definition | None:
    """The definition of the kernel ``name`` in a text without comments, with ``ahead`` of its name; None where there is
    none."""
    for match in re.finditer(rf"{ahead}\b{re.escape(name)}\s*\(", bare):
        end = _find_closing(bare, match.end() - 1)
        begin = re.compile(r"\s*\{").match(bare, end + 1)
        if end < 0 or begin is None:
            continue
        close = _find_closing(bare, begin.end() - 1)
        body, at, parameters = bare[begin.end() : close], match.end(), []
        for part in _parts(bare[at:end]):
            if text := " ".join(part.split()):
                first = at + len(part) - len(part.lstrip())
                parameters.append(replace(_parameter(text, body), text=text, at=first))
            at += len(part) + 1
        return Definition(tuple(parameters), begin.end(), close)
    return None


def list_kernels(bare: str) -> list[str]:
    """The name of each kernel that a text without comments declares or defines with ``__global__``, in its order."""
    names = []
    for match in re.finditer(r"\b__global__\b([^;{}]*)", bare):
        ahead, flat = "", match[1]
        while ahead != flat:  # the innermost brackets first; each leaves one mark
            ahead, flat = flat, re.sub(r"\([^()]*\)", "\0", flat)
        names += re.findall(r"(\w+)\s*\0", flat)[-1:]
    return names


def another_type(parameter: str, declared: str, *, is_pointer: bool) -> str:
    """The type that a parameter, as it is written, should have for what is ``declared``; empty where it has that, or
    its own is none of C++'s."""
    words = re.sub(r"\b(?:const|volatile|__restrict__|restrict|signed)\b", " ", parameter)
    match = re.fullmatch(r"\s*([\w ]+?)\s*(\**)\s*(\w+)\s*(\[\s*\])?\s*", words)
    if match is None or declared not in CPP_NAMES:
        return ""
    kind = " ".join(match[1].split())
    points = len(match[2]) + bool(match[4])
    known = {one for names in CPP_NAMES.values() for one in names}
    if points == is_pointer and (kind not in known or kind in CPP_NAMES[declared]):
        return ""
    return f"{CPP_NAMES[declared][0]}{'*' if is_pointer else ''}"


def _find_closing(text: str, start: int) -> int:
    """Where the bracket at ``start`` is closed; -1 where it is not."""
    opens = text[start]
    closes = {"(": ")", "{": "}", "[": "]"}[opens]
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
    return Parameter(name, is_pointer, "input") if _CONSTANT.search(text) else _classify_use(name, body)


def _classify_use(name: str, body: str) -> Parameter:
    """What the body does with a pointer: every mention is an assignment to an element, some are, or none."""
    mentions = len(re.findall(rf"\b{name}\b", body))
    assigned = updated = 0
    for found in re.finditer(rf"\b{name}\b\s*\[", body):
        end = _find_closing(body, found.end() - 1)
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

"""A kernel's source for the host's compiler: what CUDA C++ says in words of its own and the headers in
``autotune/cpu`` cannot say by a macro."""

import re
from pathlib import Path

from autotune.compile.toolchain import include

_NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_DYNAMIC = re.compile(
    r"\bextern\s+(?:volatile\s+)?__shared__\s+(?:(?:__align__|alignas)\s*\(\s*\d+\s*\)\s*)?"
    r"(?P<type>(?:const\s+|volatile\s+)?[A-Za-z_][\w:]*(?:\s+(?:int|char|short|long))*(?:<[^;{}]*?>)?)\s+"
    r"(?P<name>\w+)\s*\[\s*\]\s*;"
)
_STATIC = re.compile(r"\bstatic\s+(?=__shared__\b)|(?<=\b__shared__)\s+static\b")
_SCOPE = re.compile(r"(?:\bnamespace\b[\w:\s]*|\bextern\s*)$")
_SHARED = "autotune::cpu::setting.dynamic_shared"


def host_source(source: Path) -> str:
    """The directive that includes the file, or its text where the shared memory in it has to be named in other words:
    a block's dynamic one is at an address that is known when it runs."""
    text = source.read_text(encoding="utf-8", errors="surrogateescape")
    code = _NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    parts, end = [], 0
    found = [*_DYNAMIC.finditer(code), *_STATIC.finditer(code)]
    for match in sorted(found, key=lambda match: match.start()):
        is_dynamic = match.re is _DYNAMIC  # what is shared on the host is static without the word
        parts += [
            text[end : match.start()],
            _declared(match, code, source) if is_dynamic else re.sub(r"\S", "", match[0]),
        ]
        end = match.end()
    if not parts:
        return include(source)
    return f'#line 1 "{source.as_posix()}"\n{"".join(parts)}{text[end:]}\n'


def _declared(match: "re.Match[str]", code: str, source: Path) -> str:
    kind, name = match["type"], match["name"]
    if _is_inside_a_function(code[: match.start()]):
        return f"{kind}* const {name} = reinterpret_cast<{kind}*>({_SHARED});"
    line = code.count("\n", 0, match.end()) + 1
    place = f'#line {line} "{source.as_posix()}"'
    return f"\n#undef {name}\n#define {name} (reinterpret_cast<{kind}*>(::{_SHARED}))\n{place}\n"


def _is_inside_a_function(before: str) -> bool:
    """Whether a brace that no namespace and no extern "C" opened is open at the end of ``before``, whose texts are
    blank."""
    depth: list[bool] = []
    for brace in re.finditer(r"[{}]", before):
        if brace[0] == "{":
            depth.append(_SCOPE.search(before[: brace.start()].rstrip()) is None)
        elif depth:
            depth.pop()
    return any(depth)

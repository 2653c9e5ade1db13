"""What of its files a kernel needs: everything else that only a host program knows is left out, by whole declarations.

A family's source is compiled for a GPU without a toolkit's headers and without a host program around it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from autotune.adopt.rewriting import Text
from autotune.adopt.source import (
    BUILTINS,
    CudaSource,
    Cursor,
    Span,
    children,
    has_attribute,
    identifiers,
    kind,
    span,
    walk,
)
from autotune.compile import stand_ins

_FUNCTIONS = ("FUNCTION_DECL", "FUNCTION_TEMPLATE", "CXX_METHOD", "CONSTRUCTOR")
_MEMORIES = ("CUDACONSTANT_ATTR", "CUDADEVICE_ATTR", "CUDASHARED_ATTR")
# Each on lines of its own: what stands behind a declaration belongs to that one.
_COMMENT = re.compile(r"(?:(?<![^\n])[ \t]*(?://[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/[ \t]*\r?\n))+\Z")
_END = re.compile(rb"[ \t]*;?[ \t]*(?://[^\n]*)?(?:\r?\n)?(?:[ \t]*\r?\n)?")
_DIRECTIVES = re.compile(rb"^[ \t]*#[ \t]*(?:include\b[^\n]*|pragma[ \t]+once[^\n]*)\r?\n?", re.MULTILINE)

_PIECES = re.compile(
    rb"""//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|\#(?:[^\n\\]|\\\r?\n|\\.)*|(?P<code>(?:[^/\#\s]|/(?![/*]))(?:[^/\#\n]|/(?![/*]))*)|\s+|.""",
    re.MULTILINE,
)

_USUAL = re.compile(r"#define ((?:CUDART|FLT|DBL|INT|UINT|M|RAND)_\w+) ")
_HEADERS = {
    "cuda_fp16.h": {"__half", "half", "__half2", "half2"},
    "cuda_bf16.h": {"__nv_bfloat16", "nv_bfloat16", "__nv_bfloat162", "nv_bfloat162"},
}
_INCLUDED = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[<\"]((\w+)[\w./]*)[>\"]", re.MULTILINE)
_SHORT = re.compile(r"typedef [a-z ]+ u(?:char|short|int|long)\b|typedef [a-z ]+ u?int\d+_t\b")


@dataclass(frozen=True)
class Piece:
    """A declaration of a file's own level, or a macro with its whole directive."""

    source: CudaSource
    cursor: Cursor

    @property
    def is_macro(self) -> bool:
        return kind(self.cursor) == "MACRO_DEFINITION"

    @cached_property
    def place(self) -> Span:
        begin, end = span(self.cursor)
        return (self.source.content.rfind(b"\n", 0, begin) + 1 if self.is_macro else begin), end

    @property
    def text(self) -> str:
        return self.source.text(*self.place)

    @cached_property
    def names(self) -> set[str]:
        """Those that it gives."""
        inner = (c for c in children(self.cursor) if kind(c) in ("ENUM_CONSTANT_DECL", "NAMESPACE"))
        return {c.spelling for c in (self.cursor, *inner)} - {""}

    @cached_property
    def uses(self) -> set[str]:
        return identifiers(self.text)

    def has(self, *attributes: str) -> bool:
        return any(has_attribute(self.cursor, attribute) for attribute in attributes)


@dataclass
class Excerpt:
    """The kernel's file and those that it includes from where it is."""

    source: CudaSource
    kernel: Cursor

    @cached_property
    def main(self) -> list[Piece]:
        return self._pieces(self.source)

    @cached_property
    def headers(self) -> list[list[Piece]]:
        """In the order in which they are reached."""
        others = (path for path in self.source.files if path != self.source.path)
        return [self._pieces(self.source.open_other(path)) for path in others]

    @cached_property
    def all(self) -> list[Piece]:
        return [piece for file in (*self.headers, self.main) for piece in file]

    @cached_property
    def kept(self) -> list[Piece]:
        return [piece for piece in self.all if self._is_kept(piece)]

    def _pieces(self, source: CudaSource) -> list[Piece]:
        def level(parent: Cursor) -> Iterator[Cursor]:
            for cursor in children(parent):
                if kind(cursor) == "LINKAGE_SPEC" or (kind(cursor) == "NAMESPACE" and self._holds(cursor)):
                    yield from level(cursor)
                elif kind(cursor) not in ("MACRO_INSTANTIATION", "INCLUSION_DIRECTIVE"):
                    yield cursor

        return [Piece(source, cursor) for cursor in level(source.unit.cursor) if source.is_here(cursor)]

    def _holds(self, cursor: Cursor) -> bool:
        """Whether the kernel stands in it."""
        begin, end = span(cursor)
        return self.source.is_here(cursor) and begin <= span(self.kernel)[0] < end

    @cached_property
    def needed(self) -> set[str]:
        """Every name that the kernel's text leads to."""
        uses: dict[str, set[str]] = {}
        for piece in self.all:
            for name in piece.names:
                uses.setdefault(name, set()).update(piece.uses)
        needed: set[str] = set()
        using = (piece for piece in self.all if kind(piece.cursor) == "USING_DIRECTIVE")
        opened = {name for piece in using for name in piece.uses}
        new = {self.kernel.spelling, *(name for name in uses if name.startswith("operator"))}
        new |= opened & self._toolkit.keys()
        while new:
            needed |= new
            new = {other for name in new for other in uses.get(name, ())} - needed
        return needed

    @cached_property
    def _toolkit(self) -> dict[str, list[str]]:
        """The headers of the toolkit that the files include and the cpu device has, by the namespace that each is named
        after."""
        headers: dict[str, list[str]] = {}
        for name, space in (pair for text in self.source.files.values() for pair in _INCLUDED.findall(text)):
            if (stand_ins.cuda_headers() / name.decode()).is_file():
                headers.setdefault(space.decode(), []).append(name.decode())
        return headers

    def find_mistakes(self) -> list[str]:
        """What could not be parsed in the kernel and all that it needs, as file:line: message."""
        declared = (piece for piece in self.kept if not piece.is_macro)
        return [told for piece in declared for told in piece.source.find_mistakes(piece.place)]

    def _is_kept(self, piece: Piece) -> bool:
        cursor = piece.cursor
        is_host = not piece.has("CUDAGLOBAL_ATTR", "CUDADEVICE_ATTR")
        is_other = piece.has("CUDAGLOBAL_ATTR") and cursor != self.kernel
        if kind(cursor) in _FUNCTIONS and (is_host or is_other):
            return False
        if kind(cursor) == "VAR_DECL" and not cursor.type.is_const_qualified() and not piece.has(*_MEMORIES):
            return False
        if kind(cursor) == "USING_DIRECTIVE":
            return bool(piece.uses & self._toolkit.keys())
        return bool(piece.names & self.needed)

    @property
    def functions(self) -> list[Cursor]:
        """Return the functions of the main file that stay, without the kernel."""
        found = (p.cursor for p in self.kept if p.source is self.source and kind(p.cursor) in _FUNCTIONS)
        return [c for c in found if c.is_definition() and c != self.kernel]

    @property
    def symbols(self) -> list[Cursor]:
        """Arrays and numbers of the source that a host program fills: __constant__ ones, and those of the device, that
        have no value there."""
        variables = (p for p in self.kept if kind(p.cursor) == "VAR_DECL" and p.has(*_MEMORIES))
        return [piece.cursor for piece in variables if "=" not in piece.text]

    def collect_prelude(self) -> str:
        """What the kernel needs of the headers, in their order."""
        parts = [*self._define_builtins()]
        for file in self.headers:
            kept = {_include_semicolon(piece) for piece in file if self._is_kept(piece)}
            inner = {p for p in kept for q in kept if p != q and q[0] <= p[0] and p[1] <= q[1]}
            if kept:
                text = "\n".join(file[0].source.text(*place) for place in sorted(kept - inner))
                parts.append(f"// From {file[0].source.path.name}.\n{text}\n")
        return "\n".join(parts)

    def _define_builtins(self) -> Iterator[str]:
        """What headers that every CUDA program has would define: constants and short names of types."""
        wanted = self.needed - {name for piece in self.all if piece.is_macro for name in piece.names}
        lines = []
        for line in BUILTINS.read_text(encoding="utf-8").splitlines():
            if (found := _USUAL.match(line)) and found[1] in wanted:
                lines.append(f"#ifndef {found[1]}\n{line}\n#endif")
            lines += [f"{d};" for d in _SHORT.findall(line) if d.split()[-1] in wanted]
        # A comment or a variable may be a half, too.
        macros = {text for piece in self.kept if piece.is_macro for text in piece.uses}
        types = (c.referenced for piece in self.kept for c in walk(piece.cursor, "TYPE_REF"))
        named = macros | {c.spelling for c in types if c}
        lines += [f"#include <{header}>" for header, names in _HEADERS.items() if names & named]
        spaces = self._toolkit.items()
        lines += dict.fromkeys(
            f"#include <{h}>" for name, headers in spaces if name in self.needed for h in headers
        )
        if lines:
            yield "\n".join([*lines, ""])

    def cut(self, text: Text) -> None:
        """Edit out of the main file what the kernel does not need."""
        declared = [piece for piece in self.main if not piece.is_macro]
        kept = [piece.place for piece in declared if self._is_kept(piece)]
        for begin, end in (piece.place for piece in declared):
            if not any(k[0] < end and begin < k[1] for k in kept):
                text.replace(self._widen(begin, end), "")
        for found in _DIRECTIVES.finditer(self.source.content):
            text.replace(found.span(), "")
        for place in self._find_unread(sorted(piece.place for piece in declared)):
            text.replace(place, "")
        self._unlink(text)

    def _widen(self, begin: int, end: int) -> Span:
        """With the comment right above it, and what ends its line."""
        line = self.source.content.rfind(b"\n", 0, begin) + 1
        if not self.source.content[line:begin].strip():
            begin = line
            if found := _COMMENT.search(self.source.text(0, line)):
                begin -= len(found[0].encode("utf-8", "surrogateescape"))
        rest = _END.match(self.source.content, end)
        return begin, rest.end() if rest else end

    def _find_unread(self, places: list[Span]) -> Iterator[Span]:
        """Code between declarations: what libclang gave up on, since a header is missing that only a host has."""
        at, frames = 0, list(self._frames())
        for begin, end in [*places, (len(self.source.content),) * 2]:
            for piece in _PIECES.finditer(self.source.content, at, max(at, begin)):
                if (piece["code"] or b"").strip(b"; \t\r"):
                    first, last = piece.span("code")
                    if not any(frame[0] < last and first < frame[1] for frame in frames):
                        yield first, last
            at = max(at, end)

    def _frames(self) -> Iterator[Span]:
        """The heads and the ends of namespaces around the kernel."""
        for cursor in children(self.source.unit.cursor):
            if kind(cursor) == "NAMESPACE" and self._holds(cursor):
                begin, end = span(cursor)
                yield begin, self.source.content.index(b"{", begin) + 1
                yield end - 1, end

    def _unlink(self, text: Text) -> None:
        """``extern "C"`` cannot hold a template."""
        for cursor in children(self.source.unit.cursor):
            if kind(cursor) != "LINKAGE_SPEC" or not self._holds(cursor):
                continue
            begin, end = span(cursor)
            if head := re.match(rb'extern\s*"C"\s*(\{?)', self.source.content[begin:end]):
                text.replace((begin, begin + head.end()), "")
                if head[1]:
                    text.replace((end - 1, end), "")


def _include_semicolon(piece: Piece) -> Span:
    begin, end = piece.place
    rest = None if piece.is_macro else re.match(rb"\s*;", piece.source.content[end:])
    return begin, end + (rest.end() if rest else 0)

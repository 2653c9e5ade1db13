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
    Cursor,
    Source,
    Span,
    children,
    has_attribute,
    identifiers,
    kind,
    span,
    walk,
)

_FUNCTIONS = ("FUNCTION_DECL", "FUNCTION_TEMPLATE", "CXX_METHOD", "CONSTRUCTOR")
_MEMORIES = ("CUDACONSTANT_ATTR", "CUDADEVICE_ATTR", "CUDASHARED_ATTR")
# Each on lines of its own: what stands behind a declaration belongs to that one.
_COMMENT = re.compile(r"(?:(?<![^\n])[ \t]*(?://[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/[ \t]*\r?\n))+\Z")
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
_SHORT = re.compile(r"typedef [a-z ]+ u(?:char|short|int|long)\b|typedef [a-z ]+ u?int\d+_t\b")


@dataclass(frozen=True)
class Declaration:
    """One declaration of a file's own level, with the names it gives and those it uses."""

    cursor: Cursor
    place: Span
    names: frozenset[str]
    uses: frozenset[str]
    is_host: bool


@dataclass
class File:
    """One file of what was parsed, with the declarations and macros in it."""

    source: Source
    kernel: Cursor

    @cached_property
    def declarations(self) -> list[Declaration]:
        found = (c for c in self._level(self.source.unit.cursor) if self.source.is_here(c))
        return [self._declaration(c) for c in found]

    def _level(self, parent: Cursor) -> Iterator[Cursor]:
        for cursor in children(parent):
            if kind(cursor) == "LINKAGE_SPEC" or (kind(cursor) == "NAMESPACE" and self.holds(cursor)):
                yield from self._level(cursor)
            elif kind(cursor) not in ("MACRO_DEFINITION", "MACRO_INSTANTIATION", "INCLUSION_DIRECTIVE"):
                yield cursor

    def holds(self, cursor: Cursor) -> bool:
        begin, end = span(cursor)
        return (
            self.source.is_here(cursor)
            and self.source.is_here(self.kernel)
            and begin <= span(self.kernel)[0] < end
        )

    def _declaration(self, cursor: Cursor) -> Declaration:
        begin, end = span(cursor)
        names = {cursor.spelling}
        names |= {c.spelling for c in children(cursor) if kind(c) in ("ENUM_CONSTANT_DECL", "NAMESPACE")}
        is_host = kind(cursor) in _FUNCTIONS and not any(
            has_attribute(cursor, attribute) for attribute in ("CUDAGLOBAL_ATTR", "CUDADEVICE_ATTR")
        )
        uses = identifiers(self.source.text(begin, end))
        return Declaration(cursor, (begin, end), frozenset(names - {""}), frozenset(uses), is_host)

    @cached_property
    def macros(self) -> list[tuple[str, Span]]:
        """The macros defined here, each with the place of its whole directive."""
        found = []
        for cursor in self.source.unit.cursor.get_children():
            if kind(cursor) == "MACRO_DEFINITION" and self.source.is_here(cursor):
                begin, end = span(cursor)
                found.append((str(cursor.spelling), (self.source.content.rfind(b"\n", 0, begin) + 1, end)))
        return found


@dataclass
class Excerpt:
    """The kernel's file and those that it includes from where it lies."""

    source: Source
    kernel: Cursor

    @cached_property
    def main(self) -> File:
        return File(self.source, self.kernel)

    @cached_property
    def headers(self) -> list[File]:
        """In the order in which they are reached."""
        others = [path for path in self.source.files if path != self.source.path]
        return [File(self.source.other(path), self.kernel) for path in others]

    @cached_property
    def needed(self) -> frozenset[str]:
        """Every name that the kernel's text leads to."""
        uses: dict[str, set[str]] = {}
        for file in (self.main, *self.headers):
            for declaration in file.declarations:
                for name in declaration.names:
                    uses.setdefault(name, set()).update(declaration.uses)
            for name, place in file.macros:
                uses.setdefault(name, set()).update(identifiers(file.source.text(*place)))
        found: set[str] = set()
        new = {self.kernel.spelling, *(name for name in uses if name.startswith("operator"))}
        while new:
            found |= new
            new = {other for name in new for other in uses.get(name, ())} - found
        return frozenset(found)

    def mistakes(self) -> list[str]:
        """What could not be parsed in the kernel and all that it needs, as file:line: message."""
        found = []
        for file in (*self.headers, self.main):
            for declaration in file.declarations:
                if declaration.cursor == self.kernel or self.is_kept(declaration):
                    found += file.source.mistakes(declaration.place)
        return found

    def is_kept(self, declaration: Declaration) -> bool:
        cursor = declaration.cursor
        if kind(cursor) in _FUNCTIONS:
            is_kernel = has_attribute(cursor, "CUDAGLOBAL_ATTR")
            if declaration.is_host or (is_kernel and cursor != self.kernel):
                return False
        if kind(cursor) == "VAR_DECL" and not cursor.type.is_const_qualified():
            return any(has_attribute(cursor, memory) for memory in _MEMORIES) and bool(
                declaration.names & self.needed
            )
        return bool(declaration.names & self.needed)

    @property
    def functions(self) -> list[Cursor]:
        """The functions of the main file that stay, beside the kernel."""
        kept = (d.cursor for d in self.main.declarations if self.is_kept(d))
        return [c for c in kept if kind(c) in _FUNCTIONS and c.is_definition() and c != self.kernel]

    @property
    def symbols(self) -> list[Cursor]:
        """Arrays and numbers of the source that a host program fills: __constant__ ones, and those of the device, that
        have no value there."""
        return [
            declaration.cursor
            for file in (*self.headers, self.main)
            for declaration in file.declarations
            if self.is_kept(declaration)
            and kind(declaration.cursor) == "VAR_DECL"
            and any(has_attribute(declaration.cursor, memory) for memory in _MEMORIES)
            and "=" not in file.source.text(*declaration.place)
        ]

    def before(self) -> str:
        """What the kernel needs of the headers, in their order."""
        parts = [*self._usual()]
        for file in self.headers:
            kept = [self._with_semicolon(file, d.place) for d in file.declarations if self.is_kept(d)]
            kept += [place for name, place in file.macros if name in self.needed]
            inner = {p for p in kept for q in kept if p != q and q[0] <= p[0] and p[1] <= q[1]}
            text = "\n".join(file.source.text(*place) for place in sorted({*kept} - inner))
            if text:
                parts.append(f"// From {file.source.path.name}.\n{text}\n")
        return "\n".join(parts)

    def _usual(self) -> Iterator[str]:
        """What headers that every CUDA program has would define: constants and short names of types."""
        own = {name for file in (self.main, *self.headers) for name, _ in file.macros}
        lines = []
        for line in BUILTINS.read_text(encoding="utf-8").splitlines():
            if (found := _USUAL.match(line)) and found[1] in self.needed - own:
                lines.append(f"#ifndef {found[1]}\n{line}\n#endif")
            lines += [f"{d};" for d in _SHORT.findall(line) if d.split()[-1] in self.needed - own]
        lines += [f"#include <{header}>" for header, names in _HEADERS.items() if names & self._types]
        if lines:
            yield "\n".join([*lines, ""])

    @cached_property
    def _types(self) -> set[str]:
        """Types that what stays names: a comment or a variable may be a half, too."""
        kept = (d.cursor for file in (self.main, *self.headers) for d in file.declarations if self.is_kept(d))
        named = {
            c.referenced.spelling for k in kept for c in walk(k) if kind(c) == "TYPE_REF" and c.referenced
        }
        macros = {text for file in (self.main, *self.headers) for name, place in file.macros if name in self.needed
                  for text in identifiers(file.source.text(*place))}  # fmt: skip
        return named | macros

    @staticmethod
    def _with_semicolon(file: File, place: Span) -> Span:
        rest = re.match(rb"\s*;", file.source.content[place[1] :])
        return (place[0], place[1] + rest.end()) if rest else place

    def cut(self, text: Text) -> None:
        """Edit out of the main file what the kernel does not need."""
        kept = [d.place for d in self.main.declarations if self.is_kept(d)]
        for declaration in self.main.declarations:
            if not self.is_kept(declaration) and not any(
                k[0] < declaration.place[1] and declaration.place[0] < k[1] for k in kept
            ):
                text.replace(self._whole(declaration.place), "")
        for found in _DIRECTIVES.finditer(self.source.content):
            text.replace(found.span(), "")
        for place in self._unread():
            text.replace(place, "")
        self._unlink(text)

    def _whole(self, place: Span) -> Span:
        """With the comment right above it, and what ends its line."""
        begin, end = place
        line = self.source.content.rfind(b"\n", 0, begin) + 1
        if not self.source.content[line:begin].strip():
            before = self.source.text(0, line)
            begin = line
            if found := _COMMENT.search(before):
                begin -= len(found[0].encode("utf-8", "surrogateescape"))
        rest = re.match(rb"[ \t]*;?[ \t]*(?://[^\n]*)?(?:\r?\n)?(?:[ \t]*\r?\n)?", self.source.content[end:])
        return begin, end + (rest.end() if rest else 0)

    def _unread(self) -> Iterator[Span]:
        """Code between declarations: what libclang gave up on, since a header is missing that only a host has."""
        at, frames = 0, list(self._frames())
        for begin, end in [*sorted(d.place for d in self.main.declarations), (len(self.source.content),) * 2]:
            for piece in _PIECES.finditer(self.source.content, at, max(at, begin)):
                if (
                    piece["code"]
                    and piece["code"].strip(b"; \t\r")
                    and not any(
                        frame[0] < piece.end("code") and piece.start("code") < frame[1] for frame in frames
                    )
                ):
                    yield piece.span("code")
            at = max(at, end)

    def _frames(self) -> Iterator[Span]:
        """The heads and the ends of namespaces around the kernel."""
        for cursor in children(self.source.unit.cursor):
            if kind(cursor) == "NAMESPACE" and self.main.holds(cursor):
                begin, end = span(cursor)
                yield begin, self.source.content.index(b"{", begin) + 1
                yield end - 1, end

    def _unlink(self, text: Text) -> None:
        """``extern "C"`` cannot hold a template."""
        for cursor in children(self.source.unit.cursor):
            begin, end = span(cursor)
            if kind(cursor) != "LINKAGE_SPEC" or not self.main.holds(cursor):
                continue
            head = re.match(rb'extern\s*"C"\s*(\{?)', self.source.content[begin:end])
            if head:
                text.replace((begin, begin + head.end()), "")
                if head[1]:
                    text.replace((end - 1, end), "")

"""A CUDA source as libclang sees it: its kernels, and the text between two places.

No CUDA toolkit is needed: the built-ins are declared in ``builtins.cuh`` next to this file, and what else the file
includes may be missing, since a kernel rarely needs it.
"""

import ctypes
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from autotune.compile import stand_ins
from autotune.errors import FamilyError, UnknownName, UsageError
from autotune.files import pip_install

BUILTINS = Path(__file__).resolve().parent / "builtins.cuh"
_KEEP_GOING = 0x200  # CXTranslationUnit_KeepGoing: a header that is missing does not end the parse
HEADERS = "name the folders of its headers with -I and its macros with -D"
WRAPPED = ("UNEXPOSED_EXPR", "PAREN_EXPR")
_BINARY = ("", ".*", "->*", "*", "/", "%", "+", "-", "<<", ">>", "<=>", "<", ">", "<=", ">=", "==", "!=", "&", "^",
           "|", "&&", "||", "=", "*=", "/=", "%=", "+=", "-=", "<<=", ">>=", "&=", "^=", "|=", ",")  # fmt: skip
_UNARY = ("", "p++", "p--", "++", "--", "&", "*", "+", "-", "~", "!")

Cursor = Any  # clang.cindex.Cursor: the wheel has no types, and it is imported when a kernel is read
Span = tuple[int, int]
_named = cache(Path)  # of few files, and of tens of thousands of macros in them


@cache
def clang() -> Any:
    """The module clang.cindex. Raises UsageError where the wheel is not installed."""
    try:
        from clang import cindex
    except ImportError:
        raise UsageError(f"autotune adopt needs libclang: {pip_install('adopt')}") from None
    cursor, pointer = [cindex.Cursor], ctypes.c_void_p
    for name, arguments, result in (
        ("clang_getCursorBinaryOperatorKind", cursor, ctypes.c_int),
        ("clang_getCursorUnaryOperatorKind", cursor, ctypes.c_int),
        ("clang_getFileLocation", [cindex.SourceLocation, *4 * [pointer]], None),
        ("clang_Cursor_Evaluate", cursor, pointer),
        ("clang_EvalResult_getKind", [pointer], ctypes.c_int),
        ("clang_EvalResult_getAsLongLong", [pointer], ctypes.c_longlong),
        ("clang_EvalResult_dispose", [pointer], None),
    ):
        function = getattr(cindex.conf.lib, name)
        function.argtypes, function.restype = arguments, result
    return cindex


def binary(cursor: Cursor) -> str:
    """The operator of a binary expression; empty where it is none."""
    kind = clang().conf.lib.clang_getCursorBinaryOperatorKind(cursor)
    return _BINARY[kind] if 0 <= kind < len(_BINARY) else ""


def unary(cursor: Cursor) -> str:
    """The operator of a unary expression (``p++`` where it stands behind); empty where it is none."""
    kind = clang().conf.lib.clang_getCursorUnaryOperatorKind(cursor)
    return _UNARY[kind] if 0 <= kind < len(_UNARY) else ""


def kind(cursor: Cursor) -> str:
    """The cursor's kind by its name; ``UNKNOWN`` for one that the bindings have no name for."""
    try:
        return str(cursor.kind.name)
    except ValueError:
        return "UNKNOWN"


def type_kind(cursor: Cursor) -> str:
    """The kind of its type, as TYPEs of libclang are called."""
    return str(cursor.type.get_canonical().kind.name)


def span(cursor: Cursor) -> Span:
    """Where it stands in its file: an argument of a macro where it is written, what a macro's own text has where that
    is expanded."""
    begin, end = ctypes.c_uint(), ctypes.c_uint()
    for location, offset in ((cursor.extent.start, begin), (cursor.extent.end, end)):
        clang().conf.lib.clang_getFileLocation(location, None, None, None, ctypes.byref(offset))
    return begin.value, end.value


def children(cursor: Cursor) -> list[Cursor]:
    return list(cursor.get_children())


def walk(cursor: Cursor, *kinds: str) -> Iterator[Cursor]:
    """The cursor and all that is below it, in the order of the text; of these kinds, where some are named."""
    rest = [cursor]
    while rest:
        here = rest.pop()
        if not kinds or kind(here) in kinds:
            yield here
        rest += reversed(children(here))


def names_in(cursor: Cursor) -> Iterator[Cursor]:
    return walk(cursor, "DECL_REF_EXPR")


def parameters(function: Cursor) -> list[Cursor]:
    return [c for c in children(function) if kind(c) == "PARM_DECL"]


def peel(cursor: Cursor) -> Cursor:
    """Without parentheses and conversions that nobody wrote."""
    while kind(cursor) in WRAPPED and len(children(cursor)) == 1:
        cursor = children(cursor)[0]
    return cursor


def number(cursor: Cursor) -> int | None:
    """The value of an integer expression that the compiler knows."""
    library = clang().conf.lib
    result = library.clang_Cursor_Evaluate(cursor)
    if not result:
        return None
    try:
        is_int = library.clang_EvalResult_getKind(result) == 1  # CXEval_Int
        return int(library.clang_EvalResult_getAsLongLong(result)) if is_int else None
    finally:
        library.clang_EvalResult_dispose(result)


@dataclass
class CudaSource:
    """One file, parsed. Offsets are of bytes, as libclang counts them."""

    path: Path
    content: bytes
    unit: Any = field(repr=False)
    options: Sequence[str] = ()
    edited: Mapping[Path, bytes] = field(default_factory=dict, repr=False)

    def text(self, begin: int = 0, end: int | None = None) -> str:
        return self.content[begin:end].decode("utf-8", "surrogateescape")

    @cached_property
    def files(self) -> dict[Path, bytes]:
        """What was read: the file that was named and those that it includes from where they lie, first this one."""
        included = (Path(inclusion.include.name) for inclusion in self.unit.get_includes())
        library = stand_ins.cuda_headers().parent
        own = (path for path in included if path != BUILTINS and not path.is_relative_to(library))
        named = [self.path, Path(self.unit.spelling), *own]
        known = {**self.edited, self.path: self.content}
        return {path: known.get(path) or path.read_bytes() for path in dict.fromkeys(named)}

    def open_other(self, path: Path) -> "CudaSource":
        """Another file of the same parse."""
        return CudaSource(path, self.files[path], self.unit, self.options, self.edited)

    def with_text(self, text: str) -> "CudaSource":
        """The same parsed again with other text in this file, which stays as it is on disk."""
        edited = {**self.edited, self.path: text.encode("utf-8", "surrogateescape")}
        unit = _parse(Path(self.unit.spelling), self.options, edited)
        return CudaSource(self.path, edited[self.path], unit, self.options, edited)

    def line(self, offset: int) -> int:
        return self.content.count(b"\n", 0, offset) + 1

    def is_here(self, cursor: Any) -> bool:
        """Whether it, a cursor or a message, stands in this file, and not in one that it includes."""
        file = cursor.location.file
        return file is not None and _named(file.name) == self.path

    @cached_property
    def macros(self) -> tuple[Span, ...]:
        """Where macros are expanded in this file."""
        found = (c for c in children(self.unit.cursor) if kind(c) == "MACRO_INSTANTIATION")
        return tuple(span(c) for c in found if self.is_here(c))

    def macro_around(self, place: Span) -> Span | None:
        """The expansion that wrote what is at the place: one that begins there. What is behind a macro's name is an
        argument, which stands in the file."""
        return next((m for m in self.macros if m[0] == place[0] and place[1] <= m[1]), None)

    @cached_property
    def functions(self) -> dict[str, Cursor]:
        """The functions defined in this file, by name: of several, the kernel, which a host's function may share its
        name with."""
        found = [c for c in self.declarations if c.is_definition()]
        return {c.spelling: c for c in sorted(found, key=lambda c: has_attribute(c, "CUDAGLOBAL_ATTR"))}

    @cached_property
    def declarations(self) -> list[Cursor]:
        """The functions that this file defines or announces."""

        def walk_within(parent: Cursor) -> Iterator[Cursor]:
            for cursor in children(parent):
                if kind(cursor) in ("LINKAGE_SPEC", "NAMESPACE", "UNEXPOSED_DECL"):
                    yield from walk_within(cursor)
                elif kind(cursor) in ("FUNCTION_DECL", "FUNCTION_TEMPLATE") and self.is_here(cursor):
                    yield cursor

        return list(walk_within(self.unit.cursor))

    @cached_property
    def kernels(self) -> dict[str, Cursor]:
        return {name: c for name, c in self.functions.items() if has_attribute(c, "CUDAGLOBAL_ATTR")}

    def find_source_of(self, name: str) -> "CudaSource":
        """The file that has the kernel of that name: this one, or one that it includes."""
        if not name or name in self.kernels:
            return self
        for path in self.files:
            if name in (other := self.open_other(path)).kernels:
                return other
        return self

    def kernel(self, name: str = "") -> Cursor:
        """The one of that name, or the only one. Raises FamilyError, UnknownName, UsageError."""
        is_missing = name not in self.kernels if name else not self.kernels
        if is_missing and (mistakes := self._find_unread(name)):
            what = f"kernel {name}" if name else "a kernel"
            raise FamilyError(f"{mistakes[0]}: {what} cannot be read; {HEADERS}")
        known = [*self.kernels]
        if not known:
            raise FamilyError(
                f"{self.path}: no __global__ function is defined here; name the file that has it"
            )
        if not name and len(known) > 1:
            raise UsageError(f"{self.path} has {len(known)} kernels: add --kernel {'|'.join(known)}")
        if name and name not in known:
            raise UnknownName("kernel", name, known, str(self.path))
        return self.kernels[name or known[0]]

    def _find_unread(self, name: str) -> list[str]:
        """What is wrong with a kernel of that name (of any, where there is none) that libclang gave up on."""
        text = self.text()
        found = re.search(rf"\b__global__\b[^;{{}}]*?\b{name or '[A-Za-z_]+'}\s*\([^;{{}}]*", text)
        if not found:
            return []
        begin, end = (len(text[:n].encode("utf-8", "surrogateescape")) for n in found.span())
        told = sorted(self.find_mistakes((begin, end)), key=lambda said: "incomplete type 'void'" in said)
        return told or [f"{self.path}:{self.line(begin)}: the preprocessor excludes it"]

    def find_mistakes(self, within: Span) -> list[str]:
        """What could not be parsed there, as file:line: message."""
        begin, end = within
        return [
            f"{self.path}:{told.location.line}: {told.spelling}"
            for told in self.unit.diagnostics
            if told.severity >= 3 and self.is_here(told) and begin <= told.location.offset < end
        ]


def has_attribute(cursor: Cursor, attribute: str) -> bool:
    return any(kind(child) == attribute for child in children(cursor))


def read_source(path: Path, options: Sequence[str] = ()) -> CudaSource:
    """Parse ``path``; ``options`` are -D and -I. Raises UsageError when it is not there, FamilyError when it cannot
    be parsed at all."""
    if not path.is_file():
        raise UsageError(f"{path} does not exist: name a CUDA source file")
    return CudaSource(path, path.read_bytes(), _parse(path, options, {}), options)


def _parse(path: Path, options: Sequence[str], edited: Mapping[Path, bytes]) -> Any:
    cindex = clang()
    arguments = ["-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=sm_90",
                 "-std=c++17", "-nostdinc", "-ferror-limit=0", "-w", "-D__CUDACC__", "-DNDEBUG",
                 f"-I{stand_ins.cuda_headers()}", "-include", str(BUILTINS), *options]  # fmt: skip
    flags = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD | _KEEP_GOING
    try:
        files = [(str(name), content) for name, content in edited.items()]
        return cindex.Index.create().parse(str(path), args=arguments, options=flags, unsaved_files=files)
    except cindex.TranslationUnitLoadError:
        raise FamilyError(f"{path}: libclang cannot read it: it crashed, or ran out of memory") from None


def identifiers(text: str) -> set[str]:
    """Every word of C++ text that may be a name; those in comments and strings too."""
    return set(re.findall(r"[A-Za-z_]\w*", text))

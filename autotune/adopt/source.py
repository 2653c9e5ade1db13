"""A CUDA source as libclang sees it: its kernels, and the text between two places.

No CUDA toolkit is needed: the built-ins are declared in ``builtins.cuh`` beside this file, and what else the file
includes may be missing, since a kernel rarely needs it.
"""

import ctypes
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from autotune.errors import FamilyError, UnknownName, UsageError
from autotune.files import pip_install

BUILTINS = Path(__file__).resolve().parent / "builtins.cuh"
_KEEP_GOING = 0x200  # CXTranslationUnit_KeepGoing: a header that is missing does not end the parse
HEADERS = "name the folders of its headers with -I and its macros with -D"
_BINARY = ("", ".*", "->*", "*", "/", "%", "+", "-", "<<", ">>", "<=>", "<", ">", "<=", ">=", "==", "!=", "&", "^",
           "|", "&&", "||", "=", "*=", "/=", "%=", "+=", "-=", "<<=", ">>=", "&=", "^=", "|=", ",")  # fmt: skip
_UNARY = ("", "p++", "p--", "++", "--", "&", "*", "+", "-", "~", "!")

Cursor = Any  # clang.cindex.Cursor: the wheel has no types, and it is imported when a kernel is read
Span = tuple[int, int]


def clang() -> Any:
    """The module clang.cindex. Raises UsageError where the wheel is not installed."""
    try:
        from clang import cindex
    except ImportError:
        raise UsageError(f"autotune adopt needs libclang: {pip_install('adopt')}") from None
    library = cindex.conf.lib
    for name in ("clang_getCursorBinaryOperatorKind", "clang_getCursorUnaryOperatorKind"):
        function = getattr(library, name)
        function.argtypes, function.restype = [cindex.Cursor], ctypes.c_int
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


def span(cursor: Cursor) -> Span:
    """Where it stands in its file: an argument of a macro where it is written, what a macro's own text has where that
    is expanded."""
    extent = cursor.extent
    return _offset(extent.start), _offset(extent.end)


def _offset(location: Any) -> int:
    function = clang().conf.lib.clang_getFileLocation
    function.argtypes = [clang().SourceLocation, *(4 * [ctypes.c_void_p])]
    offset = ctypes.c_uint()
    function(location, None, None, None, ctypes.byref(offset))
    return offset.value


def children(cursor: Cursor) -> list[Cursor]:
    return list(cursor.get_children())


def walk(cursor: Cursor) -> Iterator[Cursor]:
    """The cursor and all that is below it, in the order of the text."""
    yield cursor
    for child in cursor.get_children():
        yield from walk(child)


def bare(cursor: Cursor) -> Cursor:
    """Without parentheses and conversions that nobody wrote."""
    while kind(cursor) in ("PAREN_EXPR", "UNEXPOSED_EXPR") and len(children(cursor)) == 1:
        cursor = children(cursor)[0]
    return cursor


def number(cursor: Cursor) -> int | None:
    """The value of an integer expression that the compiler knows."""
    library = clang().conf.lib
    library.clang_Cursor_Evaluate.argtypes = [clang().Cursor]
    library.clang_Cursor_Evaluate.restype = ctypes.c_void_p
    library.clang_EvalResult_getKind.argtypes = [ctypes.c_void_p]
    library.clang_EvalResult_getAsLongLong.argtypes = [ctypes.c_void_p]
    library.clang_EvalResult_getAsLongLong.restype = ctypes.c_longlong
    library.clang_EvalResult_dispose.argtypes = [ctypes.c_void_p]
    result = library.clang_Cursor_Evaluate(cursor)
    if not result:
        return None
    try:
        if library.clang_EvalResult_getKind(result) != 1:  # CXEval_Int
            return None
        return int(library.clang_EvalResult_getAsLongLong(result))
    finally:
        library.clang_EvalResult_dispose(result)


@dataclass
class Source:
    """One file, parsed. Offsets are of bytes, as libclang counts them."""

    path: Path
    content: bytes
    unit: Any = field(repr=False)
    options: Sequence[str] = ()
    edited: Mapping[Path, bytes] = field(default_factory=dict, repr=False)

    def text(self, begin: int, end: int) -> str:
        return self.content[begin:end].decode("utf-8", "surrogateescape")

    @cached_property
    def files(self) -> dict[Path, bytes]:
        """What was read: the file that was named and those that it includes from where they lie, first this one."""
        root = Path(self.unit.spelling)
        included = (Path(inclusion.include.name) for inclusion in self.unit.get_includes())
        paths = dict.fromkeys([self.path, root, *(path for path in included if path != BUILTINS)])
        return {path: self.content if path == self.path else self._content(path) for path in paths}

    def _content(self, path: Path) -> bytes:
        return self.edited.get(path) or path.read_bytes()

    def other(self, path: Path) -> "Source":
        """Another file of the same parse."""
        return Source(path, self.files[path], self.unit, self.options, self.edited)

    def with_text(self, content: bytes) -> "Source":
        """The same parsed again with other text in this file, which stays as it is on disk."""
        root = Path(self.unit.spelling)
        edited = {**self.edited, self.path: content}
        unit = _parsed(root, self.options, edited)
        return Source(self.path, content, unit, self.options, edited)

    def line(self, offset: int) -> int:
        return self.content.count(b"\n", 0, offset) + 1

    def is_here(self, cursor: Cursor) -> bool:
        """Whether it stands in this file, and not in one that it includes."""
        file = cursor.location.file
        return file is not None and Path(file.name) == self.path

    @cached_property
    def macros(self) -> tuple[Span, ...]:
        """Where macros are expanded in this file."""
        found = (c for c in self.unit.cursor.get_children() if kind(c) == "MACRO_INSTANTIATION")
        return tuple(span(c) for c in found if self.is_here(c))

    def macro_around(self, place: Span) -> Span | None:
        """The expansion that wrote what is at the place: one that begins there. What lies behind a macro's name is an
        argument, which stands in the file."""
        return next((m for m in self.macros if m[0] == place[0] and place[1] <= m[1]), None)

    @cached_property
    def functions(self) -> dict[str, Cursor]:
        """The functions defined in this file, by name: of several, the kernel, which a host's function may share its
        name with."""
        found = [c for c in self._declarations(self.unit.cursor) if c.is_definition()]
        return {c.spelling: c for c in sorted(found, key=lambda c: has_attribute(c, "CUDAGLOBAL_ATTR"))}

    def _declarations(self, parent: Cursor) -> Iterator[Cursor]:
        for cursor in parent.get_children():
            if kind(cursor) in ("LINKAGE_SPEC", "NAMESPACE", "UNEXPOSED_DECL"):
                yield from self._declarations(cursor)
            elif kind(cursor) in ("FUNCTION_DECL", "FUNCTION_TEMPLATE") and self.is_here(cursor):
                yield cursor

    @cached_property
    def kernels(self) -> dict[str, Cursor]:
        return {name: c for name, c in self.functions.items() if has_attribute(c, "CUDAGLOBAL_ATTR")}

    def having(self, name: str) -> "Source":
        """The file that has the kernel of that name: this one, or one that it includes."""
        if not name or name in self.kernels:
            return self
        for path in self.files:
            if name in (other := self.other(path)).kernels:
                return other
        return self

    def kernel(self, name: str = "") -> Cursor:
        """The one of that name, or the only one. Raises FamilyError, UnknownName, UsageError."""
        is_missing = name not in self.kernels if name else not self.kernels
        if is_missing and (mistakes := self._unread(name)):
            raise FamilyError(
                f"{mistakes[0]}: {f'kernel {name}' if name else 'a kernel'} cannot be read; {HEADERS}"
            )
        if not self.kernels:
            raise FamilyError(
                f"{self.path}: no __global__ function is defined here; name the file that has it"
            )
        if not name and len(self.kernels) > 1:
            raise UsageError(
                f"{self.path} has {len(self.kernels)} kernels: add --kernel {'|'.join(self.kernels)}"
            )
        name = name or next(iter(self.kernels))
        if name not in self.kernels:
            raise UnknownName("kernel", name, self.kernels, str(self.path))
        return self.kernels[name]

    def _unread(self, name: str) -> list[str]:
        """What is wrong with a kernel of that name (of any, where there is none) that libclang gave up on."""
        text = self.text(0, len(self.content))
        found = re.search(rf"\b__global__\b[^;{{}}]*?\b{name or '[A-Za-z_]+'}\s*\([^;{{}}]*", text)
        within = [len(text[:n].encode("utf-8", "surrogateescape")) for n in found.span()] if found else [0, 0]
        told = sorted(
            self.mistakes((within[0], within[1])), key=lambda said: "incomplete type 'void'" in said
        )
        left_out = f"{self.path}:{self.line(within[0])}: the preprocessor leaves it out"
        return told or ([left_out] if found else [])

    def mistakes(self, within: Span) -> list[str]:
        """What could not be parsed there, as file:line: message."""
        begin, end = within
        found = []
        for told in self.unit.diagnostics:
            here = told.location.file is not None and Path(told.location.file.name) == self.path
            if told.severity >= 3 and here and begin <= told.location.offset < end:
                found.append(f"{self.path}:{told.location.line}: {told.spelling}")
        return found


def has_attribute(cursor: Cursor, attribute: str) -> bool:
    return any(kind(child) == attribute for child in cursor.get_children())


def read_source(path: Path, options: Sequence[str] = ()) -> Source:
    """Parse ``path``; ``options`` are -D and -I. Raises UsageError when it is not there, FamilyError when it cannot
    be parsed at all."""
    if not path.is_file():
        raise UsageError(f"{path} is not there: name a CUDA source")
    return Source(path, path.read_bytes(), _parsed(path, options, {}), options)


def _parsed(path: Path, options: Sequence[str], edited: Mapping[Path, bytes]) -> Any:
    cindex = clang()
    arguments = ["-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=sm_90",
                 "-std=c++17", "-nostdinc", "-ferror-limit=0", "-w", "-D__CUDACC__", "-DNDEBUG",
                 "-include", str(BUILTINS), *options]  # fmt: skip
    flags = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD | _KEEP_GOING
    try:
        files = [(str(name), content) for name, content in edited.items()]
        return cindex.Index.create().parse(str(path), args=arguments, options=flags, unsaved_files=files)
    except cindex.TranslationUnitLoadError:
        raise FamilyError(f"{path}: libclang cannot read it: it crashed, or ran out of memory") from None


def identifiers(text: str) -> set[str]:
    """Every word of C++ text that may be a name; those in comments and strings too."""
    return set(re.findall(r"[A-Za-z_]\w*", text))

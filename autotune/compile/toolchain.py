"""What a compiler is given and gives: variants as a batch, a binary with its symbols, the protocol between, and the
program that a compiler is, with its time limit."""

import os
import re
import shlex
import struct
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from autotune.errors import CompilerError, FamilyError


@dataclass(frozen=True)
class VariantSource:
    """What a compiler needs of one variant. ``struct`` is C++ text that defines ``struct <name> {...};``;
    ``kernels`` are the templates to instantiate with it. ``key`` is a sha256 over all that decides the
    machine code except the toolchain (struct, kernels, kernel source with every header). ``checks`` is C++
    text that goes ahead of the struct and makes no code.

    ``instances`` say how a kernel is named in C++ where that is not ``<kernel><<name>>``. A variant is plain when the
    source is compiled unmodified: ``headers`` of the library and ``struct`` then go ahead of it, ``checks`` behind.
    ``symbols`` are the variables of the source that are filled from outside, ``options`` what it adds to the batch's,
    ``numbers`` constant expressions by name, in which ``Policy`` is the struct: their values are read from the binary.
    """

    key: str
    name: str
    struct: str
    kernels: tuple[str, ...]
    checks: str = ""
    instances: tuple[tuple[str, str], ...] = ()
    is_plain: bool = False
    headers: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    numbers: tuple[tuple[str, str], ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """What a binary keeps, read or not: the ``symbols``, and the variable that has the ``numbers``."""
        return (*self.symbols, f"numbers_{self.name}") if self.numbers else self.symbols

    @property
    def numbers_text(self) -> str:
        """C++ text that defines it: half of the key, by which ``numbers_in`` finds it, then the values."""
        if not self.numbers:
            return ""
        texts = [re.sub(r"\bPolicy\b", self.name, text) for _, text in self.numbers]
        values = [f"{word:#x}ull" for word in struct.unpack("<2Q", self._mark)]
        values += [f"static_cast<unsigned long long>({text})" for text in texts]
        defined = f"{self.variables[-1]}[] = {{{', '.join(values)}}}"
        return f'extern "C" {{\n__device__ unsigned long long {defined};\n}}\n'

    def numbers_in(self, image: bytes) -> dict[str, int]:
        """The values of the ``numbers`` in a binary of this variant."""
        if not self.numbers:
            return {}
        found = struct.unpack_from(f"<{len(self.numbers)}Q", image, image.index(self._mark) + len(self._mark))
        return {name: value for (name, _), value in zip(self.numbers, found, strict=True)}

    @property
    def _mark(self) -> bytes:
        return bytes.fromhex(self.key[:32])

    def instance(self, kernel: str) -> str:
        """The kernel as an expression names it."""
        return dict(self.instances).get(kernel, f"{kernel}<{self.name}>")

    @property
    def is_alone(self) -> bool:
        """Whether it needs a unit of its own, since what it defines is not kept apart from another variant's."""
        return self.is_plain or bool(self.instances)


@dataclass(frozen=True)
class Batch:
    """Variants of one family for one compiler call. ``source`` is the family's .cu, ``include_dirs`` the
    layout library's folders, ``options`` what the family adds to the compiler's command line. ``sources`` are the files
    that the variants' keys were made from, each with the sha256 of its bytes; empty where nobody needs to know."""

    source: Path
    include_dirs: tuple[Path, ...]
    variants: tuple[VariantSource, ...]
    options: tuple[str, ...] = ()
    sources: tuple[tuple[Path, str], ...] = ()

    def select(self, variants: Sequence[VariantSource]) -> "Batch":
        return replace(self, variants=tuple(variants))

    @property
    def units(self) -> tuple["Batch", ...]:
        """What goes into one compiler call each: all that has the same options, or each variant alone."""
        if any(variant.is_alone for variant in self.variants):
            return tuple(self.select([variant]) for variant in self.variants)
        asked = dict.fromkeys(variant.options for variant in self.variants)
        return tuple(self.select([v for v in self.variants if v.options == options]) for options in asked)

    @property
    def command_options(self) -> tuple[str, ...]:
        """What a unit adds to the compiler's command line."""
        return (*self.options, *(self.variants[0].options if self.variants else ()))


class BuildError(Exception):
    """A batch did not compile; the text is the compiler's message."""


CALL_SECONDS = 600.0  # that a compiler call may take
TOO_LONG = f"the compiler did not finish within {CALL_SECONDS:g} s and was ended"


class CallTimeout(BuildError, CompilerError):
    """A compiler call took longer than it may."""


@dataclass(frozen=True)
class Built:
    """One compiler call's result: the binary, and per variant key and kernel the symbol to look up and the
    static figures (the fields of KernelProfile that the compiler knows). ``read`` are the files that the compiler
    says it read, without those that belong to it; empty where it does not say."""

    image: bytes
    symbols: Mapping[str, Mapping[str, str]]
    figures: Mapping[str, Mapping[str, Mapping[str, int]]]
    read: tuple[Path, ...] = ()


class Toolchain(Protocol):
    """A compiler for one target. ``identity`` names compiler, version, target and fixed options."""

    @property
    def identity(self) -> str: ...

    @property
    def suffix(self) -> str: ...

    def build(self, batch: Batch) -> Built: ...


@dataclass(frozen=True)
class Compiled:
    """One variant in the cache. ``image`` is a file (cubin or shared library) that may hold other variants
    too; ``numbers`` are those that the source exports."""

    key: str
    image: Path
    symbols: Mapping[str, str]
    figures: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    cached: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class CompileFailure:
    key: str
    message: str


def translation_unit(batch: Batch, text: str = "") -> str:
    """One of ``Batch.units`` as CUDA source: the family's .cu with AUTOTUNE_VARIANTS defined, then the variants'
    structs; ahead of it what one variant of a plain source defines. ``text`` takes the place of the .cu."""
    source = text or include(batch.source.resolve())
    if batch.variants and batch.variants[0].is_plain:
        (variant,) = batch.variants
        headers = "".join(f'#include "{name}"\n' for name in variant.headers)
        return f"#define AUTOTUNE_VARIANTS\n{headers}{variant.struct}{source}{variant.checks}{variant.numbers_text}"
    structs = "\n".join(
        f"{variant.checks}{variant.struct}{variant.numbers_text}" for variant in batch.variants
    )
    return f"#define AUTOTUNE_VARIANTS\n{source}{structs}\n"


def include(source: Path) -> str:
    """The directive that includes a file. Raises FamilyError for a path that C++ cannot write."""
    text = source.as_posix()
    if any(character in text for character in '"\n\r'):
        raise FamilyError(
            f"the source path {text!r} holds a quote or a line's end, which no #include can name: rename that folder"
        )
    return f'#include "{text}"\n'


def read_dependencies(dependencies: Path, own: Iterable[Path] = ()) -> tuple[Path, ...]:
    """The files in a compiler's list of dependencies (-MMD), but for those at or below ``own``, and those that the
    environment gives the compiler (CPATH). None where there is no list."""
    try:
        rule = dependencies.read_text(errors="surrogateescape")
    except OSError:
        return ()
    given = [os.environ.get(name, "") for name in ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")]
    folders = [*own, *(Path(place) for text in given for place in text.split(os.pathsep) if place)]
    left_out = [place.resolve() for place in folders]
    words = shlex.split(rule.replace("\\\n", " ").replace("$$", "$").replace("'", r"\'"))
    files = [(dependencies.parent / word).resolve() for word in words if not word.endswith(":")]
    return tuple(file for file in files if not any(file.is_relative_to(place) for place in left_out))


def run_compiler(command: Sequence[str], folder: str | None = None) -> tuple[int, str, str]:
    """Exit status, output and messages. Raises CompilerError for a command that cannot be run, and CallTimeout."""
    try:  # messages are kept and searched
        from autotune.processes import program  # which brings multiprocessing

        done = program(
            command, seconds=CALL_SECONDS, folder=folder, environment={**os.environ, "LC_ALL": "C"}
        )
    except subprocess.TimeoutExpired:
        raise CallTimeout(f"{shlex.join(command[:1])}: {TOO_LONG}") from None
    except OSError as error:
        raise CompilerError(f"cannot run {shlex.join(command[:1])}: {error.strerror or error}") from error
    return done.returncode, done.stdout, done.stderr

"""What a compiler is given and gives: variants as a batch, a binary with its symbols, and the protocol between."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

__all__ = [
    "Batch",
    "BuildError",
    "Built",
    "CompileFailure",
    "Compiled",
    "Toolchain",
    "VariantSource",
    "translation_unit",
]


@dataclass(frozen=True)
class VariantSource:
    """What a compiler needs of one variant. ``struct`` is C++ text that defines ``struct <name> {...};``;
    ``kernels`` are the templates to instantiate with it. ``key`` is a sha256 over all that decides the
    machine code except the toolchain (struct, kernels, kernel source with every header)."""

    key: str
    name: str
    struct: str
    kernels: tuple[str, ...]


@dataclass(frozen=True)
class Batch:
    """Variants of one family for one compiler call. ``source`` is the family's .cu, ``include_dirs`` the
    layout library's folders, ``options`` what the family adds to the compiler's command line."""

    source: Path
    include_dirs: tuple[Path, ...]
    variants: tuple[VariantSource, ...]
    options: tuple[str, ...] = ()

    def of(self, variants: Sequence[VariantSource]) -> "Batch":
        return Batch(self.source, self.include_dirs, tuple(variants), self.options)


class BuildError(Exception):
    """A batch did not compile; the text is the compiler's message."""


@dataclass(frozen=True)
class Built:
    """One compiler call's result: the binary, and per variant key and kernel the symbol to look up and the
    static figures (the fields of trial.KernelProfile that the compiler knows)."""

    image: bytes
    symbols: Mapping[str, Mapping[str, str]]
    figures: Mapping[str, Mapping[str, Mapping[str, int]]]


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
    too."""

    key: str
    image: Path
    symbols: Mapping[str, str]
    figures: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    cached: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class CompileFailure:
    key: str
    message: str


def translation_unit(batch: Batch) -> str:
    """A batch as CUDA source: the family's .cu with AUTOTUNE_VARIANTS defined, then the variants' structs."""
    structs = "\n".join(variant.struct for variant in batch.variants)
    return f'#define AUTOTUNE_VARIANTS\n#include "{batch.source.resolve().as_posix()}"\n{structs}\n'

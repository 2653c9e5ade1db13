"""The static pass: registers, spills, shared memory and theoretical occupancy of every configuration, for any
architecture, with no GPU and no driver."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from autotune.cache import Cache
from autotune.compiler import compile_many
from autotune.device import Device
from autotune.errors import FamilyError, UnknownName
from autotune.family import Family
from autotune.nvcc import Nvcc
from autotune.nvrtc import Nvrtc
from autotune.profile import profiles
from autotune.space import Configuration
from autotune.static_hints import better_neighbours, registers_to_next_block
from autotune.toolchain import CompileFailure, Toolchain
from autotune.trial import KernelProfile
from autotune.variant import Variant, batch

__all__ = ["StaticProfile", "static_sweep", "static_toolchain", "write_static"]

_COMPILERS = ("nvrtc", "nvcc")
_BATCH_SIZE = 24
_HINTS = ("registers_to_next_block", "dominated_by", "dominated_because")


@dataclass(frozen=True)
class StaticProfile:
    """What the compiler says of one configuration for one architecture: a profile a kernel, or why it does not
    compile."""

    arch: str
    configuration: Configuration
    kernels: tuple[KernelProfile, ...] = ()
    message: str = ""


def static_toolchain(arch: str, compiler: str = "") -> Toolchain:
    """NVRTC where it is installed, else nvcc. Raises UnknownName, CompilerError."""
    if compiler not in ("", *_COMPILERS):
        raise UnknownName("compiler", compiler, _COMPILERS)
    has_nvrtc = find_spec("cuda") is not None and find_spec("cuda.bindings") is not None
    return Nvcc(arch) if compiler == "nvcc" or (not compiler and not has_nvrtc) else Nvrtc(arch)


def static_sweep(
    family: Family, configurations: Sequence[Configuration], toolchain: Toolchain, arch: str, cache: Cache,
    processes: int,
) -> Iterator[StaticProfile]:  # fmt: skip
    """Compile everything, run nothing. Sizes of inputs are not known here, so a family's block shape may depend on
    policies and options only. Raises FamilyError when it does not, CompilerError."""
    options = family.chosen_options({})
    variants = tuple(Variant(family, c, tuple(options.items())) for c in configurations)
    device = Device(kind="cuda", name=arch, arch=arch)
    chunks = compile_many(batch(family, variants), toolchain, cache, processes, _BATCH_SIZE)
    for variant, compiled in zip(variants, (c for chunk in chunks for c in chunk), strict=True):
        if isinstance(compiled, CompileFailure):
            yield StaticProfile(arch, variant.configuration, message=compiled.message)
            continue
        try:
            found = profiles(variant, compiled, {**options, **variant.configuration}, device)
        except FamilyError as problem:
            raise FamilyError(f"{problem}: a static pass knows policies and options, not sizes") from None
        yield StaticProfile(arch, variant.configuration, found)


def write_static(family: Family, rows: Sequence[StaticProfile], path: Path) -> None:
    """``static.csv``: a row per architecture, configuration and kernel, with what the figures suggest. Raises
    StoreError."""
    import pandas as pd

    from autotune.report.results import clean, csv_text, write_text

    figures = list(KernelProfile.__dataclass_fields__)
    taken = {
        "family",
        "arch",
        "configuration",
        "source_digest",
        "space_digest",
        "state",
        "reason",
        *figures,
        *_HINTS,
    }
    better = {
        arch: better_neighbours({r.configuration: r.kernels for r in rows if r.arch == arch and r.kernels})
        for arch in dict.fromkeys(r.arch for r in rows)
    }
    table = []
    for row in rows:
        base: dict[str, object] = {
            "family": family.name,
            "arch": row.arch,
            "configuration": row.configuration.id,
            "source_digest": family.source_digest,
            "space_digest": family.space_digest,
        }
        for name, value in row.configuration.items():
            base[f"policy_{name}" if name in taken else name] = value
        if row.message:
            table.append({**base, "state": "compile_failed", "reason": clean(row.message)})
        above = better[row.arch].get(row.configuration)
        for kernel in row.kernels:
            hints = (
                registers_to_next_block(row.arch, kernel),
                above.configuration.id if above else None,
                above.why if above else None,
            )
            table.append(
                {
                    **base,
                    "state": "compiled",
                    "reason": "",
                    **asdict(kernel),
                    **dict(zip(_HINTS, hints, strict=True)),
                }
            )
    columns = dict.fromkeys(name for line in table for name in line)
    frame = pd.DataFrame(table, columns=list(columns))
    for name in (*figures, _HINTS[0]):
        if name in frame and name not in ("kernel", "occupancy", "limited_by"):
            frame[name] = frame[name].astype(
                "Int64"
            )  # a configuration that does not compile must not make 32 32.0
    write_text(path, csv_text(frame))

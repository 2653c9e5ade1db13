"""The static pass: registers, spills, shared memory and theoretical occupancy of every configuration, for any
architecture, with no GPU and no driver."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from autotune.cache import Cache
from autotune.compiler import compile_many
from autotune.device import Device
from autotune.errors import AutotuneError, UnknownName
from autotune.family import Family
from autotune.nvcc import Nvcc
from autotune.nvrtc import Nvrtc
from autotune.profile import profiles
from autotune.space import Configuration
from autotune.static_hints import better_neighbours, registers_to_next_block
from autotune.toolchain import CompileFailure, Toolchain
from autotune.trial import KernelProfile
from autotune.variant import Variant, batch
from autotune.workload import load, prepare

__all__ = ["OF_THE_BLOCK", "Known", "StaticProfile", "static_sweep", "static_toolchain", "write_static"]

_COMPILERS = ("nvrtc", "nvcc")
_BATCH_SIZE = 24
OF_THE_BLOCK = ("block_size", "dynamic_shared_bytes", "blocks_per_sm", "occupancy", "limited_by")
_HINTS = ("registers_to_next_block", "dominated_by", "dominated_because")


@dataclass(frozen=True)
class StaticProfile:
    """What the compiler says of one configuration for one architecture: a profile a kernel, or why it does not
    compile."""

    arch: str
    configuration: Configuration
    kernels: tuple[KernelProfile, ...] = ()
    message: str = ""


@dataclass(frozen=True)
class Known:
    """What a static pass knows besides the policies: the options, and sizes and scalars as far as they are known.
    ``note`` says what is unknown for want of an input."""

    options: Mapping[str, str | int]
    numbers: Mapping[str, float]
    note: str = ""

    def names(self, configuration: Configuration) -> dict[str, Any]:
        return {**self.options, **self.numbers, **configuration}

    @classmethod
    def of(cls, family: Family, workload: str, root: Path) -> "Known":
        """By the inputs of the workload, or of the default one where blocks depend on sizes: arrays are made only then.
        Raises UnknownName, WorkloadError for a ``workload`` that is named and cannot be read."""
        options, policies = family.chosen_options({}), {p.name for p in family.space.policies}
        wanted = frozenset().union(*(kernel.block_names for kernel in family.kernels.values()))
        wanted -= {*options, *policies, *family.fixed_sizes}
        if not wanted and not workload:
            return cls(options, family.fixed_sizes)
        try:
            inputs = prepare(family, load(family, workload), root)
        except AutotuneError as problem:
            if workload:
                raise
            note = f"blocks depend on {', '.join(sorted(wanted))}, which no input gives here, so shared memory and "
            note += f"occupancy are left blank; name a workload with --workload ({problem})"
            return cls(options, family.fixed_sizes, note)
        return cls(inputs.options, {**inputs.sizes, **inputs.scalars})


def static_toolchain(arch: str, compiler: str = "") -> Toolchain:
    """NVRTC where it is installed, else nvcc. Raises UnknownName, CompilerError."""
    if compiler not in ("", *_COMPILERS):
        raise UnknownName("compiler", compiler, _COMPILERS)
    has_nvrtc = find_spec("cuda") is not None and find_spec("cuda.bindings") is not None
    return Nvcc(arch) if compiler == "nvcc" or (not compiler and not has_nvrtc) else Nvrtc(arch)


def static_sweep(
    family: Family, configurations: Sequence[Configuration], toolchain: Toolchain, arch: str, cache: Cache,
    processes: int, known: Known | None = None,
) -> Iterator[StaticProfile]:  # fmt: skip
    """Compile everything, run nothing. Raises CompilerError."""
    known = known or Known(family.chosen_options({}), {})
    variants = tuple(Variant(family, c, tuple(known.options.items())) for c in configurations)
    device = Device(kind="cuda", name=arch, arch=arch)
    chunks = compile_many(batch(family, variants), toolchain, cache, processes, _BATCH_SIZE)
    for variant, compiled in zip(variants, (c for chunk in chunks for c in chunk), strict=True):
        if isinstance(compiled, CompileFailure):
            yield StaticProfile(arch, variant.configuration, message=compiled.message)
            continue
        found = profiles(variant, compiled, known.names(variant.configuration), device)
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
        arch: better_neighbours(
            {
                r.configuration: r.kernels
                for r in rows
                if r.arch == arch and r.kernels and all(p.limited_by for p in r.kernels)
            }
        )
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
                registers_to_next_block(row.arch, kernel) if kernel.limited_by else None,
                above.configuration.id if above else None,
                above.why if above else None,
            )
            table.append(
                {
                    **base,
                    "state": "compiled",
                    "reason": "",
                    **_figures(kernel),
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


def _figures(profile: KernelProfile) -> dict[str, Any]:
    """Its columns; what depends on a block that is not known is blank."""
    found = asdict(profile)
    return found if profile.limited_by else found | dict.fromkeys(OF_THE_BLOCK)

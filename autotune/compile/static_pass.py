"""The static pass: registers, spills, shared memory and theoretical occupancy of every configuration, for any
architecture, with no GPU and no driver."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from autotune.compile.batches import compile_many
from autotune.compile.cache import Cache
from autotune.compile.nvcc import Nvcc
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.occupancy_model import occupancy
from autotune.compile.profile import KernelProfile, profiles
from autotune.compile.toolchain import CompileFailure, Toolchain
from autotune.compile.variant import Variant, batch
from autotune.declaration import Configuration, Family, prepare
from autotune.declaration import load_workload as load
from autotune.errors import AutotuneError, UnknownName
from autotune.hardware import Device

BLOCK_SIZES = tuple(range(32, 1025, 32))


def occupancy_curve(arch: str, registers: int, shared_bytes: int) -> list[float]:
    """Return the theoretical occupancy (0..1) at each of ``BLOCK_SIZES`` threads for a kernel with ``registers`` a
    thread and ``shared_bytes`` a block, as if they were the same at every size. Raises DeviceError."""
    return [occupancy(arch, size, registers, shared_bytes).occupancy for size in BLOCK_SIZES]


_COMPILERS = ("nvrtc", "nvcc")
_BATCH_SIZE = 24
OF_THE_BLOCK = ("block_size", "dynamic_shared_bytes", "blocks_per_sm", "occupancy", "limited_by")


@dataclass(frozen=True)
class StaticProfile:
    """What the compiler says of one configuration for one architecture: a profile a kernel, or why it does not
    compile."""

    arch: str
    configuration: Configuration
    kernels: tuple[KernelProfile, ...] = ()
    message: str = ""


@dataclass(frozen=True)
class StaticInputs:
    """What a static pass knows besides the policies: the options, and sizes and scalars as far as they are known.
    ``note`` says what is unknown for want of an input."""

    options: Mapping[str, str | int]
    numbers: Mapping[str, float]
    note: str = ""

    def names(self, configuration: Configuration) -> dict[str, Any]:
        return {**self.options, **self.numbers, **configuration}

    @classmethod
    def make(
        cls, family: Family, workload: str, root: Path, given: Mapping[str, float] | None = None
    ) -> "StaticInputs":
        """By sizes and scalars that are ``given``, else by the inputs of the workload, or of the default one where
        blocks depend on sizes: arrays are made only then. Raises UnknownName for a number that the family has not, and
        for a ``workload`` that is named and cannot be read; WorkloadError."""
        options, policies = family.choose_options({}), {p.name for p in family.space.policies}
        numbers = _numbers(family, options, given or {})
        wanted = frozenset().union(*(kernel.block_names for kernel in family.kernels.values()))
        wanted -= {*options, *policies, *numbers, *family.compiled}
        if not workload and (given or not wanted):
            return cls(options, numbers, _describe_unknown(family, wanted) if wanted else "")
        try:
            inputs = prepare(family, load(family, workload), root)
        except AutotuneError as problem:
            if workload:
                raise
            return cls(
                options,
                numbers,
                f"{_describe_unknown(family, wanted)}, or name a workload with --workload ({problem})",
            )
        return cls(inputs.options, {**inputs.sizes, **inputs.scalars, **(given or {})})


def _describe_unknown(family: Family, wanted: frozenset[str]) -> str:
    """What is left blank for want of the numbers, and how to give them."""
    said = "; ".join(
        f"{kernel.name}: shared_bytes is {kernel.shared_bytes.text}"
        for kernel in family.kernels.values()
        if kernel.shared_bytes.names & wanted
    )
    return (
        f"blocks depend on {', '.join(sorted(wanted))}, which no input gives here, so shared memory and occupancy are "
        f"left blank{f' ({said})' if said else ''}; give "
        f"{' '.join(f'--size {name}=N' for name in sorted(wanted))} to `autotune show`"
    )


def _numbers(
    family: Family, options: Mapping[str, str | int], given: Mapping[str, float]
) -> dict[str, float]:
    """The sizes that never vary, those and the scalars that are ``given``, and what follows from them. Raises
    UnknownName."""
    for name in given:
        if name not in {*family.extents, *family.scalars}:
            raise UnknownName("size", name, [*family.extents, *family.scalars], f"family {family.name}")
    numbers: dict[str, float] = {**given}
    scalars = {name: scalar.value for name, scalar in family.scalars.items()}
    for name, value in (*family.extents.items(), *scalars.items()):
        if name in numbers or value is None or not value.names <= {*numbers, *options}:
            continue
        made = value.evaluate({**options, **numbers})
        if not isinstance(made, str):
            numbers[name] = made
    return numbers


def static_toolchain(arch: str, compiler: str = "") -> Toolchain:
    """NVRTC where it is installed, else nvcc. Raises UnknownName, CompilerError."""
    if compiler not in ("", *_COMPILERS):
        raise UnknownName("compiler", compiler, _COMPILERS)
    has_nvrtc = find_spec("cuda") is not None and find_spec("cuda.bindings") is not None
    return Nvcc(arch) if compiler == "nvcc" or (not compiler and not has_nvrtc) else Nvrtc(arch)


def static_sweep(
    family: Family, configurations: Sequence[Configuration], toolchain: Toolchain, arch: str, cache: Cache,
    processes: int, known: StaticInputs | None = None,
) -> Iterator[StaticProfile]:  # fmt: skip
    """Compile everything, run nothing. Raises CompilerError."""
    known = known or StaticInputs(family.choose_options({}), {})
    variants = tuple(Variant.make(family, c, known.options) for c in configurations)
    device = Device(kind="cuda", name=arch, arch=arch)
    chunks = compile_many(batch(family, variants), toolchain, cache, processes, _BATCH_SIZE, early=False)
    for variant, compiled in zip(variants, (c for chunk in chunks for c in chunk), strict=True):
        if isinstance(compiled, CompileFailure):
            yield StaticProfile(arch, variant.configuration, message=compiled.message)
            continue
        found = profiles(variant, compiled, known.names(variant.configuration), device)
        yield StaticProfile(arch, variant.configuration, found)

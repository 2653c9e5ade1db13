"""The commands that only show: families, list, show, doctor."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Annotated

import typer
from rich.console import Console

from autotune.cli.options import Data, FamilyArgument, Preset, Set, err, narrowed, one_workload, out
from autotune.compile import (
    OF_THE_BLOCK,
    Cache,
    CompileFailure,
    Known,
    Variant,
    batch,
    compile_batch,
    compile_one,
    default_header,
    default_root,
    profiles,
    ptx,
    sass,
    static_toolchain,
)
from autotune.declaration import Configuration, Family, load_family
from autotune.declaration import families as known_families
from autotune.errors import AutotuneError, CompilerError, UsageError
from autotune.files import bundled, data_root, pip_install, policy_folders
from autotune.hardware import Device
from autotune.layout import DIMENSIONS

_TOOLKIT = "install a CUDA toolkit"


def doctor(out: Console) -> None:
    """Print one row per part: here or missing, which version, and what to do. Never fails."""
    from rich.table import Table

    table = Table("part", "", "what", "how to get it", box=None)
    has_toolkit = _is_here(_nvcc)
    for part, look, remedy in _PARTS:
        try:
            found, advice = look(), remedy.removeprefix(f"{_TOOLKIT}, then ") if has_toolkit else remedy
        except AutotuneError as problem:
            found, advice = "", str(problem)
        table.add_row(part, "ok" if found else "missing", found, "" if found else advice)
    out.print(table)
    out.print(f"\nkernels   {bundled('kernels')}")
    out.print(f"data      {data_root()}")
    out.print(f"cache     {default_root()}")
    out.print("policies  " + ", ".join(str(folder) for folder in policy_folders()))


def _is_here(look: Callable[[], str]) -> bool:
    try:
        return bool(look())
    except AutotuneError:
        return False


def _compiler() -> str:
    from autotune.compile import HostCxx, find_compiler

    return _without_options(HostCxx(find_compiler()).identity)


def _nvrtc() -> str:
    from autotune.compile import Nvrtc

    has_nvrtc = find_spec("cuda") and find_spec("cuda.bindings")
    return _without_options(Nvrtc("sm_90").identity) if has_nvrtc else ""


def _nvcc() -> str:
    from autotune.compile import Nvcc

    return _without_options(Nvcc("sm_90").identity)


def _without_options(identity: str) -> str:
    """Compiler and version, which an identity begins with."""
    return identity.partition(" -")[0]


def _gpu() -> str:
    from autotune.device import devices

    return ", ".join(devices())


def _ncu() -> str:
    from autotune.measure import find_ncu

    return find_ncu()


def _package(name: str) -> Callable[[], str]:
    def look() -> str:
        from importlib import metadata

        try:
            return f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            return ""

    return look


_PARTS: tuple[tuple[str, Callable[[], str], str], ...] = (
    ("C++ compiler (cpu device)", _compiler, "apt install g++, or pip install ziglang"),
    ("NVRTC (compiles for CUDA)", _nvrtc, f"{pip_install('static')}; nvcc is enough, too"),
    ("nvcc (the other CUDA compiler)", _nvcc, "install a CUDA toolkit; NVRTC is enough, too"),
    ("PyCUDA (runs on CUDA)", _package("pycuda"), f"{_TOOLKIT}, then {pip_install('cuda')}"),
    ("GPU", _gpu, "needs an NVIDIA GPU with its driver"),
    ("NVML (clocks, throttling)", _package("nvidia-ml-py"), pip_install("cuda")),
    ("Nsight Compute (autotune profile)", _ncu, _TOOLKIT),
    ("Optuna (the record)", _package("optuna"), pip_install()),
    ("pandas (reports)", _package("pandas"), pip_install()),
    ("Plotly (reports)", _package("plotly"), pip_install()),
)


def print_listing(
    family: Family, configuration: Configuration, arch: str, known: Known, *, is_machine_code: bool
) -> None:
    """Print what the compiler makes of the configuration, as SASS or as PTX. Raises CompilerError."""
    variants = batch(family, (Variant.of(family, configuration, known.options),))
    toolchain = static_toolchain(arch)
    if is_machine_code:
        print(sass(compile_one(variants, toolchain, Cache(default_root()), "it does not compile:\n")), end="")
    else:
        print(ptx(variants, toolchain), end="")


def show(family: Family, configuration: Configuration, arch: str, known: Known, out: Console) -> None:
    """Print the policy struct, each array's layout and, where a CUDA compiler is installed, the static profile."""
    from rich.syntax import Syntax
    from rich.table import Table

    variant = Variant.of(family, configuration, known.options)
    out.print(f"{family.name}: {configuration.id}")
    out.print(f"kernel source {family.source}\n")
    if inert := family.space.inert(known.names(configuration)):
        out.print(f"at their defaults here: {', '.join(inert)}\n", markup=False)
    if variant.compile_options:
        out.print(f"compile options {' '.join(variant.compile_options)}\n", markup=False)
    struct = variant.source.struct.replace(">, autotune::", ">,\n      autotune::")
    out.print(Syntax(struct, "cpp", background_color="default"))
    shown = {
        kind: [dimension.text(layout) for layout in variant.layouts.values()]
        for kind, dimension in DIMENSIONS.items()
    }
    shown = {kind: column for kind, column in shown.items() if any(column)}
    table = Table("data", "role", *shown, "texel bytes", box=None)
    for (name, layout), *cells in zip(variant.layouts.items(), *shown.values(), strict=True):
        table.add_row(name, family.data[name].role, *(cell or "-" for cell in cells), str(layout.texel_bytes))
    out.print(table)
    for conversion in variant.conversions.values():
        out.print(str(conversion), markup=False)
    out.print("")
    try:
        (compiled,) = compile_batch(batch(family, (variant,)), static_toolchain(arch), Cache(default_root()))
    except CompilerError as problem:
        out.print(f"no static profile: {problem}")
        return
    if isinstance(compiled, CompileFailure):
        out.print(compiled.message)
        return
    static = profiles(
        variant, compiled, known.names(configuration), Device(kind="cuda", name=arch, arch=arch)
    )
    if known.note:
        out.print(known.note, markup=False)
    figures = Table("kernel", arch, box=None)
    for profile in static:
        for name in profile.__dataclass_fields__:
            is_known = (
                profile.limited_by
                or name not in OF_THE_BLOCK
                or (name == "block_size" and profile.block_size)
            )
            if name not in ("kernel", "numbers") and is_known:
                figures.add_row(profile.kernel, f"{name} {getattr(profile, name)}")
    out.print(figures)


def families_command() -> None:
    """The kernel families that ship with autotune."""
    from rich.table import Table

    from autotune.declaration import MOST_LISTED, listed

    table = Table("family", "about", "configurations", "presets", box=None)
    for name in known_families():
        family = load_family(name)
        presets = ", ".join(family.space.preset_names)
        every = listed(family.space)
        count = f"over {MOST_LISTED:,}" if every is None else str(len(every))
        table.add_row(name, family.title, count, presets)
    out.print(table)


def list_command(
    family: FamilyArgument,
    preset: Preset = "full",
    set_: Set = None,
    count: Annotated[bool, typer.Option("--count", help="Only the number.")] = False,
) -> None:
    """The ids of the configurations a sweep would visit. Runs nothing."""
    loaded = load_family(family)
    found = loaded.space.configurations(preset, narrowed(set_))
    if not count:
        for configuration in found:
            print(configuration.id)
    err.print(
        f"{len(found)} configurations of {loaded.name}; presets: {', '.join(loaded.space.preset_names)}"
    )


def show_command(
    family: FamilyArgument,
    configuration: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG",
            help="A preset of one configuration, or policy=value,… (the rest take their defaults).",
        ),
    ],
    arch: Annotated[
        str, typer.Option("--arch", metavar="sm_XX", help="Target of the static profile.")
    ] = "sm_90",
    workload: Annotated[
        str, one_workload("Whose sizes and options; else the default one's, where needed.")
    ] = "",
    size: Annotated[
        list[str] | None,
        typer.Option(
            "--size",
            metavar="NAME=N",
            help="A size or scalar that a block depends on, in place of a workload's.",
        ),
    ] = None,
    data: Data = None,
    header: Annotated[
        bool, typer.Option("--header", help="Only print the family's default.cuh, for its folder.")
    ] = False,
    ptx_: Annotated[bool, typer.Option("--ptx", help="Only print the PTX.")] = False,
    sass_: Annotated[
        bool, typer.Option("--sass", help="Only print the machine code; needs the toolkit's cuobjdump.")
    ] = False,
) -> None:
    """One configuration: generated code, layouts, static profile."""
    loaded = load_family(family)
    if header:
        print(default_header(loaded), end="")
        return
    known = Known.of(loaded, workload, data_root(data), _given(size or ()))
    chosen = loaded.space.configuration(configuration)
    if ptx_ or sass_:
        if ptx_ and sass_:
            raise UsageError("--ptx and --sass are two listings: ask for one at a time")
        print_listing(loaded, chosen, arch, known, is_machine_code=sass_)
        return
    show(loaded, chosen, arch, known, out)


def _given(sizes: Sequence[str]) -> dict[str, float]:
    """``NAME=N`` as numbers. Raises UsageError."""
    found: dict[str, float] = {}
    for text in sizes:
        name, _, number = text.partition("=")
        try:
            found[name] = float(number) if "." in number else int(number)
        except ValueError:
            raise UsageError(f"--size {text!r} is not NAME=N, with a number, as --size taps=9") from None
    return found


def doctor_command() -> None:
    """What is here, what is missing, and how to get it."""

    doctor(out)

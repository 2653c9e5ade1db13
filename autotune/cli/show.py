"""The commands that only show: families, list, show, doctor."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from autotune.cli import options
from autotune.compile import (
    Cache,
    CompileFailure,
    HostCxx,
    Nvcc,
    Nvrtc,
    Toolchain,
    Variant,
    batch,
    compile_batch,
    compile_one,
    default_header,
    default_root,
    find_compiler,
    profiles,
    ptx,
    sass,
    static_pass,
)
from autotune.declaration import Configuration, Family, load_family
from autotune.declaration import families as known_families
from autotune.device import devices
from autotune.errors import AutotuneError, CompilerError, UsageError
from autotune.files import data_root, find_bundled, pip_install, policy_folders
from autotune.hardware import Device
from autotune.layout import DIMENSIONS, SharedLayout
from autotune.measure import ncu

_TOOLKIT = "install a CUDA toolkit"


def doctor(out: Console) -> None:
    """Print one row per part: here or missing, which version, and what to do. Never fails."""
    table = Table("part", "", "what", "how to get it", box=None)
    has_toolkit = False
    with suppress(AutotuneError):
        has_toolkit = bool(_nvcc())
    for part, look, remedy in _PARTS:
        try:
            found, advice = look(), remedy.removeprefix(f"{_TOOLKIT}, then ") if has_toolkit else remedy
        except AutotuneError as problem:
            found, advice = "", str(problem)
        table.add_row(part, "ok" if found else "missing", found, "" if found else advice)
    out.print(table)
    out.print(f"\nkernels   {find_bundled('kernels')}")
    out.print(f"data      {data_root()}")
    out.print(f"cache     {default_root()}")
    out.print("policies  " + ", ".join(str(folder) for folder in policy_folders()))


def _strip_options(compiler: Toolchain) -> str:
    """Compiler and version, which an identity begins with."""
    return compiler.identity.partition(" -")[0]


def _nvrtc() -> str:
    return _strip_options(Nvrtc("sm_90")) if find_spec("cuda") and find_spec("cuda.bindings") else ""


def _nvcc() -> str:
    return _strip_options(Nvcc("sm_90"))


def _package(name: str) -> str:
    try:
        return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return ""


_PARTS: tuple[tuple[str, Callable[[], str], str], ...] = (
    (
        "C++ compiler (cpu device)",
        lambda: _strip_options(HostCxx(find_compiler())),
        "apt install g++, or pip install ziglang",
    ),
    ("NVRTC (compiles for CUDA)", _nvrtc, f"{pip_install('static')}; nvcc is enough, too"),
    ("nvcc (the other CUDA compiler)", _nvcc, "install a CUDA toolkit; NVRTC is enough, too"),
    ("PyCUDA (runs on CUDA)", partial(_package, "pycuda"), f"{_TOOLKIT}, then {pip_install('cuda')}"),
    ("GPU", lambda: ", ".join(devices()), "needs an NVIDIA GPU with its driver"),
    ("NVML (clocks, throttling)", partial(_package, "nvidia-ml-py"), pip_install("cuda")),
    ("Nsight Compute (autotune profile)", ncu.find_ncu, _TOOLKIT),
    ("Optuna (the record)", partial(_package, "optuna"), pip_install()),
    ("pandas (reports)", partial(_package, "pandas"), pip_install()),
    ("Plotly (reports)", partial(_package, "plotly"), pip_install()),
)


def print_listing(
    family: Family,
    configuration: Configuration,
    arch: str,
    known: static_pass.StaticInputs,
    *,
    is_machine_code: bool,
) -> None:
    """Print what the compiler makes of the configuration, as SASS or as PTX. Raises CompilerError."""
    variants = batch(family, (Variant.make(family, configuration, known.options),))
    toolchain = static_pass.static_toolchain(arch)
    if is_machine_code:
        print(sass(compile_one(variants, toolchain, Cache(default_root()), "it does not compile:\n")), end="")
    else:
        print(ptx(variants, toolchain), end="")


def _shared_table(variant: Variant, name: str) -> Table:
    """The layouts that an array in shared memory may have where all else is as ``variant`` has it, with the wavefronts
    of a warp's request by access pattern: the most, and the fewest that its bytes need."""
    space = variant.family.space
    title = f"{name}, in shared memory: wavefronts of a request / the fewest possible"
    drivers = [policy for policy in space.policies if name in policy.data]
    tables: list[tuple[str, SharedLayout]] = []
    for values in product(*(policy.values for policy in drivers)):
        chosen = dict(zip((policy.name for policy in drivers), values, strict=True))
        configuration = Configuration({**variant.configuration, **chosen})
        if not space.explain_exclusion(configuration):
            array = replace(variant, configuration=configuration).shared[name]
            mark = "*" if drivers and configuration == variant.configuration else ""
            text = ", ".join(f"{policy}={value}" for policy, value in chosen.items()) or "as declared"
            tables.append((text + mark, array))
    counts = [array.wavefronts() for _, array in tables]
    table = Table(name, "bytes", *counts[0], box=None, title=title, title_justify="left")
    for (text, array), count in zip(tables, counts, strict=True):
        cells = (f"{found[0]} / {found[1]}" if found else "no vector" for found in count.values())
        table.add_row(text, str(array.nbytes), *cells)
    return table


def show(
    family: Family, configuration: Configuration, arch: str, known: static_pass.StaticInputs, out: Console
) -> None:
    """Print the policy struct, each array's layout and, where a CUDA compiler is installed, the static profile."""
    from rich.syntax import Syntax

    variant = Variant.make(family, configuration, known.options)
    out.print(f"{family.name}: {configuration.id}")
    out.print(f"kernel source {family.source}\n")
    if inert := family.space.find_inert(known.names(configuration)):
        out.print(f"at their defaults here: {', '.join(inert)}\n")
    if variant.compile_options:
        out.print(f"compile options {' '.join(variant.compile_options)}\n")
    struct = variant.source.struct.replace(">, autotune::", ">,\n      autotune::")
    out.print(Syntax(struct, "cpp", background_color="default"))
    layouts = variant.layouts.values()
    columns = {kind: [dimension.text(one) for one in layouts] for kind, dimension in DIMENSIONS.items()}
    shown = {kind: column for kind, column in columns.items() if any(column)}
    table = Table("data", "role", *shown, "texel bytes", box=None)
    for (name, layout), *cells in zip(variant.layouts.items(), *shown.values(), strict=True):
        table.add_row(name, family.data[name].role, *(cell or "-" for cell in cells), str(layout.texel_bytes))
    out.print(table)
    for name in family.shared:
        out.print(_shared_table(variant, name))
    for conversion in variant.conversions.values():
        out.print(str(conversion))
    out.print("")
    try:
        (compiled,) = compile_batch(
            batch(family, (variant,)), static_pass.static_toolchain(arch), Cache(default_root())
        )
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
        out.print(known.note)
    figures = Table("kernel", arch, box=None)
    for profile in static:
        for name in profile.__dataclass_fields__:
            is_known = (
                profile.limited_by
                or name not in static_pass.OF_THE_BLOCK
                or (name == "block_size" and profile.block_size)
            )
            if name not in ("kernel", "numbers") and is_known:
                figures.add_row(profile.kernel, f"{name} {getattr(profile, name)}")
    out.print(figures)


def families_command() -> None:
    from autotune.search import MOST_LISTED, list_configurations

    table = Table("family", "about", "configurations", "presets", box=None)
    for name in known_families():
        family = load_family(name)
        presets = ", ".join(family.space.preset_names)
        every = list_configurations(family.space)
        count = f"over {MOST_LISTED:,}" if every is None else str(len(every))
        table.add_row(name, family.title, count, presets)
    options.out.print(table)


@options.family_argument
@options.sweep_options("preset", "narrowed")
@options.option("--count", help="Print only their number.")
def list_command(family: str, preset: str, narrowed: Mapping[str, Sequence[str]], count: bool) -> None:
    loaded = load_family(family)
    configurations = loaded.space.configurations(preset, narrowed)
    if not count:
        for configuration in configurations:
            print(configuration.id)
    presets = ", ".join(loaded.space.preset_names)
    print(f"{len(configurations)} configurations of {loaded.name}; presets: {presets}", file=sys.stderr)


@options.family_argument
@click.argument(
    "configuration",
    metavar="CONFIG",
    help="Preset with one configuration, or policy=value,… (other policies have their defaults).",
)
@options.option("--arch sm_XX", default="sm_90", help="Compute capability for the static profile.")
@options.make_workload_option("Workload that gives sizes and options; default: the family's own, if needed.")
@options.option(
    "--size NAME=N",
    multiple=True,
    help="Size or scalar that a block depends on, in place of a workload's; repeat for more.",
)
@options.data_option
@options.option("--header", help="Print only the family's default.cuh.")
@options.option("--ptx", help="Print only the PTX.")
@options.option("--sass", help="Print only the machine code; needs the CUDA toolkit's cuobjdump.")
def show_command(
    family: str,
    configuration: str,
    arch: str,
    workload: str,
    size: tuple[str, ...],
    data: Path | None,
    header: bool,
    ptx: bool,
    sass: bool,
) -> None:
    loaded = load_family(family)
    if header:
        print(default_header(loaded), end="")
        return
    known = static_pass.StaticInputs.make(loaded, workload, data_root(data), options.parse_sizes(size))
    chosen = loaded.space.configuration(configuration)
    if ptx and sass:
        raise UsageError("--ptx and --sass are two listings: ask for one at a time")
    if ptx or sass:
        print_listing(loaded, chosen, arch, known, is_machine_code=sass)
        return
    show(loaded, chosen, arch, known, options.out)


def doctor_command() -> None:
    doctor(options.out)

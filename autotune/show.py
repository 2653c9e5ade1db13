"""``autotune show``: one configuration as code, as layouts, and as the compiler sees it."""

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from autotune.cache import Cache, default_root
from autotune.compiler import compile_batch
from autotune.device import Device
from autotune.errors import CompilerError
from autotune.family import Family
from autotune.profile import profiles
from autotune.space import Configuration
from autotune.static import OF_THE_BLOCK, Known, static_toolchain
from autotune.toolchain import CompileFailure
from autotune.variant import Variant, batch

__all__ = ["show"]


def show(family: Family, configuration: Configuration, arch: str, known: Known, out: Console) -> None:
    """Print the policy struct, each array's layout and, where a CUDA compiler is installed, the static profile."""
    variant = Variant(family, configuration, tuple(known.options.items()))
    out.print(f"{family.name}: {configuration.id}")
    out.print(f"kernel source {family.source}\n")
    struct = variant.source.struct.replace(">, autotune::", ">,\n      autotune::")
    out.print(Syntax(struct, "cpp", background_color="default"))
    table = Table(
        "data", "role", "memory", "dims", "axes", "packing", "vector", "records", "texel bytes", box=None
    )
    for name, layout in variant.layouts.items():
        data = family.data[name]
        axes = ", ".join(data.shape[axis] for axis in layout.axes)
        packing = layout.packing.name if layout.packing else "-"
        table.add_row(
            name, data.role, layout.memory, layout.dims, axes, packing, str(layout.vector), layout.records,
            str(layout.texel_bytes),
        )  # fmt: skip
    out.print(table)
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
            if name != "kernel" and (profile.limited_by or name not in OF_THE_BLOCK):
                figures.add_row(profile.kernel, f"{name} {getattr(profile, name)}")
    out.print(figures)

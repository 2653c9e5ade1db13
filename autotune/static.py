"""The static pass: registers, spills, shared memory and theoretical occupancy of every configuration, for any
architecture, with no GPU and no driver."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from autotune.cache import Cache
from autotune.compiler import Compiled, Toolchain, compile_many
from autotune.device import Device
from autotune.errors import FamilyError, UnknownName
from autotune.family import Family
from autotune.profile import profiles
from autotune.space import Configuration
from autotune.trial import Trial
from autotune.variant import Variant, batch

__all__ = ["static_sweep", "static_toolchain", "write_static"]

_COMPILERS = ("nvrtc", "nvcc")


def static_toolchain(arch: str, compiler: str = "") -> Toolchain:
    """NVRTC where it is installed, else nvcc. Raises UnknownName, CompilerError."""
    from importlib.util import find_spec

    from autotune.nvcc import Nvcc
    from autotune.nvrtc import Nvrtc

    if compiler not in ("", *_COMPILERS):
        raise UnknownName("compiler", compiler, _COMPILERS)
    has_nvrtc = find_spec("cuda") is not None and find_spec("cuda.bindings") is not None
    return Nvcc(arch) if compiler == "nvcc" or (not compiler and not has_nvrtc) else Nvrtc(arch)


def static_sweep(
    family: Family, configurations: Sequence[Configuration], arch: str, compiler: str, cache: Cache, processes: int,
) -> Iterator[Trial]:  # fmt: skip
    """One trial per configuration: ``measured`` never, ``compile_failed`` with the compiler's message, else state
    ``excluded`` with the reason "static pass" and its profiles. Sizes of the inputs are not known here, so a
    family's block shape may depend on policies and options only."""
    options = family.chosen_options({})
    variants = tuple(Variant(family, c, tuple(options.items())) for c in configurations)
    device = Device(kind="cuda", name=arch, arch=arch)
    remaining = iter(variants)
    for chunk in compile_many(
        batch(family, variants), static_toolchain(arch, compiler), cache, processes, 24
    ):
        for compiled in chunk:
            variant = next(remaining)
            if not isinstance(compiled, Compiled):
                yield _trial(family, variant, arch, "compile_failed", compiled.message)
                continue
            names = {**options, **variant.configuration}
            try:
                static = profiles(variant, compiled, names, device)
            except FamilyError as problem:
                raise FamilyError(f"{problem}: a static pass knows policies and options, not sizes") from None
            yield _trial(family, variant, arch, "excluded", "static pass", static)


def _trial(family: Family, variant: Variant, arch: str, state: str, reason: str, static: tuple = ()) -> Trial:  # type: ignore[type-arg]
    return Trial(
        family=family.name, workload="", device=arch, configuration=variant.configuration,
        state=state, reason=reason, profiles=static,  # type: ignore[arg-type]
    )  # fmt: skip


def write_static(trials: Sequence[Trial], path: Path) -> None:
    """``static.csv``: a row per configuration and kernel."""
    import pandas as pd

    rows = []
    for trial in trials:
        base = {"family": trial.family, "arch": trial.device, "configuration": trial.configuration.id}
        base |= {name: str(value) for name, value in trial.configuration.items()}
        if not trial.profiles:
            rows.append({**base, "state": trial.state, "reason": trial.reason})
        for p in trial.profiles:
            figures = {name: getattr(p, name) for name in p.__dataclass_fields__}
            rows.append({**base, "state": "compiled", "reason": "", **figures})
    pd.DataFrame(rows).to_csv(path, index=False)

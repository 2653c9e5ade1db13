"""``autotune doctor``: what is here, what is missing, and how to get it."""

from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec

from rich.console import Console
from rich.table import Table

from autotune.cache import default_root
from autotune.errors import AutotuneError
from autotune.paths import bundled, data_root, pip_install, policy_folders

__all__ = ["doctor"]

_TOOLKIT = "install a CUDA toolkit"


def doctor(out: Console) -> None:
    """Print one row per part: here or missing, which version, and what to do. Never fails."""
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
    from autotune.hostcxx import HostCxx, find_compiler

    return _without_options(HostCxx(find_compiler()).identity)


def _nvrtc() -> str:
    from autotune.nvrtc import Nvrtc

    has_nvrtc = find_spec("cuda") and find_spec("cuda.bindings")
    return _without_options(Nvrtc("sm_90").identity) if has_nvrtc else ""


def _nvcc() -> str:
    from autotune.nvcc import Nvcc

    return _without_options(Nvcc("sm_90").identity)


def _without_options(identity: str) -> str:
    """Compiler and version, which an identity begins with."""
    return identity.partition(" -")[0]


def _gpu() -> str:
    from autotune.backends.cuda import devices

    return ", ".join(devices())


def _ncu() -> str:
    from autotune.nsight import find_ncu

    return find_ncu()


def _package(name: str) -> Callable[[], str]:
    def look() -> str:
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

"""``autotune doctor``: what is here, what is missing, and how to get it."""

from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec

from rich.console import Console
from rich.table import Table

from autotune.cache import default_root
from autotune.errors import AutotuneError
from autotune.paths import bundled, data_root, policy_folders

__all__ = ["doctor"]


def doctor(out: Console) -> None:
    """Print one row per part: here or missing, which version, and what to do. Never fails."""
    table = Table("part", "", "what", "how to get it", box=None)
    for part, look, remedy in _PARTS:
        try:
            found, advice = look(), remedy
        except AutotuneError as problem:
            found, advice = "", str(problem)
        table.add_row(part, "ok" if found else "missing", found, "" if found else advice)
    out.print(table)
    out.print(f"\nkernels   {bundled('kernels')}")
    out.print(f"data      {data_root()}")
    out.print(f"cache     {default_root()}")
    out.print("policies  " + ", ".join(str(folder) for folder in policy_folders()))


def _compiler() -> str:
    from autotune.hostcxx import HostCxx, find_compiler

    return HostCxx(find_compiler()).identity


def _nvrtc() -> str:
    from autotune.nvrtc import Nvrtc

    return Nvrtc("sm_90").identity if find_spec("cuda") and find_spec("cuda.bindings") else ""


def _nvcc() -> str:
    from autotune.nvcc import Nvcc

    return Nvcc("sm_90").identity


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
    ("NVRTC (compiles for CUDA)", _nvrtc, "pip install 'autotune[static]'"),
    ("nvcc (the other CUDA compiler)", _nvcc, "install a CUDA toolkit"),
    (
        "PyCUDA (runs on CUDA)",
        _package("pycuda"),
        "install a CUDA toolkit, then pip install 'autotune[cuda]'",
    ),
    ("GPU", _gpu, "needs an NVIDIA GPU with its driver"),
    ("NVML (clocks, throttling)", _package("nvidia-ml-py"), "pip install 'autotune[cuda]'"),
    ("Nsight Compute (autotune profile)", _ncu, "install a CUDA toolkit"),
    ("Optuna (the record)", _package("optuna"), "pip install autotune"),
    ("pandas (reports)", _package("pandas"), "pip install autotune"),
    ("Plotly (reports)", _package("plotly"), "pip install autotune"),
)

"""From what a user names (auto, cpu, cuda, cuda:1) to a backend."""

import ctypes
import warnings

from autotune.device.backend import Backend
from autotune.errors import DeviceError, UnknownName, UsageError


def open_backend(name: str = "auto") -> Backend:
    """The backend for ``name``; ``auto`` is the first GPU, or the cpu with a warning that says why. The caller closes
    it. Raises DeviceError when a GPU was asked for and is not there, UnknownName for anything else."""
    kind, number = _parts(name, ("auto", "cpu", "cuda", "cuda:N"))
    if kind == "cpu":
        return _cpu()
    try:
        from autotune.device.cuda.backend import CudaBackend

        return CudaBackend(int(number or 0))
    except DeviceError as problem:
        if kind == "cuda":
            raise
        reason = problem if has_driver() else "no GPU found"
        warnings.warn(f"running on the cpu: {reason}", stacklevel=5)  # at the line that calls autotune.load
        return _cpu()


def _cpu() -> Backend:
    from autotune.device.cpu.backend import CpuBackend  # a GPU needs none of it

    return CpuBackend()


def _parts(name: str, allowed: tuple[str, ...]) -> tuple[str, str]:
    """The kind of device and its number, where one is named. Raises UnknownName."""
    kind, _, number = name.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (number and (kind != "cuda" or not number.isdigit())):
        raise UnknownName("device", name, allowed)
    return kind, number


def has_driver() -> bool:
    """Whether NVIDIA's driver is installed: without it there is no GPU, and nothing to fix."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def device_names(text: str) -> list[str]:
    """``cuda:0,1`` and ``cuda:0,cuda:1`` -> ["cuda:0", "cuda:1"]; ``cpu,cpu`` -> two processes on the cpu. Raises
    UnknownName, and UsageError for a mixture or a GPU that is named twice."""
    names: list[str] = []
    for item in text.split(","):
        is_number = item.isdigit() and names and names[-1].startswith("cuda:")
        names.append(f"cuda:{item}" if is_number else item)
    for name in names:
        _parts(name, ("auto", "cpu", "cuda", "cuda:N", "cuda:N,M,…"))
    if len(names) > 1:
        whole = [name if name != "cuda" else "cuda:0" for name in names]
        is_cuda = all(name.startswith("cuda:") for name in whole) and len(set(whole)) == len(whole)
        if not is_cuda and set(whole) != {"cpu"}:
            raise UsageError(
                f"cannot sweep on {text}: name several GPUs, each once (cuda:0,1), or cpu several times (cpu,cpu)"
            )
    return names

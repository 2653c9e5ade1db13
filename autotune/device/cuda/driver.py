"""What the driver says of a GPU: that it is there, its limits, its own occupancy (and its clocks, from NVML)."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from autotune.device.backend import LaunchError
from autotune.errors import DeviceError
from autotune.files import pip_install
from autotune.hardware import Device, Limits

_KERNEL_MODULE = Path("/proc/driver/nvidia/version")


def open_driver() -> Any:
    """pycuda.driver, ready for use. Raises DeviceError, which says what is missing."""
    try:
        from pycuda import driver
    except ImportError as problem:
        raise DeviceError(
            f"PyCUDA is not usable here ({problem}): install a CUDA toolkit, then "
            f"{pip_install('cuda')}; or run on --device cpu"
        ) from None
    try:
        driver.init()
    except driver.Error as problem:
        raise DeviceError(f"no usable GPU: {problem}; check nvidia-smi, or run on --device cpu") from None
    return driver


def devices() -> list[str]:
    """Names of the GPUs of this machine. Raises DeviceError when there can be none."""
    driver = open_driver()
    return [driver.Device(i).name() for i in range(driver.Device.count())]


def open_device(driver: Any, ordinal: int) -> tuple[Any, Any]:
    """The GPU of that number and its primary context, retained. Raises DeviceError when either is not available."""
    count = driver.Device.count()
    if not 0 <= ordinal < count:
        raise DeviceError(f"cuda:{ordinal} does not exist: this machine has {count} GPUs (cuda:0 …)")
    try:
        handle = driver.Device(ordinal)
        context = handle.retain_primary_context()
    except driver.Error as problem:
        raise DeviceError(
            f"cuda:{ordinal} cannot be used: {problem}; check nvidia-smi, or run on --device cpu"
        ) from None
    return handle, context


def call(function: str, *arguments: Any) -> Any:
    """A driver function through cuda-bindings: its first result, or LaunchError with the driver's status."""
    return next(iter(call_all(function, *arguments)), None)


def call_all(function: str, *arguments: Any) -> list[Any]:
    """As ``call``, with all results."""
    from cuda.bindings import driver as bindings

    results: list[Any]
    status, *results = getattr(bindings, function)(*arguments)
    if int(status):
        raise LaunchError(f"{function}: {status}")
    return results


# The driver's names of the limits, CU_DEVICE_ATTRIBUTE_ ahead.
_LIMITS = {
    "grid_x": "MAX_GRID_DIM_X", "grid_y": "MAX_GRID_DIM_Y", "grid_z": "MAX_GRID_DIM_Z",
    "threads_per_block": "MAX_THREADS_PER_BLOCK", "shared_bytes_per_block": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "constant_bytes": "TOTAL_CONSTANT_MEMORY", "texture_1d_texels": "MAXIMUM_TEXTURE1D_LINEAR_WIDTH",
    "texture_2d_width": "MAXIMUM_TEXTURE2D_WIDTH", "texture_2d_height": "MAXIMUM_TEXTURE2D_HEIGHT",
    "texture_pitched_width": "MAXIMUM_TEXTURE2D_LINEAR_WIDTH",
    "texture_pitched_height": "MAXIMUM_TEXTURE2D_LINEAR_HEIGHT", "texture_pitch_bytes": "TEXTURE_PITCH_ALIGNMENT",
}  # fmt: skip
_TEXTURE_3D = ("MAXIMUM_TEXTURE3D_WIDTH", "MAXIMUM_TEXTURE3D_HEIGHT", "MAXIMUM_TEXTURE3D_DEPTH")


def describe_device(driver: Any, handle: Any, ordinal: int) -> Device:
    """``driver`` is pycuda.driver, ``handle`` one of its devices."""
    attribute, get = driver.device_attribute, handle.get_attribute
    major, minor = handle.compute_capability()
    limits: dict[str, Any] = {name: get(getattr(attribute, of)) for name, of in _LIMITS.items()}
    limits["texture_3d"] = tuple(get(getattr(attribute, of)) for of in _TEXTURE_3D)
    return Device(
        kind="cuda",
        name=handle.name(),
        arch=f"sm_{major}{minor}",
        ordinal=ordinal,
        multiprocessors=get(attribute.MULTIPROCESSOR_COUNT),
        driver=driver_version(driver.get_driver_version()),
        limits=Limits(**limits, memory_bytes=handle.total_memory()),
    )


def driver_version(cuda: int, module: Path = _KERNEL_MODULE) -> str:
    """Return the driver's version from its kernel module; without one, ``for CUDA 13.0`` from ``cuda`` (13000), which
    is all that the driver API gives."""
    with suppress(OSError):
        if found := re.search(
            r"\b\d{3,}\.\d+(\.\d+)?\b", module.read_text(encoding="utf-8", errors="replace")
        ):
            return found[0]
    return f"for CUDA {cuda // 1000}.{cuda % 1000 // 10}"

"""What the driver says of a GPU: its limits, its own occupancy (and its clocks, from NVML)."""

from typing import Any

from autotune.backends import LaunchError
from autotune.clocks import clocks
from autotune.compiler import Compiled
from autotune.device import Device, Limits

__all__ = ["active_blocks", "call", "clocks", "describe_device"]


def call(function: str, *arguments: Any) -> Any:
    """A driver function through cuda-bindings: its result, or LaunchError with the driver's status."""
    from cuda.bindings import driver as bindings

    status, *result = getattr(bindings, function)(*arguments)
    if int(status):
        raise LaunchError(f"{function}: {status}")
    return result[0] if result else None


def describe_device(driver: Any, handle: Any, ordinal: int) -> Device:
    """``driver`` is pycuda.driver, ``handle`` one of its devices."""
    attribute, get = driver.device_attribute, handle.get_attribute
    major, minor = handle.compute_capability()
    limits = Limits(
        grid_x=get(attribute.MAX_GRID_DIM_X),
        grid_y=get(attribute.MAX_GRID_DIM_Y),
        grid_z=get(attribute.MAX_GRID_DIM_Z),
        threads_per_block=get(attribute.MAX_THREADS_PER_BLOCK),
        shared_bytes_per_block=get(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        constant_bytes=get(attribute.TOTAL_CONSTANT_MEMORY),
        texture_1d_texels=get(attribute.MAXIMUM_TEXTURE1D_LINEAR_WIDTH),
        texture_2d_width=get(attribute.MAXIMUM_TEXTURE2D_WIDTH),
        texture_2d_height=get(attribute.MAXIMUM_TEXTURE2D_HEIGHT),
        texture_pitched_width=get(attribute.MAXIMUM_TEXTURE2D_LINEAR_WIDTH),
        texture_pitched_height=get(attribute.MAXIMUM_TEXTURE2D_LINEAR_HEIGHT),
        memory_bytes=handle.total_memory(),
    )
    return Device(
        kind="cuda",
        name=handle.name(),
        arch=f"sm_{major}{minor}",
        ordinal=ordinal,
        multiprocessors=get(attribute.MULTIPROCESSOR_COUNT),
        driver=str(driver.get_driver_version()),
        limits=limits,
    )


def active_blocks(compiled: Compiled, kernel: str, block_size: int, shared_bytes: int) -> int:
    """cuOccupancyMaxActiveBlocksPerMultiprocessor in the current context. PyCUDA shows no function handle, so the
    binary is loaded a second time."""
    from cuda.bindings import driver as bindings

    module = call("cuModuleLoadData", compiled.image.read_bytes())
    function = call("cuModuleGetFunction", module, compiled.symbols[kernel].encode())
    if shared_bytes > 48 << 10:
        attribute = bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        call("cuFuncSetAttribute", function, attribute, shared_bytes)
    blocks = call("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, block_size, shared_bytes)
    call("cuModuleUnload", module)
    return int(blocks)

"""NVML's handle of one GPU: by its PCI bus id, which does not depend on CUDA_VISIBLE_DEVICES as its ordinals do."""

from typing import Any


def bus_id(ordinal: int) -> str:
    """Of the GPU that CUDA, which was initialised, calls so. Raises whatever is wrong with PyCUDA or the driver."""
    from pycuda import driver

    return str(driver.Device(ordinal).pci_bus_id())


def handle(pci_bus_id: str) -> tuple[Any, Any]:
    """The module ``pynvml`` and the GPU's handle in it. Raises whatever is wrong with either."""
    import pynvml

    pynvml.nvmlInit()
    return pynvml, pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id)

"""The clocks of a GPU and what holds them down, from NVML; where NVML does not answer, nothing is ever held down."""

from typing import Any

from autotune.hardware import Device

# Bits of NVML's clock event reasons that make a kernel slower than it would be. An idle GPU, clocks that a user
# set and a display are none of these.
SYNC_BOOST = 0x010

_SLOWING = {
    0x004: "power cap",
    0x008: "hardware slowdown",
    SYNC_BOOST: "sync boost",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "power brake",
}

# Sync boost holds a GPU to the clocks of the slowest of its group: neither its own power nor its own heat.
POWER_OR_HEAT = sum(_SLOWING) - SYNC_BOOST


class Watch:
    """One GPU, by its PCI bus id; with an empty one, or without NVML, ``throttled`` is always empty and ``problem``
    says why."""

    def __init__(self, pci_bus_id: str = "") -> None:
        self.problem = ""
        self._nvml: Any = None
        if not pci_bus_id:
            self.problem = "no GPU to watch"
            return
        try:
            self._nvml, self._handle = handle(pci_bus_id)
        except Exception as problem:  # noqa: BLE001 - a courtesy: any failure only leaves its figures out
            self.problem = f"not available: {type(problem).__name__}: {problem}"

    def throttled(self) -> str:
        """What holds the clocks down at this moment, with the clock; empty when nothing does, or nobody knows. To be
        asked when a sampling has just ended. An NVML that stops answering is not asked again."""
        if self._nvml is None:
            return ""
        try:
            found = reasons(self._mask())
            if not found:
                return ""
            now, most = self._clock()
        except Exception as problem:  # noqa: BLE001 - a measurement does not fail because its watch does
            self.problem = f"stopped answering: {type(problem).__name__}: {problem}"
            self._nvml = None
            return ""
        return f"{found}, {now} of {most} MHz"

    def describe(self) -> dict[str, Any]:
        """Driver version, SM clocks in MHz and the bit mask of reasons; why not, where NVML does not answer."""
        try:
            if self._nvml is not None:
                now, most = self._clock()
                return {
                    "driver": self._nvml.nvmlSystemGetDriverVersion(),
                    "clock_mhz": now,
                    "clock_max_mhz": most,
                    "throttle_reasons": self._mask(),
                }
        except Exception as problem:  # noqa: BLE001
            self.problem = f"not available: {type(problem).__name__}: {problem}"
        return {"nvml": self.problem}

    def _mask(self) -> int:
        return int(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))

    def _clock(self) -> tuple[int, int]:
        """SM clock now and at most, in MHz."""
        sm = self._nvml.NVML_CLOCK_SM
        return (
            int(self._nvml.nvmlDeviceGetClockInfo(self._handle, sm)),
            int(self._nvml.nvmlDeviceGetMaxClockInfo(self._handle, sm)),
        )


def watch(device: Device) -> Watch:
    """The watch for a device that a backend has opened; an idle one for a cpu."""
    if device.kind != "cuda":
        return Watch()
    try:
        return Watch(bus_id(device.ordinal))
    except Exception as problem:  # noqa: BLE001 - as in Watch
        idle = Watch()
        idle.problem = f"not available: {type(problem).__name__}: {problem}"
        return idle


def reasons(mask: int) -> str:
    """The reasons in NVML's bit mask that make kernels slower, in words; empty for none."""
    return " and ".join(text for bit, text in _SLOWING.items() if mask & bit)


def bus_id(ordinal: int) -> str:
    """Of the GPU that CUDA, which was initialised, calls so. Raises whatever is wrong with PyCUDA or the driver."""
    from pycuda import driver

    return str(driver.Device(ordinal).pci_bus_id())


def handle(pci_bus_id: str) -> tuple[Any, Any]:
    """The module ``pynvml`` and the GPU's handle in it. Raises whatever is wrong with either."""
    import pynvml

    pynvml.nvmlInit()
    return pynvml, pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id)

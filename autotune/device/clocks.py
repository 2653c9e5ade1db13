"""The clocks of a GPU and what holds them down, from NVML; where NVML does not answer, nothing is ever held down."""

from collections.abc import Iterator
from contextlib import contextmanager
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


class ClockWatch:
    """One device; for a cpu, or without NVML, ``find_throttling`` is always empty and ``problem`` says why."""

    def __init__(self, device: Device) -> None:
        self.problem = "no GPU to watch"
        self._nvml: Any = None
        if device.kind == "cuda":
            with self._ask_nvml("not available"):
                self._nvml, self._handle = nvml_handle(device.ordinal)

    @contextmanager
    def _ask_nvml(self, failed: str) -> Iterator[None]:
        """NVML is a courtesy: a failure leaves its figures out, and costs no measurement."""
        try:
            yield
        except Exception as problem:  # noqa: BLE001 - of a missing package, the driver, or the GPU
            self.problem, self._nvml = f"{failed}: {type(problem).__name__}: {problem}", None

    def find_throttling(self) -> str:
        """What holds the clocks down at this moment, with the clock; empty when nothing does, or nobody knows. To be
        asked when a sampling has just ended. An NVML that stops answering is not asked again."""
        held = ""
        with self._ask_nvml("stopped answering"):
            if self._nvml and (found := reasons(self._mask())):
                now, most = self._clock()
                held = f"{found}, {now} of {most} MHz"
        return held

    def describe(self) -> dict[str, Any]:
        """Driver version, SM clocks in MHz and the bit mask of reasons; why not, where NVML does not answer."""
        said: dict[str, Any] = {}
        with self._ask_nvml("not available"):
            if self._nvml:
                now, most = self._clock()
                said = {
                    "driver": self._nvml.nvmlSystemGetDriverVersion(),
                    "clock_mhz": now,
                    "clock_max_mhz": most,
                    "throttle_reasons": self._mask(),
                }
        return said if self._nvml else {"nvml": self.problem}

    def _mask(self) -> int:
        return int(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))

    def _clock(self) -> tuple[int, int]:
        """SM clock now and at most, in MHz."""
        sm, nvml = self._nvml.NVML_CLOCK_SM, self._nvml
        now, most = nvml.nvmlDeviceGetClockInfo, nvml.nvmlDeviceGetMaxClockInfo
        return int(now(self._handle, sm)), int(most(self._handle, sm))


def reasons(mask: int) -> str:
    """The reasons in NVML's bit mask that make kernels slower, in words; empty for none."""
    return " and ".join(text for bit, text in _SLOWING.items() if mask & bit)


def nvml_handle(ordinal: int) -> tuple[Any, Any]:
    """The module ``pynvml``, and in it the GPU that CUDA, which was initialised, calls by ``ordinal``. Raises whatever
    is wrong with PyCUDA, NVML or the driver."""
    import pynvml
    from pycuda import driver

    pynvml.nvmlInit()
    return pynvml, pynvml.nvmlDeviceGetHandleByPciBusId(str(driver.Device(ordinal).pci_bus_id()))

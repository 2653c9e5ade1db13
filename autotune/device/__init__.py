"""Memory, launches and events on one device, and layouts applied there: cuda and cpu behind one protocol."""

from typing import TYPE_CHECKING

from autotune import lazy
from autotune.device import elements, foreign
from autotune.device.backend import (
    Backend,
    Beginning,
    Call,
    Closing,
    Constant,
    Copy,
    LaunchError,
    Lender,
    Module,
    Outlet,
    Placed,
)
from autotune.device.clocks import POWER_OR_HEAT, Watch, watch
from autotune.device.execution import Execution
from autotune.device.foreign import View
from autotune.device.open import device_names, has_driver, import_ahead, open_backend
from autotune.device.orders import Ordering
from autotune.device.placed import PlacedInput, Shared, linear
from autotune.device.program import DeviceProgram, Room
from autotune.device.resident import (
    Resident,
    can_be_staged,
    check_numbers,
    compiled_module,
    content_refusal,
    run_each,
    run_once,
)
from autotune.device.transform import Mover, alignment, is_as_stored, lie_merged, raw, refusal, staged

if TYPE_CHECKING:
    from autotune.device.clock_holder import checked_clocks, locked_clocks
    from autotune.device.cpu.backend import CpuBackend
    from autotune.device.cpu.native import Launch, runtime
    from autotune.device.cpu.trace import (
        OTHER,
        Accesses,
        EnoughTraced,
        Range,
        Trace,
        TracingBackend,
        traced_toolchain,
    )
    from autotune.device.cuda.backend import CudaBackend
    from autotune.device.cuda.driver import devices
    from autotune.device.energy import Counter, Reading, energy_counter, watts

__all__ = [
    "OTHER",
    "POWER_OR_HEAT",
    "Accesses",
    "Backend",
    "Beginning",
    "Call",
    "Closing",
    "Constant",
    "Copy",
    "Counter",
    "CpuBackend",
    "CudaBackend",
    "DeviceProgram",
    "EnoughTraced",
    "Execution",
    "Launch",
    "LaunchError",
    "Lender",
    "Module",
    "Mover",
    "Ordering",
    "Outlet",
    "Placed",
    "PlacedInput",
    "Range",
    "Reading",
    "Resident",
    "Room",
    "Shared",
    "Trace",
    "TracingBackend",
    "View",
    "Watch",
    "alignment",
    "can_be_staged",
    "check_numbers",
    "checked_clocks",
    "compiled_module",
    "content_refusal",
    "device_names",
    "devices",
    "elements",
    "energy_counter",
    "foreign",
    "has_driver",
    "import_ahead",
    "is_as_stored",
    "lie_merged",
    "linear",
    "locked_clocks",
    "open_backend",
    "raw",
    "refusal",
    "run_each",
    "run_once",
    "runtime",
    "staged",
    "traced_toolchain",
    "watch",
    "watts",
]

_ON_DEMAND = {  # by module: a dispatcher never pays for these
    "clock_holder": "checked_clocks locked_clocks",
    "cpu.backend": "CpuBackend",
    "cpu.native": "Launch runtime",
    "cpu.trace": "OTHER Accesses EnoughTraced Range Trace TracingBackend traced_toolchain",
    "cuda.backend": "CudaBackend",
    "cuda.driver": "devices",
    "energy": "Counter Reading energy_counter watts",
}


__getattr__ = lazy(__name__, _ON_DEMAND)

from . import elements as elements, foreign as foreign, transform as transform
from .backend import (
    Backend as Backend,
    Call as Call,
    Closing as Closing,
    Constant as Constant,
    Copy as Copy,
    LaunchError as LaunchError,
    Lender as Lender,
    Module as Module,
    CopyQueue as CopyQueue,
    Placed as Placed,
    make_raw as make_raw,
)
from .clock_lock import lock_clocks as lock_clocks
from .clocks import POWER_OR_HEAT as POWER_OR_HEAT, ClockWatch as ClockWatch, nvml_handle as nvml_handle
from .cpu.backend import CpuBackend as CpuBackend, CpuModule as CpuModule, CpuPlaced as CpuPlaced
from .cpu.native import runtime as runtime
from .cuda.driver import devices as devices
from .execution import Execution as Execution
from .foreign import View as View
from .open import device_names as device_names, has_driver as has_driver, open_backend as open_backend
from .orders import Ordering as Ordering
from .placed import PlacedInput as PlacedInput, Shared as Shared, linear as linear
from .program import DeviceProgram as DeviceProgram, Room as Room
from .resident import (
    Resident as Resident,
    can_be_staged as can_be_staged,
    check_numbers as check_numbers,
    compile_module as compile_module,
    content_refusal as content_refusal,
    run_each as run_each,
)
from .transform import LayoutTransform as LayoutTransform

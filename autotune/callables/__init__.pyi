from .decorator import TunedFunction as TunedFunction, tuned as tuned
from .launchers import (
    LibraryLaunch as LibraryLaunch,
    cupy_elementwise as cupy_elementwise,
    cupy_raw as cupy_raw,
    numba_kernel as numba_kernel,
    warp_kernel as warp_kernel,
)
from .layouts import Layouts as Layouts
from .tuning import BoundFunction as BoundFunction, TunedCall as TunedCall, tune as tune

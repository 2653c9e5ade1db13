"""What a GPU's board has used since some moment, in joules, by NVML."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from autotune.device.clocks import nvml_handle
from autotune.errors import DeviceError
from autotune.hardware import Device

_SOON_S = 0.002  # between readings, beside which a move is seen when it happens


@dataclass(frozen=True)
class Reading:
    """``joules`` used at ``seconds``, both since some moment."""

    seconds: float
    joules: float


Counter = Callable[[], Reading]


def energy_counter(device: Device) -> Counter:
    """Reads what ``device`` has used. Raises DeviceError where nothing here tells it."""
    if device.kind == "cpu":
        raise DeviceError(
            f"the energy of {device.name} cannot be read: only a GPU's can; leave --objective energy out, or name a "
            "GPU with --device"
        )
    try:
        nvml, gpu = nvml_handle(device.ordinal)

        def read() -> Reading:
            millijoules = int(nvml.nvmlDeviceGetTotalEnergyConsumption(gpu))
            return Reading(time.perf_counter(), millijoules / 1e3)

        read()
    except Exception as problem:  # noqa: BLE001 - a missing package, library, device, or right
        raise DeviceError(
            f"the energy of {device.name} cannot be read ({type(problem).__name__}: {problem}): it takes NVML "
            "(pip install nvidia-ml-py) and a GPU from Volta on; leave --objective energy out"
        ) from None
    return read


def watts(readings: Sequence[Reading], since: float = 0.0) -> float:
    """Mean power between the first and the last of ``readings`` from ``since`` on at which the counter moved; 0 where
    it did so less than twice.

    A counter stands still for some milliseconds and then moves by what was used meanwhile, so that only between two
    moves time and energy belong together. Where it moved at every reading, all of them do. A move that was seen long
    after the reading before it, as the counter answered late, says when it was no better than that, and is left out.
    """
    if all(now.joules > before.joules for before, now in pairwise(readings)):
        moves = [(one, 0.0) for one in readings]
    else:
        moves = [(b, b.seconds - a.seconds) for a, b in pairwise(readings) if b.joules > a.joules]
    late = [(one, gap) for one, gap in moves if one.seconds >= since]
    used = late if len(late) > 1 else moves
    soon = 2 * min((gap for _, gap in used), default=0.0) + _SOON_S
    seen = [one for one, gap in used if gap <= soon]
    if len(seen) < 2:
        seen = [one for one, _ in used]
    if len(seen) < 2 or seen[-1].seconds <= seen[0].seconds:
        return 0.0
    return (seen[-1].joules - seen[0].joules) / (seen[-1].seconds - seen[0].seconds)

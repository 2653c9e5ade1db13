"""What a device has used since some moment, in joules: a GPU's board by NVML, a cpu's packages by RAPL."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from autotune.device.clocks import nvml_handle
from autotune.errors import DeviceError
from autotune.hardware import Device

_SOON_S = 0.002  # between readings, beside which a move is seen when it happens
POWERCAP = Path("/sys/class/powercap")
_PACKAGE = re.compile(r"intel-rapl:\d+")  # the kernel calls AMD's so too; with another colon: a part of one


@dataclass(frozen=True)
class Reading:
    """``joules`` used at ``seconds``, both since some moment."""

    seconds: float
    joules: float


Counter = Callable[[], Reading]


def energy_counter(device: Device, powercap: Path = POWERCAP) -> Counter:
    """Reads what ``device`` has used. Raises DeviceError where nothing here tells it."""
    return _cpu_counter(device, powercap) if device.kind == "cpu" else _gpu_counter(device)


def _gpu_counter(device: Device) -> Counter:
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


def _cpu_counter(device: Device, powercap: Path) -> Counter:
    zones = sorted(path for path in powercap.glob("intel-rapl:*") if _PACKAGE.fullmatch(path.name))
    try:
        packages = [_Package.at(zone) for zone in zones if _told(zone / "name").startswith("package")]
        if not packages:
            raise DeviceError(
                f"the energy of {device.name} cannot be read: {powercap} has no package of RAPL (a virtual machine "
                "shows none, and other kernels than Linux have it elsewhere); leave --objective energy out"
            )
    except OSError as problem:
        raise DeviceError(
            f"the energy of {device.name} cannot be read: {problem.filename}: {problem.strerror}. Reading RAPL takes "
            "root, or the right to read energy_uj; or leave --objective energy out"
        ) from None

    def read() -> Reading:
        return Reading(time.perf_counter(), sum(package.joules() for package in packages))

    return read


@dataclass
class _Package:
    """One package's counter, which begins anew at ``whole`` microjoules."""

    file: Path
    whole: int
    last: int
    turns: int = field(default=0)

    @classmethod
    def at(cls, zone: Path) -> "_Package":
        whole = int(_told(zone / "max_energy_range_uj"))
        return cls(zone / "energy_uj", whole, int(_told(zone / "energy_uj")))

    def joules(self) -> float:
        now = int(_told(self.file))
        self.turns += now < self.last
        self.last = now
        return (self.turns * self.whole + now) / 1e6


def _told(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()


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

"""Winners of callables in policy files: found for a call, and kept after one was tuned.

``call.json``, next to the policy files of a function, says which arrays it writes and what it returns. The first call
shows that; a later program needs it before it calls the function.
"""

import ctypes
import json
import platform
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.callables.declared import CALL_FILE, CallArray, Declared
from autotune.callables.libraries import Kind
from autotune.callables.tuning import CallProblem
from autotune.compile import cpu_model
from autotune.declaration import Configuration
from autotune.errors import DeviceError
from autotune.files import policy_folders
from autotune.hardware import Device
from autotune.policy import Candidate, Frozen, candidates, find, resolve_frozen

_MATCHES = ("exact", "predicted", "nearest", "capability", "default")
_MAJOR, _MINOR, _MULTIPROCESSORS = 75, 76, 16  # CUdevice_attribute


@dataclass(frozen=True)
class FoundWinners:
    """What policy files say of one call: the ``candidates`` that may be taken, best first; ``lacks`` says what is
    missing where none of them is exact, ``frozen`` as in ``policy.frozen``."""

    candidates: tuple[Candidate, ...]
    lacks: str
    frozen: Frozen = False

    @property
    def best(self) -> Candidate | None:
        return next(iter(self.candidates), None)

    @property
    def is_exact(self) -> bool:
        return self.best is not None and self.best.match == "exact"

    @property
    def configurations(self) -> list[Configuration]:
        """Each once, best first."""
        listed = [one.configuration for one in self.candidates if one.configuration is not None]
        return list(dict.fromkeys(listed))


def find_winners(
    problem: CallProblem, policies: str | Path | None, frozen: Frozen | None = None
) -> FoundWinners:
    """What the policy files below ``policies``, or else where they are looked for, have for a call of a program that is
    to be ``frozen`` or not; None leaves that to AUTOTUNE_FROZEN and to the policy file."""
    folders = [Path(policies)] if policies else policy_folders()
    name = problem.declared.name
    read = (_read_declared(problem, folder / name / CALL_FILE) for folder in folders)
    declared = next(filter(None, read), None)
    where = ", ".join(str(folder / name) for folder in folders)
    if declared is None:
        told = f"{name} has not been tuned: no {CALL_FILE} in {where}"
        return FoundWinners((), told, resolve_frozen(frozen))
    _, is_gpu, ordinal = problem.device.partition(":")
    device = gpu(int(ordinal)) if is_gpu else Device(kind="cpu", name=cpu_model(), arch=platform.machine())
    family = declared.family
    files, passed = find(family, device, folders, frozen=frozen)
    if files is None:
        why = "".join(f"; {one.origin}: {one.refusal}" for one in passed)
        told = f"{name} has no policy file for {device.slug} in {where}{why}"
        return FoundWinners((), told, resolve_frozen(frozen))
    numbers = {
        **{extent: size for each, array in declared.arrays.items()
           for extent, size in zip(declared.extents(each), array.extents, strict=True)},
        **problem.declared.numbers,
    }  # fmt: skip
    listed = candidates(family, files, numbers, {})
    standing = (one for one in listed if one.match in _MATCHES and not one.refusal and one.configuration)
    sizes = ", ".join(f"{key}={numbers[key]:g}" for key in family.features if key in numbers)
    refused = "".join(f"; {one.origin}: {one.refusal}" for one in listed if one.refusal)
    told = f"{name} was not tuned for {sizes or 'this call'} on {device.slug}{refused}"
    return FoundWinners(tuple(standing), told, files.frozen)


def _read_declared(problem: CallProblem, path: Path) -> Declared | None:
    """The declaration that ``TunedCall.save_policy`` wrote; None where there is none that can be read."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        arrays = dict(problem.declared.arrays)
        for name, role in told["written"].items():
            if name in arrays:
                arrays[name] = replace(arrays[name], role=role)
        for name, one in told["returned"].items():
            kind = Kind(**{key: value for key, value in one.items() if key != "dimensions"})
            arrays[name] = CallArray(kind, (1,) * int(one["dimensions"]), "output")
        return replace(problem.declared, arrays=arrays, returned=tuple(told["returned"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def gpu(ordinal: int) -> Device:
    """The GPU of that number, asked of the driver alone: no library is needed for it. Raises DeviceError."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        text, number = ctypes.create_string_buffer(256), ctypes.c_int()
        if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(number), ordinal):
            raise OSError(f"cuda:{ordinal} does not exist")
        driver.cuDeviceGetName(text, len(text), number)

        def attribute(which: int) -> int:
            value = ctypes.c_int()
            driver.cuDeviceGetAttribute(ctypes.byref(value), which, number)
            return value.value

        arch = f"sm_{attribute(_MAJOR)}{attribute(_MINOR)}"
        return Device(
            kind="cuda", name=text.value.decode(), arch=arch, ordinal=ordinal,
            multiprocessors=attribute(_MULTIPROCESSORS),
        )  # fmt: skip
    except OSError as problem:
        raise DeviceError(f"cannot read the name of the arrays' GPU: {problem}") from None

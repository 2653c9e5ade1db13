"""GPU or cpu for a call: which is faster, and how much is lost where there is no choice."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autotune.device import Device
from autotune.errors import PolicyFileError
from autotune.family import Family
from autotune.policyfile import read
from autotune.selection import Policies, find

__all__ = ["Choice", "choose", "known_gpus", "loss"]

_WORTH_A_WARNING = 10.0  # times slower


@dataclass(frozen=True)
class Choice:
    """``kind`` is cuda or cpu; ``reason`` completes the sentence "it runs there because"."""

    kind: str
    reason: str


def choose(work: float, below: float | None, gpu_ms: float, cpu_ms: float) -> Choice:
    """Where a call of ``work`` operations (crossover.operations) that begins with host arrays runs.

    ``below`` is the measured crossover in operations (policyfile.Crossover), None when the devices were not both tuned;
    then the expected times of the call decide, transfers included, in milliseconds, 0 for one that is not known. With
    nothing known it is the GPU.
    """
    if below is not None:
        if work < below:
            return Choice("cpu", f"{work:.4g} operations are fewer than the measured crossover, {below:.4g}")
        return Choice("cuda", f"{work:.4g} operations are not below the measured crossover, {below:.4g}")
    if 0 < cpu_ms < gpu_ms:
        return Choice("cpu", f"{cpu_ms:.3g} ms are expected there and {gpu_ms:.3g} ms on the GPU")
    if cpu_ms and gpu_ms:
        return Choice("cuda", f"{gpu_ms:.3g} ms are expected there and {cpu_ms:.3g} ms on the cpu")
    return Choice("cuda", "how long the cpu would take was not measured")


def loss(cpu_ms: float, gpus: Iterable[tuple[str, float]]) -> str:
    """What a call on the cpu is expected to lose against the fastest of ``gpus`` (name, milliseconds; 0 when not
    known), for a warning; empty when it is 10 times or less, or not known."""
    known = [(ms, name) for name, ms in gpus if ms > 0]
    if not known or cpu_ms <= _WORTH_A_WARNING * min(known)[0]:
        return ""
    ms, name = min(known)
    return (
        f"the cpu is expected to be {cpu_ms / ms:.0f} times slower than {name} for this input "
        f"({cpu_ms:.3g} ms instead of {ms:.3g} ms)"
    )


def known_gpus(family: Family, folders: Iterable[Path]) -> list[Policies]:
    """What the policy files say of every GPU that the family was tuned on and that is still up to date."""
    found = {}
    for folder in folders:
        try:
            paths = sorted((folder / family.name).glob("*.yaml"))
        except OSError:
            continue
        for path in paths:
            try:
                about = read(path).device
            except PolicyFileError:
                continue  # the file for this device is reported; others are nobody's concern
            if about.get("kind") != "cuda" or path.stem in found:
                continue
            arch = "sm_" + str(about.get("compute_capability", "")).replace(".", "")
            policies, _ = find(family, Device(kind="cuda", name=str(about["name"]), arch=arch), [folder])
            if policies and policies.own:
                found[path.stem] = policies
    return list(found.values())

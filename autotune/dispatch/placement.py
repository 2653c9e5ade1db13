"""The devices of a kernel, and on which of them a call runs: the GPU, or the cpu where it is faster or all there is."""

import logging
import threading
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from autotune.compile import Cache
from autotune.declaration import Family, Inputs
from autotune.device import Backend, open_backend
from autotune.dispatch.target import Choosing, Target, Told
from autotune.errors import PolicyFileError
from autotune.hardware import Device
from autotune.policy import Policies, file_name, find, untuned
from autotune.policy import read_policy_file as read

_WORTH_A_WARNING = 10.0  # times slower


@dataclass(frozen=True)
class Choice:
    """``kind`` is cuda or cpu; ``reason`` completes the sentence "it runs there because"."""

    kind: str
    reason: str


def faster_device(work: float, below: float | None, gpu_ms: float, cpu_ms: float) -> Choice:
    """Where a call of ``work`` operations (policy.operations) that begins with host arrays runs.

    ``below`` is the measured crossover in operations (policy.Crossover), None when the devices were not both tuned;
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


_log = logging.getLogger("autotune")


class Placement:
    """``device`` is what the caller named: cpu, cuda or cuda:N, and nothing else is used then; None or auto leaves
    the choice open. ``first`` is where calls go unless the cpu is faster for them. Raises DeviceError, UnknownName."""

    def __init__(
        self, family: Family, device: str | None, folders: Sequence[Path], cache: Cache, choosing: Choosing
    ) -> None:
        self._family, self._folders = family, folders
        self._target_on = partial(Target, family, folders=folders, cache=cache, choosing=choosing)
        self._may_change = device in (None, "auto")
        self._lock = threading.RLock()
        self._targets: dict[str, Target] = {}
        self._out_of_use: set[str] = set()  # kinds of device that failed
        self._told_loss = False
        self._told = Told()
        self.first = self._opened(open_backend(device or "auto"), 5)

    def _opened(self, backend: Backend, stacklevel: int) -> Target:
        target = self._target_on(backend)
        self._targets[target.kind] = target
        if target.policies is None:
            told = untuned(self._family, backend.device, self._folders, target.passed)
            warnings.warn(told, stacklevel=stacklevel)
        return target

    def _cpu(self) -> Target:
        with self._lock:
            return self._targets.get("cpu") or self._opened(open_backend("cpu"), 7)

    def target_for(self, inputs: Inputs, *, is_on_gpu: bool = False) -> Target:
        """Where ``inputs`` run: a call whose arrays are on the GPU stays there."""
        if self.first.kind == "cpu" or "cuda" in self._out_of_use:
            cpu = self._cpu()
            if self._may_change:
                self._tell_loss(cpu, inputs)
            return cpu
        if not self._may_change or is_on_gpu or "cpu" in self._out_of_use:
            return self.first
        choice = self.choice(inputs)
        _log.log(
            self._told.level(choice.kind), "%s runs on %s: %s", self._family.name, choice.kind, choice.reason
        )
        return self._cpu() if choice.kind == "cpu" else self.first

    def choice(self, inputs: Inputs) -> Choice:
        """By the crossover in the GPU's policy file, else by what both files expect."""
        work, policies = self.first.work(inputs), self.first.policies
        measured = policies.crossover(self._cpu_slug) if policies else None
        if measured is not None:
            return faster_device(work, measured.below, 0.0, 0.0)
        if not self._is_cpu_tuned:
            return faster_device(work, None, 0.0, 0.0)  # and the cpu is not even opened
        return faster_device(work, None, self.first.expected_ms(inputs), self._cpu().expected_ms(inputs))

    @cached_property
    def _gpus(self) -> list[Policies]:
        """What the policy files say of every GPU that the family was tuned on and that is still up to date. The file
        for this device is reported; what is wrong with others is nobody's concern."""
        found: dict[str, Policies] = {}
        for folder in self._folders:
            with suppress(OSError):
                for path in sorted((folder / self._family.name).glob("*.yaml")):
                    with suppress(PolicyFileError):
                        device = read(path).device
                        policies, _ = find(self._family, device, [folder])
                        if device.kind == "cuda" and policies and policies.own:
                            found.setdefault(path.stem, policies)
        return list(found.values())

    @cached_property
    def _cpu_slug(self) -> str:
        from autotune.compile import cpu_model

        return Device(kind="cpu", name=cpu_model(), arch="").slug

    @cached_property
    def _is_cpu_tuned(self) -> bool:
        name = file_name(self._family.name, self._cpu_slug)
        return any((folder / name).is_file() for folder in self._folders)

    def after_failure(self, failed: Target, problem: Exception, inputs: Inputs) -> Target | None:
        """Where a call with ``inputs`` goes whose device failed, from now on; None when there is no other."""
        with self._lock:
            if not self._may_change or self.first.kind == "cpu" or self._out_of_use - {failed.kind}:
                return None
            self._out_of_use.add(failed.kind)
        other = "cpu" if failed.kind == "cuda" else "GPU"
        warnings.warn(
            f"{failed.backend.device.name} failed, running on the {other} from now on: {problem}",
            stacklevel=5,
        )
        if other == "GPU":
            return self.first
        self._tell_loss(self._cpu(), inputs)
        return self._cpu()

    def _tell_loss(self, cpu: Target, inputs: Inputs) -> None:
        """Warn, once, when the cpu stands in for a GPU that was measured to be much faster."""
        if self._told_loss or not self._gpus:
            return
        work = cpu.work(inputs)
        times = [(policies.device.name, policies.expected_call_ms(work)) for policies in self._gpus]
        if text := loss(cpu.expected_ms(inputs), times):
            self._told_loss = True
            warnings.warn(f"{self._family.name}: {text}", stacklevel=5)

    def close(self) -> None:
        """Release every device. Safe to call twice."""
        for target in self._targets.values():
            target.close()

"""Measuring in the sweeping process itself, on a backend that a test has: no time limit, and a device that loses its
context ends it."""

import math
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from autotune.declaration import Family, Inputs, read_arrays
from autotune.device import Backend, LaunchError
from autotune.engine.measurer import Measurer, Proof
from autotune.engine.messages import (
    Compare,
    Describe,
    Died,
    Job,
    MakeReference,
    Prove,
    Proved,
    Ragged,
    RaggedSize,
    Retime,
    Setting,
    Tried,
    given_ragged,
)
from autotune.engine.ragged import ragged_proofs
from autotune.measure import expected_outputs

__all__ = ["LocalWorker"]


class LocalWorker:
    """A Worker (see crew) without a process. The backend stays the caller's to close."""

    def __init__(self, backend: Backend, compiler: str = "") -> None:
        self.backend, self.device, self.lost = backend, backend.device, ""
        self.toolchain = backend.toolchain(compiler)
        self.deadline = math.inf
        self.pipe = None
        self._measurer: Measurer | None = None
        self._expected: dict[str, Any] = {}
        self._ragged: Sequence[Proof] = []
        self._jobs: deque[Job] = deque()
        self._current = ExitStack()

    @property
    def room(self) -> int:
        return 0 if self.lost else 1 - len(self._jobs)

    @property
    def busy(self) -> bool:
        return bool(self._jobs)

    def start(self) -> None:
        self._current.enter_context(self.backend.current())

    def reference(self, request: MakeReference, family: Family, inputs: Inputs) -> float:
        self._expected, elapsed_ms = expected_outputs(family, inputs, request.cache)
        return elapsed_ms

    def study(self, setting: Setting, family: Family, inputs: Inputs) -> None:
        self._inputs = inputs
        expected = self._expected or read_arrays(setting.arrays, "expected", family.outputs)
        self._measurer = Measurer(self.backend, family, setting.workload, inputs, expected, setting.protocol)

    def send(self, jobs: Sequence[Job]) -> None:
        self._jobs += jobs

    def receive(self) -> list[Tried | Died]:
        if not self._jobs or self.lost:
            return []
        assert self._measurer
        tried = self._measurer.tried(self._jobs.popleft())
        if tried.lost:
            trial = tried.trial
            self.lost = (
                f"{trial.configuration.id} took the device's context with it ({trial.reason}); it is recorded as "
                "crashed. Run the same command again: it goes on behind that configuration"
            )
        return [tried]

    def take_back(self) -> list[Job]:
        jobs, self._jobs = list(self._jobs), deque()
        return jobs

    def ask(self, request: Retime | Compare | Describe | Ragged | Prove, trials: float) -> Any:
        if self.lost:
            raise LaunchError(self.lost)
        assert self._measurer
        match request:
            case Retime():
                return self._measurer.retimed(request)
            case Compare():
                return self._measurer.compared(request)
            case Ragged():
                family, workload = self._measurer.family, request.setting.workload
                sizes, self._ragged = ragged_proofs(
                    family, workload, self._inputs, request.root, request.steps,
                    lambda made: expected_outputs(family, made, request.cache)[0], request.up_to,
                )  # fmt: skip
                return sizes
            case Prove():
                return self._proved(request)
        return self._measurer.described()

    def _proved(self, request: Prove) -> Proved:
        assert self._measurer
        found = self._measurer.proved(request, lambda size: self._of(request, size))
        if found.lost:
            self.lost = f"{request.job.configuration.id} took the device's context with it ({found.reason})"
        return found

    def _of(self, request: Prove, size: RaggedSize) -> Proof:
        assert self._measurer
        family = self._measurer.family
        return self._ragged[size.number] if self._ragged else given_ragged(request.setting, family, size)

    def close(self, at_once: bool = False) -> None:
        if self._measurer:
            self._measurer.close()
            self._measurer = None
        self._current.close()

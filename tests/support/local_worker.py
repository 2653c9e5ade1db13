"""Measuring in the sweeping process itself, on a backend that a test has: no time limit, and a device that loses its
context ends it."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from autotune.device import Backend, LaunchError
from autotune.engine.measuring_process import Measuring
from autotune.engine.messages import Died, Job, Proved, Setting, Tried
from autotune.engine.process_worker import ProcessWorker
from autotune.measure import SweptDevice

__all__ = ["LocalWorker"]


class LocalWorker(ProcessWorker):
    """A worker without a process. The backend stays the caller's to close."""

    def __init__(self, backend: Backend, compiler: str = "") -> None:
        self.backend, self.device, self.lost = backend, backend.device, ""
        self.toolchain = backend.toolchain(compiler)
        self.deadline = math.inf
        self._measuring = Measuring(SweptDevice(backend, self.toolchain))
        self._jobs: deque[Job] = deque()
        self._current = ExitStack()

    @property
    def pipe(self) -> None:
        return None

    @property
    def room(self) -> int:
        return 0 if self.lost else 1 - len(self._jobs)

    @property
    def busy(self) -> bool:
        return bool(self._jobs)

    def start(self) -> None:
        self._current.enter_context(self.backend.current())

    def study(self, setting: Setting | None) -> None:
        assert setting
        self._measuring.begin(setting)

    def send(self, jobs: Sequence[Job]) -> None:
        self._jobs += jobs

    def receive(self) -> list[Tried | Died]:
        if not self._jobs or self.lost:
            return []
        tried = self._measuring.measurer.try_job(self._jobs.popleft())
        if tried.lost:
            self._lose(tried.trial.configuration.id, tried.trial.reason)
        return [tried]

    def _lose(self, configuration: str, reason: str) -> None:
        self.lost = (
            f"{configuration} took the device's context with it ({reason}); it is recorded as crashed. Run the same "
            "command again: it goes on behind that configuration"
        )

    def take_back(self) -> list[Job]:
        jobs, self._jobs = list(self._jobs), deque()
        return jobs

    def ask(self, trials: float, method: Callable[..., Any], *given: Any, **_: Any) -> Any:
        if self.lost:
            raise LaunchError(self.lost)
        told = method(self._measuring, *given)
        if isinstance(told, Proved) and told.lost:
            self._lose(given[1].configuration.id, told.reason)
        return told

    def close(self, at_once: bool = False) -> None:
        self._measuring.close()
        self._current.close()

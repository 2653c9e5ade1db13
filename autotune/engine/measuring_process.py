"""The loop of a measuring process: it opens its device, and answers what comes by its pipe."""

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from autotune.compile import Compiled
from autotune.declaration import Configuration
from autotune.device import Backend, LaunchError
from autotune.engine.measurer import Measurer
from autotune.engine.messages import (
    Compared,
    Job,
    Opened,
    Proved,
    Question,
    RaggedSize,
    RaggedSizes,
    Refused,
    Retimed,
    Setting,
    Sign,
    Tried,
    given,
    given_ragged,
    write_expected,
)
from autotune.engine.ragged import ragged_files
from autotune.engine.shared_inputs import has_arrays, read_arrays
from autotune.errors import AutotuneError
from autotune.measure import SweptDevice, expected_outputs
from autotune.processes import Answer, reporting


@dataclass
class Measuring:
    """What a measuring process has: its device, and the study that it was given last. Questions to it are methods."""

    swept: SweptDevice
    _measurer: Measurer | None = None

    @property
    def measurer(self) -> Measurer:
        assert self._measurer, "a setting comes before its jobs"
        return self._measurer

    def begin(self, setting: Setting) -> None:
        """The study that jobs and questions are of from now on."""
        self.close()
        family, inputs = given(setting)
        is_own = family.is_own_reference and not has_arrays(setting.arrays, "expected", family.outputs)
        outputs = None if is_own else read_arrays(setting.arrays, "expected", family.outputs)
        self._measurer = Measurer(
            self.swept.backend, family, setting.workload, inputs, outputs, setting.protocol
        )

    def reference(self, setting: Setting, cache: Path) -> float:
        """Writes the expected outputs to the setting's ``arrays``: the milliseconds that they took. ``cache`` is the
        compile cache's folder."""
        family, inputs = given(setting)
        if family.is_own_reference:
            return 0.0
        outputs, elapsed_ms = expected_outputs(family, inputs, cache, self.swept)
        write_expected(setting.arrays, outputs)
        return elapsed_ms

    def ragged(
        self, setting: Setting, root: Path, cache: Path, steps: Mapping[str, Sequence[int]], up_to: int
    ) -> RaggedSizes:
        """Inputs of ragged sizes near the setting's, with their expected outputs, as files in its ``arrays``; see
        ``ragged.ragged_inputs``. ``root`` is the data folder."""
        family, inputs = given(setting)
        found = ragged_files(
            setting, family, inputs, root, steps,
            lambda made: expected_outputs(family, made, cache, self.swept)[0], up_to,
        )  # fmt: skip
        try:
            self.swept.backend.synchronize()
        except LaunchError:  # a kernel that is the reference took the context with it
            os._exit(1)
        return found

    def proved(self, setting: Setting, job: Job, size: RaggedSize | None) -> Proved:
        """Whether the results are right for a ragged size, or for the inputs that are swept."""
        return self.measurer.proved(job, size, partial(given_ragged, setting, self.measurer.family))

    def retimed(self, jobs: Sequence[Job], few: frozenset[Configuration], estimate_ms: float) -> Retimed:
        return self.measurer.retimed(jobs, few, estimate_ms)

    def compared(self, compiled: Compiled, jobs: Sequence[Job], estimate_ms: float) -> Compared:
        return self.measurer.compared(compiled, jobs, estimate_ms)

    def described(self) -> dict[str, Any]:
        return self.measurer.described()

    def close(self) -> None:
        if self._measurer:
            self._measurer.close()
        self._measurer = None


def serve(pipe: Connection, opened: Callable[[], Backend], compiler: str) -> None:
    """The process's life (see processes.Child)."""
    with reporting(pipe), closing(opened()) as backend, backend.current():
        toolchain = backend.toolchain(compiler)
        _warm(backend)
        pipe.send(Opened(backend.device, toolchain))
        _work(pipe, Measuring(SweptDevice(backend, toolchain)))


def _work(pipe: Connection, measuring: Measuring) -> None:
    """Answer requests in order until there are no more."""
    mark = time.perf_counter()
    while (requests := pipe.recv()) is not None:
        for request in requests:
            wait_s = time.perf_counter() - mark
            answer: object
            match request:
                case Setting():
                    measuring.begin(request)
                    answer = Sign.SET
                case Job():
                    begun_s = time.time()
                    tried = measuring.measurer.tried(request, lambda: pipe.send(Sign.PLACED))
                    trial = replace(
                        tried.trial, begun_s=begun_s, worker=f"{socket.gethostname()}:{os.getpid()}"
                    )
                    answer = replace(tried, trial=trial, seconds={**tried.seconds, "wait": wait_s})
                case Question(method, arguments):
                    answer = _answer(lambda: method(measuring, *arguments))
            pipe.send(answer)
            content = answer.content if isinstance(answer, Answer) else answer
            if isinstance(content, Tried | Proved) and content.lost:
                os._exit(1)  # no destructor of this process would find its context
            mark = time.perf_counter()
    measuring.close()


def _answer(give: Callable[[], Any]) -> Answer | Refused:
    try:
        return Answer(give())
    except LaunchError as problem:
        return Refused(str(problem))
    except AutotuneError:
        raise
    except Exception as problem:  # noqa: BLE001 - whatever a family's Python raises
        return Refused(f"{type(problem).__name__}: {problem}")


def _warm(backend: Backend) -> None:
    """What a device needs once is made before the first trial's time limit counts."""
    if backend.device.kind == "cpu":
        from autotune.compile import default_root, find_compiler
        from autotune.device import runtime

        runtime.table(find_compiler(""), default_root())
    else:
        backend.sample(lambda: None, 1, True)

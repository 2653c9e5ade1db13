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
    OddSize,
    OddSizes,
    Opened,
    Proved,
    Question,
    Refused,
    Retimed,
    Setting,
    Sign,
    Tried,
    load_inputs,
    read_odd_size,
    write_expected,
)
from autotune.engine.odd_sizes import write_odd_sizes
from autotune.engine.shared_inputs import has_arrays, read_arrays
from autotune.errors import AutotuneError
from autotune.measure import SweptDevice, compute_expected
from autotune.processes import Answer, report_problems


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
        family, inputs = load_inputs(setting)
        is_own = family.is_own_reference and not has_arrays(setting.arrays, "expected", family.outputs)
        outputs = None if is_own else read_arrays(setting.arrays, "expected", family.outputs)
        self._measurer = Measurer(
            self.swept.backend, family, setting.workload, inputs, outputs, setting.protocol
        )

    def reference(self, setting: Setting, cache: Path) -> float:
        """Writes the expected outputs to the setting's ``arrays``: the milliseconds that they took. ``cache`` is the
        compile cache's folder."""
        family, inputs = load_inputs(setting)
        if family.is_own_reference:
            return 0.0
        outputs, elapsed_ms = compute_expected(family, inputs, cache, self.swept)
        write_expected(setting.arrays, outputs)
        return elapsed_ms

    def make_odd_sizes(
        self, setting: Setting, root: Path, cache: Path, steps: Mapping[str, Sequence[int]], up_to: int
    ) -> OddSizes:
        """Inputs of odd sizes near the setting's, with their expected outputs, as files in its ``arrays``; see
        ``odd_sizes.make_odd_inputs``. ``root`` is the data folder."""
        family, inputs = load_inputs(setting)
        sizes = write_odd_sizes(
            setting, family, inputs, root, steps,
            lambda made: compute_expected(family, made, cache, self.swept)[0], up_to,
        )  # fmt: skip
        try:
            self.swept.backend.synchronize()
        except LaunchError:  # a kernel that is the reference took the context with it
            os._exit(1)
        return sizes

    def prove(self, setting: Setting, job: Job, size: OddSize | None) -> Proved:
        """Whether the results are right for an odd size, or for the inputs that are swept."""
        return self.measurer.prove(job, size, partial(read_odd_size, setting, self.measurer.family))

    def retime(self, jobs: Sequence[Job], few: frozenset[Configuration], estimate_ms: float) -> Retimed:
        return self.measurer.retime(jobs, few, estimate_ms)

    def compare(self, compiled: Compiled, jobs: Sequence[Job], estimate_ms: float) -> Compared:
        return self.measurer.compare(compiled, jobs, estimate_ms)

    def describe(self) -> dict[str, Any]:
        return self.measurer.describe()

    def close(self) -> None:
        if self._measurer:
            self._measurer.close()
        self._measurer = None


def serve(pipe: Connection, opened: Callable[[], Backend], compiler: str) -> None:
    """The process's life (see processes.Child)."""
    with report_problems(pipe), closing(opened()) as backend, backend.current():
        toolchain = backend.toolchain(compiler)
        _warm_up(backend)
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
                    tried = measuring.measurer.try_job(request, lambda: pipe.send(Sign.PLACED))
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


def _warm_up(backend: Backend) -> None:
    """What a device needs once is made before the first trial's time limit counts."""
    if backend.device.kind == "cpu":
        from autotune.compile import default_root, find_compiler
        from autotune.device import runtime

        runtime.table(find_compiler(""), default_root())
    else:
        backend.sample(lambda: None, 1, True)

"""The loop of a measuring process: it opens its device, and answers what comes by its pipe."""

import os
import socket
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from autotune.declaration import has_arrays, read_arrays, write_arrays
from autotune.device import Backend, LaunchError
from autotune.engine.measurer import Measurer
from autotune.engine.messages import (
    Compare,
    Job,
    MakeReference,
    Opened,
    Prove,
    Proved,
    Ragged,
    RaggedSizes,
    Refused,
    Request,
    Retime,
    Setting,
    Sign,
    Tried,
    given,
    given_ragged,
)
from autotune.engine.ragged import ragged_files
from autotune.errors import AutotuneError
from autotune.measure import SweptDevice, expected_outputs
from autotune.processes import Answer, reporting


def serve(pipe: Connection, opened: Callable[[], Backend], compiler: str) -> None:
    """The process's life (see processes.Child)."""
    with reporting(pipe), closing(opened()) as backend, backend.current():
        toolchain = backend.toolchain(compiler)
        _warm(backend)
        pipe.send(Opened(backend.device, toolchain))
        _work(pipe, SweptDevice(backend, toolchain))


def _work(pipe: Connection, swept: SweptDevice) -> None:
    """Answer requests in order until there are no more."""
    measurer: Measurer | None = None
    mark = time.perf_counter()
    while (requests := pipe.recv()) is not None:
        for request in requests:
            wait_s = time.perf_counter() - mark
            answer: object
            if isinstance(request, Setting):
                if measurer:
                    measurer.close()
                measurer, answer = _measurer(request, swept.backend), Sign.SET
            elif isinstance(request, Job):
                assert measurer, "a setting comes before its jobs"
                begun_s = time.time()
                tried = measurer.tried(request, lambda: pipe.send(Sign.PLACED))
                trial = replace(tried.trial, begun_s=begun_s, worker=f"{socket.gethostname()}:{os.getpid()}")
                answer = replace(tried, trial=trial, seconds={**tried.seconds, "wait": wait_s})
            else:
                answer = _answer(request, measurer, swept)
            pipe.send(answer)
            content = answer.content if isinstance(answer, Answer) else answer
            if isinstance(content, Tried | Proved) and content.lost:
                os._exit(1)  # no destructor of this process would find its context
            mark = time.perf_counter()
    if measurer:
        measurer.close()


def _measurer(setting: Setting, backend: Backend) -> Measurer:
    family, inputs = given(setting)
    is_own = family.is_own_reference and not has_arrays(setting.arrays, "expected", family.outputs)
    outputs = None if is_own else read_arrays(setting.arrays, "expected", family.outputs)
    return Measurer(backend, family, setting.workload, inputs, outputs, setting.protocol)


def _answer(request: Request, measurer: Measurer | None, swept: SweptDevice) -> Answer | Refused:
    try:
        return Answer(_content(request, measurer, swept))
    except LaunchError as problem:
        return Refused(str(problem))
    except AutotuneError:
        raise
    except Exception as problem:  # noqa: BLE001 - whatever a family's Python raises
        return Refused(f"{type(problem).__name__}: {problem}")


def _content(request: Request, measurer: Measurer | None, swept: SweptDevice) -> Any:
    match request:
        case MakeReference(setting, cache):
            family, inputs = given(setting)
            if family.is_own_reference:
                return 0.0
            outputs, elapsed_ms = expected_outputs(family, inputs, cache, swept)
            write_arrays(setting.arrays, "expected", outputs)
            return elapsed_ms
        case Ragged():
            return _ragged(request, swept)
    assert measurer, "a setting comes before"
    match request:
        case Prove(setting):
            family = measurer.family
            return measurer.proved(request, lambda size: given_ragged(setting, family, size))
        case Retime():
            return measurer.retimed(request)
        case Compare():
            return measurer.compared(request)
        case _:
            return measurer.described()


def _ragged(request: Ragged, swept: SweptDevice) -> RaggedSizes:
    setting = request.setting
    family, inputs = given(setting)
    found = ragged_files(
        setting, family, inputs, request.root, request.steps,
        lambda made: expected_outputs(family, made, request.cache, swept)[0], request.up_to,
    )  # fmt: skip
    try:
        swept.backend.synchronize()
    except LaunchError:  # a kernel that is the reference took the context with it
        os._exit(1)
    return found


def _warm(backend: Backend) -> None:
    """What a device needs once is made before the first trial's time limit counts."""
    if backend.device.kind == "cpu":
        from autotune.compile import default_root, find_compiler
        from autotune.device import runtime

        runtime.table(find_compiler(""), default_root())
    else:
        backend.sample(lambda: None, 1, True)

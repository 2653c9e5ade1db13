"""The life of a measuring process: it opens its device, answers what comes by its pipe, and ends with its parent."""

import os
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from multiprocessing.connection import Connection
from typing import Any

from autotune import errors
from autotune.device import Backend, LaunchError
from autotune.errors import AutotuneError
from autotune.measure import expected_outputs
from autotune.processes import settled, write_arrays
from autotune.sweep.measurer import Measurer
from autotune.sweep.messages import (
    Job,
    Prove,
    Proved,
    Ragged,
    RaggedSizes,
    Reference,
    Retime,
    Setting,
    Tried,
    expected,
    given,
    given_ragged,
    write_ragged,
)
from autotune.sweep.ragged import ragged_proofs

__all__ = ["serve"]


def serve(pipe: Connection, opened: Callable[[], Backend], compiler: str, parent: int, folder: str) -> None:
    """The process's life. It ends with its parent, however that one ends: nothing keeps a device busy alone. ``folder``
    is for its temporary files."""
    if not settled(parent, folder):
        return
    warnings.showwarning = lambda message, *_args, **_kwargs: pipe.send(("warning", str(message)))
    try:
        with closing(opened()) as backend, backend.current():
            toolchain = backend.toolchain(compiler)
            _warm(backend)
            pipe.send(("ready", (backend.device, toolchain)))
            _work(pipe, backend)
    except AutotuneError as problem:
        kind = "UsageError" if isinstance(problem, errors.UnknownName) else type(problem).__name__
        pipe.send(("error", (kind, str(problem))))
    except (EOFError, BrokenPipeError):
        return


def _work(pipe: Connection, backend: Backend) -> None:
    """Answer requests in order until there are no more."""
    measurer: Measurer | None = None
    mark = time.perf_counter()
    while (requests := pipe.recv()) is not None:
        for request in requests:
            wait_s = time.perf_counter() - mark
            if isinstance(request, Job):
                assert measurer, "a setting comes before its jobs"
                tried = measurer.tried(request, lambda: pipe.send(("placed", None)))
                pipe.send(("tried", Tried(tried.trial, {**tried.seconds, "wait": wait_s}, tried.lost)))
                if tried.lost:
                    os._exit(1)  # no destructor of this process would find its context
            elif isinstance(request, Setting):
                if measurer:
                    measurer.close()
                family, inputs = given(request)
                outputs = expected(request, family)
                measurer = Measurer(
                    backend, family, request.workload, inputs, outputs, request.protocol
                )  # fmt: skip
                pipe.send(("set", None))
            else:
                kind, answer = _answer(request, measurer)
                pipe.send((kind, answer))
                if isinstance(answer, Proved) and answer.lost:
                    os._exit(1)
            mark = time.perf_counter()
    if measurer:
        measurer.close()


def _answer(request: Any, measurer: Measurer | None) -> tuple[str, Any]:
    try:
        if isinstance(request, Reference):
            family, inputs = given(request.setting)
            outputs, elapsed_ms = expected_outputs(family, inputs, request.cache)
            write_arrays(request.setting.arrays, "expected", outputs)
            return "answer", elapsed_ms
        if isinstance(request, Ragged):
            return "answer", _ragged(request)
        assert measurer, "a setting comes before"
        if isinstance(request, Prove):
            family, setting = measurer.family, request.setting
            return "answer", measurer.proved(request, lambda size: given_ragged(setting, family, size))
        return "answer", measurer.retimed(request) if isinstance(request, Retime) else measurer.described()
    except Exception as problem:  # whatever a family's Python raises
        if isinstance(problem, AutotuneError) and not isinstance(problem, LaunchError):
            raise
        text = str(problem) if isinstance(problem, LaunchError) else f"{type(problem).__name__}: {problem}"
        return "failed", text


def _ragged(request: Ragged) -> RaggedSizes:
    """The ragged inputs and their expected outputs, as files for every measuring process."""
    setting = request.setting
    family, inputs = given(setting)
    sizes, proofs = ragged_proofs(
        family, setting.workload, inputs, request.root, request.steps, request.cache
    )
    for size, (made, outputs) in zip(sizes.sizes, proofs, strict=True):
        write_ragged(setting.arrays, size.number, made, outputs)
    return sizes


def _warm(backend: Backend) -> None:
    """What a device needs once is made before the first trial's time limit counts."""
    if backend.device.kind == "cpu":
        from autotune.compile import default_root, find_compiler
        from autotune.device import runtime

        runtime.table(find_compiler(""), default_root())
    else:
        backend.sample(lambda: None, 1, True)

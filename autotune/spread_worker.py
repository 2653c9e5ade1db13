"""A spread worker's process: it opens its device, has the inputs placed once, and runs chunks of units as they come.

It queues a few chunks ahead, so that the device never waits for the host, and results leave while it computes.
"""

import os
import time
import warnings
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from autotune import errors
from autotune.backends import Backend, LaunchError
from autotune.cache import Cache
from autotune.compiler import compile_batch
from autotune.devices import open_backend
from autotune.errors import AutotuneError, CompilerError, DeviceError, FamilyError
from autotune.execution import Execution
from autotune.family import Family, load
from autotune.jobs import mapped as mapped_array
from autotune.paths import policy_folders
from autotune.resident import Resident
from autotune.selection import candidates, choose, find, untuned
from autotune.serving import settled
from autotune.space import Configuration
from autotune.spread_memory import Memory, mapped
from autotune.spread_plan import Chunk, Units
from autotune.spread_results import Results
from autotune.toolchain import CompileFailure
from autotune.variant import Variant, batch
from autotune.workload import Inputs

__all__ = ["Task", "serve"]

_AHEAD = 3  # chunks queued on the device at once


@dataclass(frozen=True, kw_only=True)
class Task:
    """A call as a worker is told of it. ``family`` is the family's folder, ``arrays`` one with an ``input-NAME.npy``
    for each array; ``space_digest`` says which declaration the caller read."""

    family: Path
    space_digest: str
    arrays: Path
    sizes: Mapping[str, int]
    options: Mapping[str, str | int]
    scalars: Mapping[str, float]
    policies: Path | None
    cache: Path
    cpu_threads: int

    def given(self) -> tuple[Family, Inputs]:
        """Raises FamilyError."""
        family = load(self.family, check=False)
        if family.space_digest != self.space_digest:
            raise FamilyError(f"{self.family}/family.yaml was edited while workers started; run again")
        arrays = {d.name: mapped_array(self.arrays / f"input-{d.name}.npy") for d in family.inputs}
        return family, Inputs(arrays=arrays, sizes=self.sizes, options=self.options, scalars=self.scalars)


def serve(pipe: Connection, task: Task, device: str, parent: int, folder: str, file: Any) -> None:
    """The process's life; ``file`` is multiprocessing's duplicate of the shared file."""
    if not settled(parent, folder):
        return
    if device == "cpu":
        os.environ.setdefault("AUTOTUNE_CPU_THREADS", str(task.cpu_threads))
    warnings.showwarning = lambda message, *_args, **_kwargs: pipe.send(("warning", str(message)))
    try:
        with ExitStack() as stack:
            _Worker(pipe, task, device, file.detach(), stack).work()
    except LaunchError as problem:
        pipe.send(("lost", str(problem)))
        os._exit(1)  # no destructor of this process would find its context
    except AutotuneError as problem:
        kind = "UsageError" if isinstance(problem, errors.UnknownName) else type(problem).__name__
        pipe.send(("error", (kind, str(problem))))
    except (EOFError, BrokenPipeError):
        return
    except Exception as problem:  # noqa: BLE001 - whatever a family's Python raises
        pipe.send(("error", ("FamilyError", f"{task.family.name}: {type(problem).__name__}: {problem}")))


class _Worker:
    """Answers the messages of ``spread.Spread``, in order; chunks are done in between."""

    def __init__(self, pipe: Connection, task: Task, device: str, file: int, stack: ExitStack) -> None:
        self._pipe, self._task, self._file, self._stack = pipe, task, file, stack
        self._name = device
        self._pending: deque[Chunk] = deque()
        self._flying: deque[tuple[Chunk, Any]] = deque()
        self._leaves = False  # whether a chunk's results go to the host when it is done
        self._seconds: dict[str, float] = {}

    def work(self) -> None:
        mark = time.perf_counter()
        self._backend: Backend = open_backend(self._name)
        self._stack.callback(self._backend.close)
        self._stack.enter_context(self._backend.current())
        mark = self._phase("open", mark)
        self._family, self._inputs = self._task.given()
        self._pipe.send(("ready", self._backend.device))
        while self._step():
            pass

    def _phase(self, name: str, since: float) -> float:
        now = time.perf_counter()
        self._seconds[name] = now - since
        return now

    def _step(self) -> bool:
        """One message, or one chunk begun or ended; False at the end."""
        if not (self._pending or self._flying) or self._pipe.poll():
            message = self._pipe.recv()
            if message is None:
                return False
            kind, content = message
            getattr(self, f"_{kind}")(content)
        elif self._pending and len(self._flying) < _AHEAD:
            chunk = self._pending.popleft()
            self._flying.append((chunk, self._begun(chunk)))
        else:
            chunk, flight = self._flying.popleft()
            self._pipe.send(("done", (chunk, *self._outlet.wait(flight))))
        return True

    # -- messages -------------------------------------------------------------------------------------------

    def _choose(self, _: None) -> None:
        """Which configuration the dispatcher takes here."""
        family, inputs, device = self._family, self._inputs, self._backend.device
        folders = policy_folders(self._task.policies, family.folder)
        file, passed = find(family, device, folders)
        if file is None:
            warnings.warn(untuned(family, device, folders, passed), stacklevel=2)
        listed = candidates(family, file, inputs.sizes, inputs.options, device.kind, scalars=inputs.scalars)
        chosen, _passed = choose(listed, lambda configuration: self._variant(configuration)[1])
        assert chosen.configuration is not None
        self._pipe.send(("chosen", (dict(chosen.configuration), f"{chosen.match}, {chosen.origin}")))

    def _variant(self, configuration: Configuration) -> tuple[Variant, str]:
        """And why it cannot run here, or empty."""
        inputs = self._inputs
        variant = Variant(self._family, configuration, tuple(inputs.options.items()))
        return variant, variant.exclusion(self._names(configuration), self._backend.device.limits)

    def _names(self, configuration: Configuration) -> dict[str, Any]:
        inputs = self._inputs
        return self._family.names(configuration, inputs.sizes, inputs.options, inputs.scalars)

    def _bind(self, values: Mapping[str, Any]) -> None:
        """Compile the configuration, and place the inputs."""
        mark = time.perf_counter()
        family, inputs, configuration = self._family, self._inputs, Configuration(values)
        variant, reason = self._variant(configuration)
        if reason:
            raise DeviceError(f"{configuration.id} cannot run on {self._backend.device.name}: {reason}")
        toolchain = self._backend.toolchain()
        (compiled,) = compile_batch(batch(family, (variant,)), toolchain, Cache(self._task.cache))
        if isinstance(compiled, CompileFailure):
            raise CompilerError(f"{configuration.id} does not compile:\n{compiled.message}")
        mark = self._phase("compile", mark)
        module = self._backend.load(compiled)
        self._stack.callback(module.unload)
        resident = Resident(self._backend, inputs)
        self._stack.callback(resident.close)
        self._execution: Execution = resident.execution(variant, module)
        self._units: Units = family.module.units(inputs.arrays, self._names(configuration))  # type: ignore[union-attr]
        self._backend.synchronize()
        self._phase("place", mark)
        self._pipe.send(("bound", None))

    def _memory(self, memory: Memory) -> None:
        """Where results go; and the first unit once, so that nothing is loaded or touched for the first time later."""
        mark = time.perf_counter()
        self._outlet = self._backend.outlet()
        self._stack.callback(self._outlet.close)
        shared = mapped(self._file, memory.nbytes)
        os.close(self._file)
        self._results = Results(self._execution, self._units, memory, shared, self._inputs.sizes)
        is_pinned = self._results.pin(self._outlet)
        mark = self._phase("pin", mark)
        self._run(False)
        self._outlet.wait(self._begun(Chunk(0, 1)))
        self._phase("warm", mark)
        self._pipe.send(("set", (dict(self._seconds), is_pinned, self._results.are_streamed)))

    def _run(self, leaves: bool) -> None:
        """A new run begins."""
        self._leaves = leaves
        self._results.zero_sums()

    def _chunks(self, chunks: Iterable[Chunk]) -> None:
        self._pending += chunks

    def _calibrate(self, chunks: Iterable[Chunk]) -> None:
        """Each chunk by itself, twice; the second time counts."""
        self._leaves, found = True, []
        for chunk in chunks:
            for _ in range(2):
                seconds, copied = self._outlet.wait(self._begun(chunk))
            found.append((seconds, copied))
        self._pipe.send(("calibrated", found))

    def _fetch(self, chunks: list[Chunk]) -> None:
        """Results that are on the device only: this worker's chunks of parts, and its sums."""
        while self._flying:
            self._outlet.wait(self._flying.popleft()[1])
        mark = time.perf_counter()
        parts = [] if self._leaves else [copy for chunk in chunks for copy in self._results.copies(chunk)]
        flight = self._outlet.finish(self._outlet.start(), [*parts, *self._results.copies_of_sums()])
        self._results.restore(chunks)
        self._outlet.wait(flight)
        self._pipe.send(("fetched", time.perf_counter() - mark))

    # -- chunks ---------------------------------------------------------------------------------------------

    def _begun(self, chunk: Chunk) -> Any:
        started = self._outlet.start()
        self._units.run(self._execution, chunk.first, chunk.count)
        return self._outlet.finish(started, list(self._results.copies(chunk)) if self._leaves else [])

"""A spread worker's process: it opens its device, has the inputs placed once, and runs chunks of units as they come.

It queues a few chunks ahead, so that the device never waits for the host, and results leave while it computes.
"""

import math
import os
import pickle
import select
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.compile import Cache, Variant
from autotune.declaration import Configuration, Units
from autotune.device import (
    Backend,
    Copy,
    CopyQueue,
    Execution,
    LaunchError,
    Resident,
    compile_module,
    open_backend,
)
from autotune.dispatch import Choosing, Target
from autotune.engine import SharedArray, SharedInputs
from autotune.errors import AutotuneError, DeviceError, FamilyError
from autotune.files import policy_folders
from autotune.layout import Layout
from autotune.processes import Answer, report_problems
from autotune.spread.plan import Chunk

_AHEAD = 3  # chunks queued on the device at once
_MOST_GRAPHS = 64
AWAKE_S = 0.02  # without a message, before one is waited for at no cost
_LONGEST_S = 1e6  # of one wait: a poll's time has 31 bits of milliseconds


@dataclass(frozen=True, kw_only=True)
class ChunkTask(SharedInputs):
    """A call of a family, as it is sent to a worker."""

    policies: Path | None
    cache: Path
    cpu_threads: int


class Results:
    """Of ``execution``, which runs ``units``; they go to ``parts`` and ``sums``. ``sizes`` are the extents'.
    ``are_streamed`` says that all of a chunk's results may leave as soon as it is done.

    Raises FamilyError when an order policy moves the units' own extent.
    """

    def __init__(
        self, execution: Execution, units: Units, parts: Mapping[str, SharedArray],
        sums: Mapping[str, SharedArray], sizes: Mapping[str, int],
    ) -> None:  # fmt: skip
        self._execution, self._units, self._sizes = execution, units, sizes
        self._sums = tuple(sums)
        self._targets = {name: array.map_memory().reshape(-1) for name, array in {**parts, **sums}.items()}
        self._rows = {name: self._rows_of_parts(name, array.shape) for name, array in parts.items()}
        self._rows |= {name: self._find_plain_rows(name, array.shape) for name, array in sums.items()}
        self._are_plain = all(self._rows.values())
        self.are_streamed = self._are_plain and not self._sums

    def _rows_of_parts(self, name: str, shape: tuple[int, ...]) -> tuple[int, int] | None:
        layout = self._execution.variant.layouts[name]
        if self._execution.orders.keys() & set(layout.data.shape):
            raise FamilyError(
                f"{name} is written in parts by units, so no order policy may move {', '.join(layout.data.shape)}"
            )
        rows = self._find_plain_rows(name, shape)
        offsets = self._units.parts[name]
        if rows and rows[0] < rows[1] and np.any(offsets * layout.data.dtype.itemsize % rows[0]):
            return None
        return rows

    def _find_plain_rows(self, name: str, shape: tuple[int, ...]) -> tuple[int, int] | None:
        """``rows_of``, where no order policy moves or renumbers anything either."""
        variant = self._execution.variant
        return None if variant.is_reordered(name) else rows_of(variant.layouts[name], shape)

    def pin(self, copy_queue: CopyQueue) -> bool:
        """Whether all of the memory could be pinned."""
        pinned = [copy_queue.pin(target.view(np.uint8)) for target in self._targets.values() if target.size]
        return all(pinned)

    def _pieces(self, chunk: Chunk | None) -> Iterator[tuple[str, int, int]]:
        """(output, its first element, the one behind its last): a chunk's parts, or, for None, sums."""
        if chunk is None:
            yield from ((name, 0, self._targets[name].size) for name in self._sums)
            return
        for name, offsets in self._units.parts.items():
            yield name, int(offsets[chunk.first]), int(offsets[chunk.first + chunk.count])

    def copies(self, chunk: Chunk | None) -> Iterator[Copy]:
        """From the device to the host, of outputs that lie plainly: a chunk's parts, or, for None, this worker's
        sums."""
        for name, low, high in self._pieces(chunk):
            if (rows := self._rows[name]) and low < high:
                placed, target = self._execution.placed[name], self._targets[name][low:high].view(np.uint8)
                begin, (width, pitch) = low * self._targets[name].itemsize, rows  # without padding
                if width < pitch:  # whole rows
                    yield Copy(placed, begin // width * pitch, width, pitch, target)
                else:
                    yield Copy(placed, begin, target.size, target.size, target)

    def restore(self, chunks: Sequence[Chunk]) -> None:
        """What no copy takes to the host: these chunks' parts, and this worker's sums."""
        if self._are_plain:
            return
        whole: dict[str, NDArray[Any]] = {}
        for chunk in (*chunks, None):
            for name, low, high in self._pieces(chunk):
                if self._rows[name] is None:
                    if name not in whole:
                        shape = self._execution.variant.family.data[name].shape_for(self._sizes)
                        whole[name] = self._execution.restore(name, shape).reshape(-1)
                    self._targets[name][low:high] = whole[name][low:high]


def rows_of(layout: Layout, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """(bytes in a row, bytes from one row to the next) of a canonical array of ``shape`` as it is stored on a
    device, or None when it does not lie in the canonical order."""
    if layout.storage or not layout.keeps_order or not math.prod(shape):
        return None
    apart = layout.grid(shape).elements // math.prod(shape[:-1])
    return shape[-1] * layout.value_bytes, apart * layout.value_bytes


class ChunkLaunches:
    """``units.run`` by ``execution``, which ``backend`` has. Chunks that were run once are likely to be what is run the
    next time: they are recorded while there is nothing to do, and then a chunk is one launch of a graph, less for the
    device to wait for than what Python launches one by one."""

    def __init__(self, backend: Backend, execution: Execution, units: Units) -> None:
        self._backend, self._execution, self._units = backend, execution, units
        self._recorded: dict[tuple[Chunk, bool], Callable[[], None]] = {}
        self._seen: deque[tuple[Chunk, bool]] = deque()  # and not recorded
        self._can_record = True

    def clear(self) -> None:
        """The sums."""
        for name in self._units.sums:
            self._execution.zero(name)

    def queue(self, chunk: Chunk, begins: bool) -> None:
        """On the device; behind ``clear`` where a run ``begins`` with it. Raises LaunchError."""
        if recorded := self._recorded.get((chunk, begins)):
            recorded()
        else:
            self._run(chunk, begins)
            self._seen.append((chunk, begins))

    def record(self) -> bool:
        """A chunk that was run. Whether there was one to be recorded."""
        while self._seen:
            seen = self._seen.popleft()
            if self._can_record and seen not in self._recorded and len(self._recorded) < _MOST_GRAPHS:
                try:
                    self._recorded[seen] = self._backend.record(partial(self._run, *seen))
                except LaunchError:  # a family may do what a graph cannot
                    self._can_record = False
                return True
        return False

    def _run(self, chunk: Chunk, begins: bool) -> None:
        if begins:
            self.clear()
        sent_bytes = self._execution.transfer_bytes
        self._units.run(self._execution, chunk.first, chunk.count)
        if self._execution.transfer_bytes != sent_bytes:  # from memory that is the host's again afterwards
            self._can_record = False


class Inbox:
    """``pipes`` from other processes. The end of one counts as a message. They are first looked at without sleep: a
    core that sleeps, above all a virtual machine's, takes some tenths of a millisecond until it works again."""

    def __init__(self, pipes: "Iterable[Connection[object, object]]") -> None:
        self._pipes = {pipe.fileno(): pipe for pipe in pipes}
        self._poll = select.poll()
        for handle in self._pipes:
            self._poll.register(handle, select.POLLIN)

    def wait(self, seconds: float = 0.0, awake_s: float = 0.0) -> "list[Connection[object, object]]":
        """Return the pipes with a message, as soon as there is one; none after ``seconds``. Poll without sleep for the
        first ``awake_s``."""
        begin = time.monotonic()
        awake = begin + min(seconds, awake_s)
        while not (ready := self._poll.poll(0)) and time.monotonic() < awake:
            os.sched_yield()
        left = begin + min(seconds, _LONGEST_S) - time.monotonic()
        if not ready and seconds > awake_s and left > 0:
            ready = self._poll.poll(left * 1e3)
        return [self._pipes[handle] for handle, _ in ready]


# -- the process -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Done:
    """A finished chunk: its ``seconds`` on the device, and ``copied``, those of copying its results."""

    chunk: Chunk
    seconds: float
    copied: float


# Done and Answer(None), as they are sent: what has no class is pickled in a tenth of the time.
Told = tuple[int, int, float, float] | None


def decode(some: Sequence[Told]) -> list[object]:
    """Decode a worker's messages."""
    return [Answer(None) if one is None else Done(Chunk(*one[:2]), *one[2:]) for one in some]


@dataclass(frozen=True)
class Fetch:
    """What of these chunks, and of sums, is on the device only."""

    chunks: tuple[Chunk, ...]


@dataclass(frozen=True)
class Lost:
    """The device, which said why."""

    reason: str


def serve(pipe: Connection, task: ChunkTask, device: str) -> None:
    """The process's life (see processes.Child)."""
    if device == "cpu":
        os.environ.setdefault("AUTOTUNE_CPU_THREADS", str(task.cpu_threads))
    with report_problems(pipe):
        try:
            with ExitStack() as stack:
                ChunkWorker(pipe, task, device, stack).work()
        except LaunchError as problem:
            pipe.send(Lost(str(problem)))
            os._exit(1)  # no destructor of this process would find its context
        except (AutotuneError, EOFError, BrokenPipeError):
            raise
        except Exception as problem:  # noqa: BLE001 - whatever a family's Python raises
            raise FamilyError(f"{task.family.name}: {type(problem).__name__}: {problem}") from None


_unpickled = lru_cache(8)(pickle.loads)  # one run's messages are much like another's


class ChunkWorker:
    """Is asked by ``team.Member``, in order; chunks are done in between. Its first answer, to nothing, is its
    device."""

    def __init__(self, pipe: Connection, task: ChunkTask, device: str, stack: ExitStack) -> None:
        self._pipe, self._task, self._stack = pipe, task, stack
        self._backend: Backend = open_backend(device)
        self._stack.callback(self._backend.close)
        self._stack.enter_context(self._backend.current())
        self._family, self._inputs = task.load("the start of workers")
        self._pending: deque[Chunk | Fetch] = deque()
        self._flying: deque[tuple[Chunk | Fetch, Any]] = deque()
        self._leaves = False  # whether a chunk's results go to the host when it is done
        self._prepares: Callable[[], bool] = lambda: False  # something for the next run, in spare time
        self._begins = False  # whether no chunk of the run was begun

    def work(self) -> None:
        """A message, or a chunk begun or ended, at a time."""
        self._pipe.send(Answer(self._backend.device))
        inbox, awake_s = Inbox([self._pipe]), AWAKE_S * (self._backend.device.kind != "cpu")
        while True:
            if inbox.wait() or (self._is_idle() and inbox.wait(math.inf, awake_s)):
                message = _unpickled(self._pipe.recv_bytes())
                if message is None:
                    return
                for method, arguments, is_asked in message:
                    found = method(self, *arguments)
                    if is_asked:
                        self._pipe.send(Answer(found))
            elif self._pending and len(self._flying) < _AHEAD:
                item = self._pending.popleft()
                self._flying.append((item, self._begin(item)))
            elif self._flying and self._copy_queue.is_done(self._flying[self._count_together() - 1][1]):
                self._tell(self._count_together())
            else:
                os.sched_yield()  # a message may come meanwhile, with a chunk to be queued behind this one

    def _is_idle(self) -> bool:
        """Nothing is left to do, nor to be made ready for the next run."""
        return not (self._pending or self._flying or self._prepares())

    def _count_together(self) -> int:
        """Return how many of those begun to report at once: a Fetch's copy arrives right after its chunk is done."""
        return 2 if len(self._flying) > 1 and isinstance(self._flying[1][0], Fetch) else 1

    def _tell(self, many: int) -> None:
        """Of the first ``many`` of those begun, which are done."""
        some: list[Told] = []
        for item, flight in (self._flying.popleft() for _ in range(many)):
            if isinstance(item, Fetch):
                self._results.restore(item.chunks)
                some.append(None)
            else:
                some.append((item.first, item.count, *self._copy_queue.wait(flight)))
        self._pipe.send(some)

    def choose(self) -> tuple[dict[str, Any], str]:
        """The configuration that the dispatcher takes here, and how it found it."""
        folders = policy_folders(self._task.policies, self._family.folder)
        choosing = Choosing(folders=folders, cache=Cache(self._task.cache), refine=0)
        target = Target(self._family, self._backend, choosing)
        taken, _passed = target.explain(self._inputs)
        assert taken.configuration is not None
        return dict(taken.configuration), f"{taken.match}, {taken.origin}"

    def bind(self, values: Mapping[str, Any]) -> None:
        """Compile the configuration, and place the inputs."""
        family, inputs, configuration = self._family, self._inputs, Configuration(values)
        variant, names = Variant.make(family, configuration, inputs.options), inputs.names(configuration)
        if reason := variant.explain_exclusion(names, self._backend.device.limits):
            raise DeviceError(f"{configuration.id} cannot run on {self._backend.device.name}: {reason}")
        module = compile_module(self._backend, Cache(self._task.cache), variant)
        self._stack.callback(module.unload)
        resident = Resident(self._backend, inputs)
        self._stack.callback(resident.close)
        self._execution: Execution = resident.execution(variant, module)
        self._units: Units = family.module.units(inputs.arrays, names)  # type: ignore[union-attr]
        self._launches = ChunkLaunches(self._backend, self._execution, self._units)
        self._prepares = self._launches.record
        self._backend.synchronize()

    def take(self, parts: Mapping[str, SharedArray], sums: Mapping[str, SharedArray]) -> tuple[bool, bool]:
        """Where results go: parts of arrays that all write, sums of its own. Whether that could be pinned, and whether
        results are streamed to it. The first unit is run once, so that nothing is loaded or touched for the first time
        later."""
        self._copy_queue = CopyQueue(self._backend)
        self._stack.callback(self._copy_queue.close)
        self._results = Results(self._execution, self._units, parts, sums, self._inputs.sizes)
        is_pinned = self._results.pin(self._copy_queue)
        self.begin(False)
        self._copy_queue.wait(self._begin(Chunk(0, 1)))
        return is_pinned, self._results.are_streamed

    def begin(self, leaves: bool) -> None:
        """A new run, in which a chunk's results leave as soon as it is done, or not yet."""
        self._leaves, self._begins = leaves, True

    def add(self, chunks: Sequence[Chunk]) -> None:
        """Queue chunks to run in order; a Done reports each."""
        self._pending += chunks

    def calibrate(self, chunks: Sequence[Chunk]) -> list[tuple[float, float]]:
        """(seconds, seconds of the copy) of each chunk behind others of its like, as chunks of a run are: the device
        does not wait for the host there."""
        self._leaves = True
        times = []
        for chunk in chunks:
            flights = [self._begin(chunk) for _ in range(_AHEAD)]
            times.append(min([self._copy_queue.wait(flight) for flight in flights][1:]))
        return times

    def fetch(self, chunks: tuple[Chunk, ...]) -> None:
        """Results that are on the device only, these chunks' parts and this worker's sums, leave behind all chunks that
        it has. Then there is an Answer."""
        self._pending.append(Fetch(chunks))

    def _begin(self, item: Chunk | Fetch) -> Any:
        started = self._copy_queue.start()
        begins, self._begins = self._begins, False
        if isinstance(item, Chunk):
            self._launches.queue(item, begins)
            return self._copy_queue.finish(started, list(self._results.copies(item)) if self._leaves else [])
        if begins:
            self._launches.clear()
        parts = () if self._leaves else item.chunks
        copies = [copy for chunk in (*parts, None) for copy in self._results.copies(chunk)]
        return self._copy_queue.finish(started, copies)

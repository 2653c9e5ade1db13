"""From configurations to jobs: compiled in chunks, each variant with what tells it from the others."""

import multiprocessing
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from autotune.compile import Cache, Compiled, CompileFailure, Pool, Variant, batch, compile_many, sameness
from autotune.declaration import Configuration, Family, Inputs
from autotune.record import Trial, time_ms
from autotune.search import Search
from autotune.sweep.messages import Job
from autotune.sweep.worker import Made, Worker

__all__ = ["Asking", "Compiling", "Feed"]


BATCH_SIZE = 24  # the front end is paid once a call, and the first batch is soon there


@dataclass
class Compiling:
    """For ``worker``'s device. ``same`` collects each configuration's ``machine_code.sameness``; ``compilers`` are
    processes that were started already. ``watch`` is called with how many are compiled, of how many, where nothing is
    timed before all are."""

    family: Family
    inputs: Inputs
    worker: Worker
    cache: Cache
    same: dict[Configuration, str] = field(default_factory=dict)
    compilers: Pool | None = None
    watch: Callable[[int, int], None] = lambda done, total: None

    def exclusion(self, configuration: Configuration) -> str:
        """Why it cannot run here, or empty."""
        return self.variant(configuration).exclusion(self._names(configuration), self.worker.device.limits)

    def made(
        self, configurations: Sequence[Configuration], stopped: Callable[[], bool], processes: int
    ) -> Iterator[list[Made]]:
        """Chunks of what the compiler made of them, in their order, until ``stopped``."""
        variants = [self.variant(configuration) for configuration in configurations]
        chunks = compile_many(
            batch(self.family, tuple(variants)), self.worker.toolchain, self.cache, processes, BATCH_SIZE,
            self.compilers,
        )  # fmt: skip
        if self.worker.device.kind == "cpu":  # compilers would disturb the measurement
            chunks = iter(list(takewhile(lambda _chunk: not stopped(), self._watched(chunks, len(variants)))))
        remaining = iter(variants)
        for chunk in chunks:
            yield [self._job(next(remaining), compiled) for compiled in chunk]

    def _watched(
        self, chunks: Iterable[list[Compiled | CompileFailure]], total: int
    ) -> Iterator[list[Compiled | CompileFailure]]:
        done = 0
        self.watch(done, total)
        for chunk in chunks:
            done += len(chunk)
            self.watch(done, total)
            yield chunk

    def variant(self, configuration: Configuration) -> Variant:
        return Variant.of(self.family, configuration, self.inputs.options)

    def _job(self, variant: Variant, compiled: Compiled | CompileFailure) -> Made:
        if isinstance(compiled, CompileFailure):
            return variant.configuration, compiled
        same = sameness(variant, compiled, self._names(variant.configuration))
        self.same[variant.configuration] = same
        return Job(variant.configuration, compiled, same=same)

    def _names(self, configuration: Configuration) -> Mapping[str, int | float | str]:
        return self.inputs.names(configuration)


_LOOK_S = 0.2  # between looks at whether to stop


@dataclass
class Asking:
    """``size`` configurations are asked for at a time, and no more than ``most`` are asked for and not told of.

    ``batches`` is walked through in one thread and alone speaks to the search; ``tell`` and ``set_aside`` may be called
    from another."""

    search: Search
    size: int
    most: int
    _told: "SimpleQueue[Trial | Configuration]" = field(default_factory=SimpleQueue)
    _open: set[Configuration] = field(default_factory=set)

    def tell(self, trial: Trial) -> None:
        self._told.put(trial)

    def set_aside(self, configuration: Configuration) -> None:
        """Do not wait for it: another sweep is trying it."""
        self._told.put(configuration)

    def batches(self, stopped: Callable[[], bool]) -> Iterator[list[Configuration]]:
        """Until the search has no more, or ``stopped``."""
        while not stopped():
            self._listen(wait=len(self._open) + self.size > self.most)
            if len(self._open) + self.size > self.most:
                continue
            batch: list[Configuration] = []
            while len(batch) < self.size and (configuration := self.search.ask()) is not None:
                batch.append(configuration)
            if not batch:
                return
            self._open |= set(batch)
            yield batch

    def _listen(self, wait: bool) -> None:
        """Pass on what was told; with ``wait``, wait a little for the first of it."""
        try:
            while True:
                told = self._told.get(block=wait, timeout=_LOOK_S)
                wait = False
                if isinstance(told, Trial):
                    self._open.discard(told.configuration)
                    self.search.tell(told.configuration, time_ms(told) if told.measurement else None)
                else:
                    self._open.discard(told)
        except Empty:
            return


_Item = TypeVar("_Item")


class Feed(Generic[_Item]):
    """The items of an iterator that a thread makes and walks through. ``pipe`` becomes readable when ``take`` has
    something.

    ``stop`` calls the rest off and returns at once; the thread then ends with the item it is at. ``make`` is given a
    function that tells it so, for an iterator that is long about its first item."""

    def __init__(self, make: Callable[[Callable[[], bool]], Iterator[_Item]]) -> None:
        self.pipe, self._bell = multiprocessing.Pipe(duplex=False)
        self.done = False
        self._items: SimpleQueue[_Item | BaseException | None] = SimpleQueue()
        self._stopped = False
        self._thread = threading.Thread(target=self._walk, args=(make,), daemon=True, name="autotune-feed")
        self._thread.start()

    def _walk(self, make: Callable[[Callable[[], bool]], Iterator[_Item]]) -> None:
        try:
            for item in make(
                lambda: self._stopped
            ):  # closed when this function ends, and with it the processes it may have
                if self._stopped:
                    return
                self._put(item)
        except BaseException as problem:  # noqa: BLE001 - raised where it is seen: by ``take``
            self._put(problem)
        finally:
            self._put(None)

    def _put(self, item: _Item | BaseException | None) -> None:
        self._items.put(item)
        with suppress(OSError):  # nobody listens any more
            self._bell.send_bytes(b"")

    def take(self) -> list[_Item]:
        """What is ready now, in order. Raises what making the next one raised."""
        found: list[_Item] = []
        while not self.done:
            try:
                item = self._items.get_nowait()
            except Empty:
                break
            self.pipe.recv_bytes()
            if item is None:
                self.done = True
            elif isinstance(item, BaseException):
                raise item
            else:
                found.append(item)
        return found

    def stop(self) -> None:
        self._stopped = True
        self.pipe.close()

"""From a search to jobs: the configurations that it proposes, in batches, and what the compiler makes of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from queue import Empty, SimpleQueue

from autotune.compile import (
    Cache,
    Compiled,
    CompileFailure,
    Pool,
    Toolchain,
    Variant,
    batch,
    compile_batch,
    compile_many,
    same_code,
)
from autotune.declaration import Configuration, Family, Inputs
from autotune.engine.messages import Job, Made
from autotune.engine.process_worker import ProcessWorker
from autotune.measure import TIME
from autotune.record import Trial
from autotune.search import Search

BATCH_SIZE = 24  # the front end is paid once a call, and the first batch is soon there
_LOOK_S = 0.2  # between looks at whether to stop


@dataclass
class Proposals:
    """The configurations that ``search`` asks for: ``size`` at a time, with up to ``ahead`` times as many without a
    result yet; all at once if ``size`` is None. ``first`` are tried before them and do not count as its trials. The
    search receives the ``figure`` of each.

    ``batches`` is walked through in one thread and alone speaks to the search; ``tell`` and ``set_aside`` may be called
    from another."""

    search: Search
    size: int | None
    ahead: int = 1
    first: Sequence[Configuration] = ()
    figure: str = TIME
    _told: "SimpleQueue[Trial | Configuration]" = field(default_factory=SimpleQueue)
    _open: set[Configuration] = field(default_factory=set)

    def tell(self, trial: Trial) -> None:
        self._told.put(trial)

    def set_aside(self, configuration: Configuration) -> None:
        """Do not wait for it: another sweep is trying it."""
        self._told.put(configuration)

    def batches(self, stopped: Callable[[], bool]) -> Iterator[list[Configuration]]:
        """Until the search has no more, or ``stopped``."""
        first, is_over = list(self.first), False
        while not is_over and not stopped():
            self._listen(wait=not self._has_room())
            if not self._has_room():
                continue
            asked = list(islice(iter(self.search.ask, None), self.size))
            is_over = self.size is None or len(asked) < self.size
            self._open |= set(asked)
            if first or asked:
                yield [*first, *asked]
            first = []

    def _has_room(self) -> bool:
        return self.size is None or len(self._open) + self.size <= self.ahead * self.size

    def _listen(self, wait: bool) -> None:
        """Pass results on to the search; with ``wait``, wait a little for the first one."""
        try:
            while True:
                told = self._told.get(block=wait, timeout=_LOOK_S)
                wait = False
                if isinstance(told, Trial):
                    self._open.discard(told.configuration)
                    self.search.tell(told.configuration, told.value(self.figure))
                else:
                    self._open.discard(told)
        except Empty:
            return


@dataclass
class JobCompiler:
    """For ``worker``'s device, in up to ``processes`` processes; ``compilers`` are some that were started already.
    ``watch`` is called with how many are compiled, of how many, where nothing is timed before all are."""

    family: Family
    inputs: Inputs
    worker: ProcessWorker
    cache: Cache
    processes: int = 1
    compilers: Pool | None = None
    watch: Callable[[int, int], None] = lambda done, total: None
    _jobs: dict[Configuration, Job] = field(default_factory=dict)

    def explain_exclusion(self, configuration: Configuration) -> str:
        """Why it cannot run here, or empty."""
        names = self.inputs.names(configuration)
        return self.variant(configuration).explain_exclusion(names, self.worker.device.limits)

    def chunks(
        self, configurations: Sequence[Configuration], stopped: Callable[[], bool]
    ) -> Iterator[list[Made]]:
        """What the compiler made of them, in their order, until ``stopped``."""
        variants = [self.variant(configuration) for configuration in configurations]
        most = 1 if self.family.is_plain else BATCH_SIZE  # each is compiled alone anyway
        waits = self.worker.device.kind == "cpu"  # compilers would disturb the measurement
        chunks = compile_many(
            batch(self.family, tuple(variants)), self.worker.toolchain, self.cache, self.processes, most,
            self.compilers, early=not waits,
        )  # fmt: skip
        if waits:
            chunks = iter(
                list(takewhile(lambda _chunk: not stopped(), self._report_progress(chunks, len(variants))))
            )
        remaining = iter(variants)
        for chunk in chunks:
            yield [self._make(next(remaining), compiled) for compiled in chunk]

    def jobs(self, configurations: Sequence[Configuration]) -> list[Job]:
        """Of configurations that were measured: as compiled in this sweep, or out of the cache for what an earlier
        one recorded."""
        if missing := tuple(self.variant(one) for one in configurations if one not in self._jobs):
            binaries = compile_batch(batch(self.family, missing), self.worker.toolchain, self.cache)
            for variant, binary in zip(missing, binaries, strict=True):
                assert isinstance(binary, Compiled), "a measured configuration was compiled before"
                self._make(variant, binary)
        return [self._jobs[configuration] for configuration in configurations]

    def compile_others(
        self, configurations: Sequence[Configuration], options: Mapping[str, str | int], toolchain: Toolchain
    ) -> list[Job | None]:
        """The configurations compiled with other ``options``, or by another ``toolchain``; None for one that does not
        compile."""
        variants = tuple(
            Variant.make(self.family, configuration, options) for configuration in configurations
        )
        binaries = compile_batch(batch(self.family, variants), toolchain, self.cache)
        return [
            Job(configuration, binary) if isinstance(binary, Compiled) else None
            for configuration, binary in zip(configurations, binaries, strict=True)
        ]

    def variant(self, configuration: Configuration) -> Variant:
        return Variant.make(self.family, configuration, self.inputs.options)

    def idle_policies(self) -> tuple[str, ...] | None:
        """The policies that changed no machine code in this sweep; None where it saw none."""
        jobs = dict(self._jobs)  # after an interruption the compiler may still be at it, in its thread
        known = {configuration: job.same for configuration, job in jobs.items()}
        return same_code.idle_policies(self.family.space.policies, known) if any(known.values()) else None

    def _report_progress(
        self, chunks: Iterable[list[Compiled | CompileFailure]], total: int
    ) -> Iterator[list[Compiled | CompileFailure]]:
        done = 0
        self.watch(done, total)
        for chunk in chunks:
            done += len(chunk)
            self.watch(done, total)
            yield chunk

    def _make(self, variant: Variant, compiled: Compiled | CompileFailure) -> Made:
        configuration = variant.configuration
        if isinstance(compiled, CompileFailure):
            return configuration, compiled
        same = same_code.compute_sameness(variant, compiled, self.inputs.names(configuration))
        job = self._jobs[configuration] = Job(configuration, compiled, same=same)
        return job

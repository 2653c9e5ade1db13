"""From configurations to jobs: compiled in chunks, each variant with what tells it from the others."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from autotune.cache import Cache
from autotune.compiler import compile_many
from autotune.crew import Made, Worker
from autotune.family import Family
from autotune.jobs import Job
from autotune.machine_code import sameness
from autotune.space import Configuration
from autotune.toolchain import Compiled, CompileFailure
from autotune.variant import Variant, batch
from autotune.workers import Workers
from autotune.workload import Inputs

__all__ = ["Compiling"]

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
    compilers: Workers | None = None
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
        return Variant(self.family, configuration, tuple(self.inputs.options.items()))

    def _job(self, variant: Variant, compiled: Compiled | CompileFailure) -> Made:
        if isinstance(compiled, CompileFailure):
            return variant.configuration, compiled
        same = sameness(variant, compiled, self._names(variant.configuration))
        self.same[variant.configuration] = same
        return Job(variant.configuration, compiled, same=same)

    def _names(self, configuration: Configuration) -> Mapping[str, int | float | str]:
        return self.family.names(configuration, self.inputs.sizes, self.inputs.options, self.inputs.scalars)

"""Configurations asked of a search while others are measured; the search is told what came of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from autotune.decision import time_ms
from autotune.search import Search
from autotune.space import Configuration
from autotune.trial import Trial

__all__ = ["Asking"]

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

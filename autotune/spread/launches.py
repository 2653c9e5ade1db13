"""The launches of a worker's chunks. Those that it ran once are likely to be what it runs the next time: it records
them while it has nothing to do, and then a chunk is one launch of a graph: less for the device to wait for than what
Python launches one by one."""

from collections import deque
from collections.abc import Callable
from functools import partial

from autotune.declaration import Units
from autotune.device import Backend, Execution, LaunchError
from autotune.spread.plan import Chunk

_MOST = 64  # graphs


class ChunkLaunches:
    """``units.run`` by ``execution``, which ``backend`` has."""

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
            if self._can_record and seen not in self._recorded and len(self._recorded) < _MOST:
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

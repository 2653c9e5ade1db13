"""The launches of a worker's chunks. Those that it was given once are likely to be what it is given the next time: it
records them while it has nothing to do, and then a chunk is one launch of a graph, which is less for the device to wait
for than what Python launches one by one."""

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from autotune.device import Backend, Execution, LaunchError
from autotune.dispatch.spread.plan import Chunk, Units

_MOST = 256  # graphs


class ChunkLaunches:
    """``units.run`` by ``execution``, which ``backend`` has."""

    def __init__(self, backend: Backend, execution: Execution, units: Units) -> None:
        self._backend, self._execution, self._units = backend, execution, units
        self._recorded: dict[Chunk, Callable[[], None]] = {}
        self._expected: deque[Chunk] = deque()
        self._can_record = True

    def expect(self, chunks: Iterable[Chunk]) -> None:
        """They may come again."""
        self._expected += chunks

    def queue(self, chunk: Chunk) -> None:
        """On the device. Raises LaunchError."""
        if chunk in self._recorded:
            self._recorded[chunk]()
        else:
            self._run(chunk)

    def record(self) -> bool:
        """One of those that may come again. Whether there was one."""
        while self._expected:
            chunk = self._expected.popleft()
            if self._can_record and chunk not in self._recorded and len(self._recorded) < _MOST:
                try:
                    self._recorded[chunk] = self._backend.record(partial(self._run, chunk))
                except LaunchError:  # a family may do what a graph cannot
                    self._can_record = False
                return True
        return False

    def _run(self, chunk: Chunk) -> None:
        sent_bytes = self._execution.transfer_bytes
        self._units.run(self._execution, chunk.first, chunk.count)
        if self._execution.transfer_bytes != sent_bytes:  # from memory that is the host's again afterwards
            self._can_record = False

"""How results leave a device while it goes on computing: each chunk's, as soon as the chunk is done."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from autotune.device.backend import Placed

__all__ = ["Copy", "Outlet"]


@dataclass(frozen=True)
class Copy:
    """``target``'s bytes come from ``placed``, from byte ``begin``: rows of ``width`` bytes that lie ``pitch`` bytes
    apart there and without gaps in ``target``."""

    placed: Placed
    begin: int
    width: int
    pitch: int
    target: NDArray[np.uint8]

    @property
    def rows(self) -> int:
        return self.target.size // self.width


class Outlet(Protocol):
    """Chunks of work in order, their results copied beside what comes after them."""

    def pin(self, host: NDArray[np.uint8]) -> bool:
        """Make ``host`` memory that copies go to without the host's help; False where that is not to be had, which only
        costs time."""
        ...

    def start(self) -> Any:
        """Before a chunk's launches are queued."""
        ...

    def finish(self, started: Any, copies: Sequence[Copy]) -> Any:
        """After they were: queue ``copies``. Returns what ``wait`` takes."""
        ...

    def wait(self, chunk: Any) -> tuple[float, float]:
        """Until the chunk and its copies are done: (seconds on the device, seconds of the copies). Raises
        LaunchError."""
        ...

    def close(self) -> None: ...

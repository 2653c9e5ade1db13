"""Memory that matches come to from the device: made once, used again and again."""

import threading

import numpy as np
from numpy.typing import NDArray

from ..matches import Mems

__all__ = ["Rooms"]

_LEAST_BYTES = 1 << 20


class Rooms:
    """For any number of threads. Not pinned: that takes longer than it saves, once the memory has been written to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: list[NDArray[np.uint8]] = []
        self._lent: dict[int, tuple[Mems, NDArray[np.uint8]]] = {}

    def take(self, nbytes: int) -> NDArray[np.uint8]:
        """At least so many bytes; the smallest of those that are free."""
        with self._lock:
            fitting = [number for number, room in enumerate(self._free) if room.nbytes >= nbytes]
            if fitting:
                return self._free.pop(min(fitting, key=lambda number: self._free[number].nbytes))
        return np.empty(max(_LEAST_BYTES, 1 << (nbytes - 1).bit_length() if nbytes else 0), np.uint8)

    def lend(self, room: NDArray[np.uint8], found: Mems) -> Mems:
        """``found``, which is in ``room``, until it is released."""
        with self._lock:
            self._lent[id(found)] = found, room
        return found

    def release(self, found: Mems) -> None:
        """Nobody looks at ``found`` from now on. What was not lent is nobody's concern."""
        with self._lock:
            _, room = self._lent.pop(id(found), (found, None))
            if room is not None:
                self._free.append(room)

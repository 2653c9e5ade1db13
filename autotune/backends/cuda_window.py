"""cuda: what the constant memory of a loaded binary holds, and in the order of which streams it may be read.

All variants in a binary share it, and all calls of a variant. So a call that finds other content there than its own
replaces it, in the order of its stream; what other streams still read is waited for first.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = ["ConstantWindow", "Key"]

# Where each array begins in the window, and the array on the device that it is a copy of, which counts its ``uploads``.
Key = tuple[tuple[int, Any], ...]


class ConstantWindow:
    """``find`` gives the window's address, None when no kernel in the binary reads it. ``lock`` is held from ``hold``
    to the last launch that reads the content. The context is current in every call."""

    def __init__(self, driver: Any, find: Callable[[], int | None]) -> None:
        self.lock = threading.RLock()
        self._copy, self._synchronize = driver.memcpy_dtod_async, driver.Context.synchronize
        self._find = find
        self._address: int | None = None
        self._is_found = False
        self._key: Key | None = None  # what it holds, where that is known
        self._uploads: list[int] = []  # of each array, when it was copied
        self._streams: set[int] = set()  # which may read it

    @property
    def address(self) -> int | None:
        """Asked for once."""
        if not self._is_found:
            self._address, self._is_found = self._find(), True
        return self._address

    def hold(self, copies: Iterable[Sequence[int]], key: Key | None, stream: Any) -> None:
        """What is queued on ``stream`` from now on finds ``copies`` (offset, source address, bytes), which are those
        of ``key``; without a key they may have changed since."""
        handle = int(stream.handle) if stream else 0
        if key is not None and self._holds(key):
            if handle not in self._streams:
                self._synchronize()  # the copies were queued on another stream
                self._streams.add(handle)
            return
        self.claim(handle)
        if (address := self.address) is not None:
            for offset, source, nbytes in copies:
                self._copy(address + offset, source, nbytes, stream)
        self._key, self._uploads = key, [placed.uploads for _, placed in key or ()]

    def _holds(self, key: Key) -> bool:
        held = self._key
        if held is None or len(held) != len(key):
            return False
        for (offset, placed), (at, source), uploads in zip(held, key, self._uploads, strict=True):
            if offset != at or placed is not source or source.uploads != uploads:
                return False
        return True

    def claim(self, handle: int) -> None:
        """For a change in the order of the stream of that handle: nobody else reads it any more, and what it holds is
        not known."""
        if self._streams - {handle}:
            self._synchronize()
        self._key, self._streams = None, {handle}

    def forget(self) -> None:
        """For a change that is recorded in a graph, which nothing can wait for now: what it holds is not known."""
        self._key = None

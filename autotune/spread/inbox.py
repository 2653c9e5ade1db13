"""Pipes that are first looked at without sleep: where a core sleeps, above all a virtual machine's, it takes some
tenths of a millisecond until it works again."""

import os
import select
import time
from collections.abc import Iterable
from multiprocessing.connection import Connection

AWAKE_S = 0.02  # without a message, before one is waited for at no cost
_LONGEST_S = 1e6  # of one wait: a poll's time has 31 bits of milliseconds


class Inbox:
    """``pipes`` from other processes. The end of one counts as a message."""

    def __init__(self, pipes: "Iterable[Connection[object, object]]") -> None:
        self._pipes = {pipe.fileno(): pipe for pipe in pipes}
        self._poll = select.poll()
        for handle in self._pipes:
            self._poll.register(handle, select.POLLIN)

    def heard(self, seconds: float = 0.0, awake_s: float = 0.0) -> "list[Connection[object, object]]":
        """Those with a message, as soon as there are some; none after so many ``seconds``, in the first ``awake_s`` of
        which nothing sleeps."""
        begin = time.monotonic()
        awake = begin + min(seconds, awake_s)
        while not (found := self._poll.poll(0)) and time.monotonic() < awake:
            os.sched_yield()
        left = begin + min(seconds, _LONGEST_S) - time.monotonic()
        if not found and seconds > awake_s and left > 0:
            found = self._poll.poll(left * 1e3)
        return [self._pipes[handle] for handle, _ in found]

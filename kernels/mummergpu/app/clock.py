"""Where the seconds of a run go: one part after the other, so that they add up."""

import time

__all__ = ["PARTS", "Clock"]

PARTS = ("start", "reading", "index", "search", "output", "end")


class Clock:
    """Of one thread, from when it is made."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self._last = time.perf_counter()

    def lap(self, part: str) -> None:
        """What went by since the last lap was ``part``."""
        now = time.perf_counter()
        self.seconds[part] += now - self._last
        self._last = now

    def move(self, part: str, other: str, seconds: float) -> None:
        """So many of ``part`` were in fact ``other``'s."""
        self.seconds[part] -= seconds
        self.seconds[other] += seconds

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    def __str__(self) -> str:
        return ", ".join(f"{part} {seconds:.3f}" for part, seconds in self.seconds.items())

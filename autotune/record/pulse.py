"""Who is alive, among processes that share nothing but a place to write to: no clock of one is compared with another's.

A process shows that it lives by a number that it counts up. Another one takes it for dead when that number has stayed
the same while it counted its own up several times. So whoever stands still (a paused virtual machine, a suspended host)
counts nobody out, and neither does one that cannot reach the place.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

SILENT_S = 120.0  # after which a process is taken for dead
_BEATS = 5  # in that time


@dataclass
class Pulse:
    """Calls ``show`` with 1, 2, 3 … in a thread, five times in ``silent_s``. ``show`` raises one of ``away`` where it
    could not; that beat does not count."""

    show: Callable[[int], None]
    away: tuple[type[Exception], ...]
    silent_s: float = SILENT_S
    count: int = 0
    _seen: dict[str, tuple[object, int]] = field(default_factory=dict)
    _closed: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def begin(self) -> None:
        """The first beat now, the others by themselves; again and again."""
        if self._thread is None:
            self.show(0)
            self._thread = threading.Thread(target=self._beat, name="autotune-heartbeat", daemon=True)
            self._thread.start()

    def is_silent(self, owner: str, sign: object) -> bool:
        """Whether ``owner``, whose ``sign`` is seen now, has shown the same one for so long that it is taken for
        dead."""
        before, since = self._seen.get(owner, (None, 0))
        if owner not in self._seen or sign != before:
            self._seen[owner] = (sign, self.count)
            return False
        return self.count - since > _BEATS

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join(1.0)

    def _beat(self) -> None:
        while not self._closed.wait(self.silent_s / _BEATS):
            try:
                self.show(self.count + 1)
            except self.away:  # the next claim meets it and says so
                continue
            self.count += 1

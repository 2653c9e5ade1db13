"""Arrays as they lie on a device: an accessor onto another's data, a window of what is resident, an input with what
shows that no kernel wrote to it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from autotune.device.backend import Backend, Placed, make_raw
from autotune.layout import Bytes, Stored, Window, handle


@dataclass(frozen=True)
class Shared:
    """Another accessor onto data that ``owner`` holds (grouping: merged)."""

    owner: Placed
    stored: Stored
    guards: tuple[Placed, ...] = ()

    @property
    def argument(self) -> bytes:
        return self.stored.argument(handle(self.owner.argument))

    def free(self) -> None:
        """The owner does."""


@dataclass(frozen=True)
class Windowed:
    """An array of which constant memory holds one window at a time; ``resident`` has all of them on the device.
    ``extent`` is empty for an array that is never cut."""

    extent: str
    windows: tuple[Window, ...]
    resident: Placed
    guards: tuple[Placed, ...] = ()

    @staticmethod
    def make_whole(window: Stored, resident: Placed) -> "Windowed":
        """All of an array in one window, its bytes as they are in ``resident``."""
        return Windowed("", (Window(0, window.extents[0], 0, window),), resident)

    @property
    def stored(self) -> Stored:
        """What it takes of the device's memory."""
        return self.resident.stored

    @property
    def argument(self) -> bytes:
        """The accessor of the first window."""
        return self.windows[0].stored.argument(0)

    def free(self) -> None:
        self.resident.free()


_SLACK = 0xFF  # what slack holds between verified runs: NaN, -1, no link
_MOST_RUNS = 64  # of slack, filled one by one


@dataclass
class PlacedInput:
    """One array or merged group in one layout: where each member is, and what storing it cost. ``stored`` has no
    content but for constant memory that is filled from the host, again for each binary.

    With ``content``, which makes the bytes again, its checksum is taken: ``has_changed`` says whether something
    wrote to it since; ``canonical`` are the arrays, where they can be read back. ``slack`` are the runs of bytes
    (begin, end) in it that are no element's: padding and the rest of a block. ``is_room`` is for an array that no
    kernel says it reads, and that has no content at all.
    """

    stored: dict[str, Stored]
    placed: dict[str, Placed]
    transform_ms: float = 0.0
    transfer_ms: float = 0.0
    transfer_bytes: int = 0  # from the host; constant memory is counted where it is filled
    content: Callable[[], Bytes] | None = None
    canonical: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    slack: tuple[tuple[int, int], ...] = ()
    is_room: bool = False
    used: int = 0
    _checksum: int = field(default=0, repr=False)

    @property
    def nbytes(self) -> int:
        return sum(p.stored.nbytes for p in self.placed.values() if not isinstance(p, Shared))

    @property
    def owner(self) -> Placed | None:
        """The linear memory that all members lie in; None for what is nowhere but in constant memory."""
        return next((linear(p) for p in self.placed.values() if not isinstance(p, Shared)), None)

    def take_checksum(self, backend: Backend) -> None:
        """Remember the content as it is now."""
        if self.content is not None and self.owner is not None:
            self.fill_slack(backend, _SLACK)
            self._checksum = backend.checksum(self.owner)

    def fill_slack(self, backend: Backend, byte: int) -> None:
        """Set the bytes that are no element's (all of a room's): a kernel that reads them must not depend on them."""
        if self.owner is None:
            return
        if self.is_room:
            backend.fill(self.owner, byte)
        for begin, end in _shorten_runs(self.slack):
            backend.fill(self.owner, byte, begin, end - begin)

    def has_changed(self, backend: Backend) -> bool:
        """Whether something wrote to it since its checksum was taken."""
        if self.content is None or self.owner is None:
            return False
        self.fill_slack(backend, _SLACK)
        return backend.checksum(self.owner) != self._checksum

    def restore(self, backend: Backend) -> None:
        """Write the content again, in place: whatever is bound to it reads that from now on."""
        assert self.content is not None and self.owner is not None
        backend.upload(self.owner, replace(make_raw(self.owner.stored.nbytes), buffer=self.content()))

    def free(self) -> None:
        for placed in self.placed.values():
            placed.free()


def linear(placed: Placed) -> Placed:
    """The linear memory of an array: what its constant window is filled from, where it has one."""
    return placed.resident if isinstance(placed, Windowed) else placed


def _shorten_runs(runs: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """The first and the last runs where they are too many."""
    half = _MOST_RUNS // 2
    return runs if len(runs) <= _MOST_RUNS else (*runs[:half], *runs[-half:])

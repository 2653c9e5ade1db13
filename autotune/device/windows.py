"""Arguments that are no array of their own: a second accessor onto another's data, a window of what is resident."""

from dataclasses import dataclass

from autotune.device.backend import Placed
from autotune.layout import Stored, Window, handle

__all__ = ["Shared", "Windowed"]


@dataclass(frozen=True)
class Shared:
    """Another accessor onto data that ``owner`` holds (grouping: merged)."""

    owner: Placed
    stored: Stored

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

    @staticmethod
    def whole(window: Stored, resident: Placed) -> "Windowed":
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

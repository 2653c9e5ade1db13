"""What a family is held against: the kernel that there was before, as it was timed beside the control."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """``source`` and ``kernel`` say which; ``digest`` is of its source and declaration. ``control_ms`` and
    ``winner_ms`` are what those took in turn with it, ``winner`` which configuration that was. Without a time,
    ``reason`` says why."""

    source: str
    kernel: str
    digest: str
    median_ms: float = 0.0
    spread: float = 0.0
    samples: int = 0
    registers: int | None = None
    control_ms: float = 0.0
    winner_ms: float = 0.0
    winner: str = ""
    reason: str = ""

    @property
    def cause(self) -> str:
        """The first line of the reason."""
        return next(iter(self.reason.splitlines()), "")

    @property
    def over_winner(self) -> float:
        """Its time over the winner's, taken in turn; 0 where one of them has none."""
        return self.median_ms / self.winner_ms if self.winner_ms else 0.0

    @property
    def over_control(self) -> float:
        """Its time over the control's, taken in turn; 0 where one of them has none."""
        return self.median_ms / self.control_ms if self.control_ms else 0.0

    def beside_ms(self, winner_ms: float) -> float:
        """Its time beside a winner that takes ``winner_ms``: so many times that as it took in turn with the winner.
        Times of two occasions do not compare, and a ratio agrees with the times that are shown with it."""
        return self.over_winner * winner_ms or self.median_ms

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value not in (None, "", 0, 0.0)}

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "Baseline | None":
        """As a study's description has it; None where it has none."""
        known = {field.name for field in fields(cls)}
        kept = {name: value for name, value in told.items() if name in known}
        return cls(**kept) if {"source", "kernel", "digest"} <= kept.keys() else None

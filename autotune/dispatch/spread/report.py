"""What a spread run took, worker by worker: predicted beside measured."""

import math
from dataclasses import dataclass

__all__ = ["Report", "Share"]


@dataclass(frozen=True, kw_only=True)
class Share:
    """One worker's part of a run. ``predicted_s`` is what the cost model said (NaN when nothing was calibrated),
    ``measured_s`` the time from the run's begin until its last result was there, ``device_s`` and ``copied_s`` what its
    device was busy computing and copying. ``redone`` counts units taken over from a lost worker; ``lost`` says why this
    one was."""

    device: str
    units: int
    chunks: int
    cost: float
    predicted_s: float
    measured_s: float
    device_s: float
    copied_s: float
    redone: int = 0
    lost: str = ""


@dataclass(frozen=True, kw_only=True)
class Report:
    """One run. ``started_s`` (processes, contexts, compiling, placing) and ``calibrated_s`` are not part of
    ``elapsed_s``, which is from the first chunk handed out until the result is whole."""

    family: str
    configuration: str
    allocation: str
    batch: int
    started_s: float
    calibrated_s: float
    elapsed_s: float
    shares: tuple[Share, ...]

    @property
    def predicted_s(self) -> float:
        """What the slowest worker was predicted to take; NaN when nothing was calibrated."""
        return max(share.predicted_s for share in self.shares)

    @property
    def balance(self) -> float:
        """The devices' busy time as a share of the time that the run kept them: 1 when none ever waited."""
        return sum(share.device_s for share in self.shares) / (self.elapsed_s * len(self.shares))

    def lines(self) -> list[str]:
        """A table for people."""
        rows = [["device", "units", "chunks", "predicted", "measured", "computing", "copying", "redone"]]
        for share in self.shares:
            times = (share.predicted_s, share.measured_s, share.device_s, share.copied_s)
            counts = [str(share.units), str(share.chunks)]
            rows.append([share.device, *counts, *map(_seconds, times), str(share.redone)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
        head = (
            f"{self.allocation}, at most {self.batch} units a chunk: {_seconds(self.elapsed_s)} (devices busy "
            f"{self.balance:.1%}), predicted {_seconds(self.predicted_s)}; start {_seconds(self.started_s)}, "
            f"calibration {_seconds(self.calibrated_s)}"
        )
        lost = [f"{share.device} was lost: {share.lost}" for share in self.shares if share.lost]
        return [head, *table, *lost]


def _seconds(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value * 1e3:.3f} ms" if value < 1 else f"{value:.3f} s"

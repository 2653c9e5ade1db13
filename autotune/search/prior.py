"""Times that a search begins from: measured elsewhere, on other GPUs, of the same configurations.

Of a record only the relation of its times counts: each is the logarithm of its time over the best of its record, and
none is above the record's median. The factor between two devices drops out; what is left is which configurations are
fast. On average over the records that is what is expected here, and each record is a straight line by which
the search may depart from the average (surrogate).
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Configuration

FIVE = 5  # configurations that are named without measuring
_UNKNOWN = math.log(2)  # above a record's times, if those do not differ: what it does not have


class Prior:
    """``records`` has the milliseconds of each record's configurations, infinite where one failed. Records in which
    nothing was measured are left out."""

    def __init__(self, records: Iterable[Mapping[Configuration, float]] = ()) -> None:
        self._records = [_relate(record) for record in records if any(map(math.isfinite, record.values()))]
        figures = [np.array([*record.values()]) for record in self._records]
        self._means = np.array([one.mean() for one in figures])
        self._spreads = np.array([float(one.std()) or _UNKNOWN for one in figures])
        self._slowest = [float(one.max()) or _UNKNOWN for one in figures]
        self.most = float(np.mean(self._slowest)) if figures else math.inf

    def __len__(self) -> int:
        return len(self._records)

    @property
    def winners(self) -> list[Configuration]:
        """The best of each record, those first that are the best on average."""
        won = dict.fromkeys(min(record, key=record.__getitem__) for record in self._records)
        return self.rank(list(won))

    def rank(self, configurations: Sequence[Configuration]) -> list[Configuration]:
        """Those expected to be fastest first; in their own order where nothing tells them apart."""
        return [configurations[i] for i in np.argsort(self.expect(self.rows(configurations)), kind="stable")]

    def rows(self, configurations: Sequence[Configuration]) -> NDArray[np.float64]:
        """A row for each configuration, a column for each record: how its time there differs from the mean, in standard
        deviations. What a record does not have counts as its slowest, or as ``_UNKNOWN`` above its only time."""
        found = [
            [record.get(one, slow) for record, slow in zip(self._records, self._slowest, strict=True)]
            for one in configurations
        ]
        table = np.array(found, dtype=float).reshape(len(configurations), len(self))
        deviations: NDArray[np.float64] = (table - self._means) / self._spreads
        return deviations

    def expect(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The logarithm of the time over the best one's, for each of ``rows``: the average over the records."""
        figures: NDArray[np.float64] = (rows * self._spreads + self._means).sum(axis=1) / max(1, len(self))
        return figures


def _relate(record: Mapping[Configuration, float]) -> dict[Configuration, float]:
    """The logarithms of times over the best, none above the median: so is what failed."""
    logs = np.log(np.maximum(np.array([*record.values()]), 1e-9))
    logs = np.minimum(logs, logs[np.isfinite(logs)].max()) - logs.min()
    capped = np.minimum(logs, np.median(logs))
    return dict(zip(record, capped.tolist(), strict=True))

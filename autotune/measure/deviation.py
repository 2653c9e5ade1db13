"""The error of a result: for each floating point output, its largest difference from the reference, divided by the
largest magnitude in the reference.

It is measured if a family can store numbers in fewer bits than a kernel reads: there a tolerance says whether a result
is right, but not how good it is. Elements that are not finite in the reference do not count. If a result is not finite
where the reference is, it has no error.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.device import Execution

_MOST = 256  # results that are remembered
_PART = 1 << 18  # elements that are compared at a time


def relative_error(got: NDArray[Any], expected: NDArray[Any]) -> float | None:
    """The largest |got - expected| over the largest |expected|; None where ``got`` has no number for one that is
    expected. Of an expected zero, 0 where it is one and infinite otherwise would say nothing: the difference itself."""
    apart, most, count = 0.0, 0.0, 0
    left, whole = np.ravel(got), np.ravel(expected)
    for begin in range(0, whole.size, _PART):  # in parts that a cache holds
        wide, right = (each[begin : begin + _PART].astype(np.float64) for each in (left, whole))
        counted = np.isfinite(right)
        if not counted.all():
            wide, right = wide[counted], right[counted]
        if not right.size:
            continue
        here = float(np.abs(wide - right).max())
        if not math.isfinite(here):
            return None
        apart, most, count = max(apart, here), max(most, float(np.abs(right).max())), count + right.size
    if not count:
        return None
    return apart / most if most else apart


@dataclass
class Deviations:
    """Of the outputs of one study's configurations from ``expected``, canonical arrays; a result that was seen before
    is not fetched again."""

    expected: Mapping[str, NDArray[Any]]
    _known: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)

    def compute(self, execution: Execution) -> dict[str, float]:
        """By output, or field of one (``hits.score``), what the latest run of ``execution`` left."""
        deviations: dict[str, float] = {}
        for name, expected in self.expected.items():
            orders = execution.variant.configuration.id if execution.orders else ""
            key = (
                f"{name} {execution.variant.layouts[name]!r} {orders}",
                execution.backend.checksum(execution.placed[name]),
            )
            if key not in self._known:
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[key] = _errors(name, execution.restore(name, expected.shape), expected)
            deviations |= self._known[key]
        return deviations


def _errors(name: str, got: NDArray[Any], expected: NDArray[Any]) -> dict[str, float]:
    parts = {f"{name}.{f}": (got[f], expected[f]) for f in expected.dtype.names or ()} or {
        name: (got, expected)
    }
    told = {key: relative_error(*pair) for key, pair in parts.items() if pair[1].dtype.kind == "f"}
    return {key: float(f"{error:.4g}") for key, error in told.items() if error is not None}

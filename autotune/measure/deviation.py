"""How far a result is off: of each floating point output, the largest difference from the reference over the largest
magnitude in the reference.

It is measured where numbers can be stored in fewer bits than a kernel reads, since there a tolerance says what is right
and not how good it is. Elements that are not finite in the reference do not count; where a result is not finite and the
reference is, nothing is told.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.device import Execution

_MOST = 256  # results that are remembered


def relative_error(got: NDArray[Any], expected: NDArray[Any]) -> float | None:
    """The largest |got - expected| over the largest |expected|; None where ``got`` has no number for one that is
    expected. Of an expected zero, 0 where it is one and infinite otherwise would say nothing: the difference itself."""
    counted = np.isfinite(expected)
    wide, right = got[counted].astype(np.float64), expected[counted].astype(np.float64)
    if not right.size:
        return None
    apart, most = float(np.abs(wide - right).max()), float(np.abs(right).max())
    return None if not math.isfinite(apart) else apart / most if most else apart


@dataclass
class Deviations:
    """Of the outputs of one study's configurations from ``expected``, canonical arrays; a result that was seen before
    is not fetched again."""

    expected: Mapping[str, NDArray[Any]]
    _known: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)

    def of(self, execution: Execution) -> dict[str, float]:
        """By output, or field of one (``hits.score``), what the latest run of ``execution`` left."""
        found: dict[str, float] = {}
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
            found |= self._known[key]
        return found


def _errors(name: str, got: NDArray[Any], expected: NDArray[Any]) -> dict[str, float]:
    parts = {f"{name}.{f}": (got[f], expected[f]) for f in expected.dtype.names or ()} or {
        name: (got, expected)
    }
    told = {key: relative_error(*pair) for key, pair in parts.items() if pair[1].dtype.kind == "f"}
    return {key: float(f"{error:.4g}") for key, error in told.items() if error is not None}

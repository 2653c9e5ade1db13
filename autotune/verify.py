"""Correct before fast: a variant's outputs against the family's reference, before any of its times count.

Integers are compared exactly, on the device where the layout allows it; floating point by the tolerance
that the family declares.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.backends import Backend, Placed
from autotune.execution import Execution
from autotune.family import Family
from autotune.layout import Layout

__all__ = ["Verifier", "difference"]

POISON = 0xA5  # outputs hold it before the run, so an element that nothing wrote is seen


@dataclass
class Verifier:
    """Holds the reference outputs, resident once per output layout. ``expected`` are canonical arrays."""

    backend: Backend
    family: Family
    expected: Mapping[str, NDArray[Any]]
    _resident: dict[str, Placed] = field(default_factory=dict)

    def run(self, execution: Execution, cold: bool) -> tuple[str, float]:
        """Run ``execution`` on poisoned outputs: (why it is wrong or empty, milliseconds it took). Once; twice when
        the first run was the one that recorded graphs: what counts is how they are replayed."""
        recorded = execution.graphs
        elapsed = self._run(execution, cold)
        if execution.graphs > recorded:
            elapsed = self._run(execution, cold)
        for data in self.family.outputs:
            if reason := self._compare(execution, data.name):
                return reason, elapsed
        return "", elapsed

    def _run(self, execution: Execution, cold: bool) -> float:
        for data in self.family.outputs:
            self.backend.fill(execution.placed[data.name], POISON)
        return self.backend.sample(execution.run, 1, cold)[0]

    def _compare(self, execution: Execution, name: str) -> str:
        layout, placed, expected = (
            execution.variant.layouts[name],
            execution.placed[name],
            self.expected[name],
        )
        data = self.family.data[name]
        moved = [
            space for space in (*data.shape, *(f.link for f in data.fields)) if space in execution.orders
        ]
        if _is_exact(expected.dtype) and _is_dense(layout) and not moved:
            if layout.cpp not in self._resident:
                self._resident[layout.cpp] = self.backend.place(layout.apply(expected))
            if not self.backend.mismatches(placed, self._resident[layout.cpp]):
                return ""
        got = execution.restore(name, expected.shape)
        return difference(name, got, expected, *self.family.tolerance(execution.names))

    def close(self) -> None:
        for placed in self._resident.values():
            placed.free()
        self._resident.clear()


def _is_exact(dtype: np.dtype[Any]) -> bool:
    """Integers, or records of them."""
    return all(dtype[name].kind in "iu" for name in dtype.names) if dtype.names else dtype.kind in "iu"


def _is_dense(layout: Layout) -> bool:
    """No padding, planes or lanes: every byte of the buffer is an element, so buffers can be compared whole."""
    return layout.dims == "1d" and layout.padding == 1 and layout.lanes <= 1 and layout.group == (1, 0)


def difference(name: str, got: NDArray[Any], expected: NDArray[Any], relative: float, absolute: float) -> str:
    """How ``got`` differs from ``expected`` beyond the tolerance (integers: at all); empty when it does not.
    NaN equals only NaN."""
    if got.dtype.names:
        parts = (difference(f"{name}.{f}", got[f], expected[f], relative, absolute) for f in got.dtype.names)
        return next((part for part in parts if part), "")
    if expected.dtype.kind in "iub":
        wrong = got != expected
    else:
        wrong = ~np.isclose(got, expected, rtol=relative, atol=absolute, equal_nan=True)
    count = int(np.count_nonzero(wrong))
    if not count:
        return ""
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{name}: {count} of {expected.size} elements differ, the first at {list(first)}: "
        f"{got[first]!s}, expected {expected[first]!s}"
    )

"""How far a map may be off."""

from typing import Any

from autotune.family import WorkloadError

__all__ = ["checked_accuracy"]

_LEAST = 1e-6  # float32's sums of single atoms are within 8.2e-7 (atom.cuh: near_rounding)


def checked_accuracy(value: Any) -> float:
    """A share of a point's sum of |q| / r. Raises WorkloadError."""
    try:
        accuracy = float(value)
    except (TypeError, ValueError):
        raise WorkloadError(
            f"accuracy is {value!r}: a share of the sum of |q| / r is needed, as 1e-6"
        ) from None
    if not _LEAST <= accuracy < 1:
        raise WorkloadError(
            f"accuracy is {accuracy:g}: from {_LEAST:g}, which float32 can keep, to below 1 of the sum of |q| / r "
            "is possible; the family coulomb has float64"
        )
    return accuracy

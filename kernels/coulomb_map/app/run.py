"""``autotune run coulomb_map -i structure=FILE -i accuracy=A -o FILE``: coulomb's map of a structure, by this family's
kernel, and what bounds its error."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import TunedKernel, UsageError, family_module

from ..accuracy import checked_accuracy

__all__ = ["run"]


class _Map:
    """Called as coulomb's kernel is; ``share`` is the largest bound of the last map, as a share of what was asked."""

    def __init__(self, kernel: TunedKernel, accuracy: float) -> None:
        self.device = kernel.device
        self.share = 0.0
        self._kernel = kernel
        self._accuracy = accuracy

    def __call__(self, **inputs: Any) -> NDArray[np.float32]:
        del inputs["precision"]  # coulomb's
        made = self._kernel(**inputs, accuracy=self._accuracy)
        self.share = float(made["share"][0])
        potential: NDArray[np.float32] = made["potential"]
        return potential


def run(
    given: Mapping[str, str],
    output: Path | None,
    open_kernel: Callable[[], TunedKernel],
    note: Callable[[str], None],
) -> None:
    """As coulomb's, with ``accuracy`` in place of ``precision``. Raises what that raises."""
    if "precision" in given:
        raise UsageError(
            "a map with a bound takes no precision: -i accuracy=A says how far a point may be off"
        )
    accuracy = checked_accuracy(given.get("accuracy", "1e-6"))
    made: list[_Map] = []

    def open_map() -> Any:
        made.append(_Map(open_kernel(), accuracy))
        return made[0]

    rest = {name: value for name, value in given.items() if name != "accuracy"}
    family_module("coulomb", "app.run").run(rest, output, open_map, note)
    note(
        f"error        at most {made[0].share * accuracy:.3g} of a point's sum of |q| / r ({accuracy:g} asked)"
    )

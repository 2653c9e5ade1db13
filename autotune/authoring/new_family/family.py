"""The reference of family new_family: the right answer, from something that is not the kernel.

Other functions that a family may have here (inputs from files, orders, a plan of several launches) are listed in
autotune's docs/reference/family.md under "What family.py may define"; they may import autotune.family.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Every output by name, (count,) float32, in float64 so that only the kernel rounds. ``_options`` holds the
    options and the scalars, where a family has some."""
    scores = arrays["items"].astype(np.float64) @ arrays["weights"].astype(np.float64)
    return {"scores": scores.astype(np.float32)}

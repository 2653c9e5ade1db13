"""The bilateral example on the cpu device: configurations with every value of every policy against the reference, and
that against the formula, pixel by pixel, and what OpenCV's bilateralFilter gave."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import check_verified, compiled

from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.device.cpu.backend import CpuBackend
from autotune.errors import WorkloadError

FAMILY = families.load_family(str(Path(__file__).parents[2] / "examples" / "bilateral"))
MADE: Any = FAMILY.module
ALL = FAMILY.space.configurations()
CONFIGURATIONS = ALL[::106]

# cv2.bilateralFilter(image, 5, 30, 1.5, borderType=cv2.BORDER_REPLICATE) of OpenCV 4.10 for IMAGE.
IMAGE = (np.arange(45) * 73 % 256).reshape(5, 9).astype(np.uint8)
OPENCV = [
    [3, 72, 146, 216, 42, 109, 182, 249, 74],
    [144, 211, 50, 112, 185, 242, 78, 149, 222],
    [35, 106, 180, 238, 73, 143, 213, 49, 110],
    [173, 236, 68, 138, 208, 44, 101, 175, 247],
    [68, 141, 212, 37, 104, 177, 244, 71, 140],
]


def test_the_configurations_have_every_value() -> None:
    for policy in FAMILY.space.policies:
        assert {c[policy.name] for c in CONFIGURATIONS} == set(policy.values), policy.name


def test_the_ragged_workload_is_the_reference(backend: CpuBackend) -> None:
    inputs = workloads.prepare(FAMILY, workloads.load_workload(FAMILY, "ragged"), Path())
    variants = [Variant.make(FAMILY, c, FAMILY.choose_options({})) for c in CONFIGURATIONS]
    expected = MADE.reference(inputs.arrays, {})
    check_verified(backend, compiled(backend, variants, 16, "-Og"), inputs, expected)


def by_hand(image: np.ndarray, space: np.ndarray, likeness: np.ndarray) -> np.ndarray:
    """The formula, pixel by pixel."""
    radius = len(space) // 2
    smooth = np.empty_like(image)
    height, width = image.shape
    for y, x in np.ndindex(image.shape):
        weights = total = 0.0
        for dy, dx in np.argwhere(space > 0) - radius:
            pixel = int(image[min(max(y + dy, 0), height - 1), min(max(x + dx, 0), width - 1)])
            weight = float(space[dy + radius, dx + radius]) * float(likeness[abs(pixel - int(image[y, x]))])
            weights += weight
            total += weight * pixel
        smooth[y, x] = int(total / weights + 0.5)
    return smooth


def test_the_reference_is_the_formula_and_opencvs() -> None:
    space, likeness = MADE.space_weights(2, 1.5), MADE.range_weights(30.0)
    found = MADE.reference({"image": IMAGE, "space": space, "range": likeness}, {})["smooth"]
    np.testing.assert_array_equal(found, by_hand(IMAGE, space, likeness))
    np.testing.assert_array_equal(found, OPENCV)


def test_a_mistake_in_the_parameters_is_said() -> None:
    with pytest.raises(WorkloadError, match=r"unknown parameters \['sigma'\]; known are height, width"):
        MADE.inputs({"sigma": 3}, Path())
    with pytest.raises(WorkloadError, match="must be above 0"):
        MADE.inputs({"height": 0}, Path())

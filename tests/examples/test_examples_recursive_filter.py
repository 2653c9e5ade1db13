"""The recursive filter on the cpu device against scipy.signal: a configuration with every layout of every array."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import Binary, compiled, results
from scipy import ndimage

from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.workload import Inputs, bind
from autotune.device.cpu.backend import CpuBackend

FAMILY = families.load_family(str(Path(__file__).parents[2] / "examples" / "recursive_filter"))
MADE: Any = FAMILY.module
CONFIGURATIONS = [
    FAMILY.space.configuration(text)
    for text in (
        "block_size=256", "rows_read=columns", "across_axes=columns,points_read=rows",
        "down_axes=columns,across_axes=columns",
        "rows_read=columns,across_axes=columns,points_read=rows,block_size=64,unroll=8",
    )
]  # fmt: skip


def smoothed(lines: np.ndarray, share: float, passes: int, axis: int) -> np.ndarray:
    """scipy's filter in float64, whose state begins as a line's first value."""
    from scipy.signal import lfilter  # half a second, which every process that collects this file would take

    for _ in range(2 * passes):
        first = np.take(lines, [0], axis)
        lines, _ = lfilter([share], [1, share - 1], lines, axis, zi=(1 - share) * first)
        lines = np.flip(lines, axis)
    return lines


def expected(inputs: Inputs) -> np.ndarray:
    image = inputs.arrays["image"].astype(np.float64)
    share, passes = float(np.float32(inputs.scalars["smooth"])), int(inputs.scalars["passes"])
    across = smoothed(smoothed(image, share, passes, 1), share, passes, 2)
    side = 2 * int(inputs.scalars["reach"]) + 1
    mean = ndimage.uniform_filter(across, (1, side, side), mode="nearest")
    return image + inputs.scalars["amount"] * (image - mean)


def of(shape: tuple[int, int, int], **scalars: float) -> Inputs:
    image = np.random.default_rng(sum(shape)).random(shape).astype(np.float32)
    return bind(FAMILY, {"image": image}, {}, scalars)


@pytest.fixture(scope="module")
def binaries(backend: CpuBackend) -> list[Binary]:
    return compiled(backend, [Variant(FAMILY, c) for c in CONFIGURATIONS], 16)


def check(backend: CpuBackend, binaries: list[Binary], inputs: Inputs) -> None:
    right = expected(inputs)
    for variant, found in results(backend, binaries, inputs):
        np.testing.assert_allclose(
            found["sharp"], right, rtol=1e-5, atol=2e-5, err_msg=variant.configuration.id
        )


def test_every_layout_of_every_array_is_there() -> None:
    for policy in FAMILY.space.policies:
        assert {c[policy.name] for c in CONFIGURATIONS} == set(policy.values), policy.name
    converted = {tuple(sorted(Variant(FAMILY, c).conversions)) for c in CONFIGURATIONS}
    assert converted == {
        (), ("down_for_rows",), ("across_for_points",), ("across_for_points", "down_for_rows"),
    }  # fmt: skip


def test_the_ragged_workload_equals_scipy(backend: CpuBackend, binaries: list[Binary]) -> None:
    check(backend, binaries, workloads.prepare(FAMILY, workloads.load_workload(FAMILY, "ragged"), Path()))


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 9, 33), (17, 1, 2)])
def test_images_with_thin_sides(
    backend: CpuBackend, binaries: list[Binary], shape: tuple[int, int, int]
) -> None:
    check(backend, binaries, of(shape, smooth=0.7, amount=-1, passes=3, reach=2))


def test_the_reference_equals_scipy() -> None:
    inputs = of((3, 5, 4), smooth=0.25, passes=2, reach=1)
    result = MADE.reference(inputs.arrays, inputs.scalars)["sharp"]
    np.testing.assert_allclose(result, expected(inputs), rtol=1e-6, atol=1e-6)

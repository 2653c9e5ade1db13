"""The stencil example on the cpu device against scipy.ndimage: configurations with every value of every policy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import Binary, compiled, covering, results
from scipy import ndimage

from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.workload import Inputs, bind
from autotune.device.cpu.backend import CpuBackend

FAMILY = families.load_family(str(Path(__file__).parents[2] / "examples" / "stencil"))
MADE: Any = FAMILY.module
# Every fifth: each value of a policy is there with each value of every other that the constraints allow.
CONFIGURATIONS = covering(FAMILY.space.configurations(), 2)


def convolved(inputs: Inputs) -> np.ndarray:
    """scipy's convolution in float64 with zero outside."""
    weights = np.zeros((3, 3, 3))
    weights[1, 1, :] = weights[1, :, 1] = weights[:, 1, 1] = inputs.scalars["side"]
    weights[1, 1, 1] = inputs.scalars["centre"]
    return ndimage.convolve(inputs.arrays["field"].astype(np.float64), weights, mode="constant")


def of(shape: tuple[int, int, int], **scalars: float) -> Inputs:
    field = np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)
    return bind(FAMILY, {"field": field}, {}, scalars)


@pytest.fixture(scope="module")
def binaries(backend: CpuBackend) -> list[Binary]:
    return compiled(backend, [Variant(FAMILY, c) for c in CONFIGURATIONS], 16)


def check(backend: CpuBackend, binaries: list[Binary], inputs: Inputs) -> None:
    expected = convolved(inputs)
    for variant, found in results(backend, binaries, inputs):
        name = variant.configuration.id
        np.testing.assert_allclose(found["result"], expected, rtol=1e-5, atol=2e-6, err_msg=name)


def test_the_ragged_workload_equals_scipy(backend: CpuBackend, binaries: list[Binary]) -> None:
    check(backend, binaries, workloads.prepare(FAMILY, workloads.load_workload(FAMILY, "ragged"), Path()))


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 9, 33), (17, 1, 2), (5, 3, 64)])
def test_lattices_with_thin_sides(
    backend: CpuBackend, binaries: list[Binary], shape: tuple[int, int, int]
) -> None:
    check(backend, binaries, of(shape, centre=-6, side=1))


def test_the_reference_equals_scipy() -> None:
    inputs = of((6, 5, 4), centre=-1.25, side=0.75)
    result = MADE.reference(inputs.arrays, inputs.scalars)["result"]
    np.testing.assert_allclose(result, convolved(inputs), rtol=1e-6, atol=1e-6)

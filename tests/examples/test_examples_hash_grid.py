"""The hash_grid example: its configurations on the cpu device against interpolation written out point by point, its
storages by their errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import Binary, compiled, results

from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.workload import Inputs
from autotune.device.cpu.backend import CpuBackend
from autotune.errors import WorkloadError
from autotune.measure.deviation import relative_error

FAMILY = families.load_family(str(Path(__file__).parents[2] / "examples" / "hash_grid"))
MADE: Any = FAMILY.module
TRIED = [
    *(
        f"table_storage={name},work=level"
        for name in ("float32", "float16", "bfloat16", "scaled_int8_by_row")
    ),
    "encoding_storage=float16,encoding_axes=by_level",
    "table_storage=float16,encoding_storage=float16,point_records=soa,table_memory=readonly,block_size=128",
    "table_storage=scaled_int8_by_row,table_memory=texture,encoding_axes=by_level,work=level",
]
ERRORS = {"float32": 1e-6, "float16": 5e-4, "bfloat16": 4e-3, "scaled_int8_by_row": 4.5e-3}


@pytest.fixture(scope="module")
def binaries(backend: CpuBackend) -> list[Binary]:
    variants = [Variant(FAMILY, FAMILY.space.configuration(text)) for text in TRIED]
    return compiled(backend, variants, optimize="-Og")


def made(**parameters: Any) -> Inputs:
    arrays = MADE.inputs({"seed": 1, **parameters}, Path())
    return workloads.bind(FAMILY, arrays, {}, {})


def by_hand(inputs: Inputs, point: int, level: int) -> list[float]:
    """One point at one level, in Python's own numbers."""
    table, side = inputs.arrays["table"][level], int(inputs.arrays["resolution"][level])
    found = inputs.arrays["points"][point]
    place = [np.float32(found[axis] * inputs.arrays["scale"][level]) + np.float32(0.5) for axis in "xyz"]
    cell, inside = [int(p) for p in place], [float(p) - int(p) for p in place]
    sums = [0.0, 0.0]
    for corner in range(8):
        step = [corner >> axis & 1 for axis in range(3)]
        x, y, z = (c + s for c, s in zip(cell, step, strict=True))
        entry = x + side * (y + side * z)
        if side**3 > len(table):
            entry = (x ^ y * 2654435761 ^ z * 805459861) % 2**32 % len(table)
        weight = np.prod([f if s else 1 - f for f, s in zip(inside, step, strict=True)])
        sums = [total + weight * float(value) for total, value in zip(sums, table[entry], strict=True)]
    return sums


def test_the_reference_interpolates() -> None:
    inputs = made(points=40, levels=4, log2_entries=13)  # the first level has fewer corners than entries
    encoding = MADE.reference(inputs.arrays, {})["encoding"]
    assert int(inputs.arrays["resolution"][0]) ** 3 <= 1 << 13 < int(inputs.arrays["resolution"][1]) ** 3
    for point in range(0, 40, 3):
        for level in range(4):
            np.testing.assert_allclose(
                encoding[point, level].tolist(), by_hand(inputs, point, level), atol=1e-6
            )


@pytest.mark.parametrize("rays", [False, True])
def test_each_storage_keeps_to_its_error(backend: CpuBackend, binaries: list[Binary], rays: bool) -> None:
    inputs = made(points=777, levels=5, log2_entries=11, rays=rays)
    expected = MADE.reference(inputs.arrays, {})["encoding"]
    for variant, found in results(backend, binaries, inputs):
        names = ("table_storage", "encoding_storage")
        allowed = sum(ERRORS[str(variant.configuration[name])] for name in names)
        for field in "uv":
            error = relative_error(found["encoding"][field], expected[field])
            assert error is not None and error <= allowed, variant.configuration.id
        if variant.configuration["table_storage"] != "float32":
            assert error > 1e-5  # it is no float32 by another name


def test_rays_stay_in_the_cube() -> None:
    points = made(points=1000, levels=1, log2_entries=4, rays=True).arrays["points"]
    for axis in "xyz":
        assert points[axis].min() >= 0 and points[axis].max() < 1
    steps = np.diff(points["x"][:64])
    np.testing.assert_allclose(steps, steps[0], atol=1e-6)  # the first ray is straight


def test_parameters_that_make_no_input_are_refused() -> None:
    for wrong in ({"points": 0}, {"levels": 3.5}, {"log2_entries": 25}, {"point": 1}):
        with pytest.raises(WorkloadError, match="give points, levels and log2_entries"):
            made(**{"points": 3, "levels": 2, "log2_entries": 4, **wrong})


def test_the_constraints_leave_every_value_of_every_policy() -> None:
    configurations = FAMILY.space.configurations()
    assert len(configurations) == 480
    for policy in FAMILY.space.policies:
        assert {c[policy.name] for c in configurations} == set(policy.values), policy.name

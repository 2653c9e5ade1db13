"""A map's slices spread over workers: bit for bit what one device makes."""

from pathlib import Path

import numpy as np

from autotune.compile.cache import Cache, default_root
from autotune.declaration import family, workload
from autotune.device.cpu.backend import CpuBackend
from autotune.device.resident import run_once
from autotune.spread import Spread
from autotune.spread.plan import ALLOCATIONS

DEEP = "memory=constant,points_z=8,points_x=4,precalculate=thread,accumulate=at_end,slices_per_launch=all,rsqrt=fast"


def test_slices_of_a_map() -> None:
    loaded = family.load_family("coulomb")
    inputs = workload.prepare(
        loaded, workload.load_workload(loaded, "1a63-slice"), Path(__file__).parents[3] / "workloads" / "data"
    )
    configuration = loaded.space.configuration(DEEP)
    with CpuBackend(2) as backend:
        alone = run_once(loaded, configuration, inputs, backend, Cache(default_root()))["potential"]
    with Spread(loaded, inputs, ["cpu"] * 2, configuration=dict(configuration)) as spread:
        assert len(spread.units) == -(-inputs.sizes["slice"] // 8)  # a thread has 8 slices
        for allocation in ALLOCATIONS:
            report = spread.run(allocation)
            np.testing.assert_array_equal(spread.outputs()["potential"], alone)
            assert sum(share.units for share in report.shares) == len(spread.units)

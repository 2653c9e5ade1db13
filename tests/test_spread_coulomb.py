"""A map's slices spread over workers: bit for bit what one device makes."""

from pathlib import Path

import numpy as np

from autotune import family, workload
from autotune.backends.cpu import CpuBackend
from autotune.cache import Cache, default_root
from autotune.dispatch import run_once
from autotune.spread import Spread

DEEP = "memory=constant,points_z=8,points_x=4,precalculate=thread,accumulate=at_end,slices_per_launch=all,rsqrt=fast"


def test_slices_of_a_map() -> None:
    loaded = family.load("coulomb")
    inputs = workload.prepare(
        loaded, workload.load(loaded, "1a63-slice"), Path(__file__).parents[1] / "workloads" / "data"
    )
    configuration = loaded.space.configuration(DEEP)
    with CpuBackend(2) as backend:
        alone = run_once(loaded, configuration, inputs, backend, Cache(default_root()))["potential"]
    with Spread(loaded, inputs, ["cpu"] * 2, configuration=dict(configuration)) as spread:
        assert len(spread.units) == -(-inputs.sizes["slice"] // 8)  # a thread has 8 slices
        for allocation in ("cyclic", "auto"):
            report = spread.run(allocation)
            np.testing.assert_array_equal(spread.outputs()["potential"], alone)
            assert sum(share.units for share in report.shares) == len(spread.units)

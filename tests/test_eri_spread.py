"""The eri family on several devices: its pieces, spread over two workers on the cpu, against PySCF's matrices."""

import numpy as np
import pytest
from eri_helpers import FAMILY, inputs, libcint

from autotune.errors import UsageError
from autotune.spread import Spread

WATER2 = {"waters": 2, "basis": "6-31g", "output": "coulomb_exchange", "seed": 3}
FAST = {"order": "subclass", "pair_table": "device", "boys": "rational"}


@pytest.mark.parametrize("granularity", ["block", "component"])
def test_matrices_from_two_workers_equal_pyscfs(granularity: str) -> None:
    water2 = inputs(WATER2)
    expected = libcint.matrices(libcint.mole(water2.arrays), water2.arrays["density"])
    with Spread(FAMILY, water2, ["cpu", "cpu"], configuration={**FAST, "granularity": granularity}) as spread:
        for allocation in ("balanced", "whole", "equal", "dynamic"):
            spread.run(allocation)
            found = spread.outputs()
            for name, matrix in zip(("coulomb", "exchange"), expected, strict=True):
                assert np.abs(found[name] - matrix).max() < 1e-9, (allocation, name)


def test_a_list_of_integrals_is_refused() -> None:
    with (
        pytest.raises(UsageError, match="output=coulomb_exchange"),
        Spread(FAMILY, inputs({"waters": 1, "basis": "6-31g"}), ["cpu", "cpu"], configuration=FAST),
    ):
        pass

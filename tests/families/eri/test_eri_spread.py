"""The eri family on several devices: its pieces, spread over two workers on the cpu, against PySCF's matrices."""

import json
from pathlib import Path

import numpy as np
import pytest
from eri_helpers import FAMILY, inputs, libcint

from autotune.cli.commands import main
from autotune.errors import UsageError
from autotune.spread import Spread
from autotune.spread.plan import ALLOCATIONS

WATER2 = {"waters": 2, "basis": "6-31g", "output": "coulomb_exchange", "seed": 3}
FAST = {"order": "subclass", "pair_table": "device", "boys": "rational"}


@pytest.mark.parametrize("granularity", ["block", "tile", "component"])
def test_matrices_from_two_workers_equal_pyscfs(granularity: str) -> None:
    water2 = inputs(WATER2)
    expected = libcint.matrices(libcint.mole(water2.arrays), water2.arrays["density"])
    with Spread(FAMILY, water2, ["cpu", "cpu"], configuration={**FAST, "granularity": granularity}) as spread:
        for allocation in ALLOCATIONS:
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


def test_workers_run_what_the_policy_file_says(tmp_path: Path) -> None:
    """The work of a call is a scalar of this family, which the choice among a file's entries has to know."""
    workload = tmp_path / "two.yaml"
    parameters, options = json.dumps(WATER2), '{"output": "coulomb_exchange"}'
    workload.write_text(
        f"{{schema: 1, workload: two, family: eri, parameters: {parameters}, options: {options}}}\n"
    )
    swept = ["sweep", "eri", "-w", str(workload), "--device", "cpu", "--preset", "screened", "--samples", "1"]
    swept += ["--set", "split=1", "--set", "roots=inverse"]  # one configuration
    assert main([*swept, "--policies", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    with Spread(FAMILY, inputs(WATER2), ["cpu", "cpu"], policies=tmp_path) as spread:
        assert spread.configuration["order"] == "schwarz"
        assert spread.match.startswith("exact")

"""Small odd inputs of each family, near in kind to every workload and quickly made."""

from pathlib import Path

import pytest
from plain import blur, workload

from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.family import Family
from autotune.declaration.workload import Workload
from autotune.engine.odd_sizes import compute_odd_proofs
from autotune.measure.reference import compute_expected

ROOT = Path(__file__).parents[2]
FAMILIES = [families.load_family(str(path.parent)) for path in sorted(ROOT.glob("[ke]*/*/family.py"))]
MADE = [family for family in FAMILIES if hasattr(family.module, "inputs")]
CASES = [
    pytest.param(family, name, id=f"{family.name}-{name}")
    for family in MADE
    for name in workloads.workloads(family)
]


def test_every_family_that_makes_its_inputs_has_ragged_ones() -> None:
    assert {family.name for family in MADE} >= {
        "allpairs", "coulomb", "coulomb_map", "cyclospectrum", "eri", "ion_placement", "mummergpu",
        "reaction_diffusion", "forest", "lookup", "nbody", "spmv",
    }  # fmt: skip


@pytest.mark.parametrize(("family", "name"), CASES)
def test_ragged_inputs_of_a_workload(family: Family, name: str, tmp_path: Path) -> None:
    """No data file is needed but those that ship, the workload's options hold, and sizes and digests differ."""
    given = workloads.load_workload(family, name)
    sets = list(family.module.ragged(given.parameters))  # type: ignore[union-attr]
    assert 2 <= len(sets) <= 4
    digests = set()
    for parameters in sets:
        made = Workload(name="ragged", family=family.name, parameters=parameters, options=given.options)
        inputs = workloads.prepare(family, made, tmp_path)
        digests.add(inputs.digest)
        compute_expected(family, inputs, tmp_path)
        assert sum(array.size for array in inputs.arrays.values()) < 1_000_000
    assert len(digests) == len(sets)


def test_extents_that_read_an_option_follow(tmp_path: Path, compile_cache: str) -> None:
    kernel, given = blur(), workload(tmp_path, "blur", **{"in": (100,), "weights": (7,)})
    given.write_text(f"{given.read_text()}options: {{RADIUS: 3}}\n")
    loaded = workloads.load_workload(kernel.family, given)
    inputs = workloads.prepare(kernel.family, loaded, tmp_path)
    sizes, _ = compute_odd_proofs(
        kernel.family, loaded, inputs, tmp_path, {"n": [32]},
        lambda made: compute_expected(kernel.family, made, Path(compile_cache))[0],
    )  # fmt: skip
    *own, other = sizes.sizes
    assert [size.sizes["taps"] for size in own] == [7] * len(own)
    assert other.options["RADIUS"] != 3 and other.sizes["taps"] == 2 * int(other.options["RADIUS"]) + 1
    assert f"RADIUS={other.options['RADIUS']}" in other.text
    assert {size.sizes["n"] for size in sizes.sizes} >= {1, 7, 31, 33}

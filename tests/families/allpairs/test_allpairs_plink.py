"""benchmarks/allpairs_plink.py: distances and PLINK's are held against the counts that PLINK prints for each pair."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from autotune.declaration import family as families
from autotune.declaration import workload as workloads

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
beside = importlib.import_module("allpairs_plink")

FAMILY = families.load_family("allpairs")


@pytest.fixture(scope="module")
def genotypes() -> Any:
    inputs = workloads.prepare(FAMILY, workloads.load_workload(FAMILY, "hapmap3-slice"), Path())
    return inputs.arrays["genotypes"]


@pytest.fixture(scope="module")
def masked(genotypes) -> Any:
    return FAMILY.module.reference({"genotypes": genotypes}, {"missing": "masked"})["distance"]


@pytest.mark.plink
def test_masked_distances_are_what_plink_counts(genotypes, masked, tmp_path: Path) -> None:
    beside.check(beside.write_fileset(tmp_path, genotypes), 1, masked)


@pytest.mark.plink
def test_one_distance_that_differs_is_told(genotypes, masked, tmp_path: Path) -> None:
    wrong = masked.copy()
    wrong[3, 7] += 1
    with pytest.raises(AssertionError, match="are not IBS0"):
        beside.check(beside.write_fileset(tmp_path, genotypes), 1, wrong)


@pytest.mark.plink
def test_plinks_calculation_lies_within_its_command(genotypes, tmp_path: Path) -> None:
    taken = beside.plink_distance(beside.write_fileset(tmp_path, genotypes), 1)
    assert 0 < taken["calculation"] < taken["command"]


def test_the_primers_loop_as_what_an_untuned_cpu_runs(tmp_path: Path) -> None:
    changed = families.load_family(beside.family_with_the_loop(tmp_path))
    assert changed.space.configuration("cpu") == FAMILY.space.configuration("appendix")
    assert changed.space_digest == FAMILY.space_digest

"""The distance of inputs, and what selection costs on inputs that it did not know."""

import math
from pathlib import Path
from statistics import median

import pytest
import selection_regret
from result_files import read_rows

from autotune.files import find_bundled
from autotune.policy.prediction import distance, rank_by_distance

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
RECORDED = RESULTS / "allpairs-h200.csv.xz"


def test_distance_is_of_logarithms() -> None:
    assert distance({"n": 10, "m": 4}, {"n": 40, "m": 1}) == pytest.approx(
        math.hypot(math.log(4), math.log(4))
    )
    assert distance({"n": 0}, {"n": 0}) == 0.0
    assert distance({"n": 5}, {}) == distance({"n": 5}, {"n": 0}) == pytest.approx(math.log(1000))
    assert rank_by_distance({"b": {"n": 20}, "a": {"n": 5}, "c": {"n": 1000}}, {"n": 10}) == ["a", "b", "c"]


# -- the recorded sweeps ------------------------------------------------------------------------------------


def by_rule(rows: list[dict[str, object]], rule: str) -> list[float]:
    return [float(str(row["regret"])) for row in rows if row["rule"] == rule]


def test_selection_on_recorded_workloads_that_it_did_not_know() -> None:
    policies = find_bundled("policies")
    mummergpu = selection_regret.left_out(
        selection_regret.studies_of(RESULTS / "mummergpu-h200.csv.xz", policies)
    )
    sizes = selection_regret.studies_of(RESULTS / "allpairs-h200-sizes.csv.xz", policies)
    allpairs = selection_regret.left_out(sizes, selection_regret.studies_of(RECORDED, policies))
    for rows, workloads in ((mummergpu, 4), (allpairs, 3)):
        ours = by_rule(rows, "autotune")
        assert len(ours) == workloads
        assert median(ours) <= 0.03
        assert max(ours) <= 0.15
        for other in ("nearest volume", "majority vote"):
            assert median(ours) < median(by_rule(rows, other))
            assert max(ours) < max(by_rule(rows, other))


def test_the_committed_figures_are_those_of_the_documents() -> None:
    every = read_rows(RESULTS / "selection-regret.csv")
    rows = [row for row in every if row["record"] == "allpairs-h200-sizes.csv.xz"]
    ours = [row for row in rows if row["rule"] == "autotune"]
    assert len(ours) == 51
    assert median(float(row["regret"]) for row in ours) <= 0.03
    inside = [float(row["regret"]) for row in ours if row["inside"] == "True"]
    assert len(inside) == 25
    assert max(inside) <= 0.15

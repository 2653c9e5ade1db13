"""Neighbours that are asked for inputs between entries, and what selection costs on inputs that it did not know."""

import csv
import math
from pathlib import Path
from statistics import median

import decision_tree
import pytest
import selection_regret
from neighbour_rules import left_out, nearest_entry, weighed

from autotune.files import bundled
from autotune.policy.neighbours import among_neighbours, distance, mean_regret, nearest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
from decision_tree import Leaf, Node, decide, grow  # noqa: E402

RESULTS = BENCHMARKS / "results"
RECORDED = RESULTS / "allpairs-h200.csv.xz"


def test_distance_is_of_logarithms() -> None:
    assert distance({"n": 10, "m": 4}, {"n": 40, "m": 1}) == pytest.approx(
        math.hypot(math.log(4), math.log(4))
    )
    assert distance({"n": 0}, {"n": 0}) == 0.0
    assert distance({"n": 5}, {}) == distance({"n": 5}, {"n": 0}) == pytest.approx(math.log(1000))
    assert nearest({"b": {"n": 20}, "a": {"n": 5}, "c": {"n": 1000}}, {"n": 10}) == ["a", "b", "c"]


def known(*sizes: int) -> dict[str, dict[str, float]]:
    return {f"w{n}": {"n": n} for n in sizes}


def stepped(*sizes: int) -> dict[str, dict[str, float]]:
    """Below 50 one configuration is best, above it another; the wrong one costs 50 %."""
    return {f"w{a}": {f"w{b}": 0.0 if (a < 50) == (b < 50) else 0.5 for b in sizes if b != a} for a in sizes}


def test_a_tree_finds_the_step_and_names_an_entry_of_each_side() -> None:
    sizes = (10, 20, 40, 80, 160)
    tree = grow(known(*sizes), stepped(*sizes))
    assert tree == Node("n", pytest.approx(math.sqrt(40 * 80)), Leaf("w10"), Leaf("w160"))
    assert decide(tree, {"n": 56}) == "w10"
    assert decide(tree, {"n": 57}) == "w160"
    assert grow(known(10, 20), stepped(10, 20)) == Leaf("w10")


def test_what_was_not_measured_is_never_the_choice_of_a_leaf() -> None:
    regrets = {"w10": {"w20": 0.1}, "w20": {}}
    assert grow(known(10, 20), regrets, depth=0) == Leaf("w20")


def test_each_is_left_out_in_turn() -> None:
    sizes = (10, 20, 40, 60, 120, 240)
    found = left_out(known(*sizes), stepped(*sizes), nearest_entry)
    assert found == {"w10": 0.0, "w20": 0.0, "w40": 0.5, "w60": 0.5, "w120": 0.0, "w240": 0.0}
    seen: list[tuple[set[str], set[str]]] = []

    def spy(others: object, regrets: object, asked: object) -> str:
        assert isinstance(others, dict) and isinstance(regrets, dict) and isinstance(asked, dict)
        seen.append((set(others), set(regrets)))
        assert f"w{asked['n']}" not in {*others, *regrets, *(k for row in regrets.values() for k in row)}
        return min(others)

    left_out(known(*sizes), stepped(*sizes), spy)
    assert all(len(others) == len(regrets) == 5 for others, regrets in seen)
    assert mean_regret([0.0, 0.0, 0.5, 0.5, 0.0, 0.0]) == pytest.approx(1.5 ** (1 / 3) - 1)
    assert left_out(known(1, 2), {}, nearest_entry) == {"w1": math.inf, "w2": math.inf}


def test_weights_are_those_that_serve_what_is_left_out_best() -> None:
    sizes = [(a, b) for a in (1, 2, 4, 8) for b in (1, 3, 9, 27, 81)]
    features = {f"w{a}x{b}": {"a": a, "b": b} for a, b in sizes}
    winners = {name: {"p": int(f["a"] > 2)} for name, f in features.items()}
    regrets = {m: {n: 0.0 if winners[m] == winners[n] else 0.5 for n in features if n != m} for m in features}
    count, weights = weighed(features, regrets, winners)

    def loss(count: int, weights: dict[str, float]) -> float:
        def choose(known: object, seen: object, asked: object) -> str:
            return among_neighbours(known, seen, asked, count, weights)  # type: ignore[arg-type]

        return mean_regret(left_out(features, regrets, choose).values())

    assert loss(count, weights) == 0.0
    assert loss(count, weights) <= min(loss(n, {"a": 1.0, "b": 1.0}) for n in (3, 4, 5, 6))


# -- the recorded sweeps ------------------------------------------------------------------------------------


def by_rule(rows: list[dict[str, object]], rule: str) -> list[float]:
    return [float(str(row["regret"])) for row in rows if row["rule"] == rule]


def test_selection_on_recorded_workloads_that_it_did_not_know() -> None:
    policies = bundled("policies")
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
    with (RESULTS / "selection-regret.csv").open() as file:
        rows = [dict(row) for row in csv.DictReader(file) if row["record"] == "allpairs-h200-sizes.csv.xz"]
    ours = [row for row in rows if row["rule"] == "autotune"]
    assert len(ours) == 51
    assert median(float(row["regret"]) for row in ours) <= 0.03
    inside = [float(row["regret"]) for row in ours if row["inside"] == "True"]
    assert len(inside) == 25
    assert max(inside) <= 0.15


def test_a_tree_over_the_entries_chooses_no_better_than_the_nearest_one() -> None:
    with (RESULTS / "decision-tree.csv").open() as file:
        rows = list(csv.DictReader(file))
    means: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        means.setdefault((row["source"], row["known"]), {})[row["rule"]] = float(row["mean_regret"])
    lost = [found["decision tree"] > found["nearest entry"] for found in means.values()]
    assert sum(lost) >= len(lost) - 1 > 8
    large = [found for (source, _), found in means.items() if source == decision_tree.LARGE]
    assert all(found["neighbours"] < found["nearest entry"] < found["decision tree"] for found in large)


def test_the_committed_trees_can_be_grown_again() -> None:
    studies = selection_regret.studies_of(RECORDED, bundled("policies"))
    declared = decision_tree.load_family("allpairs").features
    found = decision_tree.left_out(decision_tree.of_record(studies, declared))
    with (RESULTS / "decision-tree.csv").open() as file:
        rows = {row["rule"]: row for row in csv.DictReader(file) if row["source"] == RECORDED.name}
    for rule, regrets in found.items():
        told = [regret for regret in regrets if regret is not None]
        assert f"{mean_regret(told):.4f}" == rows[rule]["mean_regret"]

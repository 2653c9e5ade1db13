"""What workloads lose with one another's winners, and how selection's rules would have done unseen."""

import csv
import math
import sys
from pathlib import Path
from statistics import median

import pytest
from fakes import sweep

from autotune.cli.commands import main
from autotune.declaration.space import Configuration
from autotune.files import bundled
from autotune.policy.features import Leaf, Node, among_neighbours, decide, distance, grow, nearest
from autotune.policy.rule import by_tree, left_out, mean_regret, nearest_entry, weighed
from autotune.record.regret import Regrets, of_results, of_studies, read, write_matrix
from autotune.record.results_csv import write_results

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import selection_regret  # noqa: E402

RESULTS = BENCHMARKS / "results"
RECORDED = RESULTS / "allpairs-h200.csv"
A, B, C = (Configuration({"p": v}) for v in "abc")
TIMES = {"one": {A: 1.0, B: 1.2, C: 3.0}, "two": {A: 2.0, B: 1.1, C: 1.0}}


def test_regrets_minimax_and_the_cost_of_one_for_all() -> None:
    found = Regrets(family="f", device="d", times=TIMES)
    assert found.best == {"one": A, "two": C}
    assert found.regret("two", A) == pytest.approx(1.0)
    assert found.minimax is not None
    assert found.minimax.configuration == B
    cost = found.cost_of_one(B)
    assert cost["worst"] == pytest.approx(0.2)
    assert cost["median"] == pytest.approx(0.15)
    assert cost["total"] == pytest.approx(2.3 / 2 - 1)
    part = Regrets(family="f", device="d", times={"one": {A: 1.0}, "two": {B: 1.0}})
    assert (part.everywhere, part.minimax) == ((), None)


def test_a_record_and_its_results_give_the_same(folder: Path, tmp_path: Path) -> None:
    study = sweep(folder, tmp_path).run()
    path = write_results([study], tmp_path / "results.csv")
    (from_csv,), (from_store,) = of_results(path), of_studies([study])
    assert from_csv.best == from_store.best
    assert from_csv.times["small"] == pytest.approx(from_store.times["small"])
    assert from_csv == of_results(path)[0] == read(str(path))[0]
    assert from_store == read(str(tmp_path / "out"))[0]


def test_the_newest_rows_of_a_workload_count(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    head = "family,workload,device,configuration,time_ms,date\n"
    rows = [
        "f,w,d,p=a,1.0,2026-01-02",
        "f,w,d,p=a,9.0,2026-01-01",
        "f,w,d,p=b,2.0,2026-01-02",
        "f,v,d,p=b,,2026-01-02",
    ]
    path.write_text(head + "\n".join(rows))
    (found,) = of_results(path)
    assert found.times == {"w": {A: 1.0, B: 2.0}}


def test_the_command_prints_the_matrix_and_writes_it_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["regret", str(RECORDED), "--out", str(tmp_path / "matrix.csv")]) == 0
    shown = capsys.readouterr().out
    assert "regret of 3 workloads" in shown
    assert "one configuration for all 3 workloads costs at most 50.7 %" in shown
    with (tmp_path / "matrix.csv").open() as file:
        rows = list(csv.DictReader(file))
    (found,) = of_results(RECORDED)
    assert len(rows) == len({c for row in found.times.values() for c in row})
    assert min(float(row["wide"]) for row in rows if row["wide"]) == 0.0
    assert any(row["wide"] == "" for row in rows)  # it did not fit there


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "family,workload,device,configuration,time_ms\nf,w,d,p=a,\n"]
)
def test_what_is_no_record_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.csv").write_text(text)
    assert main(["regret", str(tmp_path / "r.csv")]) == 7
    assert main(["regret", str(tmp_path)]) == 7
    assert main(["regret", str(RECORDED), "--out", str(tmp_path / "none" / "m.csv")]) == 7
    said = capsys.readouterr().err
    assert "holds no record" in said and "cannot write" in said


# -- features, trees, leaving one out -----------------------------------------------------------------------


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
    assert set(left_out(known(*sizes), stepped(*sizes), by_tree).values()) <= {0.0, 0.5}
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


def test_a_matrix_that_cannot_be_written(tmp_path: Path) -> None:
    from autotune.errors import StoreError

    with pytest.raises(StoreError, match="cannot write"):
        write_matrix([Regrets(family="f", device="d", times=TIMES)], tmp_path)


# -- the recorded sweeps ------------------------------------------------------------------------------------


def by_rule(rows: list[dict[str, object]], rule: str) -> list[float]:
    return [float(str(row["regret"])) for row in rows if row["rule"] == rule]


def test_selection_on_recorded_workloads_that_it_did_not_know() -> None:
    policies = bundled("policies")
    mummergpu = selection_regret.left_out(
        selection_regret.studies_of(RESULTS / "mummergpu-h200.csv", policies)
    )
    sizes = selection_regret.studies_of(RESULTS / "allpairs-h200-sizes.csv", policies)
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
        rows = [dict(row) for row in csv.DictReader(file) if row["record"] == "allpairs-h200-sizes.csv"]
    ours = [row for row in rows if row["rule"] == "autotune"]
    assert len(ours) == 51
    assert median(float(row["regret"]) for row in ours) <= 0.03
    inside = [float(row["regret"]) for row in ours if row["inside"] == "True"]
    assert len(inside) == 25
    assert max(inside) <= 0.15

"""What each policy changes by itself: against pandas, and against the MUMmerGPU 2.0 paper's own rows and sentences."""

import itertools
import math
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_pages import POLICIES, RESULTS, fake_study, measured
from result_files import read_frame

from autotune.declaration.space import Configuration
from autotune.record.results_csv import read_results
from autotune.record.study import Study
from autotune.record.trial import Measurement, Trial
from autotune.report.policy_effects import Timed, effects_frame, importance, pairs, settings
from autotune.report.tables import effects_csv_frame

PAPER = sorted((RESULTS / "mummergpu-8800gtx").glob("*.csv"))


def test_effects_are_the_mean_over_all_pairs() -> None:
    study = fake_study()
    times = {trial.configuration: measurement.time_ms for trial, measurement in measured(study)}
    effects = effects_frame(study).set_index(["policy", "base", "value"])
    for name, values in POLICIES.items():
        for base, value in itertools.combinations(values, 2):
            pairs = [
                100 * (times[other] / ms - 1)
                for configuration, ms in times.items()
                if configuration[name] == base
                and (other := Configuration({**configuration, name: value})) in times
            ]
            row = effects.loc[(name, base, value)]
            assert row["pairs"] == len(pairs) > 10
            assert row["mean_percent"] == pytest.approx(statistics.mean(pairs))
            assert row["median_percent"] == pytest.approx(statistics.median(pairs))
            assert (row["minimum_percent"], row["maximum_percent"]) == pytest.approx((min(pairs), max(pairs)))
            assert row["faster_share"] == pytest.approx(sum(p < 0 for p in pairs) / len(pairs))


def test_effects_of_one_kernel_and_of_nothing() -> None:
    study = fake_study(kernels=("match", "print"))
    whole, one = effects_frame(study), effects_frame(study, kernel="match")
    assert one["mean_percent"].to_list() == pytest.approx(whole["mean_percent"].to_list())
    assert effects_frame(replace(study, trials=())).empty
    assert effects_frame(study, kernel="none").empty


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), unique=True, min_size=1, max_size=27), st.integers(0, 2))
def test_pairs_are_all_that_differ_in_one_policy(rows: list[tuple[int, int, int]], policy: int) -> None:
    table = pd.DataFrame(rows)
    base, value = pairs(settings(table, policy), table[policy], 0, 2)
    found = {(rows[i], rows[j]) for i, j in zip(base, value, strict=True)}
    expected = {
        (a, b)
        for a in rows
        for b in rows
        if (a[policy], b[policy]) == (0, 2) and all(a[k] == b[k] for k in range(3) if k != policy)
    }
    assert found == expected
    assert len(base) == len(expected)


# ---- importance


def study_of(times: dict[tuple[int, ...], float]) -> Study:
    """A study with a policy p0, p1, ... for each place of the keys."""
    trials = [
        Trial(
            family="f", workload="w", device="d", state="measured",
            configuration=Configuration({f"p{i}": v for i, v in enumerate(key)}),
            measurement=Measurement(median_ms=ms, minimum_ms=ms, spread=0.0, samples=3),
        )
        for key, ms in times.items()
    ]  # fmt: skip
    control = trials[0].configuration
    return Study(family="f", workload="w", device="d", identity="i", control=control, trials=tuple(trials))


def test_importance_of_a_product_of_factors() -> None:
    """Times that are products: log time is a sum, each policy's share is its own variance, and nothing is left."""
    times = {(a, b, c): 8.0**a * 2.0**b for a in (0, 1) for b in (0, 1) for c in (0, 1, 2)}
    found = importance(Timed.make(study_of(times)))
    assert found.additive == pytest.approx(1)
    assert found.alone == pytest.approx({"p0": 0.9, "p1": 0.1, "p2": 0})  # 3² and 1² of 10
    assert max(found.together.values()) == pytest.approx(0, abs=1e-12)


def test_importance_of_two_policies_that_only_act_together() -> None:
    times = {(a, b, c): 2.0 if a == b else 1.0 for a in (0, 1) for b in (0, 1) for c in (0, 1)}
    found = importance(Timed.make(study_of(times)))
    assert found.additive == pytest.approx(0, abs=1e-12)
    assert found.together == pytest.approx({("p0", "p1"): 1, ("p0", "p2"): 0, ("p1", "p2"): 0}, abs=1e-12)
    assert found.partners("p1") == ["p0", "p2"]


def test_what_constraints_exclude_is_not_laid_to_a_policy() -> None:
    """p1 = 2 is slow only because it goes with p0 = 1 there: its own share is nothing."""
    times = {(a, b): 4.0**a for a in (0, 1) for b in (0, 1, 2) if a or b < 2}
    found = importance(Timed.make(study_of(times)))
    assert found.alone["p1"] == pytest.approx(0, abs=1e-12)
    assert found.additive == pytest.approx(1)


def test_importance_of_equal_times() -> None:
    found = importance(Timed.make(study_of({(a, b): 1.0 for a in (0, 1) for b in (0, 1)})))
    assert found.alone == {"p0": 0.0, "p1": 0.0}


def test_shares_of_a_full_factorial_add_up() -> None:
    study = read_results([RESULTS / "mummergpu-h200.csv.xz"])[0]
    found = importance(Timed.make(study))
    assert sum(found.alone.values()) == pytest.approx(found.additive)
    assert found.additive + sum(found.together.values()) <= 1


# ---- the paper


@pytest.fixture(scope="module")
def hsill() -> pd.DataFrame:
    """effects.csv of the authors' rows for the workload that the paper's sentences are about."""
    frame = effects_csv_frame(read_results([p for p in PAPER if p.stem == "hsill"]))
    assert set(frame["workload"]) == {"hsill"}
    return frame


# After its section 4.1 the paper drops the 2D reference: those 64 configurations are the effects given that
# reference_dims is 1d.
@pytest.mark.parametrize(
    ("section", "policy", "kernel", "said"),
    [
        ("4.2", "query_memory", "print", +6), ("4.2", "query_memory", "match", +3),
        ("4.4", "tree_memory", "print", -8), ("4.4", "tree_memory", "match", -11),
        ("4.7", "tree_grouping", "print", +6),
    ],
)  # fmt: skip
def test_the_papers_averages_come_out_of_its_authors_rows(
    hsill: pd.DataFrame, section: str, policy: str, kernel: str, said: int
) -> None:
    row = one(hsill, policy, kernel, given="1d")
    assert row["pairs"] == 32
    assert round(row["mean_percent"]) == said


def one(frame: pd.DataFrame, policy: str, kernel: str, given: str = "") -> pd.Series:
    chosen = frame[(frame["policy"] == policy) & (frame["kernel"] == kernel)]
    chosen = chosen[chosen["given_policy"] == ("reference_dims" if given else "")]
    found = chosen[chosen["given_value"] == given] if given else chosen
    assert len(found) == 1
    return found.iloc[0]


def test_the_papers_ranges_come_out_of_its_authors_rows(hsill: pd.DataFrame) -> None:
    match = one(hsill, "reference_memory", "match", given="1d")
    assert (round(match["minimum_percent"]), round(match["maximum_percent"])) == (-12, 35)
    printing = one(hsill, "reference_memory", "print", given="1d")  # "essentially identical"
    assert max(abs(printing["minimum_percent"]), abs(printing["maximum_percent"])) < 1
    assert round(one(hsill, "tree_dims", "print", given="1d")["maximum_percent"]) == 52


def test_where_the_papers_averages_are_of_another_time(hsill: pd.DataFrame) -> None:
    """Its 15 % for a 2D tree and 5 % for reordering are of all but reading and writing files."""
    assert one(hsill, "tree_dims", "", given="1d")["mean_percent"] == pytest.approx(22.8, abs=0.05)
    assert one(hsill, "tree_order", "", given="1d")["mean_percent"] == pytest.approx(-12.3, abs=0.05)


@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.stem)
def test_the_authors_rows_against_pandas(path: Path) -> None:
    (study,) = read_results([path])
    rows = read_frame(path)
    policies = [c for c in study.control if c != "block_size"]
    frame = effects_frame(study, "match").set_index(["policy", "value"])
    for policy in policies:
        others = [name for name in policies if name != policy]
        wide = rows.pivot(index=others, columns=policy, values="kernel_match_ms")
        value = next(v for v in wide if v != study.control[policy])
        change = 100 * (wide[value] / wide[study.control[policy]] - 1)
        assert frame.loc[(policy, value), "mean_percent"] == pytest.approx(change.mean())
        assert frame.loc[(policy, value), "pairs"] == 64


def test_a_time_of_zero_has_no_ratio() -> None:
    study = fake_study()
    trials = [replace(t, measurement=replace(m, median_ms=0.0)) for t, m in measured(study)]
    assert effects_frame(replace(study, trials=tuple(trials))).empty
    times = Timed.make(replace(study, trials=tuple(trials))).times()
    assert np.isnan(times).all()
    assert math.isnan(Timed.make(study).times("none")[0])

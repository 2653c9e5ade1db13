"""What a report says of trade-offs, of the choice for all workloads, and of how the search went."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import with_figures
from report_pages import RESULTS, fake_study, measured
from result_files import read_frame

from autotune import figures as units
from autotune.declaration.space import Configuration
from autotune.record import Provenance, find_cheapest
from autotune.record.results_csv import read_results
from autotune.record.study import Study
from autotune.record.trial import Measurement, Trial
from autotune.report.across import compare_across
from autotune.report.effects import clustered, effects_blocks
from autotune.report.policy_effects import Timed, contributions, importance
from autotune.report.search_section import improvements, search_blocks
from autotune.report.trade_offs import find_front
from autotune.report.trials import rows


def trial(once: float, time: float) -> Trial:
    one, measurement = measured(fake_study())[0]
    timed = replace(measurement, median_ms=time, retimed_ms=0.0)
    return replace(one, measurement=with_figures(timed, transform_ms=once, transfer_ms=0.0))


costs = st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=12)


@given(costs)
def test_the_front_is_what_nothing_beats(points: list[tuple[int, int, int]]) -> None:
    expected = [
        not any(all(a <= b for a, b in zip(o, p, strict=True)) and o != p for o in points) for p in points
    ]
    assert find_front(points) == expected


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 40)), min_size=1, max_size=8))
def test_the_cheapest_for_so_many_calls(pairs: list[tuple[int, int]]) -> None:
    trials = [trial(float(once), float(time)) for once, time in pairs]
    stretches = find_cheapest(trials)
    assert stretches[0].calls_from == 1
    assert stretches[-1].calls_to == float("inf")
    assert all(b.calls_from == a.calls_to + 1 for a, b in itertools.pairwise(stretches))
    for calls in (*range(1, 60), 401, 1000):
        (now,) = [s.trial for s in stretches if s.calls_from <= calls <= s.calls_to]
        assert now.measurement
        cost = now.once_ms + calls * now.measurement.time_ms
        assert cost == min(once + calls * time for once, time in pairs)


def test_a_layout_that_pays_after_some_calls() -> None:
    plain, costly = trial(10.0, 5.0), trial(100.0, 2.0)
    first, second = find_cheapest([plain, costly])
    assert (first.trial, first.calls_to, second.trial, second.calls_from) == (plain, 30, costly, 31)


def test_the_authors_workloads_rank_configurations_differently() -> None:
    """Spearman 0.05, 0.29 and 0.81 of match and print; best for the three is R and m, at most 1.28 times the best."""
    folder = RESULTS / "mummergpu-8800gtx"
    whole = compare_across(read_results([folder / f"{name}.csv" for name in ("hsill", "lmono", "cbrigg")]))
    correlations = next(b.table for b in whole.choice if b.table and b.table.name == "rank_correlation")
    found = [round(correlations.rows[i][j + 1], 2) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert found == [0.05, 0.29, 0.81]
    assert whole.minimax
    assert round(whole.minimax.regret, 2) == 0.28
    changed = {k: v for k, v in whole.minimax.configuration.items() if v != whole.control[k]}
    assert changed == {"reference_memory": "texture", "tree_grouping": "merged"}


def test_improvements_are_each_better_than_all_before() -> None:
    study = fake_study()
    found = improvements(study.trials)
    times = [t.measurement.median_ms for _, _, t in found if t.measurement]
    assert times == sorted(times, reverse=True)
    assert times[-1] == min(m.median_ms for _, m in measured(study))
    for number, seconds, one in found:
        assert study.trials[number - 1] is one
        assert seconds == pytest.approx(number * 3.5 / 1000)  # verify alone was recorded


def test_the_busy_share_is_the_records_where_it_tells() -> None:
    study = fake_study()
    (said,) = [b.text for b in search_blocks(study) if b.title == "Busy share"]
    assert said.startswith("The device ran kernels 75 % of")
    bare = replace(study, about=Provenance())
    (said,) = [b.text for b in search_blocks(bare) if b.title == "Busy share"]
    assert said.startswith("GPU busy share: the samples alone took 100 % of")


def test_a_bar_is_a_pair_and_clusters_hold_their_mean() -> None:
    """The merged tree on the H200: 64 bars, whose means by cluster are those of pandas."""
    study = read_results([RESULTS / "mummergpu-h200.csv.xz"])[0]
    timed = Timed.make(study)
    pairing = next(p for p in timed.pairings if p.policy == "tree_grouping")
    partners = importance(timed, "match").partners("tree_grouping")
    block = clustered("pairs", timed, pairing, partners, {})
    assert block.chart
    assert block.table
    choices = block.chart.figure["choices"]
    assert list(choices) == ["whole plan", *timed.kernels]
    assert all(len(of["y"]) == 64 for of in choices.values())
    frame = read_frame(RESULTS / "mummergpu-h200.csv.xz")
    frame = frame[frame["workload"] == "hsill"]
    outer = [column.key for column in block.table.columns[:-6]]
    others = [name for name in timed.values if name not in ("tree_grouping", "block_size")]
    wide = frame.pivot(index=others, columns="tree_grouping", values="time_ms")
    change = (100 * (wide["merged"] / wide["split"] - 1)).groupby(level=outer).mean()
    for row in block.table.rows:
        key = row[: len(outer)] if len(outer) > 1 else row[0]
        assert row[len(outer) + 1] == pytest.approx(change[key])
    assert len(block.table.rows) == len(change)


def test_many_pairs_become_medians_with_their_range() -> None:
    study = read_results([RESULTS / "allpairs-h200.csv.xz"])[2]
    blocks = effects_blocks(study, Timed.make(study), rows(study, study.decision, 2000))
    charts = {b.title: b.chart.figure for b in blocks if b.chart and b.chart.name.startswith("pairs_")}
    of = charts["axes: attribute_major → instance_major"]["choices"]["whole plan"]
    assert len(of["y"]) <= 64
    assert any(high > 0 for high in of["array"])
    frame = read_frame(RESULTS / "allpairs-h200.csv.xz")
    frame = frame[(frame["workload"] == "wide") & (frame["state"] == "measured")]
    others = ["packing", "vector_width", "memory", "accumulate", "block_size", "tile"]
    wide = frame.pivot(index=others, columns="axes", values="time_ms")
    change = 100 * (wide["instance_major"] / wide["attribute_major"] - 1)
    highest = max(y + high for y, high in zip(of["y"], of["array"], strict=True))
    assert highest == pytest.approx(change.max(), abs=0.02)
    text = next(b.text for b in blocks if b.title == "axes: attribute_major → instance_major")
    assert text.startswith(f"{units.percent(change.median())} at the median; ")


def test_one_outlier_is_no_headline() -> None:
    """100 % more on average, and nothing in nearly all pairs."""
    trials = []
    for i in range(9):
        for value, ms in (("off", 1.0), ("on", 10.0 if i == 4 else 1.0)):
            measurement = Measurement(median_ms=ms, minimum_ms=ms, spread=0.001, samples=9)
            configuration = Configuration({"fast": value, "size": i})
            trials.append(Trial(family="f", workload="w", device="d", configuration=configuration, state="measured",
                                measurement=measurement))  # fmt: skip
    study = Study(
        family="f",
        workload="w",
        device="d",
        identity="",
        control=trials[0].configuration,
        trials=tuple(trials),
    )
    blocks = effects_blocks(study, Timed.make(study), trials)
    block = next(b for b in blocks if b.title == "fast: off → on")
    assert block.text.startswith("0.0 % at the median")
    assert block.table is not None
    assert block.table.rows[0][[c.key for c in block.table.columns].index("mean_percent")] > 0


def test_what_most_of_a_lead_comes_from() -> None:
    """By the winner with one policy back at its default; where that was not timed, by the median of the pairs."""

    def made(a: int, b: int, c: int, ms: float) -> Trial:
        measurement = Measurement(median_ms=ms, minimum_ms=ms, spread=0.001, samples=9)
        return Trial(family="f", workload="w", device="d", configuration=Configuration({"a": a, "b": b, "c": c}),
                     state="measured", measurement=measurement)  # fmt: skip

    trials = (
        made(0, 0, 0, 40.0),
        made(0, 1, 0, 20.0),
        made(1, 0, 0, 4.0),
        made(1, 1, 1, 2.0),
        made(0, 1, 1, 18.0),
    )
    study = Study(
        family="f", workload="w", device="d", identity="", control=trials[0].configuration, trials=trials
    )
    found = contributions(Timed.make(study), trials[3], study.control)
    assert list(found) == ["a", "b", "c"]
    # b and c have no such neighbour: b halves 40, c takes 18 in place of 20.
    assert found == {"a": pytest.approx(9.0), "b": pytest.approx(2.0), "c": pytest.approx(20 / 18)}

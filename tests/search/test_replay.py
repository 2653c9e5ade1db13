"""Replay: recorded studies read back, and searches run against them without a device."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from replay import replay, space

from autotune.declaration.space import Configuration, Policy
from autotune.errors import StoreError
from autotune.measure import Figure
from autotune.record import Provenance
from autotune.record.results_csv import read_results, write_results
from autotune.record.store import Store
from autotune.record.study import Study
from autotune.record.trial import Measurement, State, Trial

RECORDED = Path(__file__).parents[2] / "benchmarks" / "results" / "allpairs-h200.csv.xz"
POLICIES = {
    "block": Policy("block", (64, 128, 256), 64),
    "dims": Policy("dims", ("1d", "2d"), "1d"),
    "memory": Policy("memory", ("global", "texture"), "global"),
}


def trial(block: int, dims: str, memory: str, state: State = "measured") -> Trial:
    slow = 1 + abs(block - 128) / 64 + 3 * (dims == "1d") + (memory == "global")
    measured = Measurement(
        median_ms=slow, minimum_ms=slow, spread=0.01, samples=5, figures={"footprint_bytes": Figure(1000 - block)},
        retimed_ms=slow if slow < 2 else 0.0,
    )  # fmt: skip
    return Trial(
        family="toy", workload="small", device="gpu", state=state, reason="" if state == "measured" else "why",
        configuration=Configuration({"block": block, "dims": dims, "memory": memory}),
        measurement=measured if state == "measured" else None,
    )  # fmt: skip


@pytest.fixture
def study() -> Study:
    trials = [trial(b, d, m) for b in (64, 128, 256) for d in ("1d", "2d") for m in ("global", "texture")]
    trials[1] = trial(64, "1d", "texture", "compile_failed")
    trials[2] = trial(64, "2d", "global", "excluded")
    control = trials[0].configuration
    return Study(
        family="toy", workload="small", device="gpu", identity="1234", control=control,
        presets={"control": control, "paper": trials[3].configuration}, trials=tuple(trials),
    )  # fmt: skip


@pytest.mark.parametrize("method", ["exhaustive", "random", "auto", "nsgaii"])
def test_the_whole_study_is_visited_and_the_curve_falls(study: Study, method: str) -> None:
    seen = replay(study, method, 3)
    assert seen.visited[0].configuration == study.control
    assert seen.visited[1].configuration == study.presets["paper"]
    assert {t.configuration for t in seen.visited} == {
        t.configuration for t in study.trials if t.state != "excluded"
    }
    assert (seen.members, seen.optimum_ms) == (11, 1.0)
    assert seen.best_ms[-1] == 1.0
    assert list(seen.best_ms) == sorted(seen.best_ms, reverse=True)
    reached = seen.visits_until(0.0)
    assert reached is not None
    assert seen.best_ms[reached - 1] == 1.0
    assert all(best > 1.0 for best in seen.best_ms[: reached - 1])
    assert replay(study, method, 3).visited == seen.visited
    assert replay(study, method, 3, within=0.0).visited == seen.visited[:reached]


def test_limits_seeds_and_several_ahead(study: Study) -> None:
    few = replay(study, "random", 0, trials=3)
    assert len(few.visited) == len(few.best_ms) == 3
    best = Configuration({"block": 128, "dims": "2d", "memory": "texture"})
    assert replay(study, "auto", 0, seeds=[best]).visits_until(0.0) == 3
    assert len({t.configuration for t in replay(study, "auto", 0, ahead=4).visited}) == 11
    assert replay(study, "random", 0, trials=1).visits_until(0.02) is None


def test_a_results_file_gives_the_study_back(study: Study, tmp_path: Path) -> None:
    (read,) = read_results([write_results([study], tmp_path / "results.csv")])
    assert replace(read, about=Provenance()) == study
    assert type(read.control["block"]) is int
    assert {p.name: p.values for p in space(read).policies} == {n: p.values for n, p in POLICIES.items()}


def test_a_store_is_replayed(study: Study, tmp_path: Path) -> None:
    recorded = Store(tmp_path).open(study, POLICIES)
    for one in study.trials:
        recorded.record(one)
    (read,) = Store(tmp_path).studies()
    assert replay(read, "auto", 5).visited == replay(study, "auto", 5).visited


def test_declared_values_keep_their_order(study: Study) -> None:
    about = {"policies": {"block": {"values": [256, 64, 128, 512]}, "dims": {"values": ["2d"]}}}
    found = space(Study(**{**vars(study), "about": Provenance.from_dict(about)}))
    assert found.policy("block").values == (256, 64, 128)  # 512 never occurs
    assert found.policy("dims").values == ("1d", "2d")  # not all that occur are declared


def test_what_cannot_be_replayed(study: Study, tmp_path: Path) -> None:
    failed = tuple(t for t in study.trials if not t.measurement)
    with pytest.raises(StoreError, match="toy on small: nothing was measured"):
        replay(Study(**{**vars(study), "trials": failed}), "auto")
    with pytest.raises(StoreError, match=r"cannot read .*absent.csv"):
        read_results([tmp_path / "absent.csv"])
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(StoreError, match="no column family, workload"):
        read_results([other])
    without = Study(**{**vars(study), "presets": {}})
    with pytest.raises(StoreError, match="toy on small has no row with the preset control"):
        read_results([write_results([without], tmp_path / "without.csv")])


def test_auto_is_near_the_optimum_of_a_recorded_sweep_soon() -> None:
    for recorded in read_results([RECORDED]):
        for seed in range(3):
            seen = replay(recorded, "auto", seed, within=0.02, trials=math.ceil(0.15 * len(recorded.trials)))
            reached = seen.visits_until(0.02)
            assert reached is not None
            assert reached <= 0.15 * seen.members

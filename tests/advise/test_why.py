"""``autotune why``: the way between two configurations, the counters that moved, and what is said without counters."""

import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from fakes import sweep
from hypothesis import given, settings
from hypothesis import strategies as st
from report_pages import RESULTS
from result_files import read_rows

from autotune.advise.why import (
    EVIDENCE,
    REASONS,
    WAITS,
    Explanation,
    as_json,
    collect_figures,
    find_reasons,
    find_way,
    make_blocks,
    merge_kernels,
)
from autotune.cli.commands import main
from autotune.compile import KernelProfile
from autotune.declaration import Configuration, load_family
from autotune.errors import DeviceError, UsageError
from autotune.measure import WatchedResult, WatchedTask, ncu
from autotune.measure.ncu import COUNTERS, counters, parse
from autotune.record import Provenance, Store, Study, Trial
from autotune.record.trial import Measurement
from autotune.report import Block

# What Nsight Compute printed for the seven configurations of allpairs in why.csv, of one run on an H200.
RECORDED = (Path(__file__).parents[1] / "support" / "ncu-allpairs.csv").read_text(encoding="utf-8")
WAY = [row for row in read_rows(RESULTS / "why.csv") if row["family"] == "allpairs"]
STAND_INS = (
    "global,128",
    "readonly,128",
    "readonly,64",
)  # configurations that its first three launches stand for

# ---- the way


def trial(values: Mapping[str, int], ms: float) -> Trial:
    return Trial(
        family="f", workload="w", device="d", configuration=Configuration(values), state="measured",
        measurement=Measurement(median_ms=ms, minimum_ms=ms, spread=0.001, samples=9),
    )  # fmt: skip


NAMES = "abcd"
PLACES = [frozenset(some) for n in range(len(NAMES) + 1) for some in combinations(NAMES, n)]


def longest(known: set[frozenset[str]], place: frozenset[str]) -> int:
    """The most steps from ``place`` to all of NAMES."""
    return max((1 + longest(known, then) for then in known if place < then), default=0)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.sampled_from(PLACES[1:-1]), st.integers(1, 9)), st.integers(1, 9), st.integers(1, 9)
)
def test_a_way_grows_and_has_as_many_steps_as_the_record_allows(
    between: dict[frozenset[str], int], first: int, last: int
) -> None:
    times = {PLACES[0]: first, **between, PLACES[-1]: last}
    trials = [trial({n: int(n in place) for n in NAMES}, float(ms)) for place, ms in times.items()]
    stranger = trial(dict.fromkeys(NAMES, 2), 0.5)
    way = find_way([stranger, *trials], *(Configuration(dict.fromkeys(NAMES, value)) for value in (0, 1)))
    places = [frozenset(n for n in NAMES if one.configuration[n]) for one in way]
    assert places[0] == PLACES[0] and places[-1] == PLACES[-1]
    assert all(before < after for before, after in pairwise(places))
    assert len(way) - 1 == longest(set(times), PLACES[0])


def test_of_equal_ways_that_which_gets_fast_first() -> None:
    trials = [
        trial({"a": a, "b": b}, ms) for a, b, ms in ((0, 0, 8.0), (1, 0, 7.0), (0, 1, 2.0), (1, 1, 1.0))
    ]
    way = find_way(trials, trials[0].configuration, trials[3].configuration)
    assert [one.time_ms for one in way] == [8.0, 2.0, 1.0]
    back = find_way(trials, trials[3].configuration, trials[0].configuration)
    assert [one.time_ms for one in back] == [1.0, 2.0, 8.0]
    failed = replace(trials[2], state="crashed", measurement=None)
    assert failed not in find_way(
        [failed, *trials[:2], trials[3]], trials[0].configuration, trials[3].configuration
    )
    with pytest.raises(UsageError, match="both are a=0,b=0"):
        find_way(trials, trials[0].configuration, trials[0].configuration)
    with pytest.raises(UsageError, match="a=1,b=1 has no time in the record"):
        find_way(trials[:3], trials[0].configuration, trials[3].configuration)


# ---- figures


def test_kernels_are_added_up_and_shares_weighted_by_time() -> None:
    one = {
        "profiled_ms": 3.0,
        "dram_bytes": 10.0,
        "l1_hit_share": 0.2,
        "stall_wait_warps": 1.0,
        "global_loads": 4.0,
    }
    two = {
        "profiled_ms": 1.0,
        "dram_bytes": 30.0,
        "l1_hit_share": 0.6,
        "stall_wait_warps": 5.0,
        "launches": 2.0,
        "global_loads": 3.0,
    }
    assert merge_kernels({"k": one, "l": two}) == pytest.approx(
        {
            "profiled_ms": 4.0,
            "dram_bytes": 40.0,
            "l1_hit_share": 0.3,
            "stall_wait_warps": 2.0,
            "global_loads": 7.0,
        }
    )
    assert merge_kernels({}) == {}


def test_every_counter_that_is_evidence_is_read() -> None:
    known = {name for name in COUNTERS if name.startswith("stall_")}
    assert {f"stall_{name}_warps" for name in REASONS} == known
    assert {one.column.key for one in WAITS} == known - {"stall_not_selected_warps"}
    own = {
        "traced_sectors_per_request",
        "traced_bytes",
        "traced_conflicts",
        "occupancy",
        "registers",
        "shared_bytes",
    }
    assert {one.column.key for one in EVIDENCE} - own <= set(COUNTERS)


def test_reasons_go_the_way_of_the_time() -> None:
    before, after = {"dram_bytes": 8e9, "instructions": 1e9}, {"dram_bytes": 1e9, "instructions": 3e9}

    def names(*, faster: bool) -> list[str]:
        return [one.column.key for one in find_reasons(before, after, faster=faster)]

    assert names(faster=True) == ["dram_bytes"]
    assert names(faster=False) == ["instructions"]
    before["stall_wait_warps"], after["stall_wait_warps"] = 9.0, 1.0
    assert names(faster=True) == ["dram_bytes"]  # a wait is a reason only where there is no other
    same = {**before, "stall_wait_warps": 1.0}
    assert [one.column.key for one in find_reasons(before, same, faster=True)] == ["stall_wait_warps"]
    assert find_reasons({"dram_bytes": 1e9}, {"dram_bytes": 8e9}, faster=True) == []
    assert find_reasons(before, {"dram_bytes": 8.1e9}, faster=False) == []  # hardly moved


# ---- a record


@pytest.fixture
def study(folder: Path, tmp_path: Path) -> Study:
    """Control (global, 128), readonly at 128 in a third of the time, and the winner (readonly, 64)."""
    sweep(folder, tmp_path).run()
    (found,) = Store(tmp_path / "out").studies()
    return found


def read_recorded(ids: Sequence[str]) -> dict[str, dict[str, dict[str, float]]]:
    """Configuration id -> kernel -> counters of the launches of RECORDED, in turn."""
    frame = parse(RECORDED).iloc[: len(ids)]
    runs = [(one, struct, ["allpairs"]) for one, struct in zip(ids, frame["struct"], strict=True)]
    return counters(frame, runs, ("allpairs",))


def borrow_counters(study: Study) -> dict[str, dict[str, dict[str, float]]]:
    """Recorded counters for three configurations of another family."""
    ids = {
        f"{t.configuration['memory']},{t.configuration['block_size']}": t.configuration.id
        for t in study.trials
    }
    return read_recorded([ids[one] for one in STAND_INS])


def explain(study: Study) -> Explanation:
    assert study.decision
    way = find_way(study.trials, study.control, study.decision.winner.configuration)
    return Explanation(study, way, tuple(collect_figures(study, one) for one in way))


@pytest.fixture(scope="module")
def recorded() -> Study:
    """The configurations of allpairs that `autotune why` went through on an H200, with their times and counters."""
    family = load_family("allpairs")
    trials = []
    for row in WAY:
        one, ms = family.space.configuration(row["configuration"]), float(row["time_ms"])
        profile = KernelProfile(
            kernel="allpairs", block_size=int(one["block_size"]), registers=int(row["registers"]), blocks_per_sm=1,
            occupancy=float(row["occupancy"]), limited_by=row["limited_by"],
            static_shared_bytes=int(row["shared_bytes"]),
        )  # fmt: skip
        measured = Measurement(median_ms=ms, minimum_ms=ms, spread=0.003, samples=9)
        trials.append(
            Trial(
                family="allpairs", workload="wide", device=row["device"], configuration=one, state="measured",
                profiles=(profile,), measurement=measured,
            )
        )  # fmt: skip
    about = Provenance(
        device_name=WAY[0]["device_name"], counters=read_recorded([row["configuration"] for row in WAY])
    )
    return Study(
        family="allpairs", workload="wide", device=WAY[0]["device"], identity="", control=family.space.control,
        about=about, trials=tuple(trials),
    )  # fmt: skip


def test_recorded_counters_explain_every_step(recorded: Study) -> None:
    found = explain(recorded)
    assert (
        found.headline == "the winner (380 µs) compared with the control (1.23 s): 3230 x faster, in 6 steps"
    )
    first, *_, wide, last = found.sentences
    assert first == (
        "packing=planes2: 6.51 x faster (1.23 s → 189 ms): global loads 8.59 G → 537 M; device memory traffic "
        "375 GiB → 1.99 GiB; read from L2 3990 GiB → 116 GiB; now at 47 % of the compute peak, and waiting for global "
        "or texture memory"
    )
    assert wide == (
        "vector_width=2: 1.08 x faster (487 µs → 451 µs): global loads 6.30 M → 3.15 M; now at 82 % of the peak of L1 "
        "and shared memory"
    )
    assert ": warps that wait for global or texture memory 4.51 → 1.05; " in last  # nothing else moved
    assert found.sentences == tuple(row["sentence"] for row in WAY[1:])
    control = found.figures[0]
    assert control["waits"] == "global or texture memory 76.6, shared memory or special functions 31.3"
    assert control["registers"] == 16 and control["limited_by"] == "warps"
    assert (
        "global_store_sectors_per_request" not in control
    )  # the control adds by atomics, and stores nothing
    for figures, row in zip(found.figures, WAY, strict=True):
        kept = {
            name: float(row[name]) for name in figures if name in row and name not in ("waits", "limited_by")
        }
        assert {name: figures[name] for name in kept} == pytest.approx(kept)


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({"memory": 0.98, "l2": 0.6, "dram": 0.3, "sm": 0.2}, "98 % of the peak of L1 and shared memory"),
        ({"memory": 0.80, "l2": 0.83, "dram": 0.5, "sm": 0.2}, "80 % of L2's peak"),
        ({"memory": 0.91, "l2": 0.6, "dram": 0.9, "sm": 0.2}, "91 % of device memory's peak"),
        ({"memory": 0.66, "sm": 0.2}, "66 % of the memory peak"),
        ({"memory": 0.3, "l2": 0.3, "dram": 0.1, "sm": 0.7}, "70 % of the compute peak"),
        (
            {"memory": 0.3, "l2": 0.1, "dram": 0.3, "sm": 0.1},
            "30 % of device memory's peak, and waiting for global or texture memory",
        ),
    ],
)
def test_the_nearest_peak_is_named(recorded: Study, shares: dict[str, float], said: str) -> None:
    found = explain(recorded)
    own = {name: value for name, value in found.figures[1].items() if not name.endswith("_busy_share")}
    figures = (found.figures[0], own | {f"{name}_busy_share": value for name, value in shares.items()})
    assert replace(found, trials=found.trials[:2], figures=figures).sentences[0].endswith(f"; now at {said}")


def test_a_step_that_nothing_explains_says_so(study: Study) -> None:
    found = explain(study)
    assert "no figure that was read explains it" in found.sentences[0]
    same = replace(found, trials=(found.trials[0], found.trials[0]), figures=found.figures[:2])
    assert "no difference beyond noise" in same.sentences[0]


def test_the_report_has_the_way_where_both_ends_have_counters(study: Study, tmp_path: Path) -> None:
    def blocks(read: Mapping[str, Any]) -> list[Block]:
        return make_blocks(replace(study, about=replace(study.about, counters=read)), None, tmp_path)

    assert blocks({}) == []
    read = borrow_counters(study)
    steps, figures = blocks(read)
    assert steps.text.startswith(
        "The winner (1.00 ms) compared with the control (4.50 ms): 4.50 x faster, in 2"
    )
    assert steps.table and [row[0] for row in steps.table.rows] == [1, 2]
    assert steps.table.rows[0][1].startswith(
        "memory=readonly: 3.00 x faster (4.50 ms → 1.50 ms): global loads "
    )
    assert figures.table and len(figures.table.rows) == 3
    ends = {one.configuration.id for one in (explain(study).trials[0], explain(study).trials[-1])}
    read = {one: of for one, of in read.items() if one in ends}
    steps, figures = blocks(read)
    assert figures.table and len(figures.table.rows) == 2
    assert steps.table and " together: " in steps.table.rows[0][1]
    for one in list(read):
        assert blocks({name: of for name, of in read.items() if name != one}) == []


# ---- the command


@pytest.fixture
def profiled(study: Study, monkeypatch: pytest.MonkeyPatch) -> list[WatchedTask]:
    """What ncu is asked for, which answers from the recorded file."""
    asked: list[WatchedTask] = []
    digests = {
        name: getattr(study.about, name) for name in ("source_digest", "space_digest", "workload_digest")
    }

    def profile(task: WatchedTask, _kernels: Any, _ncu: str, **_: Any) -> Any:
        asked.append(task)
        found = {one: of for one, of in borrow_counters(study).items() if one in task.configurations}
        return found, WatchedResult(device=study.device, **digests, runs=[], failed={})

    monkeypatch.setattr(ncu, "profile", profile)
    monkeypatch.setattr(ncu, "find_ncu", lambda: "ncu")
    return asked


def test_the_command_reads_what_the_record_lacks_and_keeps_it(
    folder: Path, tmp_path: Path, profiled: list[WatchedTask], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["why", str(folder), "--record", str(out)]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [step["set"] for step in told["steps"]] == [{"memory": "readonly"}, {"block_size": 64}]
    assert told["from"]["figures"]["global_sectors_per_request"] == 32
    assert told["steps"][0]["figures"]["global_sectors_per_request"] == 16
    assert told["steps"][0]["figures"]["stall_long_scoreboard_warps"] == 10
    assert told["notes"] == []
    assert [len(task.configurations) for task in profiled] == [3]
    assert main(words) == 0  # the record has them
    assert len(profiled) == 1
    said = capsys.readouterr().out
    assert "1. memory=readonly: 3.00 x faster" in said and "sectors a load" in said
    assert "Why the winner is faster" in (out / "report.html").read_text(encoding="utf-8")
    assert main([*words, "--than", "memory=readonly", "--of", "memory=texture,block_size=64"]) == 0
    assert [len(task.configurations) for task in profiled] == [3, 1]


def test_without_ncu_it_says_what_is_missing_and_traces(
    folder: Path,
    tmp_path: Path,
    study: Study,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse() -> str:
        raise DeviceError("Nsight Compute (ncu) was not found: install it")

    monkeypatch.setattr(ncu, "find_ncu", refuse)
    monkeypatch.setattr("autotune.advise.advice.find_clang", refuse)
    words = ["why", str(folder), "--record", str(tmp_path / "out")]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "no hardware counters: Nsight Compute (ncu) was not found: install it" in said
    assert "no traces either" in said and "occupancy limited by" in said
    assert study.about.counters == {}


@pytest.mark.clang
@pytest.mark.tracing
def test_traces_stand_in_for_counters(
    folder: Path,
    tmp_path: Path,
    study: Study,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["why", str(folder), "--record", str(tmp_path / "out"), "--device", "cuda:77", "--json"]
    monkeypatch.setattr(ncu, "find_ncu", lambda: "/nowhere/ncu")
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert "cannot start /nowhere/ncu" in told["notes"][0]
    assert "traced on the cpu device" in told["notes"][1]
    assert told["from"]["figures"]["traced_sectors_per_request"] == 4  # 32 floats in a row
    assert study.device == told["device"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--than", "memory=readonly,block_size=64"], 2, "name another configuration with --of or --than"),
        (["--of", "memory=shared"], 2, "memory"),
        (["--workload", "small", "--record", "none"], 7, "none"),
    ],
)
def test_what_cannot_be_explained_is_refused(
    words: list[str], code: int, message: str, folder: Path, tmp_path: Path, study: Study,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert study.decision
    assert main(["why", str(folder), "--record", str(tmp_path / "out"), *words]) == code
    assert message in capsys.readouterr().err


def test_a_record_of_another_family_is_refused(
    tmp_path: Path, study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    assert load_family("allpairs").name != study.family
    assert main(["why", "allpairs", "--record", str(tmp_path / "out")]) == 7
    assert "has no study of allpairs: run autotune sweep first" in capsys.readouterr().err


def test_the_benchmark_keeps_a_row_for_each_step(study: Study, tmp_path: Path) -> None:
    script = importlib.import_module("why")
    found = explain(replace(study, about=replace(study.about, counters=borrow_counters(study))))
    rows = list(script.rows(json.loads(as_json(found))))
    script.write_rows(tmp_path / "why.csv", rows, script.COLUMNS)
    kept = script.read_rows(tmp_path / "why.csv")
    assert [(row["step"], row["change"]) for row in kept] == [
        ("0", "from"),
        ("1", "memory=readonly"),
        ("2", "block_size=64"),
    ]
    assert [float(row["global_sectors_per_request"]) for row in kept] == [32, 16, 8]
    assert kept[1]["sentence"] == found.sentences[0]
    table = script.tables(tmp_path / "why.csv")["doubler"].splitlines()
    assert len(table) == 2 + 3
    assert table[3] == "| `memory=readonly` | 1.5 | 3.00 x | 536.9 | 124,334 | 92,917.0 | 10.0 |"

"""A sweep that a search leads: what it asks for is tried, and nothing else."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from fakes import PROTOCOL, FakeBackend, sweep

from autotune.cli import sweep as sweeping
from autotune.cli.commands import main
from autotune.compile import Batch, Cache, Compiled, CompileFailure, Toolchain, compile_batch
from autotune.declaration import family as families
from autotune.declaration.space import Configuration
from autotune.errors import StoreError
from autotune.hardware import Device
from autotune.record.identity import header
from autotune.record.store import Store
from autotune.record.trial import Trial
from autotune.search.search import Search
from autotune.search.strategy import Strategy


def widened(folder: Path) -> int:
    path = folder / "family.yaml"
    sizes = ", ".join(str(8 * n) for n in range(1, 41))
    path.write_text(path.read_text().replace("[32, 64, 128, 256]", f"[{sizes}]"))
    return 120


@pytest.mark.parametrize("method", ["random", "auto", "tpe"])
def test_as_many_as_asked_for_and_none_twice(folder: Path, tmp_path: Path, method: str) -> None:
    widened(folder)
    told: list[Trial] = []
    study = sweep(
        folder, tmp_path, strategy=Strategy(sampler=method, trials=20, seed=1),
        watch=lambda trial, done, total: told.append(trial),
    ).run()  # fmt: skip
    assert study.states() == {"measured": 20}
    assert len({t.configuration for t in told}) == 20
    assert told[0].configuration == study.control
    backend = FakeBackend()
    more = sweep(folder, tmp_path, backend, strategy=Strategy(sampler=method, trials=20, seed=1)).run()
    assert more.states() == {"measured": 40}
    before = {t.configuration.id for t in study.trials}
    first = list(dict.fromkeys(backend.launched))[:20]
    assert not before & set(first)


def test_a_search_learns_from_what_it_is_told(folder: Path, tmp_path: Path) -> None:
    widened(folder)
    study = sweep(folder, tmp_path, strategy=Strategy(sampler="auto", trials=40)).run()
    assert study.decision is not None
    assert study.decision.winner.configuration["memory"] == "readonly"
    measured = [t.measurement.time_ms for t in study.trials if t.measurement]
    assert min(measured) < 1.1  # the best of 120 takes 1.0


def test_what_cannot_run_is_recorded_and_costs_no_trial(folder: Path, tmp_path: Path) -> None:
    backend = FakeBackend()
    limits = backend.device.limits.__class__(texture_1d_texels=999)
    backend.device = backend.device.__class__(kind="cuda", name="Fake GPU", arch="sm_90", limits=limits)
    study = sweep(folder, tmp_path, backend, strategy=Strategy(sampler="random", trials=12)).run()
    assert study.states() == {"measured": 8, "excluded": 4}


@pytest.mark.parametrize("method", ["exhaustive", "random"])
def test_what_another_sweep_has_is_left_to_it_and_not_waited_for_at_once(
    folder: Path, tmp_path: Path, method: str
) -> None:
    """On a cpu, where a search asks for the next few only when it has the results of all before."""
    total = widened(folder)
    device = Device(kind="cpu", name="Fake CPU", arch="x86_64")
    tried = sweep(folder, tmp_path, FakeBackend(device=device))
    header_ = header(tried.family, tried.workload, tried.inputs, device, "fake 1", PROTOCOL)
    other = Store(tmp_path / "out").open(header_, {p.name: p for p in tried.family.space.policies})
    held = tried.configurations[::10]
    assert all(other.claim(configuration) for configuration in held)
    done_before: list[int] = []

    def watch(trial: Trial, done: int, total_: int) -> None:
        if done == total - len(held):
            done_before.append(done)
            for number, configuration in enumerate(held):
                if number % 2:  # it gives up on every second one
                    crashed = replace(trial, measurement=None, state="crashed", reason="it did")
                    other.record(replace(crashed, configuration=configuration))
                else:
                    other.release(configuration)

    tried.watch = watch
    if method != "exhaustive":
        tried.request = replace(tried.request, search=method, trials=total)
    study = tried.run()
    assert done_before
    assert study.states() == {"measured": total - 6, "crashed": 6}


def test_the_command_searches(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "policies")]
    arguments = ["sweep", str(folder), "--device", "cpu", *places]
    assert main([*arguments, "--search", "random", "--trials", "3", "--seed", "7"]) == 0
    frame = pd.read_csv(tmp_path / "out" / "results.csv")
    assert len(frame) == 3 and set(frame["state"]) == {"measured"}
    assert main([*arguments, "--search", "randm"]) == 2
    assert "unknown search 'randm'; did you mean 'random'?" in capsys.readouterr().err
    assert main([*arguments, "--trials", "0"]) == 2


def test_a_space_too_large_to_list_is_searched_without_listing_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "family.yaml"
    values = ", ".join(map(str, range(400)))
    more = "".join(
        f"  {name}: {{values: [{values}], default: 7}}\n" for name in ("unroll", "stages", "depth")
    )
    path.write_text(path.read_text().replace("policies:\n", f"policies:\n{more}", 1))
    monkeypatch.setenv("AUTOTUNE_CPU_THREADS", "1")
    places = ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "policies")]
    arguments = ["sweep", str(folder), "--device", "cpu", *places]
    assert main(arguments) == 2
    assert "too large to list; take --search auto" in capsys.readouterr().err
    assert main([*arguments, "--search", "auto", "--trials", "5", "--set", "unroll=1,2"]) == 0
    frame = pd.read_csv(tmp_path / "out" / "results.csv")
    assert len(frame) == 6 and set(frame["state"]) == {"measured"}  # with the control
    assert sorted(set(frame["unroll"]) - {1, 2}) == [7] and (frame["unroll"] == 7).sum() == 1
    assert main(["families"]) == 0


@pytest.mark.nvrtc
def test_a_static_pass_of_a_space_too_large_to_list_draws_from_it(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "family.yaml"
    values = ", ".join(map(str, range(400)))
    more = "".join(
        f"  {name}: {{values: [{values}], default: 7}}\n" for name in ("unroll", "stages", "depth")
    )
    path.write_text(path.read_text().replace("policies:\n", f"policies:\n{more}", 1))
    static = ["sweep", str(folder), "--static", "--out", str(tmp_path)]
    assert main(static) == 2
    assert "narrow it with --preset or --set, or draw some of it with --trials" in capsys.readouterr().err
    drawn = []
    for seed in ("1", "1", "2"):
        assert main([*static, "--trials", "4", "--seed", seed, "--processes", "1"]) == 0
        frame = pd.read_csv(tmp_path / "static.csv")
        drawn.append(frame[["unroll", "stages", "depth"]].to_numpy().tolist())
        assert [7, 7, 7] in drawn[-1] and len(drawn[-1]) == 4  # control comes first
    assert drawn[0] == drawn[1] != drawn[2]
    assert main([*static, "--trials", "3", "--set", "unroll=1", "--set", "depth=1", "--processes", "1"]) == 0
    assert len(pd.read_csv(tmp_path / "static.csv")) == 3  # of one that can be listed, too


def test_a_preset_of_one_is_told_from_a_large_one_without_listing_it(folder: Path) -> None:
    path = folder / "family.yaml"
    values = ", ".join(map(str, range(1000)))
    path.write_text(
        path.read_text().replace(
            "policies:\n",
            f"policies:\n  a: {{values: [{values}], default: 1}}\n"
            f"  b: {{values: [{values}], default: 1}}\n  c: {{values: [{values}], default: 1}}\n",
            1,
        )
    )
    space = families.load_family(folder).space
    assert space.get_single("full") is None
    assert space.get_single("control") == space.control


def test_the_tables_hold_every_workload_of_the_record(folder: Path, tmp_path: Path) -> None:
    text = (folder / "workloads" / "small.yaml").read_text()
    (folder / "workloads" / "other.yaml").write_text(text.replace("small", "other").replace("1000", "2000"))
    places = ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "policies")]
    arguments = ["sweep", str(folder), "--device", "cpu", *places]
    assert main([*arguments, "--preset", "control", "--workload", "small"]) == 0
    assert main([*arguments, "--set", "memory=readonly", "--workload", "other"]) == 0
    for table in ("results.csv", "summary.csv"):
        frame = pd.read_csv(tmp_path / "out" / table)
        assert set(frame["workload"]) == {"small", "other"}
    assert "other" in (tmp_path / "out" / "report.html").read_text()


def test_a_policy_file_is_written_where_there_is_no_room_for_a_report(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_arguments: object, **_named: object) -> None:
        raise StoreError("cannot write report.html: No space left on device")

    monkeypatch.setattr(sweeping, "write_reports", full)
    places = ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "policies")]
    assert (
        main(["sweep", str(folder), "--device", "cpu", "--preset", "control", *places])
        == StoreError.exit_code
    )
    assert "No space left" in capsys.readouterr().err
    assert len(list((tmp_path / "policies").rglob("*.yaml"))) == 1


def test_again_and_retime_are_options_of_the_command(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "policies")]
    arguments = ["sweep", str(folder), "--device", "cpu", "--set", "block_size=64,128", *places]
    assert main(arguments) == 0
    assert "recorded before" not in capsys.readouterr().out
    assert main([*arguments, "--retime"]) == 0
    assert "6 measured, 6 of them recorded before" in capsys.readouterr().out
    assert main([*arguments, "--again", "--trials", "4"]) == 0
    told = capsys.readouterr().out
    assert "proved for small and" in told and "recorded before" not in told


def test_a_sweep_of_everything_asks_a_search_too(folder: Path, tmp_path: Path) -> None:
    widened(folder)
    tried: list[Configuration] = []
    made = sweep(folder, tmp_path, watch=lambda trial, done, total: tried.append(trial.configuration))
    made.run()
    search = Search(made.family.space, made.configurations, Strategy())
    assert tried == list(iter(search.ask, None))
    assert len(tried) == 120 and tried[1:3] == [made.configurations[0], made.configurations[5]]


def test_finalists_are_measured_with_what_the_trials_had_in_hand(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def compiled(batch: Batch, toolchain: Toolchain, cache: Cache) -> list[Compiled | CompileFailure]:
        asked.append(len(batch.variants))
        return compile_batch(batch, toolchain, cache)

    monkeypatch.setattr("autotune.engine.jobs.compile_batch", compiled)
    first = sweep(folder, tmp_path).run()
    assert any(t.measurement and t.measurement.retimed_ms for t in first.trials)
    assert asked == []
    sweep(folder, tmp_path, retime=True).run()
    # The finalists of an earlier sweep come out of the cache, and those that a new time makes finalists one by one.
    assert asked[0] == 3 and set(asked[1:]) <= {1}

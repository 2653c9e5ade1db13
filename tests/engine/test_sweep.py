"""The pipe on a fake device: states, order, record, resume, interruption."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeBackend, FakeToolchain, cost, sweep

from autotune.declaration import family as families
from autotune.device.backend import LaunchError
from autotune.engine.sweep import SweepInterrupted
from autotune.hardware import Device
from autotune.measure.sampling import Protocol, Timing
from autotune.record.store import Store, StudyStore
from autotune.record.study import Study
from autotune.record.trial import Trial


def states(study: Study) -> dict[str, int]:
    return study.states()


def test_every_configuration_is_measured_and_the_cheapest_wins(folder: Path, tmp_path: Path) -> None:
    study = sweep(folder, tmp_path).run()
    assert states(study) == {"measured": 12}
    assert study.decision is not None
    assert study.decision.winner.configuration.id == "block_size=64,memory=readonly"
    assert study.decision.over_control.ratio == pytest.approx(cost(study.control) / 1.0)


def test_presets_come_first_and_hopeless_ones_are_abandoned(folder: Path, tmp_path: Path) -> None:
    seen: list[Trial] = []
    tried = sweep(
        folder, tmp_path, watch=lambda trial, done, total: seen.append(trial), protocol=Protocol(abandon=1.5)
    )
    tried.run()
    assert seen[0].configuration == tried.family.space.control
    abandoned = {t.configuration.id for t in seen if t.measurement and t.measurement.abandoned}
    assert "block_size=256,memory=global" in abandoned
    assert "block_size=64,memory=readonly" not in abandoned


def test_where_all_are_hopeless_the_best_is_tried_in_full_and_wins(folder: Path, tmp_path: Path) -> None:
    """And where it is wrong then, the next one."""

    class Third(FakeBackend):
        """Wrong from the third run of a block of 64 on."""

        def launch(self, module: Any, kernel: str, geometry: Any, arguments: Any) -> None:
            configuration = self.configurations[module.compiled.key]
            name = ",".join(f"{k}={v}" for k, v in configuration.items())
            self.wrong = lambda c: c["block_size"] == 64 and self.launched.count(name) > 2
            super().launch(module, kernel, geometry, arguments)

    def costs(configuration: Mapping[str, Any]) -> float:
        is_control = dict(configuration) == {"memory": "global", "block_size": 128}
        return 0.01 if is_control else 10 * cost(configuration)

    few = families.load_family(folder).space.configurations("full", {"memory": ["texture"]})
    study = sweep(folder, tmp_path, Third(costs=costs), configurations=few).run()
    trials = {
        t.configuration["block_size"]: t for t in study.trials if t.configuration["memory"] == "texture"
    }
    assert trials[64].state == "wrong_result"
    assert study.decision is not None and study.decision.winner == trials[32]
    assert trials[32].measurement is not None and not trials[32].measurement.abandoned
    assert trials[128].measurement is not None and trials[128].measurement.samples == 1


def test_each_failure_is_a_trial_with_its_state_and_reason(folder: Path, tmp_path: Path) -> None:
    def costs(configuration: Mapping[str, Any]) -> float:
        if configuration["memory"] == "texture" and configuration["block_size"] == 32:
            raise LaunchError("too many resources requested")
        return cost(configuration)

    backend = FakeBackend(
        costs=costs,
        wrong=lambda c: c["memory"] == "readonly" and c["block_size"] == 256,
        tools=FakeToolchain(broken=("block_size = 128",)),
    )
    study = sweep(folder, tmp_path, backend).run()
    assert states(study) == {"measured": 7, "compile_failed": 3, "launch_failed": 1, "wrong_result": 1}
    reasons = {t.state: t.reason for t in study.trials}
    assert "is broken by block_size = 128" in reasons["compile_failed"]
    assert reasons["launch_failed"] == "too many resources requested"
    assert "y: 1000 of 1000 elements differ, the first at [0]" in reasons["wrong_result"]


def test_a_wrong_configuration_is_never_timed(folder: Path, tmp_path: Path) -> None:
    backend = FakeBackend(wrong=lambda c: c["memory"] == "readonly")
    study = sweep(folder, tmp_path, backend).run()
    wrong = [t for t in study.trials if t.state == "wrong_result"]
    assert len(wrong) == 4
    assert all(t.measurement is None for t in wrong)
    assert all(backend.launched.count(t.configuration.id) == 1 for t in wrong)


def test_what_the_device_cannot_hold_is_excluded_before_any_work(folder: Path, tmp_path: Path) -> None:
    backend = FakeBackend()
    limits = backend.device.limits.__class__(texture_1d_texels=999)
    backend.device = backend.device.__class__(kind="cuda", name="Fake GPU", arch="sm_90", limits=limits)
    study = sweep(folder, tmp_path, backend).run()
    assert states(study) == {"measured": 8, "excluded": 4}
    reason = next(t.reason for t in study.trials if t.state == "excluded")
    assert reason == "x: 1000 texels pass the 1D texture limit of 999"
    assert not any("texture" in launched for launched in backend.launched)


def test_resume_measures_nothing_twice(folder: Path, tmp_path: Path) -> None:
    first = sweep(folder, tmp_path).run()
    backend = FakeBackend()
    second = sweep(folder, tmp_path, backend).run()
    assert backend.launched == []
    assert second.decision is not None and first.decision is not None
    assert second.decision.winner == first.decision.winner
    assert len(second.trials) == 12


def test_an_interrupted_sweep_keeps_what_it_has_and_goes_on(folder: Path, tmp_path: Path) -> None:
    def stop(trial: Trial, done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(SweepInterrupted) as caught:
        sweep(folder, tmp_path, watch=stop).run()
    assert len(caught.value.study.trials) == 5
    assert caught.value.study.decision is not None
    backend = FakeBackend()
    finished = sweep(folder, tmp_path, backend).run()
    assert states(finished) == {"measured": 12}
    known = {t.configuration.id for t in caught.value.study.trials}
    first_launches = dict.fromkeys(backend.launched)
    assert not known & set(list(first_launches)[:7])  # the seven that were missing come before any re-timing


@pytest.mark.parametrize("edited", ["doubler.cu", "family.py", "extra.cuh"])
def test_an_edited_family_is_never_a_stale_hit(folder: Path, tmp_path: Path, edited: str) -> None:
    sweep(folder, tmp_path).run()
    path = folder / edited
    comment = "// edited\n" if path.suffix in (".cu", ".cuh") else "# edited\n"
    path.write_text((path.read_text() if path.exists() else "") + comment)
    backend = FakeBackend()
    sweep(folder, tmp_path, backend).run()
    assert len(set(backend.launched)) == 12


def test_an_edited_declaration_is_a_new_study_and_an_edited_comment_is_not(
    folder: Path, tmp_path: Path
) -> None:
    sweep(folder, tmp_path).run()
    path = folder / "family.yaml"
    path.write_text("# a remark\n" + path.read_text().replace("title: y = 2 x", "title: twice"))
    backend = FakeBackend()
    sweep(folder, tmp_path, backend).run()
    assert not backend.launched
    path.write_text(
        path.read_text().replace("role: input, type: float32", "role: input, type: float32, range: [0, 9]")
    )
    sweep(folder, tmp_path, backend).run()
    assert len(set(backend.launched)) == 12


def test_a_wider_sweep_into_an_older_record_finds_the_new_best(folder: Path, tmp_path: Path) -> None:
    few = families.load_family(folder).space.configurations(narrowed={"memory": ["global"]})
    sweep(folder, tmp_path, configurations=few).run()
    study = sweep(folder, tmp_path).run()
    assert study.decision is not None
    assert study.decision.winner.configuration.id == "block_size=64,memory=readonly"


def test_cold_and_warm_and_another_protocol_are_different_studies(folder: Path, tmp_path: Path) -> None:
    sweep(folder, tmp_path).run()
    small = folder / "workloads" / "small.yaml"
    small.write_text(small.read_text() + "cache: warm\n")
    for change in ({}, {"protocol": Protocol(least=4, most=5)}):
        backend = FakeBackend()
        sweep(folder, tmp_path, backend, **change).run()
        assert len(set(backend.launched)) == 12


def test_another_workload_content_or_compiler_is_never_a_stale_hit(folder: Path, tmp_path: Path) -> None:
    sweep(folder, tmp_path).run()
    backend = FakeBackend(tools=FakeToolchain(identity="fake 2"))
    sweep(folder, tmp_path, backend).run()
    assert len(set(backend.launched)) == 12
    small = folder / "workloads" / "small.yaml"
    small.write_text(small.read_text().replace("seed: 1", "seed: 2"))
    backend = FakeBackend()
    sweep(folder, tmp_path, backend).run()
    assert len(set(backend.launched)) == 12


def test_a_lost_context_is_recorded_and_the_next_run_passes_it_by(folder: Path, tmp_path: Path) -> None:
    def costs(configuration: Mapping[str, Any]) -> float:
        if configuration["block_size"] == 256:
            raise LaunchError("illegal memory access")
        return cost(configuration)

    stopped = sweep(folder, tmp_path, FakeBackend(costs=costs, lost=True)).run()
    assert re.search(r"block_size=256.*illegal memory access", stopped.about.lost)
    assert stopped.states()["crashed"] == 1
    study = sweep(folder, tmp_path).run()
    assert states(study) == {"measured": 11, "crashed": 1}


def test_a_torn_last_line_is_mended_and_the_rest_kept(folder: Path, tmp_path: Path) -> None:
    sweep(folder, tmp_path).run()
    journal = tmp_path / "out" / "store.journal"
    for cut in (20, 1, 300):
        journal.write_bytes(journal.read_bytes()[:-cut])
        with pytest.warns(UserWarning, match="torn"):
            study = sweep(folder, tmp_path).run()
        assert states(study) == {"measured": 12}
        assert len(Store(tmp_path / "out").studies()[0].trials) == 12


def test_a_damaged_record_costs_its_trial_and_is_named(folder: Path, tmp_path: Path) -> None:
    sweep(folder, tmp_path).run()
    journal = tmp_path / "out" / "store.journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if b'"value":7.5,' in line)  # of a trial, and no finalist
    journal.write_bytes(b"".join([*lines[:number], b"rubbish\n", *lines[number + 1 :]]))
    named = rf"store\.journal: line {number + 1} is damaged and is left out"
    with pytest.warns(UserWarning, match=named):
        assert len(Store(tmp_path / "out").studies()[0].trials) == 11
    backend = FakeBackend()
    with pytest.warns(UserWarning, match=named):
        study = sweep(folder, tmp_path, backend).run()
    assert states(study) == {"measured": 12}
    assert "block_size=256,memory=global" in backend.launched


def test_a_failed_compile_is_tried_again_and_a_wrong_result_is_not(folder: Path, tmp_path: Path) -> None:
    broken = FakeBackend(
        tools=FakeToolchain(broken=("block_size = 128",)), wrong=lambda c: c["block_size"] == 32
    )
    assert states(sweep(folder, tmp_path, broken).run()) == {
        "measured": 6,
        "compile_failed": 3,
        "wrong_result": 3,
    }
    mended = FakeBackend()
    assert states(sweep(folder, tmp_path, mended).run()) == {"measured": 9, "wrong_result": 3}
    assert not any("block_size=32," in launched for launched in mended.launched)


def test_configurations_ahead_of_the_best_retimed_one_are_called_in(folder: Path, tmp_path: Path) -> None:
    calls: dict[str, int] = {}

    def costs(configuration: Mapping[str, Any]) -> float:  # the best when first sampled, slower ever after
        key = str(dict(configuration))
        calls[key] = calls.get(key, 0) + 1
        slower = configuration["memory"] == "readonly" and calls[key] > 8
        return cost(configuration) * (3 if slower else 1)

    study = sweep(
        folder, tmp_path, FakeBackend(costs=costs), protocol=Protocol(finalists=2, least=3, most=5)
    ).run()
    assert study.decision is not None
    assert study.decision.winner.configuration["memory"] != "readonly"
    ahead = [
        t
        for t in study.trials
        if t.measurement and t.measurement.time_ms < study.decision.winner.measurement.time_ms
    ]  # type: ignore[union-attr]
    assert all(t.measurement and t.measurement.retimed_ms for t in ahead) or not ahead


@pytest.mark.parametrize("busy", [1, 2])
def test_a_finalist_that_took_tenfold_is_timed_again_and_the_record_keeps_both(
    busy: int, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, interleaved = [0], Timing.interleave

    def interleave(*arguments: Any, **named: Any) -> Any:
        turns[0] += 1
        return interleaved(*arguments, **named)

    monkeypatch.setattr(Timing, "interleave", interleave)
    control = families.load_family(folder).space.control
    costs = lambda c: cost(c) * (100 if 0 < turns[0] <= busy and c == control else 1)  # noqa: E731
    study = sweep(folder, tmp_path, FakeBackend(costs=costs)).run()
    found = study.decision
    assert found is not None and found.control is not None and found.control.measurement is not None
    # Two busy moments alike are no moment.
    assert found.over_control.ratio == pytest.approx(4.5 if busy == 1 else 450)
    notes = [note for note in found.control.notes if note.startswith("timed again with")]
    counts = "4.50 ms" if busy == 1 else "450 ms"
    told = "timed again with the finalists: it took 450 ms there, after 4.50 ms before"
    assert notes == [f"{told}; {counts} counts"]


def test_a_short_run_on_a_cpu_is_abandoned_after_more_runs_alone(folder: Path, tmp_path: Path) -> None:
    cpu = Device(kind="cpu", name="a cpu", arch="x86_64")
    launched: dict[str, int] = {}
    unlucky = {"block_size": 128, "memory": "texture"}

    def costs(configuration: Mapping[str, Any]) -> float:
        key = str(dict(configuration))
        launched[key] = launched.get(key, 0) + 1
        return cost(configuration) * (10 if dict(configuration) == unlucky and launched[key] == 1 else 1)

    study = sweep(folder, tmp_path, FakeBackend(costs=costs, device=cpu)).run()
    trial = next(t for t in study.trials if dict(t.configuration) == unlucky)
    assert trial.measurement and not trial.measurement.abandoned
    assert trial.measurement.median_ms == pytest.approx(cost(unlucky))


def test_a_kernel_that_turns_wrong_after_it_was_timed_has_no_time(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turned: list[bool] = []
    interleaved = Timing.interleave
    monkeypatch.setattr(Timing, "interleave", lambda *a, **k: (turned.append(True), interleaved(*a, **k))[1])

    def wrong(configuration: Mapping[str, Any]) -> bool:
        return bool(turned) and configuration["block_size"] == 64 and configuration["memory"] == "readonly"

    study = sweep(folder, tmp_path, FakeBackend(wrong=wrong)).run()
    bad = [t for t in study.trials if t.state == "wrong_result"]
    assert [t.configuration.id for t in bad] == ["block_size=64,memory=readonly"]
    assert "right when first verified" in bad[0].reason


def test_the_record_comes_back_as_it_was(folder: Path, tmp_path: Path) -> None:
    study = sweep(folder, tmp_path).run()
    (read,) = Store(tmp_path / "out").studies()
    assert {t.configuration: t for t in read.trials} == {t.configuration: t for t in study.trials}
    assert read.identity == study.identity
    assert read.presets == study.presets
    assert read.about.features == {"n": 1000}
    assert not math.isnan(read.about.busy_share)


@pytest.mark.parametrize("is_recorded", [True, False])
def test_what_was_taken_over_while_this_one_stood_still_is_left_to_the_other(
    is_recorded: bool, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the third trial is recorded another process has taken this one for dead; it records the trial, or gives it
    back and leaves."""
    where = str(tmp_path / "record")
    tried = sweep(folder, tmp_path, store=Store(where, silent_s=3600))
    policies = {policy.name: policy for policy in tried.family.space.policies}
    record, calls = StudyStore.record, []

    def stands_still(store: StudyStore, trial: Trial) -> bool:
        calls.append(trial.configuration)
        if len(calls) == 3:
            other = Store(where, silent_s=3600)
            there = StudyStore(store.name, policies, other)
            assert not there.claim(trial.configuration)
            other.claims.beats += 6
            assert there.claim(trial.configuration)
            if is_recorded:
                assert record(there, replace(trial, notes=("by the other",)))
            del there, other
            done = record(store, trial)
            assert not done
            return done
        return record(store, trial)

    monkeypatch.setattr(StudyStore, "record", stands_still)
    study = tried.run()
    assert states(study) == {"measured": 12}
    notes = {t.configuration: t.notes for t in study.trials if t.configuration == calls[2]}
    retimed = {t.configuration for t in study.trials if t.measurement and t.measurement.retimed_ms}
    assert calls.count(calls[2]) == (1 if is_recorded else 2) + (calls[2] in retimed)
    if calls[2] not in retimed:
        assert notes[calls[2]] == (("by the other",) if is_recorded else ())

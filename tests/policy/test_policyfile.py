"""Policy files: what is written, how sweeps merge, and who may write at once."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes import FAMILY, sweep, write_family
from import_path import import_path

from autotune.declaration import family as families
from autotune.declaration.space import Configuration
from autotune.errors import PolicyFileError
from autotune.policy.file import content, parse
from autotune.policy.file import read_policy_file as read
from autotune.policy.merge import merge_winners, record_coverage, update
from autotune.record.store import Store
from autotune.record.study import Study
from autotune.record.trial import Trial


@pytest.fixture
def study(folder: Path, tmp_path: Path) -> Study:
    return sweep(folder, tmp_path).run()


@pytest.fixture
def written(study: Study, tmp_path: Path) -> Path:
    return update(tmp_path / "policies", [study])


def of(study: Study, **changes: Any) -> Study:
    """The study of another workload, with another description."""
    name = changes.pop("workload", study.workload)
    about = study.about.update(changes)
    return replace(
        study, workload=name, about=about, trials=tuple(replace(t, workload=name) for t in study.trials)
    )


def timed(study: Study, **ms: float) -> Study:
    """The study with the times of some configurations changed; names as in ``short``."""

    def changed(trial: Trial) -> Trial:
        took = ms.get(short(trial.configuration))
        if took is None or trial.measurement is None:
            return trial
        measured = replace(trial.measurement, median_ms=took, minimum_ms=took, retimed_ms=took)
        return replace(trial, measurement=measured)

    return replace(study, trials=tuple(changed(t) for t in study.trials))


def short(configuration: Any) -> str:
    return f"{configuration['memory']}{configuration['block_size']}"


# -- what is written ----------------------------------------------------------------------------------------


def test_the_winner_is_written_with_its_figures_and_provenance(study: Study, written: Path) -> None:
    assert written.name == "fake-gpu.yaml"
    loaded = read(written)
    entry = loaded.entries["small"]
    assert study.decision is not None
    assert Configuration(entry.configuration) == study.decision.winner.configuration
    assert entry.features == {"n": 1000}
    assert entry.margin_over_control == pytest.approx(4.5)
    assert entry.source_digest == study.about.source_digest
    assert entry.libraries["numpy"]
    assert entry.protocol["cache"] == "cold"
    assert entry.needs["doubler"] == {"block_size": 64, "registers": 32, "shared_bytes": 0}
    assert entry.binding_resource == "warps"  # 32 blocks of 2 warps are all a multiprocessor takes
    assert Configuration(loaded.default) == study.decision.winner.configuration
    assert loaded.default_over == ["small"]
    assert loaded.device.compute_capability == "9.0"


def test_a_lead_that_noise_may_have_made_is_not_claimed(study: Study) -> None:
    wide = tuple(
        replace(t, measurement=replace(t.measurement, spread=3.0)) for t in study.trials if t.measurement
    )
    assert merge_winners(None, [study]).entries["small"].margin_over_control == pytest.approx(4.5)
    assert merge_winners(None, [replace(study, trials=wide)]).entries["small"].margin_over_control == 1.0


def test_what_is_written_obeys_the_published_schema_and_is_sorted(written: Path) -> None:
    from autotune.declaration import yamlfile

    plain = yaml.safe_load(written.read_text())
    yamlfile.check(plain, "policy", written, PolicyFileError)
    entry = plain["entries"]["small"]
    for mapping in (plain["entries"], entry["configuration"], entry["features"], entry["protocol"]):
        assert list(mapping) == sorted(mapping)
    assert plain["schema"] == 2


def test_writing_what_was_read_changes_nothing(study: Study, written: Path) -> None:
    before = written.read_text()
    assert content(read(written)) == yaml.safe_load(before)
    update(written.parents[1], [study])
    assert written.read_text() == before


def test_what_the_features_read_is_written_and_nothing_else(study: Study) -> None:
    def written(**about: Any) -> dict[str, float]:
        found = merge_winners(None, [of(study, scalars={"shortest": 20, "bias": 3}, **about)])
        return dict(found.entries["small"].features)

    assert written() == {"n": 1000}
    assert written(compared={"rows": "n / shortest"}) == {"n": 1000, "shortest": 20}
    assert written(compared=None) == {"n": 1000, "shortest": 20, "bias": 3}  # a study that did not tell


def test_each_accuracy_class_has_its_own_entry(tmp_path: Path) -> None:
    text = FAMILY.replace("reference: control", "reference: control\naccuracy: [memory]")
    made = write_family(tmp_path / "doubler", text)
    found = merge_winners(None, [sweep(made, tmp_path).run()])
    assert list(found.entries) == ["small", "small (memory=readonly)", "small (memory=texture)"]
    assert found.entries["small"].accuracy == "memory=global"
    assert found.entries["small"].configuration == {"block_size": 64, "memory": "global"}
    assert found.entries["small (memory=readonly)"].margin_over_control == pytest.approx(4.5)
    again = parse(yaml.safe_load(yaml.safe_dump(content(found))), tmp_path / "p.yaml")
    assert again.entries == found.entries
    assert {item.workload for item in again.entries.values()} == {"small"}
    assert found.default["memory"] == "global"


# -- merging ------------------------------------------------------------------------------------------------


def test_a_second_workload_is_merged_and_the_first_stays(study: Study, written: Path) -> None:
    update(written.parents[1], [of(study, workload="large", features={"n": 5000})])
    assert list(read(written).entries) == ["large", "small"]


def test_a_sweep_of_part_of_the_space_does_not_replace_a_better_entry(
    folder: Path, written: Path, tmp_path: Path
) -> None:
    before = read(written)
    few = families.load_family(folder).space.configurations(narrowed={"memory": ["global"]})
    part = sweep(folder, tmp_path, configurations=few, store=Store(tmp_path / "other")).run()
    update(tmp_path / "policies", [part])
    assert read(written).entries["small"] == before.entries["small"]
    assert read(written).default == before.default


def worse(study: Study, samples: int, spread: float, **ms: float) -> Study:
    """Return the study as if measured with that many samples and that wide an interval."""
    changed = timed(study, **ms)
    return replace(
        changed,
        trials=tuple(
            replace(t, measurement=replace(t.measurement, samples=samples, spread=spread))
            for t in changed.trials
            if t.measurement
        ),
    )


def test_a_better_measured_entry_stays_unless_the_new_one_is_faster_beyond_doubt(study: Study) -> None:
    careful = merge_winners(None, [worse(study, 45, 0.001)])
    hasty = worse(study, 3, 0.1, readonly64=0.95, texture64=0.9)
    assert merge_winners(careful, [hasty]).entries["small"] == careful.entries["small"]
    faster = worse(study, 3, 0.1, texture64=0.5)
    assert merge_winners(careful, [faster]).entries["small"].configuration["memory"] == "texture"
    again = worse(study, 60, 0.001, texture64=0.95)
    assert merge_winners(careful, [again]).entries["small"].configuration["memory"] == "texture"


def test_what_was_measured_on_other_sources_gives_way_to_the_later_one(study: Study) -> None:
    now = merge_winners(None, [of(study, date="2026-02-02", source_digest="new")])
    old = of(study, date="2026-01-01", source_digest="old")
    assert merge_winners(now, [old]).entries == now.entries
    later = merge_winners(now, [of(study, date="2026-03-03", source_digest="newer")])
    assert later.entries["small"].source_digest == "newer"


def test_studies_of_older_sources_do_not_count(study: Study) -> None:
    old = of(study, workload="large", date="2026-01-01", source_digest="old")
    found = merge_winners(None, [old, of(study, date="2026-02-02")])
    assert list(found.entries) == found.default_over == ["small"]


def two(study: Study) -> tuple[Study, Study]:
    """readonly64 is the best of one workload and 8 times slower on the other; texture64 is never worse than 2 times."""
    slow = {f"readonly{size}": 16.0 for size in (32, 64, 128, 256)}
    return timed(study), timed(of(study, workload="large"), **slow)


def test_an_entry_is_found_by_its_workload_whatever_that_is_called(study: Study, tmp_path: Path) -> None:
    one, other = two(study)
    odd, like = of(one, workload="odd (one)"), of(other, workload="odd (other)")
    first = merge_winners(None, [odd, like])
    assert list(first.entries) == ["odd (one)", "odd (other)"]
    path = update(tmp_path / "odd", [odd, like])
    assert [item.workload for item in read(path).entries.values()] == ["odd (one)", "odd (other)"]


def test_the_default_is_the_minimax_configuration(study: Study) -> None:
    one, other = two(study)
    found = merge_winners(None, [one, other])
    assert short(found.default) == "texture64"
    assert found.default_regret == pytest.approx(1.0)
    assert found.default_over == ["large", "small"]


def test_a_sweep_of_one_workload_does_not_choose_the_default_of_many(study: Study) -> None:
    one, other = two(study)
    both = merge_winners(None, [one, other])
    alone = merge_winners(both, [of(one, workload="third")])
    assert short(alone.default) == "texture64"
    assert alone.default_over == ["large", "small"]


# -- predictions --------------------------------------------------------------------------


def striped(study: Study, low: int, high: int) -> list[Study]:
    """Ten workloads whose best memory depends on the feature a, in which the nearest ones differ."""
    found = []
    for i in range(10):
        a = high if i % 2 else low
        times = {"readonly64": 1.0, "texture64": 2.0} if a == low else {"readonly64": 2.0, "texture64": 1.0}
        named = of(study, workload=f"w{i}", features={"a": a, "b": 10 * 4**i}, compared={"a": "a", "b": "b"})
        found.append(timed(named, **times))
    return found


def test_times_of_what_can_win_anywhere_are_kept(study: Study, tmp_path: Path) -> None:
    path = update(tmp_path / "policies", striped(study, 10, 40))
    found = read(path)
    rule = found.prediction
    assert rule is not None and rule.is_better
    assert rule.left_out["prediction"] == 0.0 < rule.left_out["nearest"]
    assert {short(one.configuration) for one in rule.kept.values()} == {"readonly64", "texture64"}
    for entry in found.entries.values():
        assert sorted(entry.times_ms.values()) == [1.0, 2.0]
        assert (
            entry.times_ms[next(n for n, k in rule.kept.items() if k.configuration == entry.configuration)]
            == 1.0
        )
    record_coverage(path, {"a": (10, 40)}, 0.125)
    rule = replace(rule, covered={"a": {"low": 10, "high": 40}}, covered_regret=0.125)
    assert read(path).prediction == rule
    again = update(
        tmp_path / "policies", striped(study, 10, 40)[:1]
    )  # one workload swept again: the others stay
    assert read(again).prediction == rule
    few = read(update(tmp_path / "few", striped(study, 10, 40)[:4])).prediction
    assert few is not None and not few.left_out and not few.is_better
    alone = read(update(tmp_path / "alone", striped(study, 10, 40)[:1]))
    assert alone.prediction is None


def test_what_was_not_measured_on_an_entry_has_no_time_there(study: Study) -> None:
    whole = striped(study, 10, 40)
    part = replace(
        whole[0], trials=tuple(t for t in whole[0].trials if t.configuration["memory"] != "texture")
    )
    found = merge_winners(None, [part, *whole[1:]])
    assert len(found.entries["w0"].times_ms) == 1
    assert found.prediction is not None and found.prediction.is_better


def test_an_entry_older_than_a_feature_keeps_no_one_from_predicting(study: Study) -> None:
    old = of(study, workload="old", features={"a": 10}, compared={"a": "a"})
    before = merge_winners(None, [timed(old, readonly64=2.0, texture64=1.0)])
    found = merge_winners(before, striped(study, 10, 40))
    assert found.entries["old"].features.keys() == {"a"}
    assert found.prediction is not None and found.prediction.is_better
    few = merge_winners(before, striped(study, 10, 40)[:5])
    assert len(few.entries) == 6 and few.prediction is not None and not few.prediction.left_out


# -- several writers, and places that cannot be written -----------------------------------------------------

_WRITER = """
import pickle, sys
from pathlib import Path
from autotune.policy.merge import update
studies = pickle.loads(Path(sys.argv[1]).read_bytes())
for study in studies[int(sys.argv[2])::8]:
    update(Path(sys.argv[3]), [study])
"""


def test_eight_processes_write_one_policy_file(study: Study, tmp_path: Path) -> None:
    import pickle

    studies = [of(study, workload=f"w{i}") for i in range(24)]
    (tmp_path / "studies").write_bytes(pickle.dumps(studies))
    environment = {**os.environ, "PYTHONPATH": import_path()}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path / "studies"), str(i), str(tmp_path / "policies")],
            env=environment,
        )
        for i in range(8)
    ]
    assert [writer.wait(timeout=300) for writer in writers] == [0] * 8
    path = tmp_path / "policies" / "doubler" / "fake-gpu.yaml"
    assert sorted(read(path).entries) == sorted(s.workload for s in studies)
    assert sorted(p.name for p in path.parent.iterdir()) == ["fake-gpu.yaml", "fake-gpu.yaml.lock"]


def test_a_reader_never_sees_half_a_file(study: Study, written: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(lambda: [update(written.parents[1], [study]) for _ in range(20)])
        while not writing.done():
            assert list(read(written).entries) == ["small"]
    writing.result()


def test_an_unreadable_file_is_put_aside_not_destroyed(study: Study, written: Path) -> None:
    written.write_text("schema: [")
    with pytest.warns(UserWarning, match=r"put aside as fake-gpu.yaml.unreadable: .*malformed"):
        update(written.parents[1], [study])
    assert read(written).entries
    assert written.with_suffix(".yaml.unreadable").read_text() == "schema: ["


def test_a_foreign_file_is_put_aside(study: Study, written: Path) -> None:
    written.write_text(written.read_text().replace("family: doubler", "family: other"))
    with pytest.warns(UserWarning, match="it is for other on Fake GPU"):
        update(written.parents[1], [study])
    assert read(written).family == "doubler"


def test_a_file_of_a_later_autotune_is_left_alone(study: Study, written: Path) -> None:
    text = written.read_text().replace("schema: 2", "schema: 3")
    written.write_text(text)
    with pytest.raises(PolicyFileError, match="later autotune"):
        update(written.parents[1], [study])
    assert written.read_text() == text


def test_a_link_is_followed_not_replaced(study: Study, written: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.yaml"
    written.replace(target)
    written.symlink_to(target)
    update(written.parents[1], [of(study, workload="large")])
    assert written.is_symlink()
    assert list(read(target).entries) == ["large", "small"]


def test_an_unwritable_folder_is_an_error(study: Study, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PolicyFileError, match=r"cannot write .*--policies"):
        update(tmp_path / "file", [study])


def test_a_lock_that_is_not_given_up_is_an_error(
    study: Study, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import filelock

    monkeypatch.setattr("autotune.policy.file._LOCK_SECONDS", 0.1)
    with filelock.FileLock(f"{written}.lock"), pytest.raises(PolicyFileError, match="has been locked for"):
        update(written.parents[1], [study])

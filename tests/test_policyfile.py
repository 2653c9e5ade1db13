"""Policy files: what is written, merged, read back and refused; and what selection makes of them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes import FakeBackend, sweep

from autotune import family as families
from autotune.errors import AutotuneError, PolicyFileError
from autotune.policyfile import PolicyFile, read, update
from autotune.record import Study
from autotune.selection import candidates, choose, find
from autotune.space import Configuration
from autotune.store import Store


@pytest.fixture
def study(folder: Path, tmp_path: Path) -> Study:
    return sweep(folder, tmp_path).run()


@pytest.fixture
def written(study: Study, tmp_path: Path) -> Path:
    return update(tmp_path / "policies", [study])


def edited(path: Path, **changes: Any) -> Path:
    content = yaml.safe_load(path.read_text())
    content.update(changes)
    path.write_text(yaml.safe_dump(content))
    return path


def test_the_winner_is_written_with_its_figures_and_provenance(study: Study, written: Path) -> None:
    assert written.name == "fake-gpu.yaml"
    loaded = read(written)
    entry = loaded.entries["small"]
    assert study.decision is not None
    assert Configuration(entry.configuration) == study.decision.winner.configuration
    assert entry.features == {"n": 1000}
    assert entry.margin_over_control == pytest.approx(4.5)
    assert entry.source_digest == study.about["source_digest"]
    assert Configuration(loaded.default) == study.decision.winner.configuration
    assert loaded.device["compute_capability"] == "9.0"


def test_a_second_workload_is_merged_and_the_first_stays(
    folder: Path, study: Study, written: Path, tmp_path: Path
) -> None:
    other = folder / "workloads" / "large.yaml"
    other.write_text(
        (folder / "workloads" / "small.yaml")
        .read_text()
        .replace("small", "large")
        .replace("[1000]", "[5000]")
    )
    from autotune import workload as workloads

    family = families.load(folder)
    workload = workloads.load(family, "large")
    second = sweep(
        folder, tmp_path, workload=workload, inputs=workloads.prepare(family, workload, tmp_path)
    ).run()
    update(tmp_path / "policies", [second])
    assert list(read(written).entries) == ["large", "small"]


def test_a_sweep_of_part_of_the_space_does_not_replace_a_better_entry(
    folder: Path, study: Study, written: Path, tmp_path: Path
) -> None:
    before = read(written)
    few = families.load(folder).space.configurations(narrowed={"memory": ["global"]})
    part = sweep(folder, tmp_path, configurations=few, store=Store(tmp_path / "other")).run()
    update(tmp_path / "policies", [part])
    assert read(written).entries["small"] == before.entries["small"]
    assert read(written).default == before.default


def test_eight_writers_leave_one_whole_file(study: Study, written: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: update(tmp_path / "policies", [study]), range(24)))
    assert list(read(written).entries) == ["small"]
    assert [p.name for p in written.parent.iterdir() if p.suffix == ".yaml"] == ["fake-gpu.yaml"]


def test_an_unreadable_file_is_put_aside_not_destroyed(study: Study, written: Path, tmp_path: Path) -> None:
    written.write_text("schema: [")
    update(tmp_path / "policies", [study])
    assert read(written).entries
    assert written.with_suffix(".yaml.unreadable").read_text() == "schema: ["


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a mapping of key: value is needed"),
        ("schema: 1", "required"),
        ("schema: 99\nfamily: x", "schema 99 is not 1"),
        (
            "schema: 1\nfamily: f\ndevice: {kind: cuda, name: x}\ndefault: {}\nentries: {w: {features: {}}}",
            "required",
        ),
        ("a: &a [1]\nb: *a", "aliases"),
        ("x: !!python/object/apply:os.system [true]", "malformed"),
        ("schema: 1\nschema: 1", "appears twice"),
    ],
)
def test_what_is_not_a_policy_file_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(PolicyFileError, match=said):
        read(path)


def test_every_truncation_of_a_file_is_read_or_refused_never_a_crash(written: Path, tmp_path: Path) -> None:
    whole = written.read_bytes()
    torn = tmp_path / "torn.yaml"
    for length in range(0, len(whole), 37):
        torn.write_bytes(whole[:length])
        try:
            read(torn)
        except PolicyFileError:
            pass


def test_an_unwritable_folder_is_an_error(study: Study, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PolicyFileError, match="cannot write"):
        update(tmp_path / "file", [study])


# -- selection ------------------------------------------------------------------------------------------


def chain(folder: Path, policies: PolicyFile | None, n: int = 1000) -> list[tuple[str, str]]:
    family = families.load(folder)
    return [(c.match, c.refusal) for c in candidates(family, policies, {"n": n}, {})]


def test_exact_then_nearest_then_default_then_control(folder: Path, written: Path) -> None:
    policies = read(written)
    assert [match for match, _ in chain(folder, policies)] == ["exact", "default", "control"]
    assert [match for match, _ in chain(folder, policies, n=77)] == ["nearest", "default", "control"]
    assert [match for match, _ in chain(folder, None)] == ["control"]


def test_a_stale_entry_is_passed_over_with_its_reason(folder: Path, written: Path) -> None:
    source = folder / "doubler.cu"
    source.write_text(source.read_text() + "// edited\n")
    found = chain(folder, read(written))
    assert "kernel source changed" in found[0][1]
    assert "every entry" in found[1][1]
    assert found[2] == ("control", "")


def test_a_value_that_is_no_more_is_passed_over(folder: Path, written: Path) -> None:
    edited(written, default={"memory": "surface"})
    found = chain(folder, read(written))
    assert "unknown value of policy memory 'surface'" in found[1][1]


def test_what_does_not_fit_gives_way_to_the_next(folder: Path, written: Path) -> None:
    family = families.load(folder)
    listed = candidates(family, read(written), {"n": 1000}, {})
    chosen, passed = choose(listed, lambda c: "too wide" if c["memory"] == "readonly" else "")
    assert chosen.match == "control"
    assert [p.refusal for p in passed] == ["too wide", "too wide"]
    with pytest.raises(AutotuneError, match="no configuration fits"):
        choose(listed, lambda c: "too wide")


def test_files_are_looked_for_in_order_and_a_foreign_one_is_a_miss(
    folder: Path, written: Path, tmp_path: Path
) -> None:
    family, device = families.load(folder), FakeBackend().device
    found, passed = find(family, device, [tmp_path / "nowhere", tmp_path / "policies"])
    assert found is not None and found.path == written and not passed
    edited(written, family="other")
    found, passed = find(family, device, [tmp_path / "policies"])
    assert found is None
    assert "it is for other" in passed[0].refusal

"""autotune check --measure --renew: entries that an edit made stale, timed again instead of swept."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import cost, sweep
from test_check import checked, on_fake, slower

from autotune.cli.commands import main
from autotune.declaration import family as families
from autotune.policy.file import PolicyFile, write
from autotune.policy.file import read_policy_file as read
from autotune.policy.merge import put, update


@pytest.fixture
def edited(folder: Path, tmp_path: Path) -> Path:
    """A policy file that a comment has made stale."""
    path = update(tmp_path / "policies", [sweep(folder, tmp_path).run()])
    source = folder / "doubler.cu"
    source.write_text(source.read_text() + "// edited\n")
    return path


def renew(folder: Path, path: Path, *more: str) -> int:
    return checked(folder, path, "--measure", "--renew", *more)


def test_a_comment_costs_seconds_and_no_sweep(
    folder: Path, edited: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = read(edited)
    on_fake(monkeypatch, folder, slower(1.02))
    assert checked(folder, edited, "--measure") == 8
    assert renew(folder, edited) == 0
    shown = capsys.readouterr().out
    assert f"renewed   {edited}: small  (1.02 ms, recorded 1.00 ms)" in shown
    assert f"accepted  {edited}: default" in shown
    after = read(edited)
    old, new = before.entries["small"], after.entries["small"]
    family = families.load_family(folder)
    assert (new.source_digest, new.space_digest) == (family.source_digest, old.space_digest)
    assert new.source_digest != old.source_digest
    assert new.renewed == new.date
    assert new.renewed_from == {
        "date": old.date, "source_digest": old.source_digest, "layouts_digest": old.layouts_digest,
        "space_digest": old.space_digest,
    }  # fmt: skip
    assert new.median_ms == pytest.approx(1.02)
    assert (new.configuration, new.tie_set, new.runner_up) == (old.configuration, old.tie_set, old.runner_up)
    assert new.margin_over_control == pytest.approx(old.margin_over_control, rel=0.01)
    assert (new.needs, new.features, new.operations) == (old.needs, old.features, old.operations)
    assert (after.default, after.default_over) == (before.default, before.default_over)
    assert checked(folder, edited) == 0


def test_only_what_mattered_is_timed(folder: Path, edited: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: set[tuple[Any, ...]] = set()

    def costs(configuration: Mapping[str, Any]) -> float:
        tried.add(tuple(sorted(configuration.items())))
        return cost(configuration)

    on_fake(monkeypatch, folder, costs)
    assert renew(folder, edited) == 0
    assert len(tried) == 3  # winner, runner-up, control


def test_a_second_renewal_tells_of_the_sweep(
    folder: Path, edited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept = read(edited).entries["small"].source_digest
    for text in ("// again\n", "// and again\n"):
        (folder / "doubler.cu").write_text((folder / "doubler.cu").read_text() + text)
        on_fake(monkeypatch, folder)
        assert renew(folder, edited) == 0
    assert read(edited).entries["small"].renewed_from["source_digest"] == swept


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"costs": slower(1.4, memory="readonly", block_size=64)}, "memory=readonly is now faster than the winner"),
        ({"costs": slower(0.7, memory="global")}, "is 3.15 x as fast as control, 4.5 x is claimed"),
        ({"costs": slower(1.5, memory="global")}, "is 6.75 x as fast as control, 4.5 x is claimed"),
        ({"wrong": lambda c: c["memory"] == "readonly"}, "the winner is wrong_result"),
        ({"wrong": lambda c: c["memory"] == "global"}, "control is wrong_result"),
    ],
)  # fmt: skip
def test_a_claim_that_moved_needs_a_sweep(
    folder: Path, edited: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    change: dict[str, Any], said: str,
) -> None:  # fmt: skip
    before = edited.read_bytes()
    on_fake(monkeypatch, folder, **change)
    assert renew(folder, edited) == 8
    shown = capsys.readouterr().out
    assert "stale: the kernel source changed" in shown and "a sweep is needed" in shown
    assert said in shown
    assert edited.read_bytes() == before


def test_the_tolerance_is_the_users(folder: Path, edited: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_fake(monkeypatch, folder, slower(1.5, memory="global"))
    assert renew(folder, edited) == 8
    on_fake(monkeypatch, folder, slower(1.5, memory="global"))
    assert renew(folder, edited, "--tolerance", "0.6") == 0


def test_a_declaration_that_changed_is_renewed_too(
    folder: Path, edited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = (folder / "family.yaml").read_text()
    (folder / "family.yaml").write_text(
        declared.replace("values: [32, 64, 128, 256]", "values: [32, 64, 128]")
    )
    on_fake(monkeypatch, folder)
    assert renew(folder, edited) == 0
    assert read(edited).entries["small"].space_digest == families.load_family(folder).space_digest


def test_a_winner_that_is_no_more_is_not_renewed(
    folder: Path, edited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = (folder / "family.yaml").read_text()
    (folder / "family.yaml").write_text(
        declared.replace("values: [32, 64, 128, 256]", "values: [32, 128, 256]")
    )
    on_fake(monkeypatch, folder)
    before = edited.read_bytes()
    assert renew(folder, edited) == 8
    assert edited.read_bytes() == before


def test_another_input_is_not_renewed(
    folder: Path, edited: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = folder / "workloads" / "small.yaml"
    workload.write_text(workload.read_text().replace("seed: 1", "seed: 2"))
    on_fake(monkeypatch, folder)
    assert renew(folder, edited) == 8
    assert "not the one it was measured on" in capsys.readouterr().out


def test_what_is_not_stale_is_checked_as_ever(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = update(tmp_path / "policies", [sweep(folder, tmp_path).run()])
    before = path.read_bytes()
    on_fake(monkeypatch, folder)
    assert renew(folder, path) == 0
    assert "4.50 x faster than control" in capsys.readouterr().out
    assert path.read_bytes() == before


def test_an_entry_that_a_sweep_wrote_in_the_meantime_stays(edited: Path) -> None:
    seen: PolicyFile = read(edited)
    item = seen.entries["small"]
    write(edited, replace(seen, entries={"small": replace(item, median_ms=0.5)}))
    put(edited, item, replace(item, renewed="now"))
    assert read(edited).entries["small"].median_ms == 0.5
    assert not read(edited).entries["small"].renewed


def test_it_goes_with_measure(edited: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(edited), "--renew"]) == 2
    assert "--renew goes with --measure" in capsys.readouterr().err

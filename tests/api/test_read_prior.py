"""What a sweep begins from, read out of records and policy files; and five named without measuring."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fakes import cost, sweep

import autotune
from autotune.api import read_prior
from autotune.cli.commands import main
from autotune.declaration import load_family
from autotune.engine import SweepRequest
from autotune.errors import NothingMeasured, PolicyFileError, StoreError, UsageError
from autotune.policy import update
from autotune.record import RANKING, write_results


@pytest.fixture
def record(folder: Path, tmp_path: Path) -> Path:
    """A table of a whole sweep on another device."""
    study = sweep(folder, tmp_path).run()
    update(tmp_path / "policies", [study])
    path = tmp_path / "there.csv"
    write_results([study], path)
    return path


def request(folder: Path, *sources: object, **more: Any) -> SweepRequest:
    return SweepRequest(family=load_family(folder), prior=tuple(map(str, sources)), **more)


def test_a_record_and_the_policy_file_of_it(folder: Path, tmp_path: Path, record: Path) -> None:
    (policy,) = (tmp_path / "policies").rglob("*.yaml")
    (name, times), (of_file, few) = read_prior(request(folder, record, policy))
    assert (name, of_file) == ("small", "small")
    assert set(times) == set(load_family(folder).space.configurations())
    assert min(times, key=times.__getitem__) == min(few, key=few.__getitem__) == min(times, key=cost)
    assert read_prior(request(folder)) == ()


def test_only_configurations_of_the_space_count(folder: Path, record: Path) -> None:
    path = folder / "family.yaml"
    path.write_text(path.read_text().replace("[32, 64, 128, 256]", "[64, 128]"))
    ((_, times),) = read_prior(request(folder, record))
    assert set(times) == set(load_family(folder).space.configurations())
    path.write_text(path.read_text().replace("[64, 128]", "[1024]").replace("default: 128", "default: 1024"))
    with pytest.raises(
        UsageError, match="has no measured configuration of doubler: name a record of this family"
    ):
        read_prior(request(folder, record))


def test_what_is_no_record(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no record"):
        read_prior(request(folder, tmp_path / "nowhere"))
    (tmp_path / "broken.yaml").write_text("schema: 1\n")
    with pytest.raises(PolicyFileError):
        read_prior(request(folder, tmp_path / "broken.yaml"))


def test_five_are_named_without_measuring(
    folder: Path,
    tmp_path: Path,
    record: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("autotune.cli.sweep.open_session", None)  # no device is opened
    command = ["sweep", str(folder), "--budget", "0s", "--out", str(tmp_path / "named")]
    assert main([*command, "--from", str(record)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "doubler on small, named without measuring:"
    assert lines[1] == "1  block_size=64, memory=readonly"
    assert [line[0] for line in lines[1:6]] == list("12345")
    assert "slower than the best of its space on half of 12 recorded spaces" in lines[6]
    assert main(command) == 2
    assert "autotune rank doubler --workload small" in capsys.readouterr().err


def test_five_of_a_ranking(
    folder: Path, tmp_path: Path, record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    family, out = load_family(folder), tmp_path / "named"
    ranked = [one.id for one in family.space.configurations()[::-1]]
    head = f"{family.name},small,{family.source_digest},{family.space_digest}"
    rows = [f'{head},{place},"{one}"' for place, one in enumerate(ranked, 1)]
    out.mkdir()
    columns = "family,workload,source_digest,space_digest,rank,configuration"
    (out / RANKING).write_text("\n".join([columns, *rows]) + "\n")
    assert main(["sweep", str(folder), "--budget", "0s", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "1  block_size=256, memory=texture\n" in printed and "on half of 13 recorded spaces" in printed


def test_a_program_has_five_named(
    folder: Path, tmp_path: Path, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autotune.api.sweeps.open_session", None)  # no device is opened
    out = tmp_path / "named"
    found = autotune.sweep(folder, prior=record, budget="0s", out=out)
    assert found.named[0].id == "block_size=64,memory=readonly"
    assert len(found.named) == 5 and set(found.named) <= set(load_family(folder).space.configurations())
    assert autotune.sweep(folder, prior=record, budget=0, out=out).named == found.named
    assert (found.trials, found.failures, found.workload) == ((), (), "small")
    assert repr(found) == "<SweepResult doubler on small: 5 named, none measured>"
    with pytest.raises(UsageError, match=r"nothing says which .* with --from, or rank them"):
        autotune.sweep(folder, budget="0s", out=out)
    for use in (lambda: found.best, found.save_policy, found.report, lambda: autotune.load(found)):
        with pytest.raises(NothingMeasured, match="the budget was 0, `named` has five to try"):
            use()


def test_five_are_named_for_arrays_of_a_program(folder: Path, tmp_path: Path, record: Path) -> None:
    """The records of all workloads count where none is of these arrays."""
    x = np.ones(1000, np.float32)
    found = autotune.sweep(folder, x=x, prior=record, budget="0s", out=tmp_path / "named")
    assert found.workload.startswith("given-")
    assert found.named == autotune.sweep(folder, prior=record, budget="0s").named


def test_a_record_in_which_all_failed_names_nothing(folder: Path, tmp_path: Path, record: Path) -> None:
    table = pd.read_csv(record)
    table["state"], table["median_ms"] = "crashed", np.nan
    table.to_csv(record, index=False)
    with pytest.raises(UsageError, match="nothing says which"):
        autotune.sweep(folder, prior=record, budget="0s", out=tmp_path / "named")

"""autotune check: which policy files would be used here, and whether what they claim still holds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes import PROTOCOL, FakeBackend, cost, sweep
from local_worker import LocalWorker

from autotune.cli import check as checking
from autotune.cli.commands import main
from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.engine import request as requests
from autotune.errors import DeviceError
from autotune.policy.merge import update
from autotune.policy.selection import candidates, choose, find

Costs = Callable[[Mapping[str, Any]], float]


@pytest.fixture
def written(folder: Path, tmp_path: Path) -> Path:
    return update(tmp_path / "policies", [sweep(folder, tmp_path).run()])


def on_fake(monkeypatch: pytest.MonkeyPatch, folder: Path, costs: Costs = cost, **more: Any) -> None:
    """A machine whose GPU takes ``costs`` milliseconds for a configuration."""
    family = families.load_family(folder)

    def made(*_: Any) -> FakeBackend:
        backend = FakeBackend(costs=costs, **more)
        backend.know([Variant(family, c) for c in family.space.configurations()])
        return backend

    @contextmanager
    def launched(_names: Sequence[str], *_: Any) -> Iterator[list[LocalWorker]]:
        worker = LocalWorker(made(), "")
        worker.start()
        yield [worker]
        worker.close()

    monkeypatch.setattr(checking, "open_backend", made)
    monkeypatch.setattr(checking, "launch_workers", launched)
    monkeypatch.setattr(checking, "open_devices", lambda *_: None)
    monkeypatch.setattr(requests, "CUDA", PROTOCOL)


def checked(folder: Path, path: Path, *more: str) -> int:
    return main(["check", str(path), "--family", str(folder), *more])


def test_what_was_just_swept_is_accepted(
    folder: Path, written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_fake(monkeypatch, folder)
    assert checked(folder, written) == 0
    shown = capsys.readouterr().out
    assert f"accepted  {written}: small" in shown
    assert f"accepted  {written}: default" in shown


def test_a_file_for_a_device_that_is_not_here_is_checked_all_the_same(
    folder: Path, written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none(_name: str) -> None:
        raise DeviceError("none")

    monkeypatch.setattr(checking, "open_backend", none)
    assert checked(folder, written) == 0
    assert "no cuda device here" in capsys.readouterr().out
    assert checked(folder, written, "--measure") == 8
    assert "cannot be measured here" in capsys.readouterr().out


def test_stale_and_broken_files_are_errors(
    folder: Path, written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_fake(monkeypatch, folder)
    (folder / "doubler.cu").write_text((folder / "doubler.cu").read_text() + "// edited\n")
    assert checked(folder, written) == 8
    shown = capsys.readouterr()
    assert "rejected" in shown.out and "kernel source changed" in shown.out
    assert "2 of 2 would be rejected" in shown.err
    written.write_text("schema: [")
    assert checked(folder, written) == 8
    assert "malformed YAML" in capsys.readouterr().out
    assert checked(folder, written.parent / "none.yaml") == 8
    assert "cannot read" in capsys.readouterr().out


def test_files_are_found_where_the_dispatcher_looks(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOTUNE_POLICIES", str(tmp_path / "policies"))
    monkeypatch.chdir(tmp_path)  # ./policies is the same folder
    found = checking.policy_files(None)
    assert [path for path in found if path.name == "fake-gpu.yaml"] == [written]
    assert len({path.resolve() for path in found}) == len(found)


# -- claims -------------------------------------------------------------------------------------------------


def slower(factor: float, **only: Any) -> Costs:
    """Costs of which those of configurations with these values are so much higher."""

    def costs(configuration: Mapping[str, Any]) -> float:
        hit = all(configuration[name] == value for name, value in only.items())
        return cost(configuration) * (factor if hit else 1.0)

    return costs


@pytest.mark.parametrize(
    ("costs", "code", "said"),
    [
        (cost, 0, "4.50 x faster than control, recorded 4.50"),
        (slower(1.05), 0, "recorded 1.00 ms"),
        (slower(0.5), 0, "500 µs, recorded 1.00 ms"),
        (slower(1.3), 8, "takes 1.30 ms, 30.0 % more than the recorded time"),
        (slower(1.4, memory="readonly", block_size=64), 8, "the runner-up block_size=32,memory=readonly is now faster"),
        (slower(0.7, memory="global"), 8, "is 3.15 x as fast as control, 4.5 x is claimed"),
    ],
)  # fmt: skip
def test_a_claim_that_no_longer_holds_fails(
    folder: Path, written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    costs: Costs, code: int, said: str,
) -> None:  # fmt: skip
    on_fake(monkeypatch, folder, costs)
    assert checked(folder, written, "--measure") == code
    assert said in capsys.readouterr().out


def test_the_tolerance_is_the_users(folder: Path, written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_fake(monkeypatch, folder, slower(1.3))
    assert checked(folder, written, "--measure", "--tolerance", "0.5") == 0
    assert checked(folder, written, "--measure", "--workload", "small") == 8
    assert checked(folder, written, "--measure", "--workload", "smal") == 8


def test_a_winner_that_has_become_wrong_fails(
    folder: Path, written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_fake(monkeypatch, folder, wrong=lambda c: c["memory"] == "readonly")
    assert checked(folder, written, "--measure") == 8
    assert "the winner is wrong_result" in capsys.readouterr().out


def test_another_input_under_the_same_name_is_not_measured(
    folder: Path, written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = folder / "workloads" / "small.yaml"
    workload.write_text(workload.read_text().replace("seed: 1", "seed: 2"))
    on_fake(monkeypatch, folder)
    assert checked(folder, written, "--measure") == 8
    assert "not the one it was measured on" in capsys.readouterr().out


def test_a_workload_that_lies_elsewhere_is_named_by_its_file(
    folder: Path,
    written: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As that of arrays which a program gave."""
    kept = (folder / "workloads" / "small.yaml").rename(tmp_path / "kept.yaml")
    on_fake(monkeypatch, folder)
    assert checked(folder, written, "--measure") == 8
    assert "unknown workload 'small'" in capsys.readouterr().out
    assert checked(folder, written, "--measure", "--workload", str(kept)) == 0
    assert "4.50 x faster than control" in capsys.readouterr().out
    kept.write_text(kept.read_text().replace("workload: small", "workload: other"))
    assert checked(folder, written, "--measure", "--workload", str(kept)) == 8
    assert "other: no such entry" in capsys.readouterr().out


def test_check_and_the_dispatcher_agree_on_a_file_of_a_hand(
    folder: Path, written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing was measured, so nothing can be stale: its default is what a program takes."""
    on_fake(monkeypatch, folder)
    content = yaml.safe_load(written.read_text())
    for entries in ({"entries": {}}, {"entries": None}, {}):
        by_hand = {key: content[key] for key in ("schema", "family", "device", "default")} | entries
        written.write_text(yaml.safe_dump(by_hand))
        assert checked(folder, written) == 0
        assert f"accepted  {written}: default" in capsys.readouterr().out
        family = families.load_family(folder)
        known, passed = find(family, FakeBackend().device, [written.parent.parent])
        assert not passed
        taken, _ = choose(candidates(family, known, {"n": 1000}, {}), lambda _: "")
        assert taken.match == "default"
        assert taken.configuration is not None
        assert dict(taken.configuration) == content["default"]


def test_a_file_with_an_absurd_number_is_passed_over(folder: Path, written: Path) -> None:
    """As any other that cannot be used: a program goes on without it."""
    content = yaml.safe_load(written.read_text())
    content["entries"]["small"]["features"] = {"n": 10**400}
    written.write_text(yaml.safe_dump(content))
    family = families.load_family(folder)
    known, (passed,) = find(family, FakeBackend().device, [written.parent.parent])
    assert known is None
    assert "features n is 1000" in passed.refusal

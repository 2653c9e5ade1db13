"""autotune pull: what a registry has is checked, proved on this machine, marked, and then an ordinary policy file."""

import copy
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes import FakeBackend, FakeToolchain, sweep
from registries import BY, Registry, Server, git, stand_in

import autotune
from autotune.cli.commands import main
from autotune.declaration import Configuration
from autotune.engine.proof import prove_configurations
from autotune.errors import PolicyFileError, UsageError
from autotune.files import own_policies
from autotune.hardware import Device
from autotune.measure.verify import PROOF_VERSION
from autotune.policy import read_policy_file
from autotune.policy.merge import update
from autotune.record.trial import Trial
from autotune.registry import pull, pulling, push

WINNER = "block_size=64,memory=readonly"
KEPT = {"block_size": 32, "memory": "global"}


def is_winner(configuration: Mapping[str, Any]) -> bool:
    return Configuration(configuration).id == WINNER


def add_entry(content: dict[str, Any]) -> None:
    """Another entry, with another configuration."""
    other = copy.deepcopy(content["entries"]["small"])
    content["entries"]["other"] = {**other, "configuration": dict(KEPT), "features": {"n": 5000}}


def test_what_is_pulled_is_proved_here_and_put_where_programs_look(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    backends = stand_in(monkeypatch, registry.family)
    said: list[str] = []
    pulled = pull(registry.family, registry.root, note=said.append)
    assert pulled.path == own_policies() / "doubler" / "fake-gpu.yaml"
    assert pulled.is_new and not pulled.failures and pulled.listing.by == BY
    assert {launched for backend in backends for launched in backend.launched} == {
        "block_size=64,memory=readonly"
    }
    before, after = (read_policy_file(path).entries["small"] for path in (registry.file, pulled.path))
    assert dict(after.configuration) == dict(before.configuration) and after.median_ms == before.median_ms
    assert after.pulled.items() >= {
        "from": str(registry.root), "sha256": pulled.listing.sha256, "by": BY, "device": "Fake GPU",
    }.items()  # fmt: skip
    sizes = [size["n"] for size in after.proved["sizes"]]
    assert {1, 7, 37, 999, 1001} <= set(sizes) and after.proved["version"] == PROOF_VERSION
    assert said[0].endswith(
        f"by {BY}, {pulled.listing.date[:10]}, from {registry.root}; it is proved on small and on sizes near it"
    )
    assert said[1:] == ["proved here: 1 of 1 configurations", f"policy file  {pulled.path}"]


def test_it_is_proved_once(registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    backends = stand_in(monkeypatch, registry.family)
    first = pull(registry.family, registry.root, policies=tmp_path / "mine")
    again = pull(registry.family, registry.root, policies=tmp_path / "mine")
    assert first.is_new and not again.is_new and again.path == first.path
    assert [bool(backend.launched) for backend in backends] == [True, False]
    # Another driver, another device of the same name's file, or another file of the registry: proved again.
    stand_in(
        monkeypatch, registry.family,
        lambda: FakeBackend(device=Device(kind="cuda", name="Fake GPU", arch="sm_90", driver="999.1")),
    )  # fmt: skip
    assert pull(registry.family, registry.root, policies=tmp_path / "mine").is_new
    registry.edit_file(lambda content: content.update(refine=20))
    assert pull(registry.family, registry.root, policies=tmp_path / "mine").is_new
    assert read_policy_file(first.path).refine == 20


def test_a_configuration_that_is_wrong_here_is_not_used(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.edit_file(add_entry)
    stand_in(monkeypatch, registry.family, lambda: FakeBackend(wrong=is_winner))
    assert (
        main(["pull", str(registry.family), "--from", str(registry.root), "--policies", str(tmp_path)]) == 0
    )
    said = capsys.readouterr().out
    assert f"not used: {WINNER}: wrong_result: " in said and "proved here: 1 of 2 configurations" in said
    file = read_policy_file(tmp_path / "doubler" / "fake-gpu.yaml")
    assert list(file.entries) == ["other"]
    assert file.default == {
        "block_size": 128,
        "memory": "global",
    }  # control: what was the default is wrong here


def test_a_kept_configuration_that_is_wrong_here_ends_the_prediction(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept = {"c1": {"configuration": dict(KEPT)}}
    registry.edit_file(lambda content: content.update(prediction={"options": {}, "kept": kept}))
    stand_in(monkeypatch, registry.family)
    assert read_policy_file(pull(registry.family, registry.root, policies=tmp_path).path).prediction
    stand_in(monkeypatch, registry.family, lambda: FakeBackend(wrong=lambda one: dict(one) == KEPT))
    found = pull(registry.family, registry.root, policies=tmp_path, replace=True)
    assert list(found.failures) == ["block_size=32,memory=global"]
    file = read_policy_file(found.path)
    assert file.prediction is None and list(file.entries) == ["small"]


@pytest.mark.parametrize(
    "made, why",
    [
        (lambda: FakeBackend(wrong=is_winner), "wrong_result: y: 1000 of 1000"),
        (
            lambda: FakeBackend(tools=FakeToolchain("fake that breaks", broken=("64",))),
            "compile_failed: error:",
        ),
    ],
    ids=["wrong", "does not compile"],
)
def test_where_nothing_is_right_here_nothing_is_written(
    made: Any, why: str, registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(monkeypatch, registry.family, made)
    with pytest.raises(
        PolicyFileError, match=f"nothing of the file .* is right on Fake GPU: {WINNER}: {why}"
    ):
        pull(registry.family, registry.root, policies=tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_right_for_the_workload_alone_is_not_right(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Sized(FakeBackend):
        """Wrong for all that is no multiple of 8."""

        def launch(self, module: Any, kernel: str, geometry: Any, arguments: Any) -> None:
            n = self._placed[arguments[0]].stored.nbytes // 4
            self.wrong = lambda _configuration: n % 8 != 0
            super().launch(module, kernel, geometry, arguments)

    stand_in(monkeypatch, registry.family, Sized)
    with pytest.raises(PolicyFileError, match="right for the swept sizes, wrong for n=1: y: 1 of 1"):
        pull(registry.family, registry.root, policies=tmp_path)


def test_what_does_not_fit_the_workload_is_not_used(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(monkeypatch, registry.family)
    small = registry.family / "workloads" / "few.yaml"
    text = (registry.family / "workloads" / "small.yaml").read_text()
    small.write_text(text.replace("small", "few").replace("[1000]", "[40]"))
    declared = registry.family / "family.yaml"
    declared.write_text(declared.read_text() + "constraints:\n  - {require: n > 50, reason: too few}\n")
    update(tmp_path / "again", [sweep(registry.family, tmp_path / "second").run()])
    push(registry.family, registry.root, policies=tmp_path / "again", by=BY)
    with pytest.raises(PolicyFileError, match="excluded: too few"):
        pull(registry.family, registry.root, policies=tmp_path, workload="few")
    assert pull(registry.family, registry.root, policies=tmp_path).is_new


# -- which file, and where it goes -------------------------------------------------------------------------------


def test_the_file_of_another_device_of_the_same_capability_will_do(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def other(arch: str) -> FakeBackend:
        return FakeBackend(device=Device(kind="cuda", name="Other GPU", arch=arch))

    stand_in(monkeypatch, registry.family, lambda: other("sm_90"))
    pulled = pull(registry.family, registry.root, policies=tmp_path)
    assert pulled.path.name == "fake-gpu.yaml"
    assert read_policy_file(pulled.path).entries["small"].pulled["device"] == "Other GPU"
    stand_in(monkeypatch, registry.family, lambda: other("sm_80"))
    with pytest.raises(
        PolicyFileError, match=r"no policy file of doubler for cuda Other GPU 8.0.*for cuda 9.0"
    ):
        pull(registry.family, registry.root, policies=tmp_path / "none")


def test_sources_that_are_others_here_get_nothing(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    backends = stand_in(monkeypatch, registry.family)
    source = registry.family / "doubler.cu"
    source.write_text(source.read_text() + "// edited\n")
    with pytest.raises(
        PolicyFileError, match="Fake GPU: the kernel source is another here than where it was"
    ):
        pull(registry.family, registry.root, policies=tmp_path)
    assert not backends[0].launched


def test_what_was_measured_here_stays(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(monkeypatch, registry.family)
    mine = update(tmp_path / "mine", [sweep(registry.family, tmp_path / "second").run()])
    before = mine.read_bytes()
    with pytest.raises(PolicyFileError, match="holds what was measured here, which stays"):
        pull(registry.family, registry.root, policies=tmp_path / "mine")
    assert mine.read_bytes() == before
    assert pull(registry.family, registry.root, policies=tmp_path / "mine", replace=True).path == mine
    assert read_policy_file(mine).entries["small"].pulled
    mine.write_text("torn: [")
    with pytest.raises(PolicyFileError, match="--replace puts the pulled file in its place"):
        pull(registry.family, registry.root, policies=tmp_path / "mine")


def test_what_was_measured_while_it_was_proved_stays(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def prove_beside_a_sweep(*given: Any) -> list[Trial]:
        update(tmp_path / "mine", [sweep(registry.family, tmp_path / "second").run()])
        return prove_configurations(*given)

    monkeypatch.setattr(pulling, "prove_configurations", prove_beside_a_sweep)
    stand_in(monkeypatch, registry.family)
    with pytest.raises(PolicyFileError, match="holds what was measured here"):
        pull(registry.family, registry.root, policies=tmp_path / "mine")


def test_a_sweep_takes_the_place_of_a_pulled_entry_and_of_its_mark(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    registry.edit_file(add_entry)
    stand_in(monkeypatch, registry.family)
    path = pull(registry.family, registry.root, policies=tmp_path / "mine").path
    update(tmp_path / "mine", [sweep(registry.family, tmp_path / "second").run()])
    entries = read_policy_file(path).entries
    assert entries["other"].pulled and not entries["small"].pulled


def test_a_file_that_is_found_before_it_is_named(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(monkeypatch, registry.family)
    first = update(tmp_path / "policies", [sweep(registry.family, tmp_path / "second").run()])
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    pull(registry.family, registry.root, note=said.append)
    assert said[-1] == f"programs use {first.relative_to(tmp_path)}, which is found before it"


def test_the_registry_may_be_named_once(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(monkeypatch, registry.family)
    with pytest.raises(UsageError, match="no registry is named: write --from"):
        pull(registry.family, policies=tmp_path)
    monkeypatch.setenv("AUTOTUNE_REGISTRY", str(registry.root))
    assert pull(registry.family, policies=tmp_path).is_new


# -- by other ways -----------------------------------------------------------------------------------------------


@pytest.mark.openssl
def test_over_https(
    registry: Registry, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(monkeypatch, registry.family)
    pulled = pull(registry.family, server.address, policies=tmp_path)
    assert read_policy_file(pulled.path).entries["small"].pulled["from"] == server.address
    assert server.asked == ["/doubler/index.yaml", f"/doubler/{pulled.listing.path}"]


@pytest.mark.git
def test_from_a_git_repository(registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    git(registry.root, "init")
    git(registry.root, "add", ".")
    git(registry.root, "commit", "-m", "first")
    registry.index.write_text("what is not committed does not count")
    (registry.root / ".gitattributes").write_text("*.yaml filter=mine")
    stand_in(monkeypatch, registry.family)
    pulled = pull(registry.family, f"git+file://{registry.root}", policies=tmp_path / "mine")
    commit = git(registry.root, "rev-parse", "HEAD")[:12]
    mark = read_policy_file(pulled.path).entries["small"].pulled
    assert mark["from"] == f"git+file://{registry.root} at {commit}"


# -- it is an ordinary policy file -------------------------------------------------------------------------------

PROGRAM = """
import sys, threading
import numpy as np
import autotune

calls = 0
def count(frame, event, _argument):
    global calls
    calls += event == "call"

x = np.arange(1000, dtype=np.float32)
with autotune.load(sys.argv[1], device=sys.argv[3], policies=sys.argv[2]) as kernel:
    for _ in range(3):
        assert (kernel(x) == 2 * x).all()
    sys.setprofile(count)
    kernel(x)
    sys.setprofile(None)
    chosen = kernel.explain(kernel.bind(x))[0]
loaded = [name for name in sys.modules if name.startswith("autotune.registry") or name in ("ssl", "urllib.request")]
print(calls, chosen.match, chosen.configuration.id, loaded)
"""


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_dispatched_call_does_the_same_as_with_a_measured_file(
    device: str, folder: Path, tmp_path: Path
) -> None:
    """On a real device, from the sweep to the call: every Python function of a call is counted."""
    measured, mine, root = tmp_path / "measured", tmp_path / "mine", tmp_path / "registry"
    root.mkdir()
    swept = [
        "sweep",
        str(folder),
        "--device",
        "cpu",
        "--set",
        "block_size=64",
        "--set",
        "memory=global,readonly",
    ]
    assert main([*swept, "--policies", str(measured), "--out", str(tmp_path / "out")]) == 0
    assert main(["push", str(folder), "--to", str(root), "--policies", str(measured), "--by", BY]) == 0
    pulls = ["pull", str(folder), "--from", str(root), "--device", device, "--policies", str(mine)]
    assert main(pulls) == 0

    def call(policies: Path) -> str:
        command = [sys.executable, "-c", PROGRAM, str(folder), str(policies), device]
        path = os.pathsep.join(map(str, [Path(autotune.__file__).parents[1]]))
        return subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
        ).stdout

    found = call(mine)
    assert found == call(measured)
    assert found.split()[1] == "exact" and found.endswith(" []\n")


def test_explain_says_where_it_came_from(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(monkeypatch, registry.family)
    pulled = pull(registry.family, registry.root, policies=tmp_path / "mine")
    explain = ["explain", str(registry.family), "--device", "fake-gpu", "--policies", str(tmp_path / "mine")]
    assert main(explain) == 0
    date = read_policy_file(pulled.path).entries["small"].pulled["date"]
    said = capsys.readouterr().out
    assert f"{pulled.path}: pulled from {registry.root} (by {BY}), proved here on {date}" in said


def test_the_mark_is_read_and_written(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(monkeypatch, registry.family)
    path = pull(registry.family, registry.root, policies=tmp_path).path
    content = yaml.safe_load(path.read_text())
    assert set(content["entries"]["small"]["pulled"]) == {
        "from", "sha256", "by", "date", "device", "driver", "compiler",
    }  # fmt: skip
    content["entries"]["small"]["pulled"]["where"] = "there"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(PolicyFileError, match="unknown key 'where'"):
        read_policy_file(path)

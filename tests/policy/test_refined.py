"""What calls found, from several processes that write at once: everything is kept."""

import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import FakeBackend, write_family

from autotune.declaration import Configuration, Inputs, load_family
from autotune.policy.file import Entry, read_policy_file
from autotune.policy.refined import _merge, keep_refined, refined_path
from autotune.policy.selection import Candidate

GLOBAL, READONLY, TEXTURE = (
    Configuration({"block_size": 64, "memory": memory}) for memory in ("global", "readonly", "texture")
)
DEVICE = FakeBackend().device
PROGRAM = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
import test_refined
test_refined.write(Path(sys.argv[1]), int(sys.argv[2]))
"""


def inputs(n: int, **options: str) -> Inputs:
    return Inputs(arrays={}, sizes={"n": n}, options=options, scalars={})


def keep(folder: Path, n: int, times: dict[Configuration, list[float]], **options: str) -> None:
    best = min(times, key=lambda c: min(times[c]))
    taken = Candidate("nearest", best, "a file")
    keep_refined(load_family(folder), DEVICE, "fake 1", inputs(n, **options), taken, times)


def write(folder: Path, number: int) -> None:
    """A process: sizes of its own, and one that all have."""
    for turn in range(5):
        keep(folder, 1000 * number + turn, {GLOBAL: [1.0, 1.1], READONLY: [0.5, 0.6]})
        keep(folder, 7, {GLOBAL: [1.0 + number], READONLY: [0.5 + number / 10, 0.9]})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return write_family(tmp_path / "doubler")


def kept(tmp_path: Path) -> dict[str, Entry]:
    path = refined_path(tmp_path / "data" / "autotune" / "policies", "doubler", DEVICE)
    return dict(read_policy_file(path).entries)


def test_nothing_is_lost_when_processes_refine_at_once(folder: Path, tmp_path: Path) -> None:
    program = PROGRAM.format(paths=[str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")])
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(folder), str(number)]) for number in (1, 2, 3)
    ]
    assert [one.wait(300) for one in running] == [0, 0, 0]
    found = kept(tmp_path)
    sizes = {int(item.features["n"]) for item in found.values()}
    assert sizes == {7, *(1000 * number + turn for number in (1, 2, 3) for turn in range(5))}
    (shared,) = (item for item in found.values() if item.features["n"] == 7)
    assert shared.refined["calls"] == 3 * 5 * 3
    assert shared.refined["times_ms"] == {GLOBAL.id: 2.0, READONLY.id: 0.6}
    assert Configuration(shared.configuration) == READONLY


def test_entries_merge_to_the_same_in_any_order(folder: Path, tmp_path: Path) -> None:
    family = load_family(folder)
    found = []
    for number, times in enumerate(
        (
            {GLOBAL: [1.0], READONLY: [0.9, 0.8]},
            {GLOBAL: [0.7, 0.6], TEXTURE: [0.65]},
            {TEXTURE: [0.603, 0.7, 0.8]},
        )
    ):
        keep(folder, number, times)
        found.append(
            replace(kept(tmp_path)[f"refined {number}"], name="one", workload="one", features={"n": 1})
        )
    wholes = set()
    for seed in range(12):
        order = random.Random(seed).sample(found, 3)
        whole = _merge(family, _merge(family, order[0], order[1]), order[2])
        assert whole.refined["calls"] == 9
        assert whole.refined["times_ms"] == {GLOBAL.id: 0.6, READONLY.id: 0.8, TEXTURE.id: 0.603}
        wholes.add(Configuration(whole.configuration))
    assert wholes == {GLOBAL}, "of two that are less than 1 % apart the first by name"


def test_what_was_found_with_other_sources_or_options_is_not_mixed_in(folder: Path, tmp_path: Path) -> None:
    keep(folder, 7, {GLOBAL: [0.1]})
    (folder / "doubler.cu").write_text((folder / "doubler.cu").read_text() + "// edited\n")
    keep(folder, 7, {READONLY: [5.0]})
    keep(folder, 7, {TEXTURE: [3.0]}, missing="masked")
    found = kept(tmp_path)
    assert {Configuration(one.configuration) for one in found.values()} == {READONLY, TEXTURE}
    assert [one.refined["times_ms"] for one in found.values()] == [{READONLY.id: 5.0}, {TEXTURE.id: 3.0}]

"""Configurations with the same code, and what a sweep says of the record it goes on with."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeBackend, FakeToolchain, cost, sweep

from autotune.device.backend import LaunchError
from autotune.record.trial import Trial


@pytest.fixture
def alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if texture and readonly compiled to the same code."""

    def sameness(variant: Any, compiled: object, names: Mapping[str, Any]) -> str:
        memory = variant.configuration["memory"].replace("texture", "readonly")
        return f"{memory} {variant.configuration['block_size']}"

    monkeypatch.setattr("autotune.engine.jobs.same_code.compute_sameness", sameness)


@pytest.mark.usefixtures("alike")
def test_the_same_code_is_measured_once(folder: Path, tmp_path: Path) -> None:
    backend = FakeBackend()
    study = sweep(folder, tmp_path, backend).run()
    assert study.states() == {"measured": 12}
    assert len(set(backend.launched)) == 8
    by_id = {t.configuration.id: t for t in study.trials}
    for size in (32, 64, 128, 256):
        pair = [by_id[f"block_size={size},memory={memory}"] for memory in ("readonly", "texture")]
        assert pair[0].measurement == pair[1].measurement  # those of the re-timing too
        first, second = sorted(pair, key=lambda t: t.same_as is not None)
        assert (first.same_as, second.same_as) == (None, first.configuration)
        assert [t.notes for t in pair] == [(), ()]
        assert second.remarks == (f"same code as {first.configuration.id}",)
    assert study.decision is not None
    assert {t.configuration["memory"] for t in study.decision.tie_set} == {"readonly", "texture"}
    assert study.about.idle_policies == ()


@pytest.mark.usefixtures("alike")
def test_the_same_code_fails_once(folder: Path, tmp_path: Path) -> None:
    def costs(configuration: Mapping[str, Any]) -> float:
        if configuration["block_size"] == 64:
            raise LaunchError("refused")
        return cost(configuration)

    backend = FakeBackend(costs=costs)
    study = sweep(folder, tmp_path, backend).run()
    assert study.states() == {"measured": 9, "launch_failed": 3}
    tried = Counter(dict.fromkeys(name for name in backend.launched if "block_size=64" in name))
    assert len(tried) == 2


def test_a_policy_that_changed_nothing_is_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "autotune.engine.jobs.same_code.compute_sameness",
        lambda variant, compiled, names: str(variant.configuration["block_size"]),
    )
    backend = FakeBackend()
    study = sweep(folder, tmp_path, backend).run()
    assert study.about.idle_policies == ("memory",)
    assert len(set(backend.launched)) == 4
    assert sweep(folder, tmp_path).run().about.idle_policies == ("memory",)


def test_a_new_study_says_why(folder: Path, tmp_path: Path) -> None:
    said: list[str] = []
    sweep(folder, tmp_path, note=said.append).run()
    assert said == []
    sweep(folder, tmp_path, note=said.append).run()
    assert said == []
    sweep(folder, tmp_path, FakeBackend(tools=FakeToolchain("fake 2")), note=said.append).run()
    assert len(said) == 1 and "fake 2, was fake 1" in said[0]


def test_each_trial_is_told_once_and_in_the_end_all_are(folder: Path, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []

    def watch(trial: Trial, done: int, total: int) -> None:
        told.append((trial.configuration.id, done, total))

    sweep(folder, tmp_path, watch=watch).run()
    assert [done for _, done, _ in told] == list(range(1, 13))
    assert len({named for named, _, _ in told}) == 12

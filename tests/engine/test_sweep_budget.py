"""A sweep in a given time, and one that begins from another device's times; the clock is a fake."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from fakes import FakeBackend, cost, sweep

from autotune.declaration import load_family
from autotune.declaration.space import Configuration
from autotune.engine import SweepRequest
from autotune.engine.jobs import JobCompiler
from autotune.engine.messages import Made
from autotune.errors import UsageError
from autotune.record import Study
from autotune.record.store import Store
from autotune.search import Prior, Strategy


def widened(folder: Path) -> None:
    path = folder / "family.yaml"
    sizes = ", ".join(str(8 * n) for n in range(1, 41))
    path.write_text(path.read_text().replace("[32, 64, 128, 256]", f"[{sizes}]"))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Ten seconds pass with each batch that is compiled, and none otherwise."""
    now, compile_ = [100.0], JobCompiler.chunks

    def slow(self: JobCompiler, given: Sequence[Configuration], *more: object) -> Iterator[list[Made]]:
        now[0] += 10
        yield from compile_(self, given, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(JobCompiler, "chunks", slow)
    monkeypatch.setattr("autotune.search.search.monotonic", lambda: now[0])
    return now


def searched(study: Study) -> dict[str, object]:
    return dict(study.about.searched)


def test_compiling_counts_and_what_was_begun_is_recorded(
    folder: Path, tmp_path: Path, clock: list[float]
) -> None:
    widened(folder)
    study = sweep(folder, tmp_path, strategy=Strategy(sampler="auto", seconds=25.0), clock_s=100.0).run()
    assert clock == [130.0]  # three batches; the third was begun before 125 s
    assert study.states() == {"measured": 12}
    assert len(Store(tmp_path / "out").studies()[0].trials) == 12
    assert searched(study)["budget"] == "budget 25 s"
    left = searched(study)["left_to_gain"]
    assert isinstance(left, float) and 0 <= left <= 1
    assert study.control in study.times


def test_a_budget_that_was_spent_before_the_first_configuration(
    folder: Path, tmp_path: Path, clock: list[float]
) -> None:
    study = sweep(folder, tmp_path, strategy=Strategy(sampler="auto", seconds=25.0), clock_s=70.0).run()
    assert study.states() == {} and study.decision is None


def test_nothing_is_left_to_gain_where_all_was_tried(folder: Path, tmp_path: Path) -> None:
    study = sweep(folder, tmp_path, strategy=Strategy(sampler="auto", trials=12)).run()
    assert study.states() == {"measured": 12}
    assert "left_to_gain" not in searched(study)


def test_it_goes_on_after_a_budget(folder: Path, tmp_path: Path, clock: list[float]) -> None:
    widened(folder)
    for already in (0, 4):
        backend = FakeBackend()
        strategy = Strategy(sampler="auto", seconds=5.0)
        tried = sweep(folder, tmp_path, backend, strategy=strategy, clock_s=clock[0])
        study = tried.run()
        assert (tried.before, study.states()) == (already, {"measured": already + 4})


def test_the_winner_of_another_device_is_tried_after_control(folder: Path, tmp_path: Path) -> None:
    widened(folder)
    tried = sweep(folder, tmp_path, strategy=Strategy(sampler="auto", trials=2))
    there = {one: 7 * cost(one) for one in tried.family.space.configurations()}
    tried.prior = Prior([there])
    best = min(there, key=there.__getitem__)
    assert set(tried.run().times) == {tried.family.space.control, best}


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("2.5", 2.5), ("5m", 300), ("1h", 3600), ("0s", 0)]
)
def test_how_a_budget_is_written(folder: Path, text: str, seconds: float) -> None:
    strategy = SweepRequest(family=load_family(folder), budget=text).strategy
    assert (strategy.seconds, strategy.sampler) == (seconds, "auto")
    assert SweepRequest(family=load_family(folder)).strategy.sampler == "exhaustive"
    named = SweepRequest(family=load_family(folder), budget=text, search="random")
    assert named.strategy.sampler == "random"


@pytest.mark.parametrize("text", ["-1", "soon", "3d", "1e3", "s"])
def test_a_budget_that_cannot_be_read(folder: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"cannot read --budget.*write 30s, 5m or 1h"):
        SweepRequest(family=load_family(folder), budget=text).check()

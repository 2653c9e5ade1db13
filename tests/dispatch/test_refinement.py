"""The first calls on sizes that nobody measured: what runs in them, what they may lose, and what stays."""

import math
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lending import Array, World, make_world, write_tuned_doubler

import autotune
from autotune.declaration import Configuration
from autotune.device import LaunchError, resident
from autotune.dispatch.refinement import CALLS, TRIED, Refinement
from autotune.dispatch.target import Target
from autotune.errors import UsageError
from autotune.policy import Candidate, file_name, read_policy_file
from autotune.policy.refined import refined_path


def ran(plan: Refinement, times: list[float], delay: int = 0, most: int = 200) -> list[int]:
    """Return what each call runs until all is known; a time is known ``delay`` calls after its own."""
    order: list[int] = []
    waiting: list[tuple[int, int]] = []
    for call in range(most):
        for due, at in [w for w in waiting if w[0] <= call]:
            waiting.remove((due, at))
            plan.note(at, times[at])
        if plan.is_over:
            return order
        at, is_timed = plan.take()
        order.append(at)
        if is_timed:
            waiting.append((call + 1 + delay, at))
    raise AssertionError(f"not over after {most} calls")


def foretold(*times: float, spread: float = 0.05) -> list[tuple[float, float]]:
    return [(ms, spread) for ms in times]


def test_the_fastest_stays_whatever_was_foretold() -> None:
    plan = Refinement(foretold(1.0, 1.01, 1.02, 1.1))
    order = ran(plan, [1.0, 1.2, 0.8, 1.4])
    assert order[:4] == [0, 1, 2, 3]
    assert plan.best == 2
    assert len(order) == CALLS
    assert 3 not in order[8:]  # more than a quarter behind, the first run apart


def test_a_difference_that_is_noise_changes_nothing() -> None:
    plan = Refinement(foretold(1.0, 1.0))
    ran(plan, [1.0, 0.995])
    assert plan.best == 0


def test_what_is_added_to_a_time_between_the_marks_does_not_count() -> None:
    plan = Refinement(foretold(1.0, 1.0))
    for added in (3.0, 0.5, 0.0, 0.9, 0.1, 0.8):
        for at, ms in enumerate((1.0, 0.9)):
            plan.note(at, ms + (added if at else 0.0))
    assert plan.time(1) == 0.9
    assert plan.best == 1


def test_what_could_lose_too_much_is_not_run() -> None:
    plan = Refinement(foretold(1.0, 1.05, 5.0, 1.1, spread=0.2))
    assert 2 not in ran(plan, [1.0] * 4)
    unknown = Refinement([(0.0, 0.0)] * 9)  # each may take twice as long: five of them at most
    order = ran(unknown, [1.0] + [2.0] * 8)
    assert sorted(set(order)) == [0, 1, 2, 3, 4, 5]


def test_nothing_is_run_again_before_its_time_is_known() -> None:
    plan = Refinement(foretold(1.0, 1.01, 1.02))
    order = ran(plan, [1.0, 0.9, 1.1], delay=6)
    assert order[:7] == [0, 1, 2, 0, 0, 0, 0]  # the last four wait, untimed
    assert sum(map(len, plan.times)) <= CALLS
    assert plan.best == 1


def test_one_that_cannot_run_is_left_out() -> None:
    plan = Refinement(foretold(1.0, 1.01))
    assert plan.take() == (0, True)
    assert plan.take() == (1, True)
    plan.leave_out(1)
    before = plan.is_over
    plan.note(0, 1.0)
    assert (before, plan.is_over, plan.best) == (False, True, 0)


@given(
    st.lists(st.floats(0.5, 2.0), min_size=1, max_size=6), st.lists(st.floats(-1, 1), min_size=6, max_size=6),
    st.integers(0, 9), st.integers(2, CALLS),
)  # fmt: skip
def test_what_is_lost_is_bounded(told: list[float], errors: list[float], delay: int, calls: int) -> None:
    """Where no prediction is off by more than its upper end, all calls together lose at most five of the first's."""
    told, spread = sorted(told), 0.1
    times = [ms * math.exp(2 * spread * e) for ms, e in zip(told, [0, *errors], strict=False)]
    plan = Refinement(foretold(*told, spread=spread), calls)
    order = ran(plan, times, delay)
    assert sum(len(t) for t in plan.times) <= calls
    assert sum(max(0.0, times[at] - times[0]) for at in order) <= 5 * times[0] * (1 + 1e-9)
    known = [at for at in range(len(times)) if plan.times[at]]
    assert times[plan.best] <= min(times[at] for at in known) * 1.01


def test_a_refinement_tries_eight_of_those_that_fit_the_input() -> None:
    made = [
        Candidate("predicted", Configuration({"p": i}), "file", 1 + i / 100, spread=0.01) for i in range(12)
    ]
    target = SimpleNamespace(
        _candidates=lambda _inputs: made,
        _explain_exclusion=lambda configuration, _inputs: "too large" if configuration["p"] == 3 else "",
    )
    others = Target._find_others(target, made[0], None)  # type: ignore[arg-type]
    assert others == [one for one in made[1:] if one is not made[3]][: TRIED - 1]


# -- in calls -----------------------------------------------------------------------------------------------


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    return make_world(monkeypatch, tmp_path / "data")


@pytest.fixture
def folder(tmp_path: Path, world: World) -> Path:
    """A family that was tuned on two sizes, with another winner each."""
    return write_tuned_doubler(tmp_path, world, {100: "global", 1000: "readonly"})


def settle() -> None:
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(300)


def test_calls_find_the_fastest_and_the_next_process_knows_it(
    folder: Path, tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threading.Thread.is_alive", lambda _self: False)  # compiled in the call instead
    times = iter([5.0, 1.0] * 40)
    monkeypatch.setattr(world.gpu, "mark", lambda: None)
    monkeypatch.setattr(world.gpu, "between_ms", lambda _b, _e: next(times))
    policies = tmp_path / "policies"
    with autotune.load(folder, device="cuda", policies=policies, refine=True) as kernel:
        first, _ = kernel.explain(kernel.bind(np.zeros(200, np.float32)))
        assert first.configuration is not None
        assert (first.match, first.configuration["memory"]) == ("nearest", "global")
        for start in range(CALLS + 3):
            x = np.arange(start, start + 200, dtype=np.float32)
            np.testing.assert_array_equal(kernel(Array(x)).memory, 2 * x)
        ran_then = kernel(Array(x), out=Array(x.copy()))
        np.testing.assert_array_equal(ran_then.memory, 2 * x)
    settle()
    path = refined_path(tmp_path / "data" / "autotune" / "policies", "doubler", world.gpu.device)
    (entry,) = read_policy_file(path).entries.values()
    assert entry.configuration == {"memory": "readonly", "block_size": 64}
    assert entry.features == {"n": 200}
    assert entry.refined["calls"] <= CALLS
    assert set(entry.refined["times_ms"]) == {f"block_size=64,memory={m}" for m in ("global", "readonly")}
    with autotune.load(folder, device="cuda", policies=policies) as kernel:
        taken, _ = kernel.explain(kernel.bind(np.zeros(200, np.float32)))
        assert (taken.match, taken.configuration) == ("exact", Configuration(entry.configuration))


def test_times_that_are_the_host_s_are_not_learnt_from(
    folder: Path, tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device waits for each call: nothing is known after all of them, and nothing else is run or written."""
    monkeypatch.setattr("threading.Thread.is_alive", lambda _self: False)
    monkeypatch.setattr(world.gpu, "has_reached", lambda _mark: True)
    monkeypatch.setattr(world.gpu, "between_ms", lambda _b, _e: 1e-6)
    launched = []
    launch = world.gpu.launch
    monkeypatch.setattr(world.gpu, "launch", lambda *a: (launched.append(a[0]), launch(*a))[1])
    with autotune.load(folder, device="cuda", policies=tmp_path / "policies", refine=True) as kernel:
        for start in range(CALLS + 3):
            x = np.arange(start, start + 200, dtype=np.float32)
            np.testing.assert_array_equal(kernel(Array(x)).memory, 2 * x)
    settle()
    assert len({id(module) for module in launched}) == 1
    assert not refined_path(tmp_path / "data" / "autotune" / "policies", "doubler", world.gpu.device).exists()


def test_nothing_is_tried_unless_asked(
    folder: Path, tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.gpu, "mark", lambda: pytest.fail("timed"))
    x = np.arange(200, dtype=np.float32)
    path = tmp_path / "policies" / file_name("doubler", world.gpu.device.slug)
    with autotune.load(folder, device="cuda", policies=tmp_path / "policies") as kernel:
        np.testing.assert_array_equal(kernel(Array(x)).memory, 2 * x)
    path.write_text(path.read_text().replace("entries:", "refine: 4\nentries:"))
    with autotune.load(folder, device="cuda", policies=tmp_path / "policies", refine=False) as kernel:
        np.testing.assert_array_equal(kernel(Array(x)).memory, 2 * x)
        np.testing.assert_array_equal(kernel(Array(x[:100])).memory, 2 * x[:100])  # measured
    with pytest.raises(UsageError, match="at least 2 calls"):
        autotune.load(folder, device="cuda", policies=tmp_path / "policies", refine=1)


def test_the_policy_file_may_ask_and_what_fails_is_left_out(
    folder: Path, tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "policies" / file_name("doubler", world.gpu.device.slug)
    path.write_text(path.read_text().replace("entries:", "refine: 4\nentries:"))
    monkeypatch.setattr("threading.Thread.is_alive", lambda _self: False)
    made = resident.compile_module
    tried: list[str] = []

    def compiled(backend: object, cache: object, variant: object) -> object:
        memory = variant.configuration["memory"]  # type: ignore[attr-defined]
        tried.append(memory)
        if memory == "readonly":
            raise LaunchError("no room for it")
        return made(backend, cache, variant)  # type: ignore[arg-type]

    monkeypatch.setattr("autotune.dispatch.target.compile_module", compiled)
    x = np.arange(200, dtype=np.float32)
    with autotune.load(folder, device="cuda", policies=tmp_path / "policies") as kernel:
        for _ in range(6):
            np.testing.assert_array_equal(kernel(Array(x)).memory, 2 * x)
    assert tried == ["global", "readonly"]

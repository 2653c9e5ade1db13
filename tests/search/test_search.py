"""Searches: every configuration at most once and only members, by seed, within limits; and that they find things."""

import itertools
import math
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from autotune.declaration.expression import Expression
from autotune.declaration.space import Configuration, Constraint, Policy, Preset, Space
from autotune.errors import UnknownName, UsageError
from autotune.search import search as module
from autotune.search import strategy
from autotune.search.members import Listed, Unlisted, encode, list_configurations, narrow
from autotune.search.optuna import OptunaSampler
from autotune.search.search import Search
from autotune.search.strategy import Strategy

HERE = [m for m in strategy.SAMPLERS if all(map(find_spec, strategy._PACKAGES.get(m, ())))]


def search(
    space: Space,
    configurations: Sequence[Configuration] | None,
    sampler: str,
    *,
    seeds: Sequence[Configuration] = (),
    exclusion: Callable[[Configuration], str] = lambda configuration: "",
    **limits: Any,
) -> Search:
    chosen = Strategy(sampler=sampler, **limits)
    return Search(space, configurations, chosen, seeds=seeds, exclusion=exclusion)


def constraint(text: str, reason: str = "because") -> Constraint:
    return Constraint(Expression(text), reason)


def space_of(*sizes: int, constraints: Sequence[Constraint] = ()) -> Space:
    """Policies p0, p1, …: the even ones whole numbers, the odd ones words."""
    policies = []
    for i, size in enumerate(sizes):
        values: tuple[Any, ...] = tuple(2**v for v in range(size)) if i % 2 == 0 else tuple("abcdefgh"[:size])
        policies.append(Policy(f"p{i}", values, values[0]))
    return Space(tuple(policies), tuple(constraints))


SPACE = Space(
    (
        Policy("memory", ("global", "readonly", "texture"), "global"),
        Policy("block", (32, 64, 128, 256), 128),
        Policy("tile", (1, 2, 4), 1),
        Policy("axes", ("rows",), "rows"),
    ),
    (constraint("tile == 1 or memory != 'texture'"),),
    {"fast": Preset("fast", {"block": (256,)}), "blocks": Preset("blocks", {"block": (32, 64)})},
)
MEMBERS = SPACE.configurations()


def cost(configuration: Configuration) -> float:
    """Milliseconds that have an optimum inside: additive but for one interaction."""
    total = 1.0
    for name, value in configuration.items():
        total += ((len(name) + ord(str(value)[0])) % 7) / 3 + (
            abs(math.log2(value) - 5) if isinstance(value, int) else 0
        )
    return total * (0.5 if configuration[next(iter(configuration))] == 64 else 1.0)


def run(
    searched: Search, ahead: int = 1, value: Callable[[Configuration], Any] = cost
) -> list[Configuration]:
    """Ask and tell, always ``ahead`` open, in the order in which they were asked for."""
    asked: list[Configuration] = []
    told = 0
    while True:
        while len(asked) - told < ahead and (configuration := searched.ask()) is not None:
            asked.append(configuration)
        if told == len(asked):
            return asked
        searched.tell(asked[told], value(asked[told]))
        told += 1


# -- no configuration twice, none outside, by seed ---------------------------------------------------------


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    limit = draw(st.integers(1, 8))
    rules = [constraint(f"p0 <= {limit}")]
    if len(sizes) > 1:
        rules.append(constraint(f"p0 == 1 or p1 != '{draw(st.sampled_from('abcd'))}'"))
    if len(sizes) > 2:
        rules.append(constraint("p1 == 'a' or p2 != p0"))
    return space_of(*sizes, constraints=rules)


@settings(max_examples=60, deadline=None)
@example(space_of(1), "tpe", False, 1, 0, 1)
@given(
    space=spaces(),
    method=st.sampled_from([m for m in HERE if m != "gp"]),
    is_listed=st.booleans(),
    ahead=st.integers(1, 5),
    seed=st.integers(0, 2**31),
    succeed=st.integers(1, 4),
)
def test_every_member_is_visited_once_and_nothing_else(
    space: Space, method: str, is_listed: bool, ahead: int, seed: int, succeed: int
) -> None:
    members = space.configurations()

    def value(configuration: Configuration) -> float | None:
        return None if hash_of(configuration) % 4 >= succeed else cost(configuration)

    def visits() -> list[Configuration]:
        given = members if is_listed or method == "exhaustive" else None
        return run(search(space, given, method, seed=seed, trials=10_000), ahead, value)

    visited = visits()
    assert len(visited) == len(set(visited))
    assert set(visited) == set(members)
    assert visits() == visited


def hash_of(configuration: Configuration) -> int:
    return sum(map(ord, configuration.id))


@pytest.mark.parametrize("method", [m for m in HERE if m != "exhaustive"])
def test_seeds_differ(method: str) -> None:
    space = space_of(4, 4, 4, 4)
    first = [tuple(run(search(space, space.configurations(), method, seed=s, trials=12))) for s in range(3)]
    assert len(set(first)) == 3


@pytest.mark.parametrize("method", HERE)
def test_everything_may_fail(method: str) -> None:
    visited = run(search(SPACE, MEMBERS, method, trials=1000), value=lambda c: None)
    assert sorted(c.id for c in visited) == sorted(c.id for c in MEMBERS)


@pytest.mark.parametrize("method", HERE)
def test_equal_and_absurd_times_are_survived(method: str) -> None:
    times = itertools.cycle([1.0, 1.0, math.nan, 0.0, 1e300, math.inf])
    visited = run(search(SPACE, MEMBERS, method, trials=1000), value=lambda c: next(times))
    assert len(visited) == len(MEMBERS)
    visited = run(search(SPACE, MEMBERS, method, trials=1000), value=lambda c: np.float32(1))
    assert len(visited) == len(MEMBERS)


# -- what comes first, and what is left out ----------------------------------------------------------------


def test_exhaustive_is_presets_then_a_thin_spread_then_the_rest() -> None:
    space = space_of(4, 4, 4, 3)
    members = space.configurations()
    expected = dict.fromkeys([space.control, *members[:: len(members) // 24], *members])
    assert run(search(space, members, "exhaustive")) == list(expected)


@pytest.mark.parametrize("method", HERE)
def test_presets_and_seeds_come_first(method: str) -> None:
    winner = MEMBERS[-1]
    outside = Configuration({**SPACE.control, "memory": "texture", "tile": 4})
    unknown = Configuration({**SPACE.control, "block": 512})
    visited = run(search(SPACE, MEMBERS, method, seeds=[outside, unknown, winner], trials=6))
    assert visited[:3] == [SPACE.control, SPACE.configurations("fast")[0], winner]
    assert not {outside, unknown} & set(visited)


@pytest.mark.parametrize("method", HERE)
def test_what_was_told_before_is_learnt_and_not_asked_for(method: str) -> None:
    searched = search(SPACE, MEMBERS, method, trials=1000)
    known = [SPACE.control, *MEMBERS[5:15]]
    for configuration in known:
        searched.tell(configuration, cost(configuration))
    searched.tell(Configuration({**SPACE.control, "block": 512}), 1.0)  # a record of another space
    visited = run(searched)
    assert sorted(c.id for c in visited) == sorted(c.id for c in set(MEMBERS) - set(known))
    searched.tell(visited[0], 1e9)
    assert searched.ask() is None


@pytest.mark.parametrize("method", HERE)
@pytest.mark.parametrize("is_listed", [True, False])
def test_the_excluded_are_never_handed_out_and_cost_no_trial(method: str, is_listed: bool) -> None:
    given = MEMBERS if is_listed or method == "exhaustive" else None
    searched = search(
        SPACE, given, method, trials=15, exclusion=lambda c: "too large" if c["block"] == 128 else ""
    )
    visited = run(searched)
    assert len(visited) == 15
    assert all(c["block"] != 128 for c in visited)
    assert searched.excluded[SPACE.control] == "too large"
    assert not set(searched.excluded) & set(visited)


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(run(search(SPACE, MEMBERS, "auto", trials=7), ahead=3)) == 7
    assert len(run(search(SPACE, MEMBERS, "exhaustive"))) == len(MEMBERS)
    auto = Strategy(sampler="auto")
    assert len(run(search(SPACE, MEMBERS, "auto"))) == auto.most_trials(len(MEMBERS)) == 24
    assert [auto.most_trials(members) for members in (10, 1000, None)] == [10, 150, 500]
    assert Strategy(sampler="auto", seconds=5.0).most_trials(10) is None
    now = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    timed = search(SPACE, MEMBERS, "random", seconds=5.0)
    assert timed.ask() is not None
    now[0] = 104.9
    assert timed.ask() is not None
    now[0] = 105.0
    assert timed.ask() is None
    assert timed.is_late


def test_a_budget_counts_from_when_it_is_said_to_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "monotonic", lambda: 100.0)
    chosen = Strategy(sampler="random", seconds=5.0)
    assert Search(SPACE, MEMBERS, chosen, began=95.5).ask() is not None
    assert Search(SPACE, MEMBERS, chosen, began=95.0).ask() is None  # all of it went before the first


def test_only_the_whole_space_in_order_needs_no_telling() -> None:
    assert Strategy().tries_all
    assert not any(
        Strategy(**given).tries_all for given in ({"trials": 9}, {"seconds": 1.0}, {"sampler": "random"})
    )


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownName, match=r"unknown search 'annealing'.*allowed: exhaustive, random"):
        search(SPACE, MEMBERS, "annealing")
    with pytest.raises(UsageError, match="--trials 0"):
        search(SPACE, MEMBERS, "auto", trials=0)
    with pytest.raises(UsageError, match="--seed -1"):
        search(SPACE, MEMBERS, "auto", seed=-1)
    with pytest.raises(UsageError, match="too large to list"):
        search(SPACE, None, "exhaustive")
    monkeypatch.setattr(strategy, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"--search gp needs torch and scipy: pip install .*\[search\]"):
        search(SPACE, MEMBERS, "gp")
    with pytest.raises(UsageError, match="--search cmaes needs cmaes: "):
        search(SPACE, MEMBERS, "cmaes")


# -- spaces too large to list ------------------------------------------------------------------------------

LARGE = space_of(*[6] * 12, constraints=[constraint("p0 <= p2"), constraint("p1 != p3 or p4 == 1")])


def hidden(configuration: Configuration) -> float:
    """1 ms at one of 2 billion configurations, and a tenth more for each policy that differs from it."""
    wanted = [8, "c", 16, "d", 2, "a", 4, "f", 1, "b", 32, "c"]
    return 1.1 ** sum(configuration[f"p{i}"] != value for i, value in enumerate(wanted))


@pytest.mark.parametrize("method", [m for m in HERE if m not in ("exhaustive", "gp")])
def test_a_space_of_two_billion(method: str) -> None:
    visited = run(search(LARGE, None, method, trials=60), ahead=4, value=hidden)
    assert len(set(visited)) == 60
    assert not any(LARGE.explain_exclusion(c) for c in visited)
    assert all(c[p.name] in p.values for c in visited for p in LARGE.policies)


def test_auto_finds_one_in_two_billion() -> None:
    def best(method: str) -> float:
        return min(map(hidden, run(search(LARGE, None, method, trials=100), value=hidden)))

    assert best("auto") <= 1.1
    assert best("random") > 1.3


def test_rare_members_are_found_and_all_of_them() -> None:
    pairs = [constraint(f"p{i} == p{i + 2}") for i in range(0, 10, 2)]
    words = [constraint(f"p{i} == 'c'") for i in range(1, 12, 2)]
    space = space_of(*[6] * 12, constraints=[*pairs, *words])
    visited = run(search(space, None, "auto", trials=1000))
    assert sorted(c["p0"] for c in visited) == [1, 2, 4, 8, 16, 32]


def test_a_list_longer_than_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.search.members.POOL", 1000)
    space = space_of(8, 8, 8, 8, 2)
    members = space.configurations()
    assert len(members) == 8192
    visited = run(search(space, members, "auto", trials=40))
    assert len(set(visited)) == 40
    few = Listed(space.policies, members)
    for configuration in visited:
        few.take(configuration)
    pool = few.pool(visited[:5], np.random.default_rng(0))
    assert 500 <= len(pool.configurations) <= 1000
    assert not pool.are_all
    assert not set(pool.configurations) & set(visited)
    assert np.array_equal(pool.rows, encode(space.policies, pool.configurations))


def test_more_is_told_than_the_model_learns_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.search.surrogate._LEARNT", 20)
    assert len(set(run(search(SPACE, MEMBERS, "auto", trials=1000)))) == len(MEMBERS)


@settings(max_examples=40, deadline=None)
@given(space=spaces())
def test_listed_is_what_the_space_lists(space: Space) -> None:
    members = space.configurations()
    assert list_configurations(space) == members
    assert list_configurations(space, len(members)) == members
    assert list_configurations(space, len(members) - 1) is None


def test_a_large_space_is_not_listed() -> None:
    assert list_configurations(LARGE, 1000) is None
    impossible = space_of(*[6] * 12, constraints=[constraint("p10 > 1000")])
    assert list_configurations(impossible, 100) is None  # nothing is found and the walk ends all the same


def test_narrowed_without_a_list() -> None:
    held: dict[str, Sequence[Any]] = {"block": ["64", "256"], "memory": ["readonly"]}
    space = narrow(SPACE, held)
    assert space.configurations() == SPACE.configurations(narrowed=held)
    assert set(run(search(space, None, "auto"))) == set(SPACE.configurations(narrowed=held))
    with pytest.raises(UnknownName):
        narrow(SPACE, {"block": ["63"]})


def test_distance_is_the_sum_over_policies() -> None:
    a = Configuration({"memory": "global", "block": 32, "tile": 1, "axes": "rows"})
    b = Configuration({"memory": "texture", "block": 128, "tile": 1, "axes": "rows"})
    one, two = encode(SPACE.policies, [a, b])
    assert ((one - two) ** 2).sum() == pytest.approx(1 + 2 / 3)


# -- they find what they look for --------------------------------------------------------------------------


def test_auto_needs_fewer_visits_than_chance() -> None:
    space = space_of(4, 3, 4, 3, 4, constraints=[constraint("p0 * p2 <= 16")])
    members = space.configurations()
    optimum = min(map(cost, members))

    def until_found(method: str, seed: int) -> int:
        searched = search(space, members, method, seed=seed, trials=500)
        for visit in itertools.count(1):
            configuration = searched.ask()
            assert configuration is not None
            if cost(configuration) <= 1.02 * optimum:
                return visit
            searched.tell(configuration, cost(configuration))
        raise AssertionError

    def visits(method: str) -> float:
        return median(until_found(method, seed) for seed in range(9))

    assert visits("auto") <= 0.15 * len(members)
    assert visits("auto") < visits("random")


# -- Optuna's samplers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("members", [Listed(SPACE.policies, MEMBERS), Unlisted(SPACE)])
def test_a_proposal_is_moved_to_a_member_nearby(members: Listed | Unlisted) -> None:
    sampled = OptunaSampler("tpe", members, 0, None)
    places = sampled._places(SPACE.control)
    assert sampled._find_nearest(places) == SPACE.control
    assert sampled.propose(SPACE.control) == SPACE.control
    members.take(SPACE.control)
    near = sampled._find_nearest(places)
    assert near is not None
    assert sum(near[name] != SPACE.control[name] for name in near) == 1


def test_samplers_learn_from_where_they_were_moved_to() -> None:
    members = Listed(SPACE.policies, MEMBERS[:5])
    sampled = OptunaSampler("tpe", members, 0, 10)
    for _ in range(5):
        chosen = sampled.propose(None)
        assert chosen in members.all
        members.take(chosen)
        sampled.learn(chosen, 1.0)
    assert sampled.propose(None) is None
    learnt = [trial.params for trial in sampled._study.trials if trial.value is not None]
    assert learnt == [sampled._places(chosen) for chosen in sampled._visited]
    assert set(sampled._visited) == set(members.all)

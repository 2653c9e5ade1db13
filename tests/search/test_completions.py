"""Members drawn without a list: inside the space, every one within reach, no value without a completion."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.declaration.expression import Expression
from autotune.declaration.space import Constraint, Policy, Space
from autotune.search import completions as module
from autotune.search.completions import Completions

NUMBERS = (1, 2, 3, 4, 6, 8)


def space_of(*texts: str) -> Space:
    policies = tuple(Policy(name, NUMBERS, 1) for name in "abcd")
    return Space(policies, tuple(Constraint(Expression(text), "because") for text in texts))


RULES = ("a * b <= 12", "c % a == 0", "b == d or c > 2", "a + b + c + d > 9", "d != 3")


@settings(max_examples=30, deadline=None)
@given(texts=st.sets(st.sampled_from(RULES), min_size=1), seed=st.integers(0, 2**31))
def test_all_that_is_drawn_or_walked_through_are_members(texts: set[str], seed: int) -> None:
    space = space_of(*sorted(texts))
    members, rng = set(space.configurations()), np.random.default_rng(seed)
    assert set(Completions(space).draw(50, rng)) <= members
    walked = list(Completions(space).walk(rng))
    assert len(walked) == len(members)
    assert set(walked) == members


def test_draws_are_uniform_and_none_is_lost_where_constraints_share_no_policy() -> None:
    space = space_of("c % a == 0", "b == d")
    drawn = list(Completions(space).draw(12_000, np.random.default_rng(0)))
    assert len(drawn) == 12_000
    counts = Counter(drawn)
    members = space.configurations()
    assert set(counts) == set(members)
    expected = 12_000 / len(members)
    assert max(counts.values()) < 1.5 * expected
    assert min(counts.values()) > 0.5 * expected


def test_draws_near_one_differ_less() -> None:
    space = space_of("a * b <= 12", "c % a == 0")
    wanted = space.configuration("a=2,b=6,c=4,d=3")

    def differences(near: bool) -> float:
        drawn = list(Completions(space).draw(300, np.random.default_rng(0), wanted if near else None))
        return float(np.mean([sum(one[name] != wanted[name] for name in one) for one in drawn]))

    assert differences(near=True) < 0.6 * differences(near=False)


def test_a_constraint_too_large_for_a_table_is_kept_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_CELLS", 40)
    space = space_of("c % a == 0", "a * b + d > 20")
    drawn = list(Completions(space).draw(200, np.random.default_rng(0)))
    assert 0 < len(drawn) < 200
    assert not any(space.explain_exclusion(one) for one in drawn)


def test_where_a_constraint_has_no_value_another_excludes_it() -> None:
    zero = Policy("z", (0, 1, 2), 1)
    space = Space(
        (zero, Policy("a", NUMBERS, 1)),
        (Constraint(Expression("z > 0"), "first"), Constraint(Expression("a % z == 0"), "second")),
    )
    assert set(Completions(space).draw(200, np.random.default_rng(0))) == set(space.configurations())

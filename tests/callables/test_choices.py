"""Values of any kind as policies: each has a word of its own, and comes back as it was given."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.callables.choices import Alternatives
from autotune.errors import UsageError

NUMBERS = st.one_of(st.integers(-9, 9), st.floats(-2, 2), st.booleans())
VALUES = st.one_of(NUMBERS, st.none(), st.text(max_size=4), st.tuples(st.integers(0, 2)))


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_each_value_has_a_word_and_comes_back(values: list[Any]) -> None:
    choices = Alternatives.read({"tile": values, "other": [1]})
    words = choices.words["tile"]
    assert len({str(word) for word in words}) == len(words) == len(choices.values["tile"])
    for word, value in zip(words, choices.values["tile"], strict=True):
        back = choices.get_values({"tile": word, "other": 1})["tile"]
        assert back is value
        assert choices.configuration({"tile": value, "other": 1})["tile"] == word
    assert choices.default["tile"] is choices.values["tile"][0]


def test_a_condition_leaves_what_it_admits_and_the_first_of_it_is_the_default() -> None:
    choices = Alternatives.read({"a": [1, 2, 3], "b": [1, 2]}, lambda one: one["a"] > one["b"])
    assert [dict(one) for one in choices.listed] == [{"a": 2, "b": 1}, {"a": 3, "b": 1}, {"a": 3, "b": 2}]
    assert choices.default == {"a": 2, "b": 1}
    assert [one.id for one in choices.configurations()] == ["a=2,b=1", "a=3,b=1", "a=3,b=2"]


@pytest.mark.parametrize(
    ("space", "where", "said"),
    [
        ({"a": "12"}, None, "a='12' in space= is not a list of values"),
        ({"a": []}, None, "a in space= has no values"),
        ({}, None, "there is nothing to choose"),
        ([], None, "there is nothing to choose"),
        ([{"a": 1}, {"b": 1}], None, "the listed configurations name different arguments"),
        ({"a": [1]}, lambda one: False, "space= has no configuration, or where= admits none"),
        ({"a b": [1]}, None, "'a b' in space= is not an argument's name"),
        ({"a": range(1000), "b": range(1000)}, lambda one: True, "there are more than 200,000"),
    ],
)  # fmt: skip
def test_a_space_that_is_none_is_refused(space: Any, where: Any, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        Alternatives.read(space, where)
    assert said in str(refused.value)

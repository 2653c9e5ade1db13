"""Another tuner's parameters as policies: control, restrictions, grids, and functions that are looked at by calling."""

import inspect
from itertools import product
from typing import Any

import numpy as np
import pytest

from autotune.declaration.expression import Expression
from autotune.errors import FamilyError
from autotune.kernel_tuner.formula import word
from autotune.kernel_tuner.parameters import BLOCK_NAMES, Parameters

VALUES: dict[str, list[Any]] = {
    "block_size_x": [16, 32, 64], "tile": [1, 2, 4], "real": ["float", "double"], "ratio": [0.5, 2.0],
}  # fmt: skip


def combinations() -> list[dict[str, Any]]:
    return [dict(zip(VALUES, chosen, strict=True)) for chosen in product(*VALUES.values())]


def words(chosen: dict[str, Any]) -> dict[str, Any]:
    return {name: word(value, name) for name, value in chosen.items()}


def at(text: str, chosen: dict[str, Any]) -> Any:
    return Expression(text).evaluate(words(chosen))


def test_values_of_any_kind_become_words_and_come_back_as_they_were() -> None:
    parameters = Parameters(VALUES)
    assert parameters.declared["policies"]["ratio"] == {"values": ["0.5", "2.0"], "default": "0.5"}
    assert list(parameters.get_given(parameters.control).items()) == [
        ("block_size_x", 16), ("tile", 1), ("real", "float"), ("ratio", 0.5),
    ]  # fmt: skip
    for chosen in combinations():
        assert parameters.get_given(words(chosen)) == chosen


def test_control_is_the_first_that_no_restriction_excludes_defaults_first() -> None:
    defaults = {"block_size_x": 64, "tile": 4, "real": "double"}
    parameters = Parameters(VALUES, defaults, ["block_size_x * tile <= 128"])
    assert parameters.get_given(parameters.control) == {
        "block_size_x": 64, "tile": 1, "real": "double", "ratio": 0.5,
    }  # fmt: skip
    with pytest.raises(
        FamilyError, match="no combination of the parameters is left by the restrictions: the rest"
    ):
        assert Parameters(VALUES, {}, ["tile > 4"]).control


def called(restriction: Any, chosen: dict[str, Any]) -> Any:
    """As Kernel Tuner calls it: with the parameters that it names, else with a mapping of them."""
    if isinstance(restriction, tuple):
        function, taken = restriction
        return function(*(chosen[name] for name in taken))
    told = restriction.__code__.co_varnames[: restriction.__code__.co_argcount]
    if restriction.__code__.co_flags & inspect.CO_VARKEYWORDS:
        return restriction(**chosen)
    return restriction(**{n: chosen[n] for n in told}) if set(told) <= chosen.keys() else restriction(chosen)


@pytest.mark.parametrize(
    "restriction",
    [
        "block_size_x * tile <= 64",
        "ratio > 1 or real == 'float'",
        lambda p: p["block_size_x"] * p["tile"] <= 64,
        lambda p: p["ratio"] * p["tile"] >= 1 and p.get("real") == "float",
        lambda p: sum(isinstance(value, str) for value in p.values()) == 1,
        lambda tile, block_size_x, **rest: tile * block_size_x != 64,
        lambda tile, block_size_x: tile * block_size_x != 64,
        lambda **given: given["tile"] != 2,
        lambda tile: tile > 1,
        (lambda x, y: x * y <= 64, ["block_size_x", "tile"]),
        lambda p: p["tile"] == 2 if p["real"] == "double" else p["block_size_x"] > 16,
    ],
)
def test_a_restriction_keeps_what_it_keeps(restriction: Any) -> None:
    parameters = Parameters(VALUES, {}, [restriction])
    for chosen in combinations():
        is_text = isinstance(restriction, str)
        right = eval(restriction, {}, dict(chosen)) if is_text else called(restriction, chosen)
        assert all(c.require.evaluate(words(chosen)) for c in parameters.constraints) == bool(right)


def test_only_what_a_function_reads_is_written_down() -> None:
    parameters = Parameters(VALUES, {}, [lambda p: p["tile"] != 2])
    assert [c.require.text for c in parameters.constraints] == ["{1: True, 2: False, 4: True}[tile]"]
    assert "the function <lambda>" in parameters.constraints[0].reason


def test_a_function_that_fails_says_for_which_parameters() -> None:
    with pytest.raises(FamilyError, match=r"has no value for block_size_x=16, tile=1, .*: KeyError: 'tiles'"):
        assert Parameters(VALUES, {}, [lambda p: p["tiles"] > 1]).constraints


@pytest.mark.parametrize(
    ("size", "divisors", "grid"),
    [
        (1000, (None, None, None), lambda p: (-(-1000 // p["block_size_x"]), 1, 1)),
        (
            (1000, np.int32(7)),
            (["block_size_x", "tile"], [], None),
            lambda p: (-(-1000 // (p["block_size_x"] * p["tile"])), 7, 1),
        ),
        ("tile * 3", ([], None, None), lambda p: (p["tile"] * 3, 1, 1)),
        (
            999,
            (["block_size_x/tile"], None, None),
            lambda p: (-(-999 // int(p["block_size_x"] / p["tile"])), 1, 1),
        ),
        (
            999,
            (lambda p: p["block_size_x"] / 2, None, None),
            lambda p: (-(-999 // (p["block_size_x"] // 2)), 1, 1),
        ),
        (
            lambda p: (p["tile"] * 10, 3),
            (2, [3, "tile"], None),
            lambda p: (p["tile"] * 5, -(-3 // (3 * p["tile"])), 1),
        ),
        (
            100,
            ("block_size_x * ratio", None, None),
            lambda p: (-(-100 // int(p["block_size_x"] * p["ratio"])), 1, 1),
        ),
    ],
)
def test_blocks_are_the_problem_over_its_divisors_rounded_up(size: Any, divisors: Any, grid: Any) -> None:
    parameters = Parameters(VALUES)
    found = parameters.grid(size, divisors)
    for chosen in combinations():
        assert [at(text, chosen) for text in found] == list(grid(chosen))


def test_threads_are_the_parameters_of_those_names() -> None:
    assert Parameters(VALUES).block(BLOCK_NAMES) == ["block_size_x", "1", "1"]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"a b": [1]}, "'a b' is not a macro name"),
        ({"a": []}, "parameter a has no values"),
        ({"a": ["float *"]}, "is no value of a policy"),
        ({"a": [1, "1.0", 1.0]}, "two of its values are the same word"),
    ],
)
def test_what_cannot_be_a_policy_is_refused(values: Any, reason: str) -> None:
    with pytest.raises(FamilyError, match=reason):
        Parameters(values)


def test_a_function_of_many_values_is_a_table() -> None:
    values = {"block": [32 * n for n in range(1, 33)], "tile": list(range(1, 20)), "kind": ["a", "b"]}
    parameters = Parameters(values)
    found = parameters.text(
        lambda p: p["block"] * p["tile"] * (4 if p["kind"] == "a" else 8), "shared memory"
    )
    table = Expression(found)
    for chosen in (dict(zip(values, each, strict=True)) for each in product(*values.values())):
        assert table.evaluate(chosen) == chosen["block"] * chosen["tile"] * (
            4 if chosen["kind"] == "a" else 8
        )


@pytest.mark.parametrize("size", [float("nan"), float("inf"), 0, -5, 2.5, None, 1j, "x y"])
def test_a_size_that_is_none_is_refused(size: Any) -> None:
    with pytest.raises(FamilyError, match="problem size"):
        Parameters(VALUES).grid(size, (None, None, None))


@pytest.mark.parametrize("restriction", ["9**9**9 > tile", (len, ["gone"])])
def test_a_restriction_without_a_value_is_refused(restriction: Any) -> None:
    with pytest.raises(FamilyError, match=r"restriction 1: .* has no value here|'gone' is no parameter"):
        assert Parameters(VALUES, {}, [restriction]).control

"""Formulas of other tuners: their values are Python's, and what they are written as holds for the same combinations."""

import math
import re
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from autotune.declaration import Expression
from autotune.errors import FamilyError
from autotune.kernel_tuner import formula
from autotune.kernel_tuner.formula import conditions, expression, tabulate, word

VALUES: dict[str, list[Any]] = {"a": [1, 2, 4], "b": [8, 16], "r": [0.5, 1.5], "t": ["float", "double"],
                                "flag": [True, np.False_]}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("__import__('os').system('true')", "is not allowed in"),
        ("(1).__class__", "is not allowed in"),
        ("open('x')", "is not allowed in"),
        ("lambda: 1", "is not allowed in"),
        ("[i for i in range(3)]", "is not allowed in"),
        ("a & 1", "is not allowed in"),
        ("missing + 1", "unknown name 'missing'"),
        ("1 +", "cannot read '1 \\+' as a formula"),
        ("1" * 6000, "may have 5000 characters, this has 6000"),
        ("-" * 100 + "1", "nested more than"),
        ("-" * 4900 + "1", "cannot read|nested more than"),
    ],
)
def test_what_is_no_formula_is_refused(text: str, reason: str) -> None:
    with pytest.raises(FamilyError, match=reason):
        expression(text, VALUES, "here")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2 ** 2 ** 20", "a whole number beyond"),
        ("1 << 10000", "a whole number beyond"),
        ("(0 - 8) ** 0.5", "a root of a negative number"),
        ("'a' * 1000000", "arithmetic needs numbers"),
        ("1 / 0", "division by zero"),
    ],
)
def test_what_has_no_value_says_why(text: str, reason: str) -> None:
    with pytest.raises(FamilyError, match=f"has no value here: {reason}"):
        expression(text, VALUES, "here").evaluate({})


ATOMS = st.sampled_from(["a", "b", "r", "1", "2", "3", "0.5"])
NUMBERS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "/", "%", "**"]), inner).map(
            lambda part: f"({part[0]} {part[1]} {part[2]})"
        ),
        st.tuples(st.sampled_from(["int", "math.ceil", "math.floor", "abs", "float"]), inner).map(
            lambda part: f"{part[0]}({part[1]})"
        ),
    ),
    max_leaves=4,
)
TESTS = st.recursive(
    st.one_of(
        st.tuples(NUMBERS, st.sampled_from(["<", "<=", "==", "!=", ">"]), NUMBERS).map(" ".join),
        st.sampled_from(
            ["t == 'float'", "a in [1, 4]", "b not in (8, 9)", "1 < a <= 4", "a << 1 > b >> 2", "flag"]
        ),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or", "&", "|"]), inner).map(
            lambda part: f"(({part[0]}) {part[1]} ({part[2]}))"
        ),
        inner.map(lambda part: f"(not ({part}))"),
    ),
    max_leaves=3,
)
COMBINATIONS = [dict(zip(VALUES, chosen, strict=True)) for chosen in product(*VALUES.values())]


def words(chosen: dict[str, Any]) -> dict[str, Any]:
    return {name: word(value, name) for name, value in chosen.items()}


def value(found: Expression, chosen: dict[str, Any]) -> Any:
    """Examples with complex and with enormous numbers, which Python has and an expression refuses, are left out."""
    try:
        return found.evaluate(words(chosen))
    except FamilyError as problem:
        assume(not re.search("a root of a negative number|a whole number beyond", str(problem)))
        raise


@settings(max_examples=150, deadline=None)
@given(TESTS)
def test_what_a_restriction_is_written_as_holds_where_it_does(text: str) -> None:
    ours: list[bool] = []  # of no combination where one has no value
    with suppress(FamilyError):
        found = conditions(text, VALUES, "here")
        ours = [all(value(one, chosen) for one in found) for chosen in COMBINATIONS]
    try:
        right = [bool(eval(text, {"math": math}, dict(chosen))) for chosen in COMBINATIONS]
    except (ArithmeticError, TypeError):  # no value for some combination
        return
    assert ours == right


@settings(max_examples=100, deadline=None)
@given(NUMBERS)
def test_an_expression_has_the_formulas_value(text: str) -> None:
    ours: list[Any] = []
    with suppress(FamilyError):
        found = expression(text, VALUES, "here")
        ours = [value(found, chosen) for chosen in COMBINATIONS]
    try:
        right = [eval(text, {"math": math}, dict(chosen)) for chosen in COMBINATIONS]
    except (ArithmeticError, TypeError):
        return
    assert ours == pytest.approx(right)


def test_a_function_that_reads_too_much_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    many = {name: list(range(1, 200)) for name in ("a", "b", "c")}
    reason = "it reads a, b, c, which have 7,880,599 combinations, and at most 2,000,000 are tried"
    with pytest.raises(FamilyError, match=reason):
        tabulate(lambda p: 2 ** p["a"] + 2 ** p["b"] < 2 ** p["c"], many, "here")
    monkeypatch.setattr(formula, "_MOST_ROWS", 10)
    few = {name: list(range(1, 9)) for name in ("a", "b")}
    with pytest.raises(FamilyError, match="of a, b apart that its tables have 72 rows, and 10 are the most"):
        tabulate(lambda p: p["a"] ** p["b"], few, "here")


def test_a_function_of_many_parameters_is_a_short_table_for_each() -> None:
    sizes = {name: [2**power for power in range(8)] for name in "abcdef"} | {"g": [1], "h": [3, 4]}
    found = tabulate(lambda p: math.prod(p.values()) // p["h"] <= 4096, sizes, "here")
    assert len(found.text) < 8000
    assert found.names == set("abcdef")
    for powers in product(range(0, 8, 3), repeat=6):
        chosen = {name: 2**power for name, power in zip(sizes, powers, strict=False)}
        assert found.evaluate(chosen) == (sum(powers) <= 12)


@pytest.mark.parametrize(
    ("value", "as_word"), [(3, 3), (0.5, "0.5"), ("float", "float"), (True, "True"), (1e-5, "1e-05")]
)
def test_a_value_is_a_number_or_a_word(value: Any, as_word: Any) -> None:
    assert word(value, "here") == as_word


@pytest.mark.parametrize("value", ["float *", "", (1, 2), [1]])
def test_any_other_value_is_refused(value: Any) -> None:
    with pytest.raises(FamilyError, match="is no value of a policy"):
        word(value, "here")

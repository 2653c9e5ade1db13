"""Formulas of other tuners: their values are Python's, and what they are written as holds for the same combinations."""

import math
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.declaration.expression import Expression
from autotune.errors import FamilyError
from autotune.kernel_tuner import formula
from autotune.kernel_tuner.formula import conditions, evaluated, expression, word

VALUES: dict[str, list[Any]] = {"a": [1, 2, 4], "b": [8, 16], "r": [0.5, 1.5], "t": ["float", "double"]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2, 4] + list(range(8, 20, 4))", [1, 2, 4, 8, 12, 16]),
        ("[2**i for i in range(0, 4)]", [1, 2, 4, 8]),
        ("[i * 16 for i in range(1, 9) if i % 2 == 0]", [32, 64, 96, 128]),
        ("(n[0] + max(w) - 1) * n[1]", (4096 + 15 - 1) * 7),
        ("['float', 'double']", ["float", "double"]),
        ("math.ceil(7 / 2)", 4),
        ("32 <= n[1] * 8 <= 64 and not False", True),
        ("1 if n[1] > 8 else 2", 2),
        ("[0.5, 1.5]", [0.5, 1.5]),
    ],
)
def test_a_formula_has_pythons_value(text: str, value: Any) -> None:
    assert evaluated(text, {"n": [4096, 7], "w": [3, 15]}, where="here") == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("__import__('os').system('true')", "is no function of a formula"),
        ("(1).__class__", "is not allowed in a formula"),
        ("open('x')", "open is no function of a formula"),
        ("lambda: 1", "is not allowed in a formula"),
        ("[i for i in range(3) for j in range(3)]", "is not allowed in a formula"),
        ("2 ** 2 ** 20", "has no value here: a whole number beyond"),
        ("1 << 10000", "has no value here: a whole number beyond"),
        ("range(10 ** 9)", "a range of more than"),
        ("'a' * 1000000", "arithmetic needs numbers"),
        ("[0] * 1000000", "arithmetic needs numbers"),
        ("1 / 0", "division by zero"),
        ("missing + 1", "unknown name 'missing'"),
        ("1 +", "cannot read '1 \\+' as a formula"),
        ("1" * 6000, "may have 5000 characters, this has 6000"),
        ("-" * 100 + "1", "nested more than"),
    ],
)
def test_what_is_no_formula_is_refused(text: str, reason: str) -> None:
    with pytest.raises(FamilyError, match=reason):
        evaluated(text, {}, where="here")


ATOMS = st.sampled_from(["a", "b", "r", "1", "2", "3", "0.5"])
NUMBERS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "/", "%", "**"]), inner).map(
            lambda part: f"({part[0]} {part[1]} {part[2]})"
        ),
        st.tuples(st.sampled_from(["int", "math.ceil", "abs", "float"]), inner).map(
            lambda part: f"{part[0]}({part[1]})"
        ),
    ),
    max_leaves=4,
)
TESTS = st.recursive(
    st.one_of(
        st.tuples(NUMBERS, st.sampled_from(["<", "<=", "==", "!=", ">"]), NUMBERS).map(" ".join),
        st.sampled_from(["t == 'float'", "a in [1, 4]", "b not in (8, 9)", "1 < a <= 4"]),
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


@settings(max_examples=150, deadline=None)
@given(TESTS)
def test_what_a_restriction_is_written_as_holds_where_it_does(text: str) -> None:
    try:
        right = [bool(eval(text, {"math": math}, dict(chosen))) for chosen in COMBINATIONS]
        found = conditions(text, VALUES, "here")
    except (ArithmeticError, TypeError, FamilyError):  # no value for some combination
        return
    parsed = [Expression(one) for one in found]
    assert [all(one.evaluate(words(chosen)) for one in parsed) for chosen in COMBINATIONS] == right


@settings(max_examples=100, deadline=None)
@given(NUMBERS)
def test_an_expression_has_the_formulas_value(text: str) -> None:
    try:
        right = [eval(text, {"math": math}, dict(chosen)) for chosen in COMBINATIONS]
        found = Expression(expression(text, VALUES, "here"))
    except (ArithmeticError, TypeError, FamilyError):
        return
    for chosen, value in zip(COMBINATIONS, right, strict=True):
        assert found.evaluate(words(chosen)) == pytest.approx(value)


def test_what_cannot_be_written_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    many = {name: list(range(1, 200)) for name in ("a", "b", "c")}
    with pytest.raises(FamilyError, match="7,880,599 combinations, and at most 2,000,000 are"):
        conditions("2**a + 2**b < 2**c", many, "here")
    monkeypatch.setattr(formula, "_MOST_WRITTEN", 10)
    few = {name: list(range(1, 9)) for name in ("a", "b", "c")}
    with pytest.raises(
        FamilyError, match="it tells 64 combinations of a, b apart, and a table has at most 10"
    ):
        conditions("2**a + 2**b < 2**c", few, "here")


def test_a_power_of_powers_is_not_written_out() -> None:
    text = "a" + "**8" * 1 + ")**8" * 8 + " > b * 0"
    values = {"a": [0, 1], "b": [1, 2]}
    assert conditions("(" * 8 + text, values, "here") == ["b in {0: (), 1: (1, 2)}[a]"]


@pytest.mark.parametrize(
    ("value", "as_word"), [(3, 3), (0.5, "0.5"), ("float", "float"), (True, "True"), (1e-5, "1e-05")]
)
def test_a_value_is_a_number_or_a_word(value: Any, as_word: Any) -> None:
    assert word(value, "here") == as_word


@pytest.mark.parametrize("value", ["float *", "", (1, 2), [1]])
def test_any_other_value_is_refused(value: Any) -> None:
    with pytest.raises(FamilyError, match="is no value of a policy"):
        word(value, "here")


@pytest.mark.parametrize(
    "text",
    [
        "sum([sum([x for x in range(1000)]) for y in range(1000)])",
        "[[x for x in range(1000)] for y in range(1000)]",
        "len([x + [1] for x in [list(range(9000))]])",
        "[[z == [1] for z in range(3)] for y in range(10000)]",
        "sum([sorted(x) == 1 for x in [[list(range(3000)), list(range(3000))]]])",
    ],
)
def test_a_formula_takes_so_many_steps(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        formula._Run, "__init__", lambda self, where: self.__dict__.update(where=where, left=8000)
    )
    with pytest.raises(FamilyError, match=r"more than [0-9,]+ steps"):
        evaluated(text, {}, where="here")
    values = {"a": list(range(100)), "b": list(range(90))}
    with pytest.raises(FamilyError, match="steps"):  # over all combinations together
        conditions("int(a / 2) - b * 2**a % 3 > sum([b])", values, "here")


def test_powers_nested_deep_are_not_written_out() -> None:
    text = "a"
    for _ in range(20):
        text = f"({text})**8"
    with pytest.raises(FamilyError, match="no value here"):
        expression(text, {"a": [1, 2]}, "here")

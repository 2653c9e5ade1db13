"""Expressions: a subset of Python's arithmetic, and nothing of the rest of Python."""

import operator
import pickle
import re
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from autotune.declaration.expression import FUNCTIONS, Expression
from autotune.errors import FamilyError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("2 - 3 - 4", -5),
        ("-7 // 2", -4),
        ("-7 % 4", 1),
        ("7 / 2", 3.5),
        ("not 0 and 1 or 2", 1),
        ("0 or 3", 3),
        ("2 and 0 and 1 / 0", 0),  # the rest of a decided and, or, if is not evaluated
        ("1 if n else 1 / 0", 1),
        ("1 < 2 < 3", True),
        ("1 < 3 < 2", False),
        ("1 + 1 == 2 and 2 != 3", True),
        ("n * 2 if n > 4 else n", 10),
        ("name in ('a', 'b')", True),
        ("name not in ('b', 'c')", True),
        ("name == 'a'", True),
        ("  n\t", 5),
        ("0x10 + 1_000", 1016),
    ],
)
def test_value(text: str, value: Any) -> None:
    result = Expression(text).evaluate({"n": 5, "name": "a"})
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("abs(-3)", 3),
        ("bit_length(255)", 8),
        ("bit_length(256)", 9),
        ("ceil_div(7, 2)", 4),
        ("ceil_div(8, 2)", 4),
        ("ceil_div(-7, 2)", -3),
        ("int(-3.5)", -3),
        ("log2(8)", 3.0),
        ("max(1, n, 3)", 5),
        ("min(1, n, 3)", 1),
        ("round_up(5, 4)", 8),
        ("round_up(8, 4)", 8),
        ("sqrt(9)", 3.0),
    ],
)
def test_function(text: str, value: float) -> None:
    assert Expression(text).evaluate({"n": 5}) == value


def test_functions_are_all_tested() -> None:
    assert set(FUNCTIONS) == {
        "abs",
        "bit_length",
        "ceil_div",
        "int",
        "log2",
        "max",
        "min",
        "round_up",
        "sqrt",
    }


@pytest.mark.parametrize(
    "text",
    [
        "n.real",
        "''.__class__",
        "n.__class__.__bases__",
        "__import__('os')",
        "open('f')",
        "eval('1')",
        "n(1)",
        "max(1, 2)(3)",
        "max(*(1, 2))",
        "max(1, key=2)",
        "lambda: 1",
        "1 << 3",
        "1 | 2",
        "~1",
        "n is 1",
        "n[0]",
        "[1, 2]",
        "{1: 2}",
        "{1: 2, **n}[n]",
        "{1: [2]}[n]",
        "{1: n}[n]",
        "{1: 2}[n.real]",
        "(1, 2)[n]",
        "{1, 2}",
        "[x for x in n]",
        "(x := 1)",
        "f'{n}'",
        "b'x'",
        "1j",
        "None",
        "...",
    ],
)
def test_refused_construct(text: str) -> None:
    with pytest.raises(FamilyError, match=r"^grid: .* is not allowed in .*; allowed are numbers"):
        Expression(text, "grid")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "1 +",
        "1 if 2",
        "a b",
        "1; 2",
        "a = 1",
        "import os",
        "-" * 100_000 + "1",
        "(" * 500_000,
        "a\0b",
        "*n",
        "(1",
    ],
)
def test_refused_syntax(text: str) -> None:
    with pytest.raises(FamilyError, match=r"^grid: cannot read .* as an expression"):
        Expression(text, "grid")


@pytest.mark.parametrize(
    ("text", "said"),
    [("max()", "max takes 2 or more numbers, 0 given"), ("sqrt(1, 2)", "sqrt takes 1 number, 2 given"),
     ("ceil_div(n / 2)", "ceil_div takes 2 numbers, 1 given")],
)  # fmt: skip
def test_a_function_takes_so_many_numbers(text: str, said: str) -> None:
    with pytest.raises(FamilyError, match=said):
        Expression(text, "grid")


def test_string_is_only_text() -> None:
    assert Expression("name == '__class__'").evaluate({"name": "__class__"}) is True


@pytest.mark.parametrize("text", ["'a' * 1000", "1000 * (1,)", "'%1000d' % 5", "'a' + 'b'"])
def test_arithmetic_is_for_numbers(text: str) -> None:
    with pytest.raises(FamilyError, match="arithmetic needs numbers"):
        Expression(text).evaluate({})


def test_too_long() -> None:
    Expression("1 + " * 20 + " " * 1_000_000 + "1")
    with pytest.raises(FamilyError, match="an expression may have 1,048,576 characters, this has 1,048,577"):
        Expression(" " * (1 << 20) + "1")


def test_a_table_is_looked_up() -> None:
    table = Expression("{(64, 'a'): 3, (128, 'b'): 1.5}[block, kind] + 1")
    assert table.names == {"block", "kind"}
    assert table.evaluate({"block": 64, "kind": "a"}) == 4
    assert table.evaluate({"block": 128, "kind": "b"}) == 2.5
    assert pickle.loads(pickle.dumps(table)).evaluate({"block": 64, "kind": "a"}) == 4
    assert Expression("tile in {64: (1, 2), 128: ()}[block]").evaluate({"block": 64, "tile": 2})
    with pytest.raises(FamilyError, match="has no value here"):
        table.evaluate({"block": 64, "kind": "b"})


def test_a_long_text_is_shown_in_part() -> None:
    with pytest.raises(FamilyError) as told:
        Expression("{" + ", ".join(f"{n}: {n}" for n in range(5000)) + "}[n]").evaluate({"n": -1})
    assert len(str(told.value)) < 400


@pytest.mark.parametrize("text", ["-" * 41 + "1", "1" + "+1" * 41, "not " * 41 + "1", "-" * 499 + "1"])
def test_too_deep(text: str) -> None:
    with pytest.raises(FamilyError, match="is nested more than 40 deep"):
        Expression(text)


def test_deep_enough() -> None:
    assert Expression("-" * 40 + "1").evaluate({}) == 1


def test_names() -> None:
    assert Expression("max(a, b) + (c if a else max)").names == {"a", "b", "c", "max"}


def test_unknown_name() -> None:
    with pytest.raises(FamilyError) as caught:
        Expression("tlie + block_size", "constraint").require({"tile", "block_size"})
    assert str(caught.value) == (
        "constraint: unknown name 'tlie' in 'tlie + block_size'; did you mean 'tile'? "
        "(allowed: block_size, tile)"
    )


def test_require_returns_the_expression() -> None:
    expression = Expression("tile")
    assert expression.require({"tile"}) is expression


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1 / n", "division by zero"),
        ("1 // n", "integer division or modulo by zero"),
        ("1 % n", "integer modulo by zero"),
        ("n ** (0 - 1)", "negative power"),
        ("(n - 1) ** 0.5", "a root of a negative number"),
        ("2 ** 2 ** 9", "a whole number beyond 2^256"),
        ("ceil_div(1, n)", "integer division or modulo by zero"),
        ("sqrt(n - 1)", "math domain error"),
        ("n < 'a'", "not supported between instances"),
        ("n in 3", "not iterable"),
        ("bit_length(1e999)", "infinity"),
        ("missing + 1", "missing"),
    ],
)
def test_no_value(text: str, problem: str) -> None:
    with pytest.raises(FamilyError) as caught:
        Expression(text, "kernel k: grid").evaluate({"n": 0})
    assert str(caught.value).startswith(f"kernel k: grid: {text!r} has no value here: ")
    assert problem in str(caught.value)


@pytest.mark.parametrize(("text", "value"), [("7", 7), ("8 / 2", 4), ("-3", -3), ("1e3", 1000)])
def test_integer(text: str, value: int) -> None:
    result = Expression(text).integer({})
    assert (result, type(result)) == (value, int)


@pytest.mark.parametrize("text", ["7 / 2", "'7'", "1 < 2", "(1, 2)", "1e999", "1e999 - 1e999"])
def test_integer_refused(text: str) -> None:
    with pytest.raises(FamilyError, match="a whole number is needed"):
        Expression(text).integer({})


def test_equality_and_pickle_ignore_the_place() -> None:
    expression = Expression("a + 1", "here")
    assert expression == Expression("a + 1", "there")
    assert pickle.loads(pickle.dumps(expression)).evaluate({"a": 1}) == 2


_LEAF = st.sampled_from(["0", "1", "2", "7", "0.5", "2.0", "a", "b", "c"])
_BINARY = st.sampled_from(
    ["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=", "and", "or"]
)
_UNARY = st.sampled_from(["-", "+", "not"])
_FUNCTION = st.sampled_from(["min", "max", "ceil_div"])
_FREE = st.sampled_from("+-*/%")


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, _BINARY, inner),
        st.builds("({} {})".format, _UNARY, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("{}({}, {})".format, _FUNCTION, inner, inner),
        st.builds("({} {} {} {} {})".format, inner, _FREE, inner, _FREE, inner),  # precedence decides
    )


@settings(max_examples=300, deadline=None)
@given(st.recursive(_LEAF, _grown, max_leaves=10), st.tuples(*[st.integers(-9, 9)] * 3))
def test_agrees_with_python(text: str, values: tuple[int, ...]) -> None:
    assume(len(text) <= 500)
    names = dict(zip("abc", values, strict=True))
    built_in = {"__builtins__": {}, "min": min, "max": max, "ceil_div": lambda a, b: -(-a // b)}
    try:
        found = Expression(text).evaluate(names)
    except FamilyError as problem:
        # Which Python has, the second in hours.
        assume(not re.search("a root of a negative number|a whole number beyond", str(problem)))
        with pytest.raises(ArithmeticError):
            eval(text, built_in, names)
    else:
        assert repr(found) == repr(eval(text, built_in, names))  # repr tells 1, 1.0 and True apart


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**4))
def test_ceil_div_and_round_up(n: int, d: int) -> None:
    up = FUNCTIONS["round_up"](n, d)
    assert operator.mod(up, d) == 0
    assert 0 <= up - n < d
    assert FUNCTIONS["ceil_div"](n, d) * d == up

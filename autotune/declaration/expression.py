"""Safe expressions over named values: launch geometry, constraints, byte counts.

An expression is a small subset of Python, parsed once and turned into nested functions once; nothing is ever
handed to the interpreter's own evaluation. Names are checked when a family is read, so a misspelt policy is found
before any work starts.
"""

import ast
import math
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from autotune.errors import FamilyError, suggestion

Value = int | float | str | bool
Evaluate = Callable[[Mapping[str, Value]], Any]


_LONGEST = 1 << 20  # a table has a line for each combination that it tells apart
_SHOWN = 200  # characters of it in a message
_MOST_BITS = 256
_MOST = 1 << _MOST_BITS  # in size of a whole number
_DEEPEST = 40


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "bit_length": lambda n: int(n).bit_length(),
    "ceil_div": lambda a, b: -(-a // b),
    "int": int,
    "log2": math.log2,
    "max": max,
    "min": min,
    "round_up": lambda a, b: -(-a // b) * b,
    "sqrt": math.sqrt,
}

_TAKES = {"ceil_div": 2, "max": 2, "min": 2, "round_up": 2}  # numbers; each other function one


def _power(base: Any, exponent: Any) -> Any:
    is_whole = isinstance(base, int) and isinstance(exponent, int)
    if is_whole and exponent * (abs(base) - 1).bit_length() > _MOST_BITS:  # before it fills the memory
        raise OverflowError(f"a whole number beyond 2^{_MOST_BITS}")
    value = base**exponent
    if isinstance(value, complex):
        raise TypeError("a root of a negative number")
    return value


_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}

_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}

_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}


@dataclass(frozen=True)
class Expression:
    """One parsed expression.

    ``where`` names the place it came from, for messages. Raises FamilyError at construction when the text
    is not in the subset: numbers, strings, names, ``+ - * / // % **``, comparisons, ``and or not``,
    ``a if c else b``, tuples after ``in``, the functions in FUNCTIONS, and tables that a program writes:
    ``{(64, 1): 256, (64, 2): 512}[block, tile]``.
    """

    text: str
    where: str = field(default="expression", compare=False)

    def __post_init__(self) -> None:
        if len(self.text) > _LONGEST:
            raise FamilyError(
                f"{self.where}: an expression may have {_LONGEST:,} characters, this has {len(self.text):,}"
            )
        try:
            _read(self.text)
        except _Refusal as problem:
            raise FamilyError(f"{self.where}: {self._shown.join(problem.args)}") from None
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise FamilyError(f"{self.where}: cannot read {self._shown} as an expression: {error}") from None

    @property
    def _shown(self) -> str:
        return repr(self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}…")

    @property
    def tree(self) -> ast.expr:
        """``text`` as Python reads it."""
        return ast.parse(self.text.strip(), mode="eval").body

    @property
    def names(self) -> frozenset[str]:
        """The free names the expression reads."""
        return _read(self.text)[1]

    def require(self, known: Collection[str]) -> "Expression":
        """Return self; raise FamilyError naming the first free name that is not in ``known``."""
        for name in sorted(self.names - set(known)):
            raise FamilyError(
                f"{self.where}: unknown name {name!r} in {self._shown}{suggestion(name, known)} "
                f"(allowed: {', '.join(sorted(known))})"
            )
        return self

    def evaluate(self, names: Mapping[str, Value]) -> Any:
        """The value with ``names`` bound. Raises FamilyError on arithmetic that has no answer."""
        try:
            return _read(self.text)[0](names)
        except (ArithmeticError, TypeError, ValueError, KeyError) as error:
            raise FamilyError(f"{self.where}: {self._shown} has no value here: {error}") from None

    def integer(self, names: Mapping[str, Value]) -> int:
        """As ``evaluate``, and FamilyError unless the value is a whole number."""
        value = self.evaluate(names)
        # inf % 1 and nan % 1 are nan
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value % 1:
            raise FamilyError(f"{self.where}: {self._shown} gives {value!r}, a whole number is needed")
        return int(value)


class _Refusal(Exception):
    """What is not in the subset: the words ahead of the expression, and those behind it."""


@lru_cache(maxsize=4096)
def _read(text: str) -> tuple[Evaluate, frozenset[str]]:
    """What ``text`` computes from names, and which. Kept here and not in the expression, which is pickled."""
    tree = ast.parse(text.strip(), mode="eval").body
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    names = frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called)
    return compile_node(tree), names


def compile_node(node: ast.expr, depth: int = 0) -> Evaluate:
    """What ``node``, a part of the tree of an expression, computes from names."""
    if depth > _DEEPEST:
        raise _Refusal("", f" is nested more than {_DEEPEST} deep")

    def part(inner: ast.expr) -> Evaluate:
        return compile_node(inner, depth + 1)

    match node:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return lambda names: value
        case ast.Name(id=name):
            return lambda names: names[name]
        case ast.Subscript(slice=index) if (table := _table(node.value)) is not None:
            key, known = part(index), table
            return lambda names: known[key(names)]
        case ast.Tuple():
            items = tuple(map(part, node.elts))
            return lambda names: tuple(item(names) for item in items)
        case ast.BinOp() if type(node.op) in _BINARY:
            return _arithmetic(_BINARY[type(node.op)], part(node.left), part(node.right))
        case ast.UnaryOp() if type(node.op) in _UNARY:
            unary, operand = _UNARY[type(node.op)], part(node.operand)
            return lambda names: unary(operand(names))
        case ast.IfExp():
            test, body, other = part(node.test), part(node.body), part(node.orelse)
            return lambda names: body(names) if test(names) else other(names)
        case ast.BoolOp():
            return _boolean(isinstance(node.op, ast.Or), tuple(map(part, node.values)))
        case ast.Compare() if all(type(op) in _COMPARE for op in node.ops):
            pairs = zip(node.ops, node.comparators, strict=True)
            return _comparison(part(node.left), tuple((_COMPARE[type(op)], part(item)) for op, item in pairs))
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in FUNCTIONS:
            function, arguments = FUNCTIONS[name], tuple(map(part, node.args))
            _check_count(name, len(arguments))
            return lambda names: _check_bound(function(*(item(names) for item in arguments)))
    allowed = "numbers, strings, names, + - * / // % **, comparisons, and/or/not, a if c else b"
    raise _Refusal(
        f"{ast.unparse(node)[:_SHOWN]!r} is not allowed in ",
        f"; allowed are {allowed}, and {', '.join(sorted(FUNCTIONS))}",
    )


def _check_count(function: str, given: int) -> None:
    wanted, is_open = _TAKES.get(function, 1), function in ("max", "min")
    if given < wanted or (given > wanted and not is_open):
        number = f"{wanted}{' or more' if is_open else ''} {'numbers' if wanted > 1 else 'number'}"
        raise _Refusal(f"{function} takes {number}, {given} given in ", "")


def _table(node: ast.expr) -> Mapping[Any, Any] | None:
    """What ``node`` looks up, where it is a mapping of numbers, words and tuples of them."""
    try:
        table = ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError):
        return None
    parts = [part for pair in table.items() for part in pair] if isinstance(table, dict) else [None]
    plain = [one for part in parts for one in (part if isinstance(part, tuple) else (part,))]
    return table if all(isinstance(one, (int, float, str)) for one in plain) else None


def _arithmetic(operation: Callable[[Any, Any], Any], left: Evaluate, right: Evaluate) -> Evaluate:
    def evaluate(names: Mapping[str, Value]) -> Any:
        first, second = left(names), right(names)
        if not (isinstance(first, (int, float)) and isinstance(second, (int, float))):
            raise TypeError("arithmetic needs numbers")  # a string times a number could fill the memory
        return _check_bound(operation(first, second))

    return evaluate


def _check_bound(value: Any) -> Any:
    """Refuse a whole number that no size or count can have, before the next product makes it longer: chained products
    would fill the memory."""
    if isinstance(value, int) and not -_MOST <= value <= _MOST:
        raise OverflowError(f"a whole number beyond 2^{_MOST_BITS}")
    return value


def _boolean(stop: bool, items: tuple[Evaluate, ...]) -> Evaluate:
    """``and`` ends at the first value that is false, ``or`` at the first that is true: that value is the result."""

    def evaluate(names: Mapping[str, Value]) -> Any:
        value: Any = not stop
        for item in items:
            value = item(names)
            if bool(value) is stop:
                return value
        return value

    return evaluate


def _comparison(first: Evaluate, steps: tuple[tuple[Callable[[Any, Any], Any], Evaluate], ...]) -> Evaluate:
    def evaluate(names: Mapping[str, Value]) -> Any:
        left = first(names)
        for compare, item in steps:
            right = item(names)
            if not compare(left, right):
                return False
            left = right
        return True

    return evaluate

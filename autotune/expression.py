"""Safe expressions over named values: launch geometry, constraints, byte counts.

An expression is a small subset of Python, parsed once and walked; nothing is ever handed to the
interpreter's own evaluation. Names are checked when a family is read, so a misspelt policy is found
before any work starts.
"""

import ast
import math
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from autotune.errors import FamilyError, suggestion

__all__ = ["FUNCTIONS", "Expression", "Value"]

Value = int | float | str | bool

_LONGEST = 500
_DEEPEST = 40

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "bit_length": lambda n: int(n).bit_length(),
    "ceil_div": lambda a, b: -(-a // b),
    "log2": math.log2,
    "max": max,
    "min": min,
    "round_up": lambda a, b: -(-a // b) * b,
    "sqrt": math.sqrt,
}

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
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
    is not in the subset: numbers, strings, names, ``+ - * / // %``, comparisons, ``and or not``,
    ``a if c else b``, tuples after ``in``, and the functions in FUNCTIONS.
    """

    text: str
    where: str = field(default="expression", compare=False)

    def __post_init__(self) -> None:
        self._check(self._tree, 0)

    @cached_property
    def _tree(self) -> ast.expr:
        if len(self.text) > _LONGEST:
            raise FamilyError(
                f"{self.where}: an expression may have {_LONGEST} characters, this has {len(self.text)}"
            )
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise FamilyError(f"{self.where}: cannot read {self.text!r} as an expression: {error}") from None

    def _check(self, node: ast.AST, depth: int) -> None:
        if depth > _DEEPEST:
            raise FamilyError(f"{self.where}: {self.text!r} is nested more than {_DEEPEST} deep")
        known = (
            (isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str, bool)))
            or isinstance(node, (ast.Name, ast.BoolOp, ast.IfExp, ast.Tuple))
            or (isinstance(node, ast.BinOp) and type(node.op) in _BINARY)
            or (isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY)
            or (isinstance(node, ast.Compare) and all(type(op) in _COMPARE for op in node.ops))
            or (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in FUNCTIONS
                and not node.keywords
            )
        )
        if not known:
            what = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
            raise FamilyError(
                f"{self.where}: {what!r} is not allowed in {self.text!r}; allowed are numbers, strings, names, "
                f"+ - * / // %, comparisons, and/or/not, a if c else b, and {', '.join(sorted(FUNCTIONS))}"
            )
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr) and not (isinstance(node, ast.Call) and child is node.func):
                self._check(child, depth + 1)

    @cached_property
    def names(self) -> frozenset[str]:
        """The free names the expression reads."""
        called = {id(n.func) for n in ast.walk(self._tree) if isinstance(n, ast.Call)}
        return frozenset(
            n.id for n in ast.walk(self._tree) if isinstance(n, ast.Name) and id(n) not in called
        )

    def require(self, known: Collection[str]) -> "Expression":
        """Return self; raise FamilyError naming the first free name that is not in ``known``."""
        for name in sorted(self.names - set(known)):
            raise FamilyError(
                f"{self.where}: unknown name {name!r} in {self.text!r}{suggestion(name, known)} "
                f"(allowed: {', '.join(sorted(known))})"
            )
        return self

    def evaluate(self, names: Mapping[str, Value]) -> Any:
        """The value with ``names`` bound. Raises FamilyError on arithmetic that has no answer."""
        try:
            return _walk(self._tree, names)
        except (ArithmeticError, TypeError, ValueError, KeyError) as error:
            raise FamilyError(f"{self.where}: {self.text!r} has no value here: {error}") from None

    def integer(self, names: Mapping[str, Value]) -> int:
        """As ``evaluate``, and FamilyError unless the value is a whole number."""
        value = self.evaluate(names)
        if (
            isinstance(value, bool) or not isinstance(value, (int, float)) or value % 1
        ):  # inf % 1 and nan % 1 are nan
            raise FamilyError(f"{self.where}: {self.text!r} gives {value!r}, a whole number is needed")
        return int(value)


def _walk(node: ast.expr, names: Mapping[str, Value]) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return names[node.id]
        case ast.Tuple():
            return tuple(_walk(item, names) for item in node.elts)
        case ast.BinOp():
            left, right = _walk(node.left, names), _walk(node.right, names)
            if not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
                raise TypeError("arithmetic needs numbers")  # a string times a number could fill the memory
            return _BINARY[type(node.op)](left, right)
        case ast.UnaryOp():
            return _UNARY[type(node.op)](_walk(node.operand, names))
        case ast.IfExp():
            return _walk(node.body if _walk(node.test, names) else node.orelse, names)
        case ast.BoolOp():
            stop = isinstance(node.op, ast.Or)
            value: Any = not stop
            for item in node.values:
                value = _walk(item, names)
                if bool(value) is stop:
                    return value
            return value
        case ast.Compare():
            left = _walk(node.left, names)
            for op, item in zip(node.ops, node.comparators, strict=True):
                right = _walk(item, names)
                if not _COMPARE[type(op)](left, right):
                    return False
                left = right
            return True
        case ast.Call(func=ast.Name(id=function)):
            return FUNCTIONS[function](*(_walk(item, names) for item in node.args))
    raise AssertionError(f"unchecked node {type(node).__name__}")

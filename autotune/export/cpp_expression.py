"""An expression of a family as C++ (``cpp/arithmetic.h``): what is known when it is written is folded into a constant.

Expressions mix sizes with policies and options; the latter are the configuration's own and may be words, so what is
left for C++ is arithmetic on numbers.
"""

import ast
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import Literal

from autotune.declaration import Expression, Value, compile_node
from autotune.errors import FamilyError

Kind = Literal["whole", "real", "truth"]

_ATOM, _PRODUCT, _SUM, _LOOSE = range(4)  # how loosely an outermost operator binds

# The sign, how loosely it binds, and how loosely its right operand may.
_SIGNS: Mapping[type[ast.operator], tuple[str, int, int]] = {
    ast.Add: ("+", _SUM, _PRODUCT), ast.Sub: ("-", _SUM, _PRODUCT), ast.Mult: ("*", _PRODUCT, _ATOM),
}  # fmt: skip

_CALLS: Mapping[type[ast.operator], str] = {
    ast.Div: "divide", ast.FloorDiv: "floor_div", ast.Mod: "floor_mod",
}  # fmt: skip

_FUNCTIONS: Mapping[str, str] = {
    "bit_length": "bit_length", "ceil_div": "ceil_div", "int": "static_cast<Number>", "log2": "std::log2",
    "max": "larger", "min": "smaller", "round_up": "round_up", "sqrt": "std::sqrt",
}  # fmt: skip

# What these give; any other function gives what its arguments are.
_KINDS: Mapping[str, Kind] = {
    "bit_length": "whole", "int": "whole", "log2": "real", "sqrt": "real", "divide": "real",
}  # fmt: skip

_COMPARISONS: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "==",
    ast.NotIn: "!=",
}  # fmt: skip


@dataclass(frozen=True)
class Cpp:
    """``text`` is the C++ expression, ``kind`` what it gives; ``value`` is known when it reads no size. ``level`` says
    how loosely its outermost operator binds."""

    text: str
    kind: Kind
    value: Value | None = None
    level: int = _ATOM

    def bracket(self, level: int = _ATOM) -> str:
        """As an operand of an operator: in brackets when it binds more loosely than ``level``."""
        return self.text if self.level <= level else f"({self.text})"

    @property
    def truth(self) -> str:
        """Whether it is not 0."""
        return self.text if self.kind == "truth" else f"{self.bracket()} != 0"


def translate(
    expression: Expression, bound: Mapping[str, Value], free: Mapping[str, tuple[str, Kind]]
) -> Cpp:
    """``expression`` with the names ``bound`` as constants and ``free`` (name -> C++ text and kind) left open. Raises
    FamilyError for what C++ cannot say: a word compared with a number, ``and`` and ``or`` of numbers as values."""
    return _Translation(expression, bound, free).translate(expression.tree)


@dataclass(frozen=True)
class _Translation:
    expression: Expression
    bound: Mapping[str, Value]
    free: Mapping[str, tuple[str, Kind]]

    def translate(self, node: ast.expr) -> Cpp:
        # Without a value it reads a size, or is in a branch that is not taken, or fails at run time.
        with suppress(ArithmeticError, TypeError, ValueError, KeyError):
            if isinstance(value := compile_node(node)(self.bound), int | float | str):
                return _constant(value)
        match node:
            case ast.Name(id=name) if name in self.free:
                return Cpp(*self.free[name])
            case ast.UnaryOp(op=ast.Not()):
                return Cpp(f"!{self.translate(node.operand).bracket()}", "truth")
            case ast.UnaryOp():
                (operand,) = self._numbers(node.operand)
                return Cpp(f"-{operand.bracket()}", _kind(operand), level=_LOOSE)
            case ast.BinOp(op=op) if type(op) in _SIGNS:
                left, right = self._numbers(node.left, node.right)
                sign, level, tighter = _SIGNS[type(op)]
                text = f"{left.bracket(level)} {sign} {right.bracket(tighter)}"
                return Cpp(text, _kind(left, right), level=level)
            case ast.BinOp(op=op) if type(op) in _CALLS:
                left, right = self._numbers(node.left, node.right)
                name = _CALLS[type(op)]
                return Cpp(f"{name}({left.text}, {right.text})", _KINDS.get(name) or _kind(left, right))
            case ast.IfExp():
                return self._choice(node)
            case ast.BoolOp():
                return self._all_or_any(node)
            case ast.Compare():
                return self._comparison(node)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._call(name, self._numbers(*arguments))
        raise self._make_error(ast.unparse(node))

    def _choice(self, node: ast.IfExp) -> Cpp:
        test = self.translate(node.test)
        if test.value is not None:
            return self.translate(node.body if test.value else node.orelse)
        body, other = self._numbers(node.body, node.orelse)
        kind = body.kind if body.kind == other.kind else _kind(body, other)
        return Cpp(f"{test.bracket()} ? {body.bracket()} : {other.bracket()}", kind, level=_LOOSE)

    def _all_or_any(self, node: ast.BoolOp) -> Cpp:
        ends, sign = (False, "&&") if isinstance(node.op, ast.And) else (True, "||")
        parts: list[Cpp] = []
        for item in node.values:
            part = self.translate(item)
            if part.kind != "truth":
                raise self._make_error(ast.unparse(node))
            if part.value is None or bool(part.value) is ends:
                parts.append(part)
            if part.value is not None and bool(part.value) is ends:
                break
        return _join(parts, sign) if parts else _constant(not ends)

    def _comparison(self, node: ast.Compare) -> Cpp:
        left, parts = node.left, []
        for operator, right in zip(node.ops, node.comparators, strict=True):
            is_in = isinstance(operator, (ast.In, ast.NotIn))
            if is_in and not isinstance(right, ast.Tuple):
                raise self._make_error(ast.unparse(node))
            first, *others = self._numbers(left, *(right.elts if isinstance(right, ast.Tuple) else [right]))
            sign = _COMPARISONS[type(operator)]
            tests = [
                Cpp(f"{first.bracket()} {sign} {each.bracket()}", "truth", level=_LOOSE) for each in others
            ]
            parts.append(_join(tests, "||" if isinstance(operator, ast.In) else "&&"))
            left = right
        return _join(parts, "&&")

    def _call(self, name: str, arguments: list[Cpp]) -> Cpp:
        kind, texts = _KINDS.get(name) or _kind(*arguments), [each.text for each in arguments]
        if name == "abs":
            return Cpp(f"larger({texts[0]}, -{arguments[0].bracket()})", kind)
        function = _FUNCTIONS[name]
        if name in ("min", "max"):
            return Cpp(reduce(lambda text, each: f"{function}({text}, {each})", texts), kind)
        return Cpp(f"{function}({', '.join(texts)})", kind)

    def _numbers(self, *nodes: ast.expr) -> list[Cpp]:
        parts = [self.translate(node) for node in nodes]
        for part in parts:
            if isinstance(part.value, str):
                raise self._make_error(repr(part.value))
        return parts

    def _make_error(self, what: str) -> FamilyError:
        return FamilyError(
            f"{self.expression.where}: {what} in {self.expression.text!r} has no C++ form; compare words with words, "
            "and use and, or, not on comparisons"
        )


def _join(parts: list[Cpp], sign: str) -> Cpp:
    if len(parts) == 1:
        return parts[0]
    return Cpp(f" {sign} ".join(part.bracket() for part in parts), "truth", level=_LOOSE)


def _kind(*parts: Cpp) -> Kind:
    """Of arithmetic with them."""
    return "real" if any(part.kind == "real" for part in parts) else "whole"


def _constant(value: Value) -> Cpp:
    if isinstance(value, bool):
        return Cpp("true" if value else "false", "truth", value)
    if isinstance(value, str):
        return Cpp(repr(value), "truth", value)
    if isinstance(value, int):
        text = f"{value}" if abs(value) < 2**31 else f"Number{{{value}}}"
        return Cpp(text, "whole", value, level=_ATOM if value >= 0 else _LOOSE)
    return Cpp(repr(float(value)), "real", value, level=_ATOM if value >= 0 else _LOOSE)

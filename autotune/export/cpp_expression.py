"""An expression of a family as C++ (``cpp/arithmetic.h``): what is known when it is written is folded into a constant.

Expressions mix sizes with policies and options; the latter are the configuration's own and may be words, so what is
left for C++ is arithmetic on numbers.
"""

import ast
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from autotune.declaration import Expression, Value
from autotune.errors import AutotuneError, FamilyError

Kind = Literal["whole", "real", "truth"]


_FUNCTIONS: Mapping[
    str, tuple[str, int, Kind | None]
] = {  # C++ name, arguments, kind (None: that of the arguments)
    "bit_length": ("bit_length", 1, "whole"),
    "ceil_div": ("ceil_div", 2, None),
    "log2": ("std::log2", 1, "real"),
    "round_up": ("round_up", 2, None),
    "sqrt": ("std::sqrt", 1, "real"),
}

_OPERATORS: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}

_CALLS: Mapping[type[ast.operator], tuple[str, Kind | None]] = {
    ast.Div: ("divide", "real"),
    ast.FloorDiv: ("floor_div", None),
    ast.Mod: ("floor_mod", None),
}

_ATOM, _PRODUCT, _SUM, _LOOSE = range(4)  # how loosely an outermost operator binds

_COMPARISONS: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


@dataclass(frozen=True)
class Cpp:
    """``text`` is the C++ expression, ``kind`` what it gives; ``value`` is known when it reads no size. ``level`` says
    how loosely its outermost operator binds."""

    text: str
    kind: Kind
    value: Value | None = None
    level: int = _ATOM

    def inside(self, level: int = _ATOM) -> str:
        """As an operand of an operator: in brackets when it binds more loosely than ``level``."""
        return self.text if self.level <= level else f"({self.text})"


def translated(
    expression: Expression, bound: Mapping[str, Value], free: Mapping[str, tuple[str, Kind]]
) -> Cpp:
    """``expression`` with the names ``bound`` as constants and ``free`` (name -> C++ text and kind) left open. Raises
    FamilyError for what C++ cannot say: a word compared with a number, ``and`` and ``or`` of numbers as values."""
    return _Translation(expression, bound, free).of(ast.parse(expression.text.strip(), mode="eval").body)


@dataclass(frozen=True)
class _Translation:
    expression: Expression
    bound: Mapping[str, Value]
    free: Mapping[str, tuple[str, Kind]]

    def of(self, node: ast.expr) -> Cpp:
        names = Expression(ast.unparse(node), self.expression.where).names
        if names <= self.bound.keys() and not isinstance(node, ast.Tuple):
            with suppress(
                AutotuneError
            ):  # it has no value: in a branch that is not taken, or met at run time
                return _constant(Expression(ast.unparse(node), self.expression.where).evaluate(self.bound))
        match node:
            case ast.Name(id=name):
                if name in self.free:
                    return Cpp(*self.free[name])
                return _constant(self.bound[name])
            case ast.UnaryOp(op=ast.Not()):
                return Cpp(f"!{self.of(node.operand).inside()}", "truth")
            case ast.UnaryOp():
                operand = self.of(node.operand)
                return Cpp(f"-{operand.inside()}", _number(operand.kind), level=_LOOSE)
            case ast.BinOp():
                return self._binary(self.of(node.left), node.op, self.of(node.right))
            case ast.IfExp():
                return self._choice(node)
            case ast.BoolOp():
                return self._all_or_any(node)
            case ast.Compare():
                return self._comparison(node)
            case ast.Call(func=ast.Name(id=name)):
                return self._call(name, [self.of(item) for item in node.args])
        raise self._cannot(ast.unparse(node))

    def _binary(self, left: Cpp, operator: ast.operator, right: Cpp) -> Cpp:
        self._numbers(left, right)
        kind: Kind = "real" if "real" in (left.kind, right.kind) else "whole"
        if type(operator) in _CALLS:
            name, own = _CALLS[type(operator)]
            return Cpp(f"{name}({left.text}, {right.text})", own or kind)
        sign = _OPERATORS[type(operator)]
        level, tighter = (_PRODUCT, _ATOM) if sign == "*" else (_SUM, _PRODUCT)
        return Cpp(f"{left.inside(level)} {sign} {right.inside(tighter)}", kind, level=level)

    def _choice(self, node: ast.IfExp) -> Cpp:
        test = self.of(node.test)
        if test.value is not None:
            return self.of(node.body if test.value else node.orelse)
        body, other = self.of(node.body), self.of(node.orelse)
        self._numbers(body, other)
        kind: Kind = (
            body.kind if body.kind == other.kind else "real" if "real" in (body.kind, other.kind) else "whole"
        )
        return Cpp(f"{test.inside()} ? {body.inside()} : {other.inside()}", kind, level=_LOOSE)

    def _all_or_any(self, node: ast.BoolOp) -> Cpp:
        ends, sign = (False, "&&") if isinstance(node.op, ast.And) else (True, "||")
        open_parts: list[Cpp] = []
        for item in node.values:
            part = self.of(item)
            if part.kind != "truth":
                raise self._cannot(ast.unparse(node))
            if part.value is None:
                open_parts.append(part)
            elif bool(part.value) is ends:
                break
        else:
            if not open_parts:
                return _constant(not ends)
            return _joined(open_parts, sign)
        return _joined([*open_parts, part], sign) if open_parts else part

    def _comparison(self, node: ast.Compare) -> Cpp:
        left, parts = node.left, []
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, (ast.In, ast.NotIn)):
                if not isinstance(right, ast.Tuple):
                    raise self._cannot(ast.unparse(node))
                first, sign, join = self.of(left), "==", "||"
                if isinstance(operator, ast.NotIn):
                    sign, join = "!=", "&&"
                items = [self.of(item) for item in right.elts]
                self._numbers(first, *items)
                same = [
                    Cpp(f"{first.inside()} {sign} {item.inside()}", "truth", level=_LOOSE) for item in items
                ]
                parts.append(_joined(same, join))
            else:
                first, second = self.of(left), self.of(right)
                self._numbers(first, second)
                text = f"{first.inside()} {_COMPARISONS[type(operator)]} {second.inside()}"
                parts.append(Cpp(text, "truth", level=_LOOSE))
            left = right
        return _joined(parts, "&&")

    def _call(self, name: str, arguments: list[Cpp]) -> Cpp:
        self._numbers(*arguments)
        kind: Kind = "real" if any(a.kind == "real" for a in arguments) else "whole"
        if name == "abs" and len(arguments) == 1:
            return Cpp(f"larger({arguments[0].text}, -{arguments[0].inside()})", kind)
        if name in ("min", "max") and len(arguments) > 1:
            function = "smaller" if name == "min" else "larger"
            text = arguments[0].text
            for argument in arguments[1:]:
                text = f"{function}({text}, {argument.text})"
            return Cpp(text, kind)
        function, count, own = _FUNCTIONS.get(name, ("", -1, None))
        if len(arguments) != count:
            raise self._cannot(name)
        return Cpp(f"{function}({', '.join(a.text for a in arguments)})", own or kind)

    def _numbers(self, *parts: Cpp) -> None:
        for part in parts:
            if isinstance(part.value, str):
                raise self._cannot(repr(part.value))

    def _cannot(self, what: str) -> FamilyError:
        return FamilyError(
            f"{self.expression.where}: {what} in {self.expression.text!r} has no C++ form; compare words with words, "
            "and use and, or, not on comparisons"
        )


def _joined(parts: list[Cpp], sign: str) -> Cpp:
    if len(parts) == 1:
        return parts[0]
    return Cpp(f" {sign} ".join(part.inside() for part in parts), "truth", level=_LOOSE)


def _number(kind: Kind) -> Kind:
    return "whole" if kind == "truth" else kind


def _constant(value: Value) -> Cpp:
    if isinstance(value, bool):
        return Cpp("true" if value else "false", "truth", value)
    if isinstance(value, str):
        return Cpp(repr(value), "truth", value)
    if isinstance(value, int):
        text = f"{value}" if abs(value) < 2**31 else f"Number{{{value}}}"
        return Cpp(text, "whole", value, level=_ATOM if value >= 0 else _LOOSE)
    return Cpp(repr(float(value)), "real", value, level=_ATOM if value >= 0 else _LOOSE)

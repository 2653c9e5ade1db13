"""Formulas in the Python of other tuners' files and calls, written as expressions.

They may have what an ``Expression`` lacks: lists behind ``in``, ``float``, ``floor`` and ``ceil``, shifts, ``&`` and
``|`` between conditions, and parameters whose values are no whole numbers, which a policy has as words.
"""

import ast
import math
import re
from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, product
from typing import Any

from autotune.declaration import Expression, PolicyValue
from autotune.errors import FamilyError

Values = Mapping[str, Sequence[Any]]  # of each parameter, as they were given

_LONGEST = 5000
_MOST_TRIED = 2_000_000
_MOST_ROWS = 50_000  # of tables
_AS_TEXT = "write it as a text of + - * / // % **, comparisons, and/or/not"


def expression(text: str, values: Values, where: str) -> Expression:
    """``text``, for parameters with these ``values``. Raises FamilyError."""
    if len(text) > _LONGEST:
        raise FamilyError(f"{where}: a formula may have {_LONGEST} characters, this has {len(text)}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        written = ast.unparse(ast.fix_missing_locations(_Written(values).visit(tree)))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise FamilyError(f"{where}: cannot read {text!r} as a formula: {problem}") from None
    return Expression(written, where).require(values)


def conditions(text: str, values: Values, where: str) -> list[Expression]:
    """Expressions that all hold where ``text`` does, for parameters with these ``values``. Raises FamilyError."""
    whole = expression(text, values, where)
    if isinstance(whole.tree, ast.BoolOp) and isinstance(whole.tree.op, ast.And):
        return [Expression(ast.unparse(part), where) for part in whole.tree.values]
    return [whole]


def tabulate(function: Callable[[Mapping[str, Any]], Any], values: Values, where: str) -> Expression:
    """What ``function`` gives for each combination of the parameters that it reads, as tables where it differs. Raises
    FamilyError."""
    usual, read = {name: some[0] for name, some in values.items()}, set[str]()
    while True:
        names = [name for name in values if name in read]
        count = math.prod(len(values[name]) for name in names)
        if count > _MOST_TRIED:
            raise FamilyError(
                f"{where}: it reads {', '.join(names)}, which have {count:,} combinations, and at most {_MOST_TRIED:,} "
                f"are tried; {_AS_TEXT}"
            )
        results = [
            function(_Watched(usual | dict(zip(names, chosen, strict=True)), read))
            for chosen in product(*(values[name] for name in names))
        ]
        if len(read) == len(names):
            words = {name: [word(value, where) for value in values[name]] for name in names}
            return Expression(_write_tables(results, words, where), where)


def _write_tables(results: Sequence[Any], words: dict[str, list[PolicyValue]], where: str) -> str:
    """A table for each parameter that changes anything: from the number of what the parameters before it leave of
    ``results``, and its own value, to the number of what is left then; in the end to a result."""
    tables = []
    for name in reversed(words):
        width = len(words[name])
        parts = [tuple(results[start : start + width]) for start in range(0, len(results), width)]
        if all(len(set(part)) == 1 for part in parts):
            results = [part[0] for part in parts]
            continue
        numbers: dict[tuple[Any, ...], int] = {}
        results = [numbers.setdefault(part, len(numbers)) for part in parts]
        tables.append((name, list(numbers)))
    if (rows := sum(len(parts) * len(words[name]) for name, parts in tables)) > _MOST_ROWS:
        raise FamilyError(
            f"{where}: it distinguishes that many combinations of {', '.join(words)} apart that its tables have "
            f"{rows:,} rows, and {_MOST_ROWS:,} are the most; {_AS_TEXT}"
        )
    text = repr(results[0])
    for name, parts in reversed(tables):
        if len(parts) == 1:
            text = f"{dict(zip(words[name], parts[0], strict=True))}[{name}]"
            continue
        keys = product(range(len(parts)), words[name])
        text = f"{dict(zip(keys, chain.from_iterable(parts), strict=True))}[{text}, {name}]"
    return text


class _Watched(UserDict[str, Any]):
    """Notes in ``read`` what is read of ``values``."""

    def __init__(self, values: dict[str, Any], read: set[str]) -> None:
        self.data, self.read = values, read

    def __getitem__(self, name: str) -> Any:
        value = self.data[name]
        self.read.add(name)
        return value


def word(value: Any, where: str) -> PolicyValue:
    """A parameter's value as a policy's: whole numbers stay numbers, everything else is a word. Raises FamilyError."""
    value = to_plain(value)
    if type(value) is int:
        return value
    text = str(value)
    if not re.fullmatch(r"[\w.+-]+", text):
        raise FamilyError(
            f"{where}: {text!r} is no value of a policy: whole numbers, and words of letters, digits and _ . + - are; "
            "define what it stands for in the source, by such a word"
        )
    return text


def to_plain(value: Any) -> Any:
    """A number of numpy as one of Python."""
    return value.item() if hasattr(value, "item") and not getattr(value, "shape", ()) else value


class _Written(ast.NodeTransformer):
    """As an expression has it."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """What a word of a policy stands for is looked up, where it is no text."""
        meant = [to_plain(value) for value in self._values.get(node.id, ())]
        if all(type(value) in (int, str) for value in meant):
            return node
        words: list[ast.expr | None] = [ast.Constant(word(value, node.id)) for value in meant]
        return ast.Subscript(ast.Dict(words, list(map(ast.Constant, meant))), node, ast.Load())

    def visit_List(self, node: ast.List) -> ast.expr:
        return ast.Tuple([self.visit(item) for item in node.elts], ast.Load())

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.visit(node.left), self.visit(node.right)
        match node.op:
            case ast.LShift():
                return ast.BinOp(left, ast.Mult(), ast.BinOp(ast.Constant(2), ast.Pow(), right))
            case ast.RShift():
                return ast.BinOp(left, ast.FloorDiv(), ast.BinOp(ast.Constant(2), ast.Pow(), right))
            case ast.BitAnd() | ast.BitOr() if _is_condition(left) and _is_condition(right):
                return ast.BoolOp(ast.And() if isinstance(node.op, ast.BitAnd) else ast.Or(), [left, right])
        return ast.BinOp(left, node.op, right)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        arguments: list[ast.expr] = [self.visit(argument) for argument in node.args]
        match node.func:
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="math" | "np" | "numpy"), attr=name):
                pass
            case _:
                return node
        match name, arguments:
            case "float", [one]:
                return one
            case "floor", [one]:
                return ast.BinOp(one, ast.FloorDiv(), ast.Constant(1))
            case "ceil", [one]:
                name, arguments = "ceil_div", [one, ast.Constant(1)]
        return ast.Call(ast.Name(name, ast.Load()), arguments, node.keywords)


def _is_condition(node: ast.expr) -> bool:
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.Constant(value=bool()):
            return True
        case ast.Subscript(value=ast.Dict(values=meant)):
            return all(map(_is_condition, meant))
    return False

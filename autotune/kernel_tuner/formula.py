"""Formulas in the Python of other tuners' files and calls: evaluated without the interpreter, written as expressions.

They may have more than an ``Expression``: powers, lists and ranges, ``int`` and ``math.ceil``. What an expression
cannot say is tried for every combination of the parameters that it reads, and written as a table of the results.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import Any

from autotune.declaration import BINARY, COMPARE, UNARY, Expression, PolicyValue
from autotune.errors import FamilyError

Values = Mapping[str, Sequence[Any]]  # of each parameter, as they were given
Evaluate = Callable[[Mapping[str, Any]], Any]

_LONGEST = 5000
_MOST_ITEMS = 1 << 20
_MOST_BITS = 256
_MOST_TRIED = 2_000_000
_MOST_WRITTEN = 20_000
_MOST_STEPS = 5_000_000  # ten seconds
_DEEPEST = 60
_MOST_REPEATED = 100  # parts of what a power is written out of

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    **BINARY, ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {**UNARY, ast.Invert: operator.invert}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs, "all": all, "any": any, "bool": bool, "ceil": math.ceil, "float": float, "floor": math.floor,
    "int": int, "len": len, "list": list, "log": math.log, "log2": math.log2, "max": max, "min": min, "round": round,
    "set": set, "sorted": sorted, "sqrt": math.sqrt, "sum": sum, "tuple": tuple,
}  # fmt: skip
_MODULES = ("math", "np", "numpy")  # whose functions of these names are the same


@dataclass
class _Run:
    """What evaluating one formula, for one combination or many, may still cost."""

    where: str
    left: int = _MOST_STEPS

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise OverflowError(f"it takes more than {_MOST_STEPS:,} steps")


def evaluated(text: str, names: Mapping[str, Any], *, where: str, run: _Run | None = None) -> Any:
    """What ``text`` is with ``names`` bound; ``run`` is shared by those that are to take a while together. Raises
    FamilyError for what is no formula, has no value, or takes too long."""
    try:
        return _value(_tree(text, where), names, run or _Run(where))
    except (ArithmeticError, TypeError, ValueError, KeyError, IndexError, MemoryError) as problem:
        raise FamilyError(f"{where}: {text!r} has no value here: {problem}") from None


def conditions(text: str, values: Values, where: str) -> list[str]:
    """Expressions that all hold where ``text`` does, for parameters with these ``values``. Raises FamilyError."""
    tree = _tree(text, where)
    parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
    found: list[str] = []
    for part in parts:
        one = ast.unparse(part)
        expression = _expression(part, values)
        if expression is not None:
            found.append(expression)
        else:
            read = sorted(_names(part) & values.keys())
            found += listed_conditions(
                partial(evaluated, one, where=where, run=_Run(where)), read, values, where
            )
    return found


def expression(text: str, values: Values, where: str) -> str:
    """``text`` as an expression, for parameters with these ``values``. Raises FamilyError."""
    tree = _tree(text, where)
    found = _expression(tree, values)
    if found is not None:
        return found
    return listed_expression(
        partial(evaluated, text, where=where, run=_Run(where)),
        sorted(_names(tree) & values.keys()),
        values,
        where,
    )


def listed_conditions(holds: Evaluate, names: Sequence[str], values: Values, where: str) -> list[str]:
    """Expressions that all hold for the combinations of the parameters ``names`` for which ``holds`` does."""
    if not names:
        return [] if holds({}) else ["1 == 0"]
    *others, last = sorted(names, key=lambda name: len(values[name]))
    rights = {
        chosen: tuple(
            word(value, last)
            for value in values[last]
            if holds({**dict(zip(others, chosen, strict=True)), last: value})
        )
        for chosen in _combinations(others, names, values, where)
    }
    if all(len(right) == len(values[last]) for right in rights.values()):
        return []
    return [f"{last} in {_looked_up(rights, others, where)}"]


def listed_expression(evaluate: Evaluate, names: Sequence[str], values: Values, where: str) -> str:
    """An expression that has the values of ``evaluate`` for every combination of the parameters ``names``."""
    results = {
        chosen: _literal(evaluate(dict(zip(names, chosen, strict=True))))
        for chosen in _combinations(names, names, values, where)
    }
    return Expression(_looked_up(results, names, where), where).text


def word(value: Any, where: str) -> PolicyValue:
    """A parameter's value as a policy's: whole numbers stay numbers, everything else is a word. Raises FamilyError."""
    if isinstance(value, bool):
        return str(value)
    if hasattr(value, "item") and not getattr(value, "shape", ()):
        value = value.item()
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = str(value)
    if not re.fullmatch(r"[\w.+-]+", text):
        raise FamilyError(
            f"{where}: {text!r} is no value of a policy: whole numbers, and words of letters, digits and _ . + - are; "
            "define what it stands for in the source, by such a word"
        )
    return text


# -- text to tree -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _tree(text: str, where: str) -> ast.expr:
    if len(text) > _LONGEST:
        raise FamilyError(f"{where}: a formula may have {_LONGEST} characters, this has {len(text)}")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise FamilyError(f"{where}: cannot read {text!r} as a formula: {problem}") from None


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _called(node: ast.Call) -> str:
    """The function that is called, without its module; empty for any other call."""
    function = node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.attr if function.value.id in _MODULES else ""
    return function.id if isinstance(function, ast.Name) else ""


# -- tree to value ----------------------------------------------------------------------------------------------


def _value(node: ast.expr, names: Mapping[str, Any], run: _Run, depth: int = 0) -> Any:
    run.spend(1)
    if depth > _DEEPEST:
        raise FamilyError(f"{run.where}: a formula is nested more than {_DEEPEST} deep")

    def of(part: ast.expr) -> Any:
        return _value(part, names, run, depth + 1)

    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.Name(id=name):
            if name not in names:
                known = ", ".join(map(str, names)) or "none"
                raise FamilyError(f"{run.where}: unknown name {name!r} (known: {known})")
            return names[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _bounded(type(op), _paid(of(left), run), _paid(of(right), run))
        case ast.UnaryOp(op=unary, operand=operand):
            return _UNARY[type(unary)](of(operand))
        case ast.BoolOp(op=both, values=parts):
            return _first(parts, of, stop=isinstance(both, ast.Or))
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _compared(_paid(of(left), run), ops, [_paid(of(other), run) for other in others])
        case ast.IfExp(test=test, body=body, orelse=other):
            return of(body) if of(test) else of(other)
        case ast.Call(args=arguments, keywords=[]):
            return _call(node, [of(argument) for argument in arguments], run)
    return _collection(node, of, names, run, depth)


def _collection(
    node: ast.expr, of: Callable[[ast.expr], Any], names: Mapping[str, Any], run: _Run, depth: int
) -> Any:
    match node:
        case ast.List(elts=items):
            return [of(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(of(item) for item in items)
        case ast.Subscript(value=sequence, slice=index):
            return of(sequence)[of(index)]
        case ast.ListComp(elt=element, generators=[one]) | ast.GeneratorExp(elt=element, generators=[one]):
            return list(_comprehension(element, one, names, run, depth + 1))
    raise FamilyError(f"{run.where}: {ast.unparse(node)!r} is not allowed in a formula")


def _first(parts: Sequence[ast.expr], of: Callable[[ast.expr], Any], *, stop: bool) -> Any:
    value: Any = not stop
    for part in parts:
        value = of(part)
        if bool(value) is stop:
            break
    return value


def _compared(left: Any, ops: Sequence[ast.cmpop], others: Sequence[Any]) -> bool:
    for op, right in zip(ops, others, strict=True):
        if type(op) not in COMPARE:
            raise TypeError(f"{type(op).__name__} is no comparison of a formula")
        if not COMPARE[type(op)](left, right):
            return False
        left = right
    return True


def _bounded(op: type[ast.operator], left: Any, right: Any) -> Any:
    """Refuses what would fill the memory."""
    if op not in _BINARY:
        raise TypeError(f"{op.__name__} is no operator of a formula")
    if isinstance(left, list) and isinstance(right, list) and op is ast.Add:
        if len(left) + len(right) > _MOST_ITEMS:
            raise OverflowError(f"a list of more than {_MOST_ITEMS:,} items")
        return left + right
    if not all(isinstance(one, int | float) for one in (left, right)):
        raise TypeError("arithmetic needs numbers")
    if op in (ast.Pow, ast.LShift) and isinstance(left, int) and isinstance(right, int):
        bits = right * abs(left).bit_length() if op is ast.Pow else right + abs(left).bit_length()
        if bits > _MOST_BITS:
            raise OverflowError(f"a whole number beyond 2^{_MOST_BITS}")
    value = _BINARY[op](left, right)
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise OverflowError(f"a whole number beyond 2^{_MOST_BITS}")
    return value


def _comprehension(
    element: ast.expr, one: ast.comprehension, names: Mapping[str, Any], run: _Run, depth: int
) -> Iterator[Any]:
    if not isinstance(one.target, ast.Name):
        raise FamilyError(f"{run.where}: {ast.unparse(one)!r} is not allowed in a formula")
    for item in _value(one.iter, names, run, depth):
        bound = {**names, one.target.id: item}
        if all(_value(test, bound, run, depth) for test in one.ifs):
            yield _value(element, bound, run, depth)


def _call(node: ast.Call, arguments: list[Any], run: _Run) -> Any:
    name = _called(node)
    if name == "range":
        made = range(*arguments)
        if len(made) > _MOST_ITEMS:
            raise OverflowError(f"a range of more than {_MOST_ITEMS:,} items")
        return made
    if name not in _FUNCTIONS:
        raise FamilyError(
            f"{run.where}: {ast.unparse(node.func)} is no function of a formula (those are {', '.join(_FUNCTIONS)}, "
            "range)"
        )
    return _FUNCTIONS[name](*(_paid(argument, run) for argument in arguments))


def _paid(value: Any, run: _Run) -> Any:
    """``value``, each of whose items may be looked at."""
    if isinstance(value, Sized):
        run.spend(len(value))
    if isinstance(value, list | tuple):
        for item in value:
            if isinstance(item, Sized):
                _paid(item, run)
    return value


# -- tree to expression -----------------------------------------------------------------------------------------


def _expression(tree: ast.expr, values: Values) -> str | None:
    """None where an ``Expression`` cannot say it, or reads a value that is no whole number or word."""
    numbers = {name for name, some in values.items() if all(_is_plain(value) for value in some)}
    if _names(tree) & (values.keys() - numbers):
        return None
    try:
        text = ast.unparse(ast.fix_missing_locations(_Written().visit(_copied(tree))))
        Expression(text).require(values)
    except (FamilyError, ArithmeticError):
        return None
    return text


def _is_plain(value: Any) -> bool:
    """Whether it is the same in an expression: a whole number, or a word that no number is written as."""
    if isinstance(value, str):
        return True
    return isinstance(value, int) and not isinstance(value, bool)


def _copied(tree: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(tree), mode="eval").body


class _Written(ast.NodeTransformer):
    """As the functions and operators of an expression."""

    def visit_List(self, node: ast.List) -> ast.AST:
        self.generic_visit(node)
        return ast.Tuple(elts=node.elts, ctx=ast.Load())

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.BinOp(
                left=ast.Constant(value=int() as base), op=ast.Pow(), right=ast.Constant(value=int() as power)
            ):
                return ast.Constant(_bounded(ast.Pow, base, power))
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)) if (
                0 < power <= 8 and sum(1 for _ in ast.walk(left)) < _MOST_REPEATED
            ):
                made: ast.expr = left
                for _ in range(power - 1):
                    made = ast.BinOp(made, ast.Mult(), left)
                return made
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr()) if _are_tests(node.left, node.right):
                both = ast.And() if isinstance(node.op, ast.BitAnd) else ast.Or()
                return ast.BoolOp(both, [node.left, node.right])
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = _called(node)
        match name, node.args:
            case "float", [one]:
                return one
            case "int" | "floor", [one] if name == "floor" or not _may_be_negative(one):
                return ast.BinOp(one, ast.FloorDiv(), ast.Constant(1))
            case "ceil", [one]:
                return ast.Call(ast.Name("ceil_div", ast.Load()), [one, ast.Constant(1)], [])
        return ast.Call(ast.Name(name, ast.Load()), node.args, node.keywords) if name else node


def _may_be_negative(tree: ast.expr) -> bool:
    """Whether ``int`` may round up: parameters are taken to be none of it themselves."""
    return any(isinstance(node, ast.Sub | ast.USub) for node in ast.walk(tree))


def _are_tests(*nodes: ast.expr) -> bool:
    return all(isinstance(node, ast.Compare | ast.BoolOp) for node in nodes)


# -- combinations to expression ---------------------------------------------------------------------------------


def _combinations(
    names: Sequence[str], read: Sequence[str], values: Values, where: str
) -> Iterator[tuple[Any, ...]]:
    """Those of the parameters ``names``, which are some of those that are ``read``."""
    count = math.prod(len(values[name]) for name in read)
    if count > _MOST_TRIED:
        raise FamilyError(
            f"{where}: it reads {', '.join(read)}, which have {count:,} combinations, and at most {_MOST_TRIED:,} are "
            "tried; write it as a text of + - * / // %, comparisons, and/or/not"
        )
    return product(*(values[name] for name in names))


def _literal(value: Any) -> PolicyValue | float:
    """A result, as an expression has it."""
    return value if isinstance(value, float) else word(value, "a value")


def _looked_up(results: Mapping[tuple[Any, ...], Any], names: Sequence[str], where: str) -> str:
    """The result for the values of ``names``, as a table where they differ."""
    if len(set(results.values())) == 1:
        return repr(next(iter(results.values())))
    if len(results) > _MOST_WRITTEN:
        raise FamilyError(
            f"{where}: it tells {len(results):,} combinations of {', '.join(names)} apart, and a table has at most "
            f"{_MOST_WRITTEN:,}; write it as a text of + - * / // %, comparisons, and/or/not"
        )
    table = {tuple(map(word, key, names)): result for key, result in results.items()}
    if len(names) == 1:
        return f"{ {key: result for (key,), result in table.items()} }[{names[0]}]"
    return f"{table}[{', '.join(names)}]"

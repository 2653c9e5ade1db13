"""What one function of a source does with its variables: where each changes, its bounds, and its arithmetic."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from autotune.adopt.expression import Factor, Sum, get_only_factor, make_sum, negate, product
from autotune.adopt.source import (
    WRAPPED,
    CudaSource,
    Cursor,
    Span,
    binary,
    children,
    kind,
    names_in,
    number,
    parameters,
    peel,
    span,
    type_kind,
    unary,
    walk,
)

_CASTS = ("CSTYLE_CAST_EXPR", "CXX_FUNCTIONAL_CAST_EXPR", "CXX_STATIC_CAST_EXPR")
_INTEGERS = ("CHAR_S", "CHAR_U", "SCHAR", "UCHAR", "SHORT", "USHORT", "INT", "UINT", "LONG", "ULONG", "LONGLONG",
             "ULONGLONG", "BOOL", "ENUM")  # fmt: skip
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
_DEEPEST = 300
_LAUNCH = ("threadIdx", "blockIdx", "blockDim", "gridDim")


@dataclass
class Variable:
    """A parameter or local variable. ``changes`` are the places where it may get another value."""

    name: str
    cursor: Cursor
    is_parameter: bool
    changes: list[int] = field(default_factory=list)

    @property
    def place(self) -> int:
        return int(self.cursor.location.offset)

    @property
    def is_integer(self) -> bool:
        return type_kind(self.cursor) in _INTEGERS

    @cached_property
    def initial(self) -> Cursor | None:
        if self.is_parameter:
            return None
        found = [c for c in children(self.cursor) if kind(c).endswith(("EXPR", "LITERAL", "OPERATOR"))]
        return found[-1] if found else None


@dataclass(frozen=True)
class Bound:
    """``compared`` is below ``limit`` + ``plus`` where the kernel goes on: the loop over it says so, or a condition, or
    one under which a thread leaves. It is ``variable`` with a number added, or, where that is None, arithmetic that has
    the number of a block in it."""

    variable: Variable | None
    compared: Cursor
    limit: Cursor
    plus: int
    is_loop: bool
    is_exit: bool


@dataclass
class Function:
    source: CudaSource
    cursor: Cursor

    @property
    def name(self) -> str:
        return str(self.cursor.spelling)

    @cached_property
    def body(self) -> Cursor:
        return next(c for c in children(self.cursor) if kind(c) == "COMPOUND_STMT")

    @cached_property
    def parameters(self) -> list[Cursor]:
        return parameters(self.cursor)

    @cached_property
    def _parents(self) -> dict[int, Cursor]:
        parents: dict[int, Cursor] = {}
        depths = {self.cursor.hash: 0}
        for parent in walk(self.cursor):
            for child in children(parent):
                parents[child.hash], depths[child.hash] = parent, depths[parent.hash] + 1
        if max(depths.values()) > _DEEPEST:
            raise RecursionError  # here, since Python ignores one within a callback of libclang
        return parents

    def parent(self, cursor: Cursor) -> Cursor:
        """What stands around it; the function where nothing of it does."""
        return self._parents.get(cursor.hash, self.cursor)

    def find_around(self, cursor: Cursor, kinds: tuple[str, ...] = WRAPPED) -> tuple[Cursor, Cursor]:
        """The cursor with what is of these kinds around it, and what stands around that."""
        while kind(parent := self.parent(cursor)) in kinds:
            cursor = parent
        return cursor, parent

    @cached_property
    def variables(self) -> dict[int, Variable]:
        """By the place of their declaration."""
        declared = walk(self.cursor, "VAR_DECL", "PARM_DECL")
        variables = {c.location.offset: Variable(c.spelling, c, kind(c) == "PARM_DECL") for c in declared}
        for cursor in names_in(self.body):
            named = variables.get(cursor.referenced.location.offset) if cursor.referenced else None
            # A value is read through a conversion that nobody wrote; whatever else is done with a variable changes it.
            if named and kind(self.find_around(cursor, ("PAREN_EXPR",))[1]) != "UNEXPOSED_EXPR":
                named.changes.append(span(cursor)[0])
        return variables

    def variable(self, cursor: Cursor) -> Variable | None:
        """The one that the cursor names."""
        if kind(cursor) != "DECL_REF_EXPR" or cursor.referenced is None:
            return None
        return self.variables.get(cursor.referenced.location.offset)

    def variables_in(self, cursor: Cursor) -> Iterator[Variable]:
        return (found for c in names_in(cursor) if (found := self.variable(c)) is not None)

    def find_variable(self, factor: Factor) -> Variable | None:
        """The variable that the factor is."""
        return self.variables.get(factor.declared) if factor.declared is not None else None

    @cached_property
    def _loops(self) -> list[tuple[Span, Span]]:
        """Each for loop with its body."""
        found = [c for c in walk(self.body, "FOR_STMT") if children(c)]
        return [(span(c), span(children(c)[-1])) for c in found]

    def is_same(self, variable: Variable, begin: int, end: int) -> bool:
        """Whether it has the same value at both places."""
        for change in variable.changes:
            heads = [body for loop, body in self._loops if loop[0] <= change < body[0]]
            if not any(b[0] <= begin < b[1] and b[0] <= end < b[1] for b in heads):
                return False
        return True

    def is_invariant(self, variable: Variable) -> bool:
        """Whether it is the same for every thread of a launch, all the time."""
        start = variable.initial
        if variable.changes or start is None:
            return not variable.changes and variable.is_parameter and variable.is_integer
        if any(walk(start, "ARRAY_SUBSCRIPT_EXPR", "CALL_EXPR", "MEMBER_REF_EXPR")):
            return False
        others = (self.variable(c) for c in names_in(start) if number(c) is None)
        return all(other is not None and self.is_invariant(other) for other in others)

    # -- arithmetic -------------------------------------------------------------------------------------

    def arithmetic(self, cursor: Cursor) -> Sum:
        return self.expression(cursor, span(cursor)[0])

    def expression(self, cursor: Cursor, at: int) -> Sum:
        """The integer expression with variables that are only names for other arithmetic put in, as it is at ``at``."""
        outer, cursor = cursor, peel(cursor)
        if (value := number(cursor)) is not None:
            leaf = self._leaf(outer, cursor, f"#{value}")
            return make_sum(replace(leaf, value=value, is_invariant=True))
        match kind(cursor), binary(cursor) or unary(cursor):
            case "BINARY_OPERATOR", "+" | "-" | "*" as operator:
                left, right = (self.expression(child, at) for child in children(cursor))
                if operator == "*":
                    return product(left, right)
                return (*left, *(right if operator == "+" else negate(right)))
            case "UNARY_OPERATOR", "+" | "-" as operator:
                operand = self.expression(children(cursor)[0], at)
                return operand if operator == "+" else negate(operand)
            case name, _ if name in _CASTS and type_kind(cursor) in _INTEGERS:
                operand = self.expression(children(cursor)[-1], at)
                if (inside := get_only_factor(operand)) is None:
                    return operand
                leaf = self._leaf(outer, cursor, inside.key)
                return make_sum(replace(leaf, declared=inside.declared, is_invariant=inside.is_invariant))
        variable = self.variable(cursor)
        if variable is None:
            return make_sum(replace(self._leaf(outer, cursor, self.spell(cursor)), is_block=is_block(cursor)))
        if (found := self._expand(variable, at)) is not None:
            return found
        leaf = self._leaf(outer, cursor, f"{variable.name}@{variable.place}")
        return make_sum(replace(
            leaf, declared=variable.place, is_invariant=self.is_invariant(variable),
            is_block=variable.initial is not None and is_block(peel(variable.initial)),
            is_parameter=variable.is_parameter,
        ))  # fmt: skip

    def _expand(self, variable: Variable, at: int) -> Sum | None:
        """What the variable stands for, where it still does at ``at`` and there is arithmetic in it."""
        start = variable.initial
        if start is None or variable.changes or not variable.is_integer:
            return None
        named = [c.spelling for c in names_in(start) if number(c) is None]
        if all(name in _LAUNCH for name in named) or {"blockDim", "gridDim"} & {*named}:
            return None  # what a thread knows of its launch, its number or a step: a name says more than arithmetic
        begin = span(start)[0]
        if any(walk(start, "ARRAY_SUBSCRIPT_EXPR", "CALL_EXPR", "CONDITIONAL_OPERATOR", "LAMBDA_EXPR")):
            return None
        if not all(self.is_same(other, begin, at) for other in self.variables_in(start)):
            return None
        found = self.expression(start, at)
        is_product = len(found[0].factors) > 1 and len(found) == 1 and found[0].sign > 0
        is_sum = len(found) > 1 or found[0].sign < 0
        return found if is_product or (is_sum and not self.is_invariant(variable)) else None

    def _leaf(self, outer: Cursor, cursor: Cursor, key: str) -> Factor:
        place = span(cursor)
        if not self.source.macro_around(place):
            return Factor(key, place)
        return Factor(key, None, self._macro_name(outer, cursor) or self.spell(cursor))

    def _macro_name(self, outer: Cursor, cursor: Cursor) -> str:
        """The name of the macro that the expression is, where it is one without arguments."""
        place = span(outer) if self.source.macro_around(span(outer)) == span(outer) else span(cursor)
        text = self.source.text(*place)
        parent = self.parent(outer)
        while kind(parent) in WRAPPED and span(parent) == place:
            parent = self.parent(parent)
        return text if text.isidentifier() and span(parent) != place else ""

    def spell(self, cursor: Cursor) -> str:
        """The expression as C++ text, made from what was parsed: for what a macro wrote."""
        cursor = peel(cursor)
        parts = children(cursor)
        match kind(cursor):
            case "DECL_REF_EXPR":
                return str(cursor.spelling)
            case "INTEGER_LITERAL":
                return str(number(cursor))
            case "BINARY_OPERATOR":
                return f"({self.spell(parts[0])} {binary(cursor)} {self.spell(parts[1])})"
            case "UNARY_OPERATOR":
                return f"({unary(cursor).removeprefix('p')}{self.spell(parts[0])})"
            case "MEMBER_REF_EXPR" if parts:
                return f"{self.spell(parts[0])}.{cursor.spelling}"
            case "CSTYLE_CAST_EXPR":
                return f"({cursor.type.spelling}){self.spell(parts[-1])}"
            case "CALL_EXPR" if parts and cursor.spelling:
                return f"{cursor.spelling}({', '.join(self.spell(part) for part in parts[1:])})"
            case _:
                return self.source.text(*span(cursor))

    # -- bounds -----------------------------------------------------------------------------------------

    @cached_property
    def bounds(self) -> list[Bound]:
        """What comparisons say: loops and conditions first, and those under which threads leave last."""
        bounds = []
        for cursor in walk(self.body, "BINARY_OPERATOR"):
            if (operator := binary(cursor)) not in _MIRRORED:
                continue
            left, right = children(cursor)
            is_loop, leaves = self._is_in(cursor)
            for one, other, seen in ((left, right, operator), (right, left, _MIRRORED[operator])):
                # Below the limit: i < n and, where a thread leaves, i >= n; i != n where a loop goes on.
                is_exit = seen in (">", ">=")
                if (is_exit if is_loop else seen == "!=") or (leaves and seen in ("<", "<=")):
                    continue
                more = 1 if seen in ("<=", ">") else 0
                if any(map(is_block, walk(one))):
                    bounds.append(Bound(None, one, other, more, is_loop, is_exit))
                for variable, plus in self._offset(one):
                    bounds.append(Bound(variable, one, other, more - plus, is_loop, is_exit))
        return sorted(bounds, key=lambda bound: (bound.is_exit, not bound.is_loop))

    def bounds_of(self, variable: Variable) -> Iterator[Bound]:
        return (bound for bound in self.bounds if bound.variable is variable)

    def _offset(self, cursor: Cursor) -> Iterator[tuple[Variable, int]]:
        """The variable and the number added to it, where the expression is no more than that."""
        cursor = peel(cursor)
        if (variable := self.variable(cursor)) is not None:
            yield variable, 0
        elif binary(cursor) in ("+", "-"):
            left, right = children(cursor)
            variable, value = self.variable(peel(left)), number(right)
            if variable is not None and value is not None:
                yield variable, value if binary(cursor) == "+" else -value

    def _is_in(self, comparison: Cursor) -> tuple[bool, bool]:
        """Whether it is in the head of a loop, and in a condition under which a thread leaves."""
        child, parent = self.find_around(comparison, (*WRAPPED, "BINARY_OPERATOR"))
        parts = children(parent)
        is_loop = kind(parent) in ("FOR_STMT", "WHILE_STMT") and parts[-1] != child
        if kind(parent) != "IF_STMT" or len(parts) < 2:
            return is_loop, False
        then = parts[1] if kind(parts[1]) != "COMPOUND_STMT" else (children(parts[1]) or [parts[1]])[-1]
        return is_loop, kind(then) == "RETURN_STMT"


def is_launch(cursor: Cursor, name: str, axis: str = "xyz") -> bool:
    """Whether it is ``name.axis``, of what a thread knows of its launch."""
    is_member = kind(cursor) == "MEMBER_REF_EXPR" and cursor.spelling in [*axis]
    return is_member and any(peel(child).spelling == name for child in children(cursor)[:1])


def is_block(cursor: Cursor) -> bool:
    return is_launch(cursor, "blockIdx")

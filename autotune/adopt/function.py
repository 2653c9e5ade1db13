"""What one function of a source does with its variables: where each changes, what bounds it, and its arithmetic."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from autotune.adopt.expression import Expression
from autotune.adopt.source import (
    Cursor,
    Source,
    Span,
    bare,
    binary,
    children,
    kind,
    number,
    span,
    unary,
    walk,
)

_CASTS = ("CSTYLE_CAST_EXPR", "CXX_FUNCTIONAL_CAST_EXPR", "CXX_STATIC_CAST_EXPR")
_INTEGERS = ("CHAR_S", "CHAR_U", "SCHAR", "UCHAR", "SHORT", "USHORT", "INT", "UINT", "LONG", "ULONG", "LONGLONG",
             "ULONGLONG", "BOOL", "ENUM")  # fmt: skip
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}


@dataclass
class Variable:
    """A parameter or local variable. ``changes`` are the places where it may get another value."""

    name: str
    cursor: Cursor
    is_parameter: bool
    changes: list[int] = field(default_factory=list)
    statement: Cursor = None

    @property
    def place(self) -> int:
        return int(self.cursor.location.offset)

    @property
    def initial(self) -> Cursor | None:
        if self.is_parameter:
            return None
        found = [c for c in children(self.cursor) if kind(c).endswith(("EXPR", "LITERAL", "OPERATOR"))]
        return found[-1] if found else None


@dataclass(frozen=True)
class Bound:
    """A variable is below ``limit`` + ``plus`` where the kernel goes on: the loop over it says so, or a condition, or
    one under which a thread leaves."""

    limit: Cursor
    plus: int
    is_loop: bool
    is_exit: bool


@dataclass
class Function:
    source: Source
    cursor: Cursor
    compared: dict[int, list[Cursor]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.cursor.spelling)

    @cached_property
    def body(self) -> Cursor:
        return next(c for c in children(self.cursor) if kind(c) == "COMPOUND_STMT")

    @cached_property
    def parameters(self) -> list[Cursor]:
        return [c for c in children(self.cursor) if kind(c) == "PARM_DECL"]

    @cached_property
    def parents(self) -> dict[int, Cursor]:
        """The parent of each cursor, by ``identity``."""
        found: dict[int, Cursor] = {}

        def visit(parent: Cursor) -> None:
            for child in parent.get_children():
                found[identity(child)] = parent
                visit(child)

        visit(self.cursor)
        return found

    def parent(self, cursor: Cursor) -> Cursor | None:
        return self.parents.get(identity(cursor))

    @cached_property
    def variables(self) -> dict[int, Variable]:
        """By the place of their declaration."""
        found: dict[int, Variable] = {}
        for cursor in walk(self.cursor):
            if kind(cursor) in ("VAR_DECL", "PARM_DECL"):
                variable = Variable(cursor.spelling, cursor, kind(cursor) == "PARM_DECL")
                parent = self.parent(cursor)
                variable.statement = parent if parent is not None and kind(parent) == "DECL_STMT" else None
                found[variable.place] = variable
        for cursor in walk(self.body):
            named = self._named(cursor, found)
            if named is None:
                continue
            parent = self.parent(cursor)
            while parent is not None and kind(parent) == "PAREN_EXPR":
                parent = self.parent(parent)
            # A value is read through a conversion that nobody wrote; whatever else is done with a variable changes it.
            if parent is None or kind(parent) != "UNEXPOSED_EXPR":
                named.changes.append(span(cursor)[0])
        return found

    def variable(self, cursor: Cursor) -> Variable | None:
        """The one that the cursor names."""
        return self._named(cursor, self.variables)

    @staticmethod
    def _named(cursor: Cursor, among: dict[int, Variable]) -> Variable | None:
        if kind(cursor) != "DECL_REF_EXPR" or cursor.referenced is None:
            return None
        return among.get(cursor.referenced.location.offset)

    @cached_property
    def loops(self) -> list[tuple[Span, Span]]:
        """Each for loop with its body."""
        found = [c for c in walk(self.body) if kind(c) == "FOR_STMT" and children(c)]
        return [(span(c), span(children(c)[-1])) for c in found]

    def is_same(self, variable: Variable, begin: int, end: int) -> bool:
        """Whether it has the same value at both places."""
        for change in variable.changes:
            heads = [body for loop, body in self.loops if loop[0] <= change < body[0]]
            if not any(b[0] <= begin < b[1] and b[0] <= end < b[1] for b in heads):
                return False
        return True

    def is_invariant(self, variable: Variable) -> bool:
        """Whether it is the same for every thread of a launch, all the time."""
        if variable.changes:
            return False
        if variable.is_parameter:
            return variable.cursor.type.get_canonical().kind.name in _INTEGERS
        start = variable.initial
        if start is None:
            return False
        for cursor in walk(start):
            if kind(cursor) in ("ARRAY_SUBSCRIPT_EXPR", "CALL_EXPR", "MEMBER_REF_EXPR"):
                return False
            if kind(cursor) == "DECL_REF_EXPR":
                other = self.variable(cursor)
                if number(cursor) is None and (other is None or not self.is_invariant(other)):
                    return False
        return True

    # -- arithmetic -------------------------------------------------------------------------------------

    def expression(self, cursor: Cursor, at: int) -> Expression:
        """The integer expression with variables that are only names for other arithmetic put in, as it is at ``at``."""
        outer, cursor = cursor, bare(cursor)
        if (value := number(cursor)) is not None:
            return self._leaf(outer, cursor, value=value, key=f"#{value}")
        name = kind(cursor)
        if name == "BINARY_OPERATOR" and binary(cursor) in ("+", "-", "*"):
            left, right = children(cursor)
            return Expression(
                "",
                binary(cursor),
                (self.expression(left, at), self.expression(right, at)),
                self._span(cursor),
            )
        if name == "UNARY_OPERATOR" and unary(cursor) in ("-", "+"):
            operand = self.expression(children(cursor)[0], at)
            return operand if unary(cursor) == "+" else Expression("", "neg", (operand,), self._span(cursor))
        if name in _CASTS and cursor.type.get_canonical().kind.name in _INTEGERS:
            operand = self.expression(children(cursor)[-1], at)
            if operand.operator:
                return operand
            return self._leaf(
                outer, cursor, key=operand.key, declared=operand.declared, fixed=operand.is_invariant
            )
        variable = self.variable(cursor)
        if variable is None:
            is_block = any(is_launch(cursor, "blockIdx", axis) for axis in "xyz")
            return replace(self._leaf(outer, cursor, key=self.spelled(cursor)), is_block=is_block)
        found = self._opened(variable, at)
        if found is not None:
            return found
        leaf = self._leaf(
            outer, cursor, key=f"{variable.name}@{variable.place}", declared=variable.place,
            fixed=self.is_invariant(variable),
        )  # fmt: skip
        start = variable.initial
        is_block = start is not None and any(is_launch(bare(start), "blockIdx", axis) for axis in "xyz")
        return replace(leaf, is_block=is_block, is_parameter=variable.is_parameter)

    def _opened(self, variable: Variable, at: int) -> Expression | None:
        """What the variable stands for, where it still does at ``at`` and there is arithmetic in it."""
        start = variable.initial
        if (
            start is None
            or variable.changes
            or variable.cursor.type.get_canonical().kind.name not in _INTEGERS
        ):
            return None
        begin = span(start)[0]
        if not self._has_sizes(start):
            return None
        for cursor in walk(start):
            if kind(cursor) in ("ARRAY_SUBSCRIPT_EXPR", "CALL_EXPR", "CONDITIONAL_OPERATOR", "LAMBDA_EXPR"):
                return None
            other = self.variable(cursor)
            if other is not None and not self.is_same(other, begin, at):
                return None
            if kind(cursor) == "DECL_REF_EXPR" and cursor.spelling in ("blockDim", "gridDim"):
                return None  # a thread's number, or a step: its name says more than its arithmetic
        found = self.expression(start, at)
        if not found.operator or (found.operator != "*" and self.is_invariant(variable)):
            return None
        return found

    def _has_sizes(self, start: Cursor) -> bool:
        """Whether there is more in it than what a thread knows of its launch and numbers."""
        named = [c for c in walk(start) if kind(c) == "DECL_REF_EXPR" and number(c) is None]
        return any(c.spelling not in ("threadIdx", "blockIdx", "blockDim", "gridDim") for c in named)

    def _span(self, cursor: Cursor) -> Span | None:
        place = span(cursor)
        return None if self.source.macro_around(place) else place

    def _leaf(
        self, outer: Cursor, cursor: Cursor, key: str, value: int | None = None, declared: int | None = None,
        fixed: bool = False,
    ) -> Expression:  # fmt: skip
        place = self._span(cursor)
        spelling = "" if place else self._macro_name(outer, cursor) or self.spelled(cursor)
        return Expression(key, "", (), place, spelling, value, declared, fixed or value is not None)

    def _macro_name(self, outer: Cursor, cursor: Cursor) -> str:
        """The name of the macro that the expression is, where it is one without arguments."""
        place = span(outer) if self.source.macro_around(span(outer)) == span(outer) else span(cursor)
        text = self.source.text(*place)
        parent = self.parent(outer)
        while parent is not None and kind(parent) in ("UNEXPOSED_EXPR", "PAREN_EXPR"):
            if span(parent) != place:
                break
            parent = self.parent(parent)
        is_outermost = parent is None or span(parent) != place
        return text if text.isidentifier() and is_outermost else ""

    def spelled(self, cursor: Cursor) -> str:
        """The expression as C++ text, made from what was parsed: for what a macro wrote."""
        cursor = bare(cursor)
        parts = children(cursor)
        match kind(cursor):
            case "DECL_REF_EXPR":
                return str(cursor.spelling)
            case "INTEGER_LITERAL":
                return str(number(cursor))
            case "BINARY_OPERATOR":
                return f"({self.spelled(parts[0])} {binary(cursor)} {self.spelled(parts[1])})"
            case "UNARY_OPERATOR":
                return f"({unary(cursor).removeprefix('p')}{self.spelled(parts[0])})"
            case "MEMBER_REF_EXPR" if parts:
                return f"{self.spelled(parts[0])}.{cursor.spelling}"
            case "CSTYLE_CAST_EXPR":
                return f"({cursor.type.spelling}){self.spelled(parts[-1])}"
            case "CALL_EXPR" if parts and cursor.spelling:
                return f"{cursor.spelling}({', '.join(self.spelled(part) for part in parts[1:])})"
            case _:
                return self.source.text(*span(cursor))

    # -- bounds -----------------------------------------------------------------------------------------

    @cached_property
    def bounds(self) -> dict[int, list[Bound]]:
        """What comparisons say of each variable, by the place of its declaration; of what has a block's number in it,
        by a negative number, with the expression in ``compared``."""
        found: dict[int, list[Bound]] = {}
        for cursor in walk(self.body):
            operator = binary(cursor) if kind(cursor) == "BINARY_OPERATOR" else ""
            if operator not in _MIRRORED:
                continue
            left, right = children(cursor)
            is_loop, leaves = self._is_head(cursor), self._leaves(cursor)
            for one, other, seen in ((left, right, operator), (right, left, _MIRRORED[operator])):
                # Below the limit: i < n and, where a thread leaves, i >= n; i != n where a loop goes on.
                if (is_loop and seen in (">", ">=")) or (not is_loop and seen == "!="):
                    continue
                if leaves and seen in ("<", "<="):  # what goes on is not below it
                    continue
                more = 1 if seen in ("<=", ">") else 0
                if any(is_launch(c, "blockIdx", axis) for c in walk(one) for axis in "xyz"):
                    key = -1 - span(one)[0]
                    self.compared[key] = [one]
                    found.setdefault(key, []).append(Bound(other, more, is_loop, seen in (">", ">=")))
                for variable, plus in self._offset(one):
                    bound = Bound(other, more - plus, is_loop, seen in (">", ">="))
                    found.setdefault(variable.place, []).append(bound)
        return found

    def _offset(self, cursor: Cursor) -> Iterator[tuple[Variable, int]]:
        """The variable and the number added to it, where the expression is no more than that."""
        cursor = bare(cursor)
        if (variable := self.variable(cursor)) is not None:
            yield variable, 0
        elif kind(cursor) == "BINARY_OPERATOR" and binary(cursor) in ("+", "-"):
            left, right = children(cursor)
            variable, value = self.variable(bare(left)), number(right)
            if variable is not None and value is not None:
                yield variable, value if binary(cursor) == "+" else -value

    def _leaves(self, cursor: Cursor) -> bool:
        """Whether it is part of a condition under which a thread leaves."""
        parent = self.parent(cursor)
        while parent is not None and kind(parent) in ("UNEXPOSED_EXPR", "PAREN_EXPR", "BINARY_OPERATOR"):
            parent = self.parent(parent)
        if parent is None or kind(parent) != "IF_STMT" or len(children(parent)) < 2:
            return False
        then = children(parent)[1]
        return (
            kind(([then] if kind(then) != "COMPOUND_STMT" else children(then) or [then])[-1]) == "RETURN_STMT"
        )

    def _is_head(self, cursor: Cursor) -> bool:
        parent, child = self.parent(cursor), cursor
        while parent is not None and kind(parent) in ("UNEXPOSED_EXPR", "PAREN_EXPR", "BINARY_OPERATOR"):
            parent, child = self.parent(parent), parent
        if parent is None or kind(parent) not in ("FOR_STMT", "WHILE_STMT"):
            return False
        return identity(children(parent)[-1]) != identity(child)


def is_launch(cursor: Cursor, name: str, axis: str) -> bool:
    """Whether it is ``name.axis``, of what a thread knows of its launch."""
    return (
        kind(cursor) == "MEMBER_REF_EXPR"
        and cursor.spelling == axis
        and bool(children(cursor))
        and bare(children(cursor)[0]).spelling == name
    )


def identity(cursor: Cursor) -> int:
    """Tells one cursor of a parse from all others: libclang's own hash."""
    return int(cursor.hash)

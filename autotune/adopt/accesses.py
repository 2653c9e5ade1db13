"""Every use of a kernel's pointers: which element, and what is done with it; or why it cannot be said."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from autotune.adopt.expression import Expression, Span, Sum, names, terms
from autotune.adopt.function import Function, Variable, identity
from autotune.adopt.source import Cursor, bare, binary, children, kind, span, unary, walk

_TRANSPARENT = ("UNEXPOSED_EXPR", "PAREN_EXPR")
ZERO = Expression("#0", spelling="0", value=0)


class NotFollowed(Exception):
    """A use of a pointer that has no index; says why."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line, self.why = line, why


@dataclass(frozen=True)
class Access:
    """One element's use. ``place`` is the text to replace, ``use`` what is done: ``load``, ``store``, ``add``,
    ``element`` (its place is needed: assigned within an expression, added to, passed by reference), ``address`` (the
    address of an element, given to a function). ``member`` is the first field where a part of a record is written,
    ``tail`` what follows the element (``.`` for an arrow), ``value`` what is stored or added."""

    place: Span
    index: Sum
    use: str
    line: int
    given: Cursor | None = None
    member: str = ""
    tail: str = ""
    value: Span | None = None
    reads: bool = False
    writes: bool = False


@dataclass(frozen=True)
class Passed:
    """A whole pointer given to a function of the source."""

    callee: str
    number: int
    place: Span
    line: int


@dataclass
class Pointer:
    """A parameter with all its uses. ``reason`` says why it stays a pointer, empty where it need not. ``removed`` are
    the declarations of pointers that only name a place in it, ``through`` the parameters of functions that it is passed
    to."""

    variable: Variable
    accesses: list[Access] = field(default_factory=list)
    passed: list[Passed] = field(default_factory=list)
    removed: list[Span] = field(default_factory=list)
    reason: str = ""
    line: int = 0
    through: list["Pointer"] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.variable.name

    @property
    def is_read(self) -> bool:
        return any(access.reads for access in self.accesses) or any(other.is_read for other in self.through)

    @property
    def is_written(self) -> bool:
        return any(access.writes for access in self.accesses) or any(
            other.is_written for other in self.through
        )


@dataclass
class Uses:
    """The pointers among a function's parameters."""

    function: Function

    @cached_property
    def pointers(self) -> dict[str, Pointer]:
        found = {}
        for cursor in self.function.parameters:
            if cursor.type.get_canonical().kind.name in ("POINTER", "INCOMPLETEARRAY"):
                variable = self.function.variables[cursor.location.offset]
                found[variable.name] = self._pointer(variable)
        return found

    def _pointer(self, variable: Variable) -> Pointer:
        pointer = Pointer(variable)
        try:
            self._collect(pointer, variable, ())
            self._refuse_two_uses(pointer)
        except NotFollowed as problem:
            pointer.reason, pointer.line = problem.why, problem.line
        return pointer

    @staticmethod
    def _refuse_two_uses(pointer: Pointer) -> None:
        """An argument that a macro has twice is one text: it cannot be read here and written there."""
        uses: dict[Span, str] = {}
        for access in pointer.accesses:
            if uses.setdefault(access.place, access.use) != access.use:
                raise NotFollowed(access.line, f"a macro reads and writes the same element of {pointer.name}")

    def _collect(self, pointer: Pointer, variable: Variable, offset: Sum) -> None:
        for cursor in walk(self.function.body):
            if self.function.variable(cursor) is variable:
                self._use(pointer, cursor, offset)

    # -- from the pointer's name up to the element ------------------------------------------------------

    def _use(self, pointer: Pointer, cursor: Cursor, offset: Sum) -> None:
        function = self.function
        at, line = span(cursor)[0], function.source.line(span(cursor)[0])
        node, parent = self._up(cursor)
        while kind(parent) == "BINARY_OPERATOR" and binary(parent) in ("+", "-") and is_pointer(parent):
            left, right = children(parent)
            other = right if identity(left) == identity(node) else left
            sign = -1 if binary(parent) == "-" else 1
            offset = (*offset, *terms(function.expression(other, at), sign))
            node, parent = self._up(parent)
        match kind(parent):
            case "ARRAY_SUBSCRIPT_EXPR" if identity(children(parent)[0]) == identity(node):
                index = (*offset, *terms(function.expression(children(parent)[1], at)))
                self._element(pointer, parent, index, line, children(parent)[1])
            case "UNARY_OPERATOR" if unary(parent) == "*":
                self._element(pointer, parent, offset or terms(ZERO), line)
            case "MEMBER_REF_EXPR":
                self._arrow(pointer, parent, offset or terms(ZERO), line)
            case "VAR_DECL":
                self._alias(pointer, parent, offset, line)
            case "CALL_EXPR":
                self._call(pointer, parent, node, cursor, offset, line)
            case _:
                raise NotFollowed(line, self._other(pointer, parent))

    def _up(self, cursor: Cursor) -> tuple[Cursor, Cursor]:
        """The cursor with the parentheses and conversions around it, and what stands around those."""
        parent = self.function.parent(cursor)
        while parent is not None and kind(parent) in _TRANSPARENT:
            cursor, parent = parent, self.function.parent(parent)
        assert parent is not None, "an expression stands in a function"
        return cursor, parent

    def _other(self, pointer: Pointer, parent: Cursor) -> str:
        name, operator = pointer.name, binary(parent) or unary(parent)
        if operator in ("==", "!=") or kind(parent) in ("IF_STMT", "CONDITIONAL_OPERATOR"):
            return f"{name} is compared or tested as a pointer"
        if operator.endswith("=") or operator in ("++", "--", "p++", "p--"):
            return f"{name} is moved ({operator.removeprefix('p')}), so where it points to is not known here"
        if "CAST" in kind(parent):
            return f"{name} is read as another type ({parent.type.spelling})"
        return f"{name} is used as a pointer in a way that has no index ({kind(parent).lower()})"

    def _alias(self, pointer: Pointer, declared: Cursor, offset: Sum, line: int) -> None:
        """``const float* row = x + i * n;``: what is done with row is done with x."""
        variable = self.function.variables[declared.location.offset]
        statement = variable.statement
        if not is_pointer(declared):
            raise NotFollowed(line, f"{pointer.name} becomes {declared.type.spelling} {declared.spelling}")
        if variable.changes:
            changed = self.function.source.line(variable.changes[0])
            raise NotFollowed(
                line, f"{pointer.name} becomes {declared.spelling}, which changes in line {changed}"
            )
        if statement is None or len(children(statement)) != 1:
            raise NotFollowed(
                line, f"{pointer.name} becomes {declared.spelling}, declared beside other variables"
            )
        begin = span(declared)[0]
        for name in names_in(declared):
            other = self.function.variable(name)
            if other is not None and any(change > begin for change in other.changes):
                last = max(
                    span(use)[1]
                    for use in walk(self.function.body)
                    if self.function.variable(use) is variable
                )
                if not self.function.is_same(other, begin, last):
                    why = f"{pointer.name} becomes {declared.spelling}, and {other.name} in it changes after that"
                    raise NotFollowed(line, why)
        pointer.removed.append(span(statement))
        self._collect(pointer, variable, offset)

    def _call(
        self, pointer: Pointer, call: Cursor, node: Cursor, name: Cursor, offset: Sum, line: int
    ) -> None:
        function = call.spelling
        if function.startswith("atomic") or function == "__ldg":
            self._by_address(pointer, call, node, offset or terms(ZERO), line)
            return
        arguments = [identity(argument) for argument in call.get_arguments()]
        if not offset and identity(node) in arguments and function in self.function.source.functions:
            pointer.passed.append(Passed(function, arguments.index(identity(node)), span(name), line))
            return
        what = f"a place in {pointer.name}" if offset else pointer.name
        raise NotFollowed(line, f"{what} is passed to {function or 'a function'}")

    # -- from the element to what is done with it -------------------------------------------------------

    def _arrow(self, pointer: Pointer, member: Cursor, index: Sum, line: int) -> None:
        """``p->x``, where p is the pointer or one that was added to."""
        begin, end = span(member)
        text = self.function.source.text(begin, end)
        arrow = text.rfind("->")
        if self.function.source.macro_around((begin, end)) or arrow < 0:
            raise NotFollowed(line, f"{pointer.name} is used inside a macro")
        place = (begin, begin + len(text[: arrow + 2].encode()))
        self._record(pointer, member, place, index, line, ".")

    def _element(
        self, pointer: Pointer, element: Cursor, index: Sum, line: int, given: Cursor | None = None
    ) -> None:
        place = span(element)
        macro = self.function.source.macro_around(place)
        if macro and (place != macro or self._is_part(element, macro)):
            text = self.function.source.text(*macro).split("(")[0]
            raise NotFollowed(line, f"{pointer.name} is one part of what the macro {text} stands for")
        parent = self.function.parent(element)
        while parent is not None and kind(parent) == "PAREN_EXPR":
            element, parent = parent, self.function.parent(parent)
        if parent is not None and kind(parent) == "MEMBER_REF_EXPR":
            self._record(pointer, parent, place, index, line, "", given)
            return
        self._finish(pointer, element, place, index, line, given=given)

    def _is_part(self, element: Cursor, macro: Span) -> bool:
        parent = self.function.parent(element)
        while parent is not None and kind(parent) in _TRANSPARENT:
            parent = self.function.parent(parent)
        return parent is not None and span(parent) == macro

    def _record(
        self, pointer: Pointer, member: Cursor, place: Span, index: Sum, line: int, tail: str,
        given: Cursor | None = None,
    ) -> None:  # fmt: skip
        """A field of an element, or a part of that."""
        top, parent = member, self.function.parent(member)
        while parent is not None and (
            kind(parent) in ("PAREN_EXPR", "MEMBER_REF_EXPR")
            or (kind(parent) == "UNEXPOSED_EXPR" and "ARRAY" in top.type.get_canonical().kind.name)
            or (
                kind(parent) == "ARRAY_SUBSCRIPT_EXPR"
                and identity(bare(children(parent)[0])) == identity(bare(top))
            )
        ):
            top, parent = parent, self.function.parent(parent)
        if kind(member.referenced) != "FIELD_DECL":
            raise NotFollowed(line, f"a function of an element of {pointer.name} is called")
        self._finish(pointer, top, place, index, line, member, tail, given)

    def _finish(
        self, pointer: Pointer, top: Cursor, place: Span, index: Sum, line: int, member: Cursor | None = None,
        tail: str = "", given: Cursor | None = None,
    ) -> None:  # fmt: skip
        """``top`` is the element or the part of it that is read or written."""
        whole = Access(place, index, "load", line, given, tail=tail, reads=True)
        parent = self.function.parent(top)
        assert parent is not None, "an element stands in a function"
        written = span(member) if member is not None else place
        name = member.spelling if member is not None else ""
        plain = Access(written, index, "element", line, given, name, reads=True, writes=True)
        match kind(parent):
            case "UNEXPOSED_EXPR":
                pointer.accesses.append(whole)
            case "BINARY_OPERATOR" if binary(parent) == "=" and identity(children(parent)[0]) == identity(
                top
            ):
                pointer.accesses.append(self._assigned(parent, plain, children(parent)[1]))
            case "CALL_EXPR" if parent.spelling == "operator=" and len(children(parent)) == 3:
                target, _, value = children(parent)
                if identity(bare(target)) != identity(bare(top)):
                    pointer.accesses.append(whole)
                else:
                    pointer.accesses.append(self._assigned(parent, plain, value))
            case "COMPOUND_ASSIGNMENT_OPERATOR":
                pointer.accesses.append(plain)
            case "UNARY_OPERATOR" if unary(parent) in ("++", "--", "p++", "p--"):
                pointer.accesses.append(plain)
            case "UNARY_OPERATOR" if unary(parent) == "&":
                node, call = self._up(parent)
                if kind(call) != "CALL_EXPR":
                    raise NotFollowed(line, f"the address of an element of {pointer.name} is kept")
                self._by_address(pointer, call, node, index, line, plain)
            case "VAR_DECL" | "CALL_EXPR" | "RETURN_STMT" | "CONDITIONAL_OPERATOR" if is_constant(pointer):
                pointer.accesses.append(whole)
            case "CALL_EXPR":
                pointer.accesses.append(plain)
            case _:
                raise NotFollowed(
                    line, f"an element of {pointer.name} is used in a way that is not known here"
                )

    def _assigned(self, assignment: Cursor, plain: Access, value: Cursor) -> Access:
        """A statement ``x[i] = v`` is a store; anywhere else an element is assigned to where it lies."""
        begin, end = span(assignment)
        source = self.function.source
        simple = source.text(plain.place[1], span(value)[0]).strip() == "=" and not plain.member
        is_alone = self._is_statement(assignment) and not source.macro_around((begin, end))
        loads = any(factor.span is None or self._loads(factor.span) for factor in names(plain.index))
        use = "store" if simple and is_alone and not loads and not self._is_list(value) else "element"
        place = (begin, end) if use == "store" else plain.place
        return Access(
            place, plain.index, use, plain.line, plain.given, plain.member, value=span(value), writes=True
        )

    @staticmethod
    def _is_list(value: Cursor) -> bool:
        return kind(bare(value)) == "INIT_LIST_EXPR"

    def _loads(self, place: Span) -> bool:
        """Whether the text may read memory: its order against the value's would be another."""
        text = self.function.source.text(*place)
        return "[" in text or "*" in text.lstrip("*(") or "->" in text

    def _is_statement(self, cursor: Cursor) -> bool:
        parent = self.function.parent(cursor)
        while parent is not None and kind(parent) == "UNEXPOSED_EXPR":
            cursor, parent = parent, self.function.parent(parent)
        if parent is None or kind(parent) == "COMPOUND_STMT":
            return parent is not None
        if kind(parent) in ("CASE_STMT", "DEFAULT_STMT", "LABEL_STMT"):
            return True
        if kind(parent) == "IF_STMT":
            return identity(children(parent)[0]) != identity(cursor)
        return kind(parent) in ("FOR_STMT", "WHILE_STMT") and identity(children(parent)[-1]) == identity(
            cursor
        )

    def _by_address(
        self, pointer: Pointer, call: Cursor, node: Cursor, index: Sum, line: int, plain: Access | None = None
    ) -> None:
        function, arguments = call.spelling, list(call.get_arguments())
        member = plain.member if plain else ""
        if function == "__ldg" and not member:
            pointer.accesses.append(Access(span(call), index, "load", line, reads=True))
            return
        if not function.startswith("atomic"):
            raise NotFollowed(
                line, f"the address of an element of {pointer.name} is passed to {function or 'a function'}"
            )
        is_added = function == "atomicAdd" and not member and self._is_statement(call)
        if is_added and not self.function.source.macro_around(span(call)):
            value = span(arguments[1])
            pointer.accesses.append(
                Access(span(call), index, "add", line, value=value, reads=True, writes=True)
            )
            return
        pointer.accesses.append(
            Access(span(bare(node)), index, "address", line, member=member, reads=True, writes=True)
        )


def names_in(cursor: Cursor) -> Iterator[Cursor]:
    yield from (c for c in walk(cursor) if kind(c) == "DECL_REF_EXPR")


def is_pointer(cursor: Cursor) -> bool:
    return str(cursor.type.get_canonical().kind.name) in ("POINTER", "INCOMPLETEARRAY", "CONSTANTARRAY")


def is_constant(pointer: Pointer) -> bool:
    """Whether what it points to is const."""
    return bool(pointer.variable.cursor.type.get_canonical().get_pointee().is_const_qualified())

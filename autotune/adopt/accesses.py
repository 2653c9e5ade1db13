"""Every use of a kernel's pointers: which element, and what is done with it; or why it cannot be said."""

from dataclasses import dataclass, field, replace
from functools import cached_property

from autotune.adopt.elements import find_half
from autotune.adopt.expression import ZERO, Sum, names, negate
from autotune.adopt.function import Function, Variable
from autotune.adopt.source import Cursor, Span, binary, children, kind, names_in, peel, span, type_kind, unary

_POINTERS = ("POINTER", "INCOMPLETEARRAY")
_STEPS = ("++", "--", "p++", "p--")


class NotFollowed(Exception):
    """A use of a pointer that has no index; says why."""

    line = 0


@dataclass(frozen=True)
class Access:
    """One use of an array element. ``place`` is the text to replace, ``use`` what the kernel does: ``load``, ``store``,
    ``add``, ``element`` (it needs the element's place: to assign within an expression, to pass by reference),
    ``address`` (it passes the element's address to a function). ``member`` is the first field where the kernel writes a
    part of a record, ``tail`` what follows the element (``.`` for an arrow), ``value`` what is stored or added,
    ``given`` the index in the source."""

    place: Span
    index: Sum
    use: str = "load"
    given: Cursor | None = None
    member: str = ""
    tail: str = ""
    value: Span | None = None
    reads: bool = True

    @property
    def writes(self) -> bool:
        return self.use != "load"


@dataclass(frozen=True)
class Passed:
    """A whole pointer given to a function of the source."""

    callee: str
    number: int
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
        return any(a.writes for a in self.accesses) or any(other.is_written for other in self.through)

    @property
    def element(self) -> Cursor:
        """The type of what it points to."""
        declared = self.variable.cursor.type.get_canonical()
        return declared.get_pointee() if declared.kind.name == "POINTER" else declared.element_type

    @property
    def is_constant(self) -> bool:
        return bool(self.variable.cursor.type.get_canonical().get_pointee().is_const_qualified())

    def keep_plain(self, reason: str, line: int) -> None:
        """It does, if for no other reason."""
        if not self.reason:
            self.reason, self.line = reason, line


@dataclass
class Uses:
    """The pointers among a function's parameters."""

    function: Function

    @cached_property
    def pointers(self) -> dict[str, Pointer]:
        variables = [self.function.variables[c.location.offset] for c in self.function.parameters]
        pointers = [Pointer(v) for v in variables if type_kind(v.cursor) in _POINTERS]
        for pointer in pointers:
            try:
                _Followed(self.function, pointer).collect(pointer.variable, ())
            except NotFollowed as problem:
                pointer.keep_plain(str(problem), problem.line)
            whole = all(access.use in ("load", "store") for access in pointer.accesses)
            if not whole and find_half(pointer.element):
                line = self.function.source.line(pointer.variable.place)
                pointer.keep_plain("a number of 16 bits is read and written as a whole only", line)
        return {pointer.name: pointer for pointer in pointers}


@dataclass
class _Followed:
    function: Function
    pointer: Pointer

    def collect(self, variable: Variable, offset: Sum) -> None:
        for cursor in names_in(self.function.body):
            if self.function.variable(cursor) is variable:
                try:
                    self._use(cursor, offset)
                except NotFollowed as problem:
                    problem.line = problem.line or self.function.source.line(span(cursor)[0])
                    raise

    def _add(self, access: Access) -> None:
        """An argument that a macro has twice is one text: it cannot be read here and written there."""
        if any(a.place == access.place and a.use != access.use for a in self.pointer.accesses):
            raise NotFollowed(f"a macro reads and writes the same element of {self.pointer.name}")
        self.pointer.accesses.append(access)

    # -- from the pointer's name up to the element ------------------------------------------------------

    def _use(self, cursor: Cursor, offset: Sum) -> None:
        function, at = self.function, span(cursor)[0]
        node, parent = function.find_around(cursor)
        while binary(parent) in ("+", "-") and is_pointer(parent):
            left, right = children(parent)
            moved = function.expression(right if left == node else left, at)
            offset = (*offset, *(negate(moved) if binary(parent) == "-" else moved))
            node, parent = function.find_around(parent)
        match kind(parent):
            case "ARRAY_SUBSCRIPT_EXPR" if children(parent)[0] == node:
                index = children(parent)[1]
                self._element(parent, (*offset, *function.expression(index, at)), index)
            case "UNARY_OPERATOR" if unary(parent) == "*":
                self._element(parent, offset or ZERO)
            case "MEMBER_REF_EXPR":
                self._arrow(parent, offset or ZERO)
            case "VAR_DECL":
                self._alias(parent, offset)
            case "CALL_EXPR":
                self._call(parent, node, cursor, offset)
            case _:
                raise NotFollowed(self._describe_other_use(parent))

    def _describe_other_use(self, parent: Cursor) -> str:
        name, operator = self.pointer.name, binary(parent) or unary(parent)
        if operator in ("==", "!=") or kind(parent) in ("IF_STMT", "CONDITIONAL_OPERATOR"):
            return f"{name} is compared or tested as a pointer"
        if operator.endswith("=") or operator in _STEPS:
            return f"{name} is moved ({operator.removeprefix('p')}), so where it points to is not known here"
        if "CAST" in kind(parent):
            return f"{name} is read as another type ({parent.type.spelling})"
        return f"{name} is used as a pointer in a way that has no index ({kind(parent).lower()})"

    def _alias(self, declared: Cursor, offset: Sum) -> None:
        """``const float* row = x + i * n;``: what is done with row is done with x."""
        function, statement = self.function, self.function.parent(declared)
        variable = function.variables[declared.location.offset]
        becomes = f"{self.pointer.name} becomes {declared.spelling}"
        if not is_pointer(declared):
            raise NotFollowed(f"{self.pointer.name} becomes {declared.type.spelling} {declared.spelling}")
        if variable.changes:
            raise NotFollowed(f"{becomes}, which changes in line {function.source.line(variable.changes[0])}")
        if kind(statement) != "DECL_STMT" or len(children(statement)) != 1:
            raise NotFollowed(f"{becomes}, declared with other variables")
        begin = span(declared)[0]
        ends = [span(use)[1] for use in names_in(function.body) if function.variable(use) is variable]
        for other in function.variables_in(declared):
            is_later = any(change > begin for change in other.changes)
            if is_later and not function.is_same(other, begin, max([begin, *ends])):
                raise NotFollowed(f"{becomes}, and {other.name} in it changes after that")
        self.pointer.removed.append(span(statement))
        self.collect(variable, offset)

    def _call(self, call: Cursor, node: Cursor, name: Cursor, offset: Sum) -> None:
        function, arguments = call.spelling, list(call.get_arguments())
        if function.startswith("atomic") or function == "__ldg":
            self._follow_address(call, node, offset or ZERO)
        elif not offset and node in arguments and function in self.function.source.functions:
            line = self.function.source.line(span(name)[0])
            self.pointer.passed.append(Passed(function, arguments.index(node), line))
        else:
            what = f"a place in {self.pointer.name}" if offset else self.pointer.name
            raise NotFollowed(f"{what} is passed to {function or 'a function'}")

    # -- from the element to what is done with it -------------------------------------------------------

    def _arrow(self, member: Cursor, index: Sum) -> None:
        """``p->x``, where p is the pointer or one that was added to."""
        begin, end = span(member)
        text = self.function.source.text(begin, end)
        arrow = text.rfind("->")
        if self.function.source.macro_around((begin, end)) or arrow < 0:
            raise NotFollowed(f"{self.pointer.name} is used inside a macro")
        self._record(member, Access((begin, begin + len(text[: arrow + 2].encode())), index, tail="."))

    def _element(self, element: Cursor, index: Sum, given: Cursor | None = None) -> None:
        place, source = span(element), self.function.source
        macro = source.macro_around(place)
        if macro and (place != macro or span(self.function.find_around(element)[1]) == macro):
            part = source.text(*macro).split("(")[0]
            raise NotFollowed(f"{self.pointer.name} is one part of what the macro {part} stands for")
        element, parent = self.function.find_around(element, ("PAREN_EXPR",))
        whole = Access(place, index, given=given)
        if kind(parent) == "MEMBER_REF_EXPR" and kind(parent.referenced) == "CONVERSION_FUNCTION":
            self._add(whole)
        elif kind(parent) == "MEMBER_REF_EXPR":
            self._record(parent, whole)
        else:
            self._finish(element, whole)

    def _record(self, member: Cursor, whole: Access) -> None:
        """A field of an element, or a part of that."""
        top, parent = member, self.function.parent(member)
        while (
            kind(parent) in ("PAREN_EXPR", "MEMBER_REF_EXPR")
            or (kind(parent) == "UNEXPOSED_EXPR" and "ARRAY" in type_kind(top))
            or (kind(parent) == "ARRAY_SUBSCRIPT_EXPR" and peel(children(parent)[0]) == peel(top))
        ):
            top, parent = parent, self.function.parent(parent)
        if kind(member.referenced) != "FIELD_DECL":
            raise NotFollowed(f"a function of an element of {self.pointer.name} is called")
        self._finish(top, whole, member)

    def _finish(self, top: Cursor, whole: Access, member: Cursor | None = None) -> None:
        """``top`` is the element or the part of it that is read or written."""
        parent, parts = self.function.parent(top), children(self.function.parent(top))
        plain, name = replace(whole, use="element", tail=""), self.pointer.name
        if member is not None:
            plain = replace(plain, place=span(member), member=member.spelling)
        match kind(parent):
            case "UNEXPOSED_EXPR":
                self._add(whole)
            case "BINARY_OPERATOR" if binary(parent) == "=" and parts[0] == top:
                self._add(self._assign(parent, plain, parts[1]))
            case "CALL_EXPR" if parent.spelling == "operator=" and len(parts) == 3:
                is_target = peel(parts[0]) == peel(top)
                self._add(self._assign(parent, plain, parts[2]) if is_target else whole)
            case "COMPOUND_ASSIGNMENT_OPERATOR":
                self._add(plain)
            case "UNARY_OPERATOR" if unary(parent) in _STEPS:
                self._add(plain)
            case "UNARY_OPERATOR" if unary(parent) == "&":
                node, call = self.function.find_around(parent)
                if kind(call) != "CALL_EXPR":
                    raise NotFollowed(f"the address of an element of {name} is kept")
                self._follow_address(call, node, plain.index, plain.member)
            case "VAR_DECL" | "RETURN_STMT" | "CONDITIONAL_OPERATOR" if self.pointer.is_constant:
                self._add(whole)
            case "CALL_EXPR":
                is_copied = find_half(self.pointer.element) and kind(parent.referenced) == "CONSTRUCTOR"
                self._add(whole if self.pointer.is_constant or is_copied else plain)
            case _:
                raise NotFollowed(f"an element of {name} is used in a way that is not known here")

    def _assign(self, assignment: Cursor, plain: Access, value: Cursor) -> Access:
        """A statement ``x[i] = v`` is a store; anywhere else an element is assigned to where it is."""
        source, place = self.function.source, span(assignment)
        is_simple = source.text(plain.place[1], span(value)[0]).strip() == "=" and not plain.member
        is_alone = self._is_statement(assignment) and not source.macro_around(place)
        loads = any(factor.span is None or self._loads(factor.span) for factor in names(plain.index))
        plain = replace(plain, value=span(value), reads=False)
        if is_simple and is_alone and not loads and kind(peel(value)) != "INIT_LIST_EXPR":
            return replace(plain, place=place, use="store")
        return plain

    def _loads(self, place: Span) -> bool:
        """Whether the text may read memory: its order against the value's would be another."""
        text = self.function.source.text(*place)
        return "[" in text or "*" in text.lstrip("*(") or "->" in text

    def _is_statement(self, cursor: Cursor) -> bool:
        cursor, parent = self.function.find_around(cursor, ("UNEXPOSED_EXPR",))
        if kind(parent) == "IF_STMT":
            return bool(children(parent)[0] != cursor)
        if kind(parent) in ("FOR_STMT", "WHILE_STMT"):
            return bool(children(parent)[-1] == cursor)
        return kind(parent) in ("COMPOUND_STMT", "CASE_STMT", "DEFAULT_STMT", "LABEL_STMT")

    def _follow_address(self, call: Cursor, node: Cursor, index: Sum, member: str = "") -> None:
        function = call.spelling
        is_added = function == "atomicAdd" and not member and self._is_statement(call)
        if function == "__ldg" and not member:
            self._add(Access(span(call), index))
        elif not function.startswith("atomic"):
            why = f"the address of an element of {self.pointer.name} is passed to {function or 'a function'}"
            raise NotFollowed(why)
        elif is_added and not self.function.source.macro_around(span(call)):
            self._add(Access(span(call), index, "add", value=span(list(call.get_arguments())[1])))
        else:
            self._add(Access(span(peel(node)), index, "address", member=member))


def is_pointer(cursor: Cursor) -> bool:
    return type_kind(cursor) in (*_POINTERS, "CONSTANTARRAY")

"""Functions that a kernel passes its arrays to: they become templates over the accessor, and take any layout.

A function is followed where every call of it passes accessors only: what it is given as a plain pointer, a tile in
shared memory for one, has no load and no store.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from autotune.adopt.accesses import Pointer, Uses
from autotune.adopt.function import Function
from autotune.adopt.rewriting import Text, rewrite_accesses
from autotune.adopt.source import CudaSource, Cursor, kind, names_in, parameters, span, walk

_DEEPEST = 8

_Key = tuple[str, int]  # a function, and which parameter of it


@dataclass
class Callees:
    """``followed`` has the pointers that became accessors, by function and number of the parameter."""

    source: CudaSource
    kernel: Uses
    functions: list[Cursor]
    followed: dict[_Key, Pointer] = field(default_factory=dict)
    uses: dict[str, Uses] = field(default_factory=dict)

    def follow(self) -> None:
        """Give each pointer of the kernel that is passed on what the functions do with it, or a reason to stay one."""
        for pointer in self.kernel.pointers.values():
            if not pointer.reason:
                followed: dict[_Key, Pointer] = {}
                pointer.keep_plain(*self._reach(pointer, followed, 0))
                if not pointer.reason:
                    pointer.through = list(followed.values())
                    self.followed |= followed
        self._settle()

    def _settle(self) -> None:
        """A function that is called with a pointer that stays one, or with what is none of these, stays as it is; and
        so does whatever else it is called with."""
        while refused := {key for key in self.followed if not self._is_called_with_accessors(*key)}:
            for pointer in self.kernel.pointers.values():
                if key := next((key for key in self._keys(pointer) if key in refused), None):
                    why = f"it is passed to {key[0]}, which is called with other pointers, too"
                    pointer.keep_plain(why, pointer.passed[0].line)
                    pointer.through = []
            for key in refused:
                del self.followed[key]

    def _keys(self, pointer: Pointer) -> Iterator[_Key]:
        for passed in pointer.passed if not pointer.reason else ():
            yield passed.callee, passed.number
            if inner := self.followed.get((passed.callee, passed.number)):
                yield from self._keys(inner)

    def _reach(self, pointer: Pointer, found: dict[_Key, Pointer], depth: int) -> tuple[str, int]:
        """Why the pointer cannot be followed into what it is passed to, with the line; empty where it can."""
        for passed in pointer.passed:
            key = passed.callee, passed.number
            if key in found:
                continue
            callee = self.source.functions.get(passed.callee)
            if callee is None or kind(callee) != "FUNCTION_DECL" or depth > _DEEPEST:
                return f"it is passed to {passed.callee}", passed.line
            names = [c.spelling for c in parameters(callee)]
            inner = self._uses(callee).pointers.get("".join(names[passed.number : passed.number + 1]))
            if inner is None:
                return f"it is passed to {passed.callee}, which takes it as something else", passed.line
            if inner.reason:
                return f"in {passed.callee}, {inner.reason}", inner.line
            found[key] = inner
            if (why := self._reach(inner, found, depth + 1))[0]:
                return why
        return "", 0

    def _uses(self, function: Cursor) -> Uses:
        return self.uses.setdefault(function.spelling, Uses(Function(self.source, function)))

    def _is_called_with_accessors(self, name: str, number: int) -> bool:
        for uses in (self.kernel, *map(self._uses, self.functions)):
            for call in walk(uses.function.body, "CALL_EXPR"):
                if call.spelling == name:
                    arguments = list(call.get_arguments())
                    if number >= len(arguments) or not self._is_accessor(uses, arguments[number]):
                        return False
        return True

    def _is_accessor(self, uses: Uses, argument: Cursor) -> bool:
        named = [uses.function.variable(c) for c in names_in(argument)]
        variable = named[0] if len(named) == 1 else None
        pointer = uses.pointers.get(variable.name) if variable else None
        if variable is None or pointer is None or pointer.variable is not variable:
            return False
        if uses is self.kernel:
            return not pointer.reason
        return (uses.function.name, uses.function.parameters.index(variable.cursor)) in self.followed

    # -- text -------------------------------------------------------------------------------------------

    def rewrite(self, text: Text) -> None:
        """Edit every function that was followed: its definition, and what announces it."""
        for name in dict.fromkeys(name for name, _ in self.followed):
            pointers = {number: pointer for (one, number), pointer in self.followed.items() if one == name}
            for pointer in pointers.values():
                rewrite_accesses(text, pointer, [], record_of(pointer))
            for cursor in self.source.declarations:
                if cursor.spelling == name and kind(cursor) == "FUNCTION_DECL":
                    _edit(text, cursor, {number: pointers[number].name for number in sorted(pointers)})


def _edit(text: Text, cursor: Cursor, pointers: dict[int, str]) -> None:
    given = parameters(cursor)
    for number, name in pointers.items():
        text.replace(span(given[number]), f"Accessor{number} {given[number].spelling or name}")
    begin = span(cursor)[0]
    types = ", ".join(f"class Accessor{number}" for number in pointers)
    text.replace((begin, begin), f"template <{types}>\n")


def record_of(pointer: Pointer) -> str:
    """The struct that it points to; empty for numbers."""
    element = pointer.element.get_canonical()
    return str(element.get_declaration().spelling) if element.kind.name == "RECORD" else ""

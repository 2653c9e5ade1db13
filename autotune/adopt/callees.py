"""Functions that a kernel passes its arrays to: they become templates over the accessor, and take any layout.

A function is followed where every call of it passes accessors only: what it is given as a plain pointer, a tile in
shared memory for one, has no load and no store.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from autotune.adopt.accesses import Passed, Pointer, Uses, names_in
from autotune.adopt.arrays import Array
from autotune.adopt.function import Function, identity
from autotune.adopt.rewriting import Text, rewrite_accesses
from autotune.adopt.source import Cursor, Source, children, kind, span, walk

_DEEPEST = 8


@dataclass
class Callees:
    """``followed`` has the pointers that became accessors, by function and number of the parameter."""

    source: Source
    kernel: Uses
    functions: list[Cursor]
    followed: dict[tuple[str, int], Pointer] = field(default_factory=dict)
    uses: dict[str, Uses] = field(default_factory=dict)

    def follow(self) -> None:
        """Give each pointer of the kernel that is passed on what the functions do with it, or a reason to stay one."""
        for pointer in self.kernel.pointers.values():
            while pointer.passed and not pointer.reason:
                found: dict[tuple[str, int], Pointer] = {}
                if why := self._reach(pointer, found, 0):
                    pointer.reason, pointer.line = why
                    break
                pointer.through = list(found.values())
                self.followed.update(found)
                break
        self._settle()

    def _settle(self) -> None:
        """A function that is called with a pointer that stays one, or with what is none of these, stays as it is; and
        so does whatever else it is called with."""
        while True:
            refused = [key for key in self.followed if not self._is_called_with_accessors(*key)]
            if not refused:
                return
            for key in refused:
                del self.followed[key]
                for pointer in self.kernel.pointers.values():
                    if not pointer.reason and any(k == key for k in self._keys(pointer)):
                        pointer.reason = f"it is passed to {key[0]}, which is called with other pointers, too"
                        pointer.line = pointer.passed[0].line
                        pointer.through = []

    def _keys(self, pointer: Pointer) -> Iterator[tuple[str, int]]:
        for passed in pointer.passed:
            yield passed.callee, passed.number
            inner = self.followed.get((passed.callee, passed.number))
            if inner is not None:
                yield from self._keys(inner)

    def _reach(
        self, pointer: Pointer, found: dict[tuple[str, int], Pointer], depth: int
    ) -> tuple[str, int] | None:
        """Why the pointer cannot be followed into what it is passed to, with the line; None where it can."""
        for passed in pointer.passed:
            key = passed.callee, passed.number
            if key in found:
                continue
            callee = self.source.functions.get(passed.callee)
            if callee is None or kind(callee) != "FUNCTION_DECL" or depth > _DEEPEST:
                return f"it is passed to {passed.callee}", passed.line
            inner = self._parameter(callee, passed)
            if inner is None:
                return f"it is passed to {passed.callee}, which takes it as something else", passed.line
            if inner.reason:
                return f"in {passed.callee}, {inner.reason}", inner.line
            found[key] = inner
            if why := self._reach(inner, found, depth + 1):
                return why
        return None

    def _parameter(self, callee: Cursor, passed: Passed) -> Pointer | None:
        uses = self.uses.setdefault(callee.spelling, Uses(Function(self.source, callee)))
        parameters = uses.function.parameters
        name = parameters[passed.number].spelling if passed.number < len(parameters) else ""
        return uses.pointers.get(name)

    def _is_called_with_accessors(self, name: str, number: int) -> bool:
        for function in (
            self.kernel,
            *(self.uses.get(f.spelling, Uses(Function(self.source, f))) for f in self.functions),
        ):
            for call in walk(function.function.body):
                if kind(call) != "CALL_EXPR" or call.spelling != name:
                    continue
                arguments = list(call.get_arguments())
                if number >= len(arguments) or not self._is_accessor(function, arguments[number]):
                    return False
        return True

    def _is_accessor(self, uses: Uses, argument: Cursor) -> bool:
        named = [uses.function.variable(c) for c in names_in(argument)]
        if len(named) != 1 or named[0] is None:
            return False
        pointer = uses.pointers.get(named[0].name)
        if pointer is None or pointer.variable is not named[0]:
            return False
        if uses is self.kernel:
            return not pointer.reason
        number = [identity(c) for c in uses.function.parameters].index(identity(pointer.variable.cursor))
        return (uses.function.name, number) in self.followed

    # -- text -------------------------------------------------------------------------------------------

    def rewrite(self, text: Text) -> None:
        """Edit every function that was followed, its declarations too."""
        by_function: dict[str, list[tuple[int, Pointer]]] = {}
        for (name, number), pointer in self.followed.items():
            by_function.setdefault(name, []).append((number, pointer))
        for name, pointers in by_function.items():
            for _, pointer in pointers:
                rewrite_accesses(text, Array(pointer, record=record_of(pointer)))
            for cursor in self._declared(name):
                self._edit(text, cursor, sorted((number, pointer.name) for number, pointer in pointers))

    def _declared(self, name: str) -> Iterator[Cursor]:
        """The function's definition, and what announces it."""

        def visit(parent: Cursor) -> Iterator[Cursor]:
            for cursor in children(parent):
                if kind(cursor) in ("LINKAGE_SPEC", "NAMESPACE"):
                    yield from visit(cursor)
                elif (
                    kind(cursor) == "FUNCTION_DECL"
                    and cursor.spelling == name
                    and self.source.is_here(cursor)
                ):
                    yield cursor

        yield from visit(self.source.unit.cursor)

    def _edit(self, text: Text, cursor: Cursor, pointers: list[tuple[int, str]]) -> None:
        parameters = [c for c in children(cursor) if kind(c) == "PARM_DECL"]
        types = {number: f"Accessor{number}" for number, _ in pointers}
        for number, name in pointers:
            text.replace(span(parameters[number]), f"{types[number]} {parameters[number].spelling or name}")
        begin = span(cursor)[0]
        text.replace((begin, begin), f"template <{', '.join(f'class {t}' for t in types.values())}>\n")


def record_of(pointer: Pointer) -> str:
    """The struct that it points to; empty for numbers."""
    pointee = pointer.variable.cursor.type.get_canonical().get_pointee().get_canonical()
    return str(pointee.get_declaration().spelling) if pointee.kind.name == "RECORD" else ""

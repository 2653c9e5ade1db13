"""From the uses of a kernel's pointers to declared arrays: elements, extents, links."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from autotune.adopt.accesses import Access, Pointer, Uses, is_constant, names_in
from autotune.adopt.elements import TYPES, record_fields, size_of, type_name
from autotune.adopt.expression import IndexExpression, Sum, names, split, strides, terms
from autotune.adopt.function import Bound, Function, Variable, is_launch
from autotune.adopt.host import HostProgram, divisors
from autotune.adopt.source import Cursor, bare, binary, children, kind, number, span, walk


@dataclass(frozen=True)
class Extent:
    """``text`` is how it follows from others; its own name where an input's shape or a caller says what it is."""

    name: str
    text: str

    @property
    def is_given(self) -> bool:
        return self.name == self.text


@dataclass
class Array:
    """A declared array. ``by`` are its inner strides, innermost first. ``fields`` by name where it holds records.
    ``link`` is the extent that its numbers are places of, ``is_ascending`` where they are the begins of runs,
    ``is_walked`` where they lead from one element of it to the next, and ``ends_at`` the number that ends a walk."""

    pointer: Pointer
    type: str = ""
    record: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    shape: tuple[str, ...] = ()
    by: list[IndexExpression] = field(default_factory=list)
    link: str = ""
    is_ascending: bool = False
    is_walked: bool = False
    ends_at: int = 0
    is_bool: bool = False

    @property
    def name(self) -> str:
        return self.pointer.name

    @property
    def bytes(self) -> int:
        """Of one element."""
        return size_of(self.type) if self.type else sum(size_of(type_) for type_ in self.fields.values())

    @property
    def is_opaque(self) -> bool:
        """Whether its elements are nothing that family.yaml has a word for."""
        declared = self.pointer.variable.cursor.type.get_canonical()
        pointee = declared.get_pointee() if declared.kind.name == "POINTER" else declared.element_type
        return not self.record and not type_name(pointee)

    @property
    def is_accessor(self) -> bool:
        return not self.pointer.reason

    @property
    def is_written(self) -> bool:
        """A pointer that is left may write, where it is not const."""
        return self.pointer.is_written or bool(self.pointer.reason and not is_constant(self.pointer))

    @property
    def is_read(self) -> bool:
        return self.pointer.is_read or bool(self.pointer.reason)

    def indices(self, access: Access) -> list[Sum]:
        return split(access.index, self.by)


@dataclass
class Arrays:
    """All arrays of a kernel with the extents they share. ``flat`` are those to take as one line whatever their
    arithmetic says, since an index was seen to leave its row."""

    uses: Uses
    flat: frozenset[str] = frozenset()
    host: HostProgram | None = None
    extents: dict[str, Extent] = field(default_factory=dict)
    unbounded: dict[frozenset[str], str] = field(default_factory=dict)

    @property
    def function(self) -> Function:
        return self.uses.function

    @cached_property
    def all(self) -> dict[str, Array]:
        found = {name: self._element(pointer) for name, pointer in self.uses.pointers.items()}
        for array in found.values():
            if array.is_accessor and array.name not in self.flat:
                array.by = strides([access.index for access in array.pointer.accesses])
        # What a caller gives says how large it is, so that comes first where outputs share an extent with it.
        for array in sorted(found.values(), key=lambda array: array.is_written and not array.is_read):
            array.shape = self._shape(array)
        self._link(found)
        return found

    # -- elements ---------------------------------------------------------------------------------------

    def _element(self, pointer: Pointer) -> Array:
        declared = pointer.variable.cursor.type.get_canonical()
        pointee = declared.get_pointee() if declared.kind.name == "POINTER" else declared.element_type
        array = Array(pointer)
        array.type = type_name(pointee)
        array.is_bool = pointee.get_canonical().kind.name == "BOOL"
        if array.type:
            return array
        if pointee.get_canonical().kind.name == "RECORD":
            record = pointee.get_declaration()
            array.record = record.spelling
            fields, why = record_fields(pointee)
            array.fields = fields
            if not why and record.semantic_parent is not None and kind(record.semantic_parent) in (
                "STRUCT_DECL", "CLASS_DECL", "FUNCTION_DECL"):  # fmt: skip
                why = "is declared inside another"
            if why and not pointer.reason:
                pointer.reason, pointer.line = f"struct {record.spelling} {why}", self._line(pointer)
            if not fields:
                array.record, array.type = "", "uint8"
            return array
        if not pointer.reason:
            pointer.reason = f"{pointee.spelling} is no number and no struct"
            pointer.line = self._line(pointer)
        array.type = "uint8"
        return array

    def _line(self, pointer: Pointer) -> int:
        return self.function.source.line(pointer.variable.place)

    # -- extents ----------------------------------------------------------------------------------------

    def _shape(self, array: Array) -> tuple[str, ...]:
        """Names of its extents; falls back to one where an inner one cannot be said."""
        inner = [self._inner(array, number, stride) for number, stride in enumerate(array.by)]
        if not all(inner) or len(set(inner)) < len(inner):
            array.by, inner = [], []
        outer = self._outer(array, inner)
        if outer in inner:  # a square array: the names of its extents have to differ
            text = self.extents[outer].text
            same = (e.name for e in self.extents.values() if e.text == text and e.name not in inner)
            outer = next(same, f"{array.name}_rows")
            self.extents[outer] = Extent(outer, text)
        return (outer, *reversed(inner))

    def _inner(self, array: Array, number: int, stride: IndexExpression) -> str:
        text = self.said(terms(stride))
        if text is None:
            return ""
        name = text
        if not text.isidentifier():
            spelling = self._text(stride)
            name = (
                spelling
                if spelling.isidentifier()
                else f"{array.name}_{('columns', 'rows', 'planes')[number]}"
            )
        return self._named(name, text).name

    def _allocated(self, array: Array, inner: Sequence[str]) -> str:
        """The text of the outer extent where the host program says how much room it gives; empty where it does not."""
        factors = self.host.elements(array.name, array.bytes) if self.host else None
        for name in inner if factors else ():
            text = self.extents[name].text
            if factors and text in factors:
                factors.remove(text)
            elif factors and text.isdigit() and factors[-1].isdigit() and not int(factors[-1]) % int(text):
                factors[-1] = str(int(factors[-1]) // int(text))
            else:
                return ""
        if factors is None:
            return ""
        is_sum = [not (f.isalnum() or f.isidentifier()) and len(factors) > 1 for f in factors]
        return " * ".join(f"({f})" if sum_ else f for f, sum_ in zip(factors, is_sum, strict=True)) or "1"

    @staticmethod
    def _own(array: Array, inner: Sequence[str]) -> str:
        """The name of an extent that nothing names: X_size of an array of one extent, else X_rows."""
        return f"{array.name}_{'rows' if inner else 'size'}"

    def _outer(self, array: Array, inner: Sequence[str]) -> str:
        room = self._allocated(array, inner)
        if room and not room.isdigit():
            return self._named(room if room.isidentifier() else self._own(array, inner), room).name
        found: list[str] = []
        for access in array.pointer.accesses if array.is_accessor else ():
            first = array.indices(access)[0]
            said = self.limit(first) or self._inside_another(first)
            if said is not None:
                found.append(said)
        indices = (array.indices(access)[0] for access in array.pointer.accesses if array.is_accessor)
        found = found or [text for text in map(self._launched, indices) if text]
        if room and not any(re.search(r"[A-Za-z_]", text) for text in found):
            found = [room]
        if not found:
            return self._shared_or_own(array, inner)
        text = max(found, key=lambda said: (found.count(said), len(said)))
        parameters = [said for said in found if said in self._parameters]
        text = (
            parameters[0]
            if parameters and not text.isidentifier() and self._is_below(text, parameters[0])
            else text
        )
        return self._named(text if text.isidentifier() else self._own(array, inner), text).name

    def _launched(self, index: Sum) -> str:
        """What the host's launch keeps an index below that nothing compares: a block's number, or a thread's."""
        launch = self.host.launch if self.host else None
        if launch is None or len(index) != 1 or len(index[0].factors) != 1 or index[0].sign < 0:
            return ""
        leaf = index[0].factors[0]
        start = self.function.variables[leaf.declared].initial if leaf.declared is not None else None
        inside = list(walk(start)) if start is not None else []
        for axis, grid, block in zip("xyz", launch.grid, [*launch.block, "1", "1"], strict=False):
            text = ""
            if leaf.key == f"blockIdx.{axis}" or (inside and is_launch(bare(inside[0]), "blockIdx", axis)):
                text = grid
            elif all(any(is_launch(c, name, axis) for c in inside) for name in ("blockIdx", "threadIdx")):
                text = next((whole for whole, by, _ in divisors(grid) if by == block), "")
            if text and set(re.findall(r"[A-Za-z_]\w*", text)) <= self._parameters.keys():
                return text
        return ""

    def _shared_or_own(self, array: Array, inner: Sequence[str]) -> str:
        """The extent of another array that is indexed by the same expression, else one of its own."""
        keys = {
            frozenset(f"{term.sign}{'*'.join(sorted(f.key for f in term.factors))}" for term in index)
            for index in (array.indices(access)[0] for access in array.pointer.accesses if array.is_accessor)
            if any(factor.value is None for factor in names(index))
        }
        known = next((self.unbounded[key] for key in keys if key in self.unbounded), "")
        name = known or self._named(self._own(array, inner), self._own(array, inner)).name
        self.unbounded |= dict.fromkeys(keys - self.unbounded.keys(), name)
        return name

    def _inside_another(self, index: Sum) -> str | None:
        """Where the index is one variable: the stride that the same variable is a column of in another array."""
        if len(index) != 1 or len(index[0].factors) != 1 or index[0].factors[0].declared is None:
            return None
        key = index[0].factors[0].key
        for other in self.uses.pointers.values():
            by = [] if other.reason or other.name in self.flat else strides([a.index for a in other.accesses])
            for access in other.accesses if by else ():
                for column, stride in zip(reversed(split(access.index, by)[1:]), by, strict=True):
                    if len(column) == 1 and [f.key for f in column[0].factors] == [key]:
                        return self.said(terms(stride))
        return None

    @staticmethod
    def _is_below(text: str, name: str) -> bool:
        return re.fullmatch(rf"{name} - \d+", text) is not None

    @cached_property
    def _parameters(self) -> dict[str, Variable]:
        found = (self.function.variables[c.location.offset] for c in self.function.parameters)
        return {v.name: v for v in found if v.cursor.type.get_canonical().kind.name in TYPES}

    def _named(self, name: str, text: str) -> Extent:
        """The extent of that text, made where there is none yet; a name of a parameter stands for that alone."""
        for known in self.extents.values():
            if known.text == text:
                return known
        is_own = name == text and name not in self._parameters  # nothing says what it is
        taken = {*self.extents, *self.uses.pointers, *(self._parameters if name != text else ())}
        while name in taken:
            name += "_"
        self.extents[name] = Extent(name, name if is_own else text)
        return self.extents[name]

    def limit(self, index: Sum) -> str | None:
        """What the index stays below, where it is one bounded variable with a number added."""
        plus, variables = 0, []
        for term in index:
            if all(factor.value is not None for factor in term.factors):
                plus += term.sign * math.prod(factor.value or 0 for factor in term.factors)
            elif len(term.factors) == 1 and term.factors[0].declared is not None and term.sign > 0:
                variables.append(self.function.variables[term.factors[0].declared])
            else:
                return None
        if len(variables) != 1:
            return None
        for bound in ranked(self.function.bounds.get(variables[0].place, [])):
            text = self.said(
                terms(self.function.expression(bound.limit, span(bound.limit)[0])), bound.plus + plus
            )
            if text is not None and text != "0":
                return text
        return self._part(variables[0]) if not plus else None

    def _part(self, variable: Variable) -> str | None:
        """What ``i / n`` and ``i % n`` stay below, where i is bounded by a product."""
        start = bare(variable.initial) if variable.initial is not None and not variable.changes else None
        if start is None or kind(start) != "BINARY_OPERATOR" or binary(start) not in ("/", "%"):
            return None
        whole, by = (terms(self.function.expression(c, span(start)[0])) for c in children(start))
        text = self.said(by)
        if binary(start) == "%" or text is None:
            return text
        factors = (self.limit(whole) or "").split(" * ")
        if text not in factors or len(factors) < 2:
            return None
        factors.remove(text)
        return " * ".join(factors)

    def said(self, sum_: Sum, plus: int = 0) -> str | None:
        """The sum as an expression of family.yaml over parameters; a sum below a parameter is the parameter."""
        parts: list[str] = []
        for term in sum_:
            numbers = [f.value for f in term.factors if f.value is not None]
            others = [f for f in term.factors if f.value is None]
            if not others:
                product = term.sign
                for value in numbers:
                    product *= value
                plus += product
                continue
            said = [self._factor(f) for f in others]
            if not all(said):
                return None
            text = " * ".join([*map(str, numbers), *(s for s in said if s)])
            parts.append(text if not parts and term.sign > 0 else f"{'-' if term.sign < 0 else '+'} {text}")
        if not parts:
            return str(plus) if plus > 0 else None
        text = " ".join(parts)
        if text.isidentifier() and plus <= 0:
            return text
        return text if not plus else f"{text} {'+' if plus > 0 else '-'} {abs(plus)}"

    def _factor(self, factor: IndexExpression) -> str | None:
        if factor.operator:
            inner = self.said(terms(factor))
            return f"({inner})" if inner else None
        variable = self.function.variables.get(factor.declared) if factor.declared is not None else None
        if variable is None:
            return None
        if variable.is_parameter:
            return variable.name if not variable.changes and variable.name in self._parameters else None
        start = variable.initial
        if start is None or not self.function.is_invariant(variable):
            return None
        inner = self.said(terms(self.function.expression(start, span(start)[0])))
        return f"({inner})" if inner and not inner.isidentifier() else inner

    def _text(self, expression: IndexExpression) -> str:
        if expression.span is None:
            return expression.spelling
        return self.function.source.text(*expression.span)

    # -- numbers that are places ------------------------------------------------------------------------

    def _link(self, found: dict[str, Array]) -> None:
        """Arrays whose numbers are used as an index of another: x[index[i]], and the begins of runs. Of several extents
        that they are an index of, one that is a parameter is what they stay below."""
        holders = self._holders(found)
        self._mark_walks(found, holders)
        for array in found.values():
            for access in array.pointer.accesses if array.is_accessor else ():
                for index, extent in zip(array.indices(access), array.shape, strict=True):
                    for leaf in names(index):
                        for holder in self._read_in(leaf, holders, found):
                            alone = len(index) == 1 and index[0].factors == (leaf,)
                            self._point(holder, extent if alone else "", leaf)

    def _holders(self, found: dict[str, Array]) -> dict[int, list[Array]]:
        """By the place of a variable, the arrays whose elements it is given."""
        holders: dict[int, list[Array]] = {}
        for variable in self.function.variables.values():
            start = variable.initial
            if start is not None and type_name(variable.cursor.type):
                held = self._below(start, found)
                others = [self.function.variable(c) for c in names_in(start)]
                held += [a for other in others if other is not None for a in holders.get(other.place, ())]
                if held:
                    holders[variable.place] = held
        return holders

    def _mark_walks(self, found: dict[str, Array], holders: dict[int, list[Array]]) -> None:
        """Arrays with which an index is replaced by what the element there says: ``i = next[i]``."""
        for cursor in walk(self.function.body):
            if kind(cursor) != "BINARY_OPERATOR" or binary(cursor) != "=":
                continue
            left, right = children(cursor)
            walker = self.function.variable(bare(left))
            if walker is None:
                continue
            others = (self.function.variable(c) for c in names_in(right))
            held = [a for other in others if other is not None for a in holders.get(other.place, ())]
            for array in [*self._below(right, found), *held]:
                leaves = (leaf for access in array.pointer.accesses for leaf in names(access.index))
                if any(leaf.declared == walker.place for leaf in leaves):
                    array.is_walked, array.link = True, array.shape[0]
                    array.ends_at = -1 if self._ends_below_zero(walker) else 0

    def _ends_below_zero(self, variable: Variable) -> bool:
        """Whether a comparison takes a negative number for the end of a walk."""
        ends = {("!=", -1), ("==", -1), (">", -1), (">=", 0), ("<", 0)}
        for cursor in walk(self.function.body):
            if kind(cursor) == "BINARY_OPERATOR" and (operator := binary(cursor)) in (
                "!=",
                "==",
                ">",
                ">=",
                "<",
            ):
                left, right = children(cursor)
                if self.function.variable(bare(left)) is variable and (operator, number(right)) in ends:
                    return True
        return False

    @staticmethod
    def _below(cursor: Cursor, found: dict[str, Array]) -> list[Array]:
        """The arrays that the expression reads."""
        begin, end = span(cursor)
        return [
            array
            for array in found.values()
            if any(begin <= a.place[0] and a.place[1] <= end for a in array.pointer.accesses)
        ]

    def _read_in(
        self, leaf: IndexExpression, holders: dict[int, list[Array]], found: dict[str, Array]
    ) -> Iterator[Array]:
        if leaf.declared is not None:
            yield from holders.get(leaf.declared, ())
        elif leaf.span is not None:
            for array in found.values():
                if any(
                    leaf.span[0] <= a.place[0] and a.place[1] <= leaf.span[1] for a in array.pointer.accesses
                ):
                    yield array

    def _point(self, holder: Array, extent: str, leaf: IndexExpression) -> None:
        if "int" not in holder.type or holder.is_walked:
            return
        if leaf.declared is not None and self.function.variables[leaf.declared].changes:
            holder.is_ascending = True
        if extent and (not holder.link or extent in self._parameters):
            holder.link = extent


def ranked(bounds: Sequence[Bound]) -> list[Bound]:
    """Loops and conditions first, and those under which threads leave; a small number is the least of them."""
    return sorted(bounds, key=lambda bound: (bound.is_exit, not bound.is_loop))

"""From the uses of a kernel's pointers to declared arrays: elements, extents, links."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from autotune.adopt.accesses import Access, Pointer, Uses
from autotune.adopt.elements import TYPES, Element, element_of, type_name
from autotune.adopt.expression import Factor, Sum, get_only_factor, make_sum, names, split, strides
from autotune.adopt.function import Function, Variable, is_launch
from autotune.adopt.host import HostProgram, divisors
from autotune.adopt.source import Cursor, binary, children, identifiers, number, peel, span, type_kind, walk

_BYTES = Element("uint8")  # what family.yaml has no word for


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
    """A declared array. ``by`` are its inner strides, innermost first. ``link`` is the extent that its numbers are
    places of, ``is_ascending`` where they are the begins of runs, ``is_walked`` where they lead from one element of it
    to the next, and ``ends_at`` the number that ends a walk. ``is_opaque`` where its elements are nothing that
    family.yaml has a word for."""

    pointer: Pointer
    element: Element = _BYTES
    is_opaque: bool = False
    shape: tuple[str, ...] = ()
    by: list[Factor] = field(default_factory=list)
    link: str = ""
    is_ascending: bool = False
    is_walked: bool = False
    ends_at: int = 0

    @property
    def name(self) -> str:
        return self.pointer.name

    @property
    def is_accessor(self) -> bool:
        return not self.pointer.reason

    @property
    def is_written(self) -> bool:
        """A pointer that is left may write, where it is not const."""
        return self.pointer.is_written or bool(self.pointer.reason and not self.pointer.is_constant)

    @property
    def is_read(self) -> bool:
        return self.pointer.is_read or bool(self.pointer.reason)

    @property
    def has_signed_indices(self) -> bool:
        """Whether every index has a sign, so that a compiler may assume that it does not wrap."""
        given = [access.given for access in self.accesses]
        return all(
            index is not None and type_kind(peel(index)) in ("INT", "LONG", "LONGLONG") for index in given
        )

    @property
    def accesses(self) -> list[Access]:
        """Where it is an accessor."""
        return self.pointer.accesses if self.is_accessor else []

    def split_index(self, access: Access) -> list[Sum]:
        return split(access.index, self.by)

    @property
    def firsts(self) -> list[Sum]:
        """The outermost index of each access."""
        return [self.split_index(access)[0] for access in self.accesses]


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
        elements = {name: self._element(pointer) for name, pointer in self.uses.pointers.items()}
        for array in elements.values():
            if array.name not in self.flat:
                array.by = strides([access.index for access in array.accesses])
        # What a caller gives says how large it is, so that comes first where outputs share an extent with it.
        for array in sorted(elements.values(), key=lambda array: array.is_written and not array.is_read):
            array.shape = self._shape(array)
        _Links(self.function, list(elements.values()), self._parameters).find()
        return elements

    def _element(self, pointer: Pointer) -> Array:
        element, why = element_of(pointer.element)
        if why:
            pointer.keep_plain(why, self.function.source.line(pointer.variable.place))
        return Array(pointer, element if element.bytes else _BYTES, is_opaque=not element.bytes)

    # -- extents ----------------------------------------------------------------------------------------

    def _shape(self, array: Array) -> tuple[str, ...]:
        """Names of its extents; falls back to one where an inner one cannot be said."""
        inner = [self._name_inner_extent(array, number, stride) for number, stride in enumerate(array.by)]
        if not all(inner) or len(set(inner)) < len(inner):
            array.by, inner = [], []
        outer = self._name_outer_extent(array, inner)
        if outer in inner:  # a square array: the names of its extents have to differ
            text = self.extents[outer].text
            same = (e.name for e in self.extents.values() if e.text == text and e.name not in inner)
            outer = next(same, f"{array.name}_rows")
            self.extents[outer] = Extent(outer, text)
        return (outer, *reversed(inner))

    def _name_inner_extent(self, array: Array, number: int, stride: Factor) -> str:
        text = self.express(make_sum(stride))
        if text is None or text.isidentifier():
            return self._name_extent(text, text) if text else ""
        spelling = self.function.source.text(*stride.span) if stride.span else stride.spelling
        own = f"{array.name}_{('columns', 'rows', 'planes')[number]}"
        return self._name_extent(spelling if spelling.isidentifier() else own, text)

    def _name_allocated_extent(self, array: Array, inner: Sequence[str]) -> str:
        """The text of the outer extent where the host program says how much room it gives; empty where it does not."""
        factors = self.host.elements(array.name, array.element.bytes) if self.host else None
        if factors is None:
            return ""
        for text in (self.extents[name].text for name in inner):
            if text in factors:
                factors.remove(text)
            elif factors and text.isdigit() and factors[-1].isdigit() and not int(factors[-1]) % int(text):
                factors[-1] = str(int(factors[-1]) // int(text))
            else:
                return ""
        is_sum = [not (f.isalnum() or f.isidentifier()) and len(factors) > 1 for f in factors]
        return " * ".join(f"({f})" if sum_ else f for f, sum_ in zip(factors, is_sum, strict=True)) or "1"

    def _name_outer_extent(self, array: Array, inner: Sequence[str]) -> str:
        own = f"{array.name}_{'rows' if inner else 'size'}"
        room = self._name_allocated_extent(array, inner)
        if room and not room.isdigit():
            return self._name_extent(room if room.isidentifier() else own, room)
        said = (self.limit(first) or self._find_enclosing_stride(first) for first in array.firsts)
        extents = [*filter(None, said)] or [*filter(None, map(self._find_launch_bound, array.firsts))]
        if room and not any(map(identifiers, extents)):
            extents = [room]
        if not extents:
            return self._find_shared_extent(array, own)
        text = max(extents, key=lambda said: (extents.count(said), len(said)))
        parameter = next((said for said in extents if said in self._parameters), "")
        if parameter and re.fullmatch(rf"{parameter} - \d+", text):
            text = parameter
        return self._name_extent(text if text.isidentifier() else own, text)

    def _find_launch_bound(self, index: Sum) -> str:
        """What the host's launch keeps an index below that nothing compares: a block's number, or a thread's."""
        launch, leaf = self.host.launch if self.host else None, get_only_factor(index)
        if launch is None or leaf is None:
            return ""
        variable = self.function.find_variable(leaf)
        start = variable.initial if variable else None
        inside = list(walk(start)) if start is not None else []
        for axis, grid, block in zip("xyz", launch.grid, [*launch.block, "1", "1"], strict=False):
            text = ""
            if leaf.key == f"blockIdx.{axis}" or (inside and is_launch(peel(inside[0]), "blockIdx", axis)):
                text = grid
            elif all(any(is_launch(c, name, axis) for c in inside) for name in ("blockIdx", "threadIdx")):
                text = next((whole for whole, by, _ in divisors(grid) if by == block), "")
            if text and identifiers(text) <= self._parameters.keys():
                return text
        return ""

    def _find_shared_extent(self, array: Array, own: str) -> str:
        """The extent of another array that is indexed by the same expression, else one of its own."""
        keys = {
            frozenset(f"{term.sign}{'*'.join(sorted(f.key for f in term.factors))}" for term in index)
            for index in array.firsts
            if any(factor.value is None for factor in names(index))
        }
        known = (self.unbounded[key] for key in keys if key in self.unbounded)
        name = next(known, "") or self._name_extent(own, own)
        self.unbounded |= dict.fromkeys(keys - self.unbounded.keys(), name)
        return name

    def _find_enclosing_stride(self, index: Sum) -> str | None:
        """Where the index is one variable: the stride that the same variable is a column of in another array."""
        leaf = get_only_factor(index)
        if leaf is None or leaf.declared is None:
            return None
        for other in self.uses.pointers.values():
            by = [] if other.reason or other.name in self.flat else strides([a.index for a in other.accesses])
            for access in other.accesses if by else ():
                for column, stride in zip(reversed(split(access.index, by)[1:]), by, strict=True):
                    if len(column) == 1 and [f.key for f in column[0].factors] == [leaf.key]:
                        return self.express(make_sum(stride))
        return None

    @cached_property
    def _parameters(self) -> dict[str, Variable]:
        found = (self.function.variables[c.location.offset] for c in self.function.parameters)
        return {v.name: v for v in found if type_kind(v.cursor) in TYPES}

    def _name_extent(self, name: str, text: str) -> str:
        """The extent of that text, made where there is none yet; a name of a parameter stands for that alone."""
        if known := next((e.name for e in self.extents.values() if e.text == text), ""):
            return known
        is_own = name == text and name not in self._parameters  # nothing says what it is
        taken = {*self.extents, *self.uses.pointers, *(self._parameters if name != text else ())}
        while name in taken:
            name += "_"
        self.extents[name] = Extent(name, name if is_own else text)
        return name

    def limit(self, index: Sum) -> str | None:
        """What the index stays below, where it is one bounded variable with a number added."""
        numbers = [t for t in index if all(factor.value is not None for factor in t.factors)]
        plus = sum(t.sign * math.prod(factor.value or 0 for factor in t.factors) for t in numbers)
        leaf = get_only_factor(tuple(t for t in index if t not in numbers))
        variable = self.function.find_variable(leaf) if leaf else None
        if variable is None:
            return None
        for bound in self.function.bounds_of(variable):
            text = self.express(self.function.arithmetic(bound.limit), bound.plus + plus)
            if text is not None and text != "0":
                return text
        return self._part(variable) if not plus else None

    def _part(self, variable: Variable) -> str | None:
        """What ``i / n`` and ``i % n`` stay below, where i is bounded by a product."""
        start = peel(variable.initial) if variable.initial is not None and not variable.changes else None
        if start is None or binary(start) not in ("/", "%"):
            return None
        whole, by = (self.function.expression(c, span(start)[0]) for c in children(start))
        text = self.express(by)
        if binary(start) == "%" or text is None:
            return text
        factors = (self.limit(whole) or "").split(" * ")
        if text not in factors or len(factors) < 2:
            return None
        factors.remove(text)
        return " * ".join(factors)

    def express(self, sum_: Sum, plus: int = 0) -> str | None:
        """The sum as an expression of family.yaml over parameters; a sum below a parameter is the parameter."""
        text = ""
        for term in sum_:
            numbers = [f.value for f in term.factors if f.value is not None]
            said = [self._factor(f) for f in term.factors if f.value is None]
            if not said:
                plus += term.sign * math.prod(numbers)
                continue
            if not all(said):
                return None
            sign = (" + " if text else "") if term.sign > 0 else " - " if text else "- "
            text += sign + " * ".join([*map(str, numbers), *(s for s in said if s)])
        if not text:
            return str(plus) if plus > 0 else None
        if not plus or (text.isidentifier() and plus < 0):
            return text
        return f"{text} {'+' if plus > 0 else '-'} {abs(plus)}"

    def _factor(self, factor: Factor) -> str | None:
        if factor.inner:
            inner = self.express(factor.inner)
            return f"({inner})" if inner else None
        variable = self.function.find_variable(factor)
        if variable is None:
            return None
        if variable.is_parameter:
            return variable.name if not variable.changes and variable.name in self._parameters else None
        if variable.initial is None or not self.function.is_invariant(variable):
            return None
        inner = self.express(self.function.arithmetic(variable.initial))
        return f"({inner})" if inner and not inner.isidentifier() else inner


@dataclass
class _Links:
    """Finds arrays whose numbers are used as an index of another: x[index[i]], and the begins of runs. Of several
    extents that they are an index of, one that is a parameter is what they stay below."""

    function: Function
    arrays: Sequence[Array]
    parameters: dict[str, Variable]
    holders: dict[int, list[Array]] = field(default_factory=dict)

    def find(self) -> None:
        for variable in self.function.variables.values():
            start = variable.initial
            if start is not None and type_name(variable.cursor.type):
                self.holders[variable.place] = self._trace_reads(start)
        self._mark_walks()
        for array in self.arrays:
            for access in array.accesses:
                for index, extent in zip(array.split_index(access), array.shape, strict=True):
                    for leaf in names(index):
                        for holder in self._find_holders(leaf):
                            self._point(holder, extent if get_only_factor(index) == leaf else "", leaf)

    def _find_reads(self, begin: int, end: int) -> list[Array]:
        """The arrays that the text there reads."""
        places = [(array, access.place) for array in self.arrays for access in array.pointer.accesses]
        found = [array.name for array, place in places if begin <= place[0] and place[1] <= end]
        return [array for array in self.arrays if array.name in found]

    def _trace_reads(self, cursor: Cursor) -> list[Array]:
        """The arrays that the expression reads, itself or by way of variables."""
        others = (self.holders.get(v.place, ()) for v in self.function.variables_in(cursor))
        return [*self._find_reads(*span(cursor)), *(array for held in others for array in held)]

    def _find_holders(self, leaf: Factor) -> list[Array]:
        if leaf.declared is not None:
            return self.holders.get(leaf.declared, [])
        return self._find_reads(*leaf.span) if leaf.span else []

    def _mark_walks(self) -> None:
        """Arrays with which an index is replaced by what the element there says: ``i = next[i]``."""
        for cursor in walk(self.function.body, "BINARY_OPERATOR"):
            left, right = children(cursor)
            walker = self.function.variable(peel(left))
            if walker is None or binary(cursor) != "=":
                continue
            for array in self._trace_reads(right):
                leaves = (leaf for access in array.pointer.accesses for leaf in names(access.index))
                if any(leaf.declared == walker.place for leaf in leaves):
                    array.is_walked, array.link = True, array.shape[0]
                    array.ends_at = -1 if self._ends_below_zero(walker) else 0

    def _ends_below_zero(self, variable: Variable) -> bool:
        """Whether a comparison takes a negative number for the end of a walk."""
        ends = {("!=", -1), ("==", -1), (">", -1), (">=", 0), ("<", 0)}
        sides = ((binary(c), *children(c)) for c in walk(self.function.body, "BINARY_OPERATOR"))
        compared = ((o, right) for o, left, right in sides if self.function.variable(peel(left)) is variable)
        return any((operator, number(right)) in ends for operator, right in compared)

    def _point(self, holder: Array, extent: str, leaf: Factor) -> None:
        if "int" not in holder.element.type or holder.is_walked:
            return
        variable = self.function.find_variable(leaf)
        holder.is_ascending |= variable is not None and bool(variable.changes)
        if extent and (not holder.link or extent in self.parameters):
            holder.link = extent

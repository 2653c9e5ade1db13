"""Numbers for what a kernel leaves open: sizes to try it with, large enough for every index that its text bounds."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from autotune.cli.adopt.arrays import Array, Arrays, ranked
from autotune.cli.adopt.expression import Expression, Sum, terms
from autotune.cli.adopt.function import Function
from autotune.cli.adopt.launch import Geometry
from autotune.cli.adopt.source import Cursor, bare, binary, children, kind, number, span
from autotune.declaration import Expression as Computed

_DEEPEST = 12
_UNKNOWN = 100  # elements of an array whose indices come from nowhere that is known


@dataclass
class Sizes:
    """``given`` are the sizes and whole numbers that nothing else decides, by name."""

    arrays: Arrays
    geometry: Geometry
    given: Mapping[str, int]
    blocks: Mapping[str, int]
    seen: Mapping[str, int] = field(default_factory=dict)

    @property
    def function(self) -> Function:
        return self.arrays.function

    def all(self) -> dict[str, int]:
        """Every extent: those that follow from others, and for those that nothing bounds, room for the largest index
        that can be told, or was ``seen``."""
        sizes = dict(self.given)
        for extent in self.arrays.extents.values():
            if not extent.is_given:
                sizes[extent.name] = int(Computed(extent.text, extent.name).evaluate(sizes))
        names_ = {**sizes, **self.blocks}
        for array in self.arrays.all.values():
            name = array.shape[0]
            if self.arrays.extents[name].is_given and name not in self.given:
                sizes[name] = max(self.seen.get(name, 1), self._room(array, names_), sizes.get(name, 1))
                names_[name] = sizes[name]
        return sizes

    def _room(self, array: Array, known: Mapping[str, int]) -> int:
        found = []
        for access in array.pointer.accesses if array.is_accessor else ():
            largest = self._most(array.indices(access)[0], known, 0)
            if largest is not None:
                found.append(largest + 1)
        return max(found, default=_UNKNOWN)

    # -- the largest value of an index ------------------------------------------------------------------

    def _most(self, sum_: Sum, known: Mapping[str, int], depth: int) -> int | None:
        total = 0
        for term in sum_:
            product = 1
            for factor in term.factors:
                value = self._factor(factor, known, depth) if term.sign > 0 or factor.value is not None else 0
                if value is None:
                    return None
                product *= value
            total += term.sign * product
        return total

    def _factor(self, factor: Expression, known: Mapping[str, int], depth: int) -> int | None:
        if factor.value is not None:
            return factor.value
        if depth > _DEEPEST:
            return None
        if factor.operator:
            return self._most(terms(factor), known, depth + 1)
        if factor.declared is not None:
            return self._variable(factor.declared, known, depth + 1)
        return self._launch(factor.key, known)

    def _variable(self, place: int, known: Mapping[str, int], depth: int) -> int | None:
        variable = self.function.variables[place]
        if variable.is_parameter:
            return known.get(variable.name)
        for bound in ranked(self.function.bounds.get(place, [])):
            limit = self._most(
                terms(self.function.expression(bound.limit, span(bound.limit)[0])), known, depth
            )
            if limit is not None and limit + bound.plus > 0:
                return limit + bound.plus - 1
        for array in self.arrays.all.values():
            if array.link and variable.initial is not None:
                inside = span(variable.initial)
                if any(inside[0] <= a.place[0] and a.place[1] <= inside[1] for a in array.pointer.accesses):
                    return known[array.link] - 1 if array.link in known else None
        if variable.initial is None or variable.changes:
            return None
        return self._cursor(variable.initial, known, depth)

    def _cursor(self, cursor: Cursor, known: Mapping[str, int], depth: int) -> int | None:
        cursor = bare(cursor)
        if kind(cursor) == "BINARY_OPERATOR" and binary(cursor) in ("/", "%", ">>", "&") and depth < _DEEPEST:
            left, right = (self._cursor(c, known, depth + 1) for c in children(cursor))
            if binary(cursor) == "%" and right:
                return right - 1
            if binary(cursor) == "&":
                return right if left is None else left if right is None else min(left, right)
            if left is None or right is None or (binary(cursor) == "/" and right == 0):
                return None
            return (
                left // max(1, number(children(cursor)[1]) or right)
                if binary(cursor) == "/"
                else left >> right
            )
        return self._most(terms(self.function.expression(cursor, span(cursor)[0])), known, depth + 1)

    def _launch(self, key: str, known: Mapping[str, int]) -> int | None:
        name, _, axis = key.rpartition(".")
        if axis not in "xyz" or name not in ("threadIdx", "blockIdx", "blockDim", "gridDim"):
            return None
        number_ = "xyz".index(axis)
        texts = self.geometry.block if name in ("threadIdx", "blockDim") else self.geometry.grid
        if number_ >= len(texts):
            return 0 if name.endswith("Idx") else 1
        try:
            count = int(Computed(texts[number_], "launch").evaluate({**known}))
        except Exception:  # noqa: BLE001 - a size that is not known yet
            return None
        return count - 1 if name.endswith("Idx") else count

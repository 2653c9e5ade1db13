"""How a kernel is probably launched: blocks from what bounds its threads, threads from how it reads blockDim."""

import math
from dataclasses import dataclass, field
from functools import cached_property

from autotune.cli.adopt.arrays import Arrays, ranked
from autotune.cli.adopt.expression import Sum, names, terms
from autotune.cli.adopt.function import Function, is_launch
from autotune.cli.adopt.source import Cursor, bare, binary, children, kind, number, span, walk

_MOST_THREADS = 1024
BLOCKS = {1: ((256,),), 2: ((16, 32, 64), (16, 8, 4)), 3: ((32, 64), (4, 8), (2, 1))}


@dataclass
class Geometry:
    """``grid`` and ``block`` as expressions of family.yaml; ``policies`` are the values of those that choose a block,
    by name, the default first; ``notes`` say what was guessed; ``unguarded`` are extents that blocks have to divide,
    with the threads of a block, since every thread works."""

    grid: list[str] = field(default_factory=list)
    block: list[str] = field(default_factory=list)
    policies: dict[str, tuple[int, ...]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unguarded: dict[str, str] = field(default_factory=dict)


@dataclass
class Launch:
    arrays: Arrays

    @property
    def function(self) -> Function:
        return self.arrays.function

    @cached_property
    def geometry(self) -> Geometry:
        """The guess."""
        found = Geometry()
        axes = [
            axis for axis in "xyz" if self._reads("threadIdx", axis) or self._reads("blockIdx", axis)
        ] or ["x"]
        last = "xyz".index(axes[-1]) + 1
        free = [axis for axis in "xyz"[:last] if self._is_free(axis)]
        for axis in "xyz"[:last]:
            found.block.append(self._block(axis, free, found))
        fixed = math.prod(int(item) for item in found.block if item.isdigit())
        for name, values in found.policies.items():
            found.policies[name] = tuple(v for v in values if v * fixed <= _MOST_THREADS) or (1,)
        for number_, axis in enumerate("xyz"[:last]):
            found.grid.append(self._grid(axis, found.block[number_], found))
        while len(found.grid) > 1 and found.grid[-1] == "1" and found.block[-1] == "1":
            found.grid.pop()
            found.block.pop()
        return found

    # -- threads ----------------------------------------------------------------------------------------

    @cached_property
    def _read(self) -> set[tuple[str, str]]:
        found = set()
        for cursor in walk(self.function.body):
            if kind(cursor) == "MEMBER_REF_EXPR" and children(cursor):
                found.add((bare(children(cursor)[0]).spelling, cursor.spelling))
        return found

    def _reads(self, name: str, axis: str) -> bool:
        return (name, axis) in self._read

    def _factor(self, axis: str) -> int | None:
        """The number that blockIdx is multiplied with: threads of a block that the source fixes."""
        for cursor in walk(self.function.body):
            if kind(cursor) == "BINARY_OPERATOR" and binary(cursor) == "*":
                for one, other in (children(cursor), children(cursor)[::-1]):
                    if self._is_block(bare(one), axis) and (value := number(bare(other))) is not None:
                        return value
        return None

    def _is_free(self, axis: str) -> bool:
        return self._reads("threadIdx", axis) and self._fixed(axis) is None

    def _fixed(self, axis: str) -> int | None:
        """What the source fixes: a number that blocks are counted by, or a tile with a place for each thread."""
        if (value := self._factor(axis)) is not None and value <= _MOST_THREADS:
            return value
        return self._tile(axis)

    def _tile(self, axis: str) -> int | None:
        """The extent of a shared array that a thread's number is the last index of."""
        for cursor in walk(self.function.body):
            if kind(cursor) == "ARRAY_SUBSCRIPT_EXPR":
                base, index = children(cursor)
                canonical = bare(base).type.get_canonical()
                if self._is_thread(bare(index), axis) and canonical.kind.name == "CONSTANTARRAY":
                    count = int(canonical.element_count)
                    if 1 < count <= 1024:
                        return count
        return None

    def _block(self, axis: str, free: list[str], found: Geometry) -> str:
        if not self._reads("threadIdx", axis):
            return "1"
        if (value := self._fixed(axis)) is not None:
            found.notes.append(f"{value} threads in {axis}, as the source has it")
            return str(value)
        name = "block_size" if len(free) == 1 else f"block_{axis}"
        values = (256, 64, 128, 512) if len(free) == 1 else BLOCKS[len(free)][free.index(axis)]
        found.policies[name] = values
        return name

    # -- blocks -----------------------------------------------------------------------------------------

    def _grid(self, axis: str, block: str, found: Geometry) -> str:
        if not self._reads("blockIdx", axis) or (axis != "x" and self._continues(axis)):
            return "1"
        limit, per_block = self._limit(axis)
        if limit is None:
            limit, per_block = self._unguarded(axis)
            if limit is not None and per_block and block != "1":
                found.unguarded[limit] = block
        if limit is None:
            found.notes.append(f"nothing bounds the blocks in {axis}: 1")
            return "1"
        if per_block and block != "1":
            return f"ceil_div({limit}, {block})"
        return limit

    def _continues(self, axis: str) -> bool:
        """Whether blocks in this axis only go on with the numbers of those in x: gridDim.x * blockIdx.y."""
        for variable in self.function.variables.values():
            start = variable.initial
            if start is not None:
                found = list(walk(start))
                if all(
                    any(is_launch(c, name, at) for c in found)
                    for name, at in (("blockIdx", "x"), ("blockIdx", axis), ("gridDim", "x"))
                ):
                    return True
        return False

    def _limit(self, axis: str) -> tuple[str | None, bool]:
        """What the number of a thread (True) or of a block (False) stays below, as a comparison says."""
        for with_thread in (True, False):
            for place in self._holding("blockIdx", axis, with_thread):
                for bound in ranked(self.function.bounds.get(place, [])):
                    limit = self.function.expression(bound.limit, span(bound.limit)[0])
                    if (said := self.arrays.said(terms(limit), bound.plus)) is not None:
                        return self._times(place, said), with_thread
        for place, bounds in sorted(self.function.bounds.items()):
            if place < 0:  # an expression without a variable, compared as it stands
                for bound in ranked(bounds):
                    one = next(c for c in self.function.compared[place])
                    found = list(walk(one))
                    if any(is_launch(c, "blockIdx", axis) for c in found):
                        limit = self.function.expression(bound.limit, span(bound.limit)[0])
                        if (said := self.arrays.said(terms(limit), bound.plus)) is not None:
                            return said, any(is_launch(c, "threadIdx", axis) for c in found)
        return None, False

    def _times(self, place: int, limit: str) -> str:
        """The limit of threads where several have the same number: i = (blockIdx.x * 64 + threadIdx.x) / 32."""
        start = self.function.variables[place].initial
        start = bare(start) if start is not None else None
        if start is None or kind(start) != "BINARY_OPERATOR" or binary(start) != "/":
            return limit
        together = number(children(start)[1])
        said = f"({limit})" if " " in limit else limit
        return f"{said} * {together}" if together else limit

    def _unguarded(self, axis: str) -> tuple[str | None, bool]:
        """The extent that such a number is an index of, where nothing compares it with anything."""
        threads = set(self._holding("blockIdx", axis, with_thread=True))
        blocks = set(self._holding("blockIdx", axis, with_thread=False))
        found: list[tuple[str, bool]] = []
        for array in self.arrays.all.values():
            for access in array.pointer.accesses if array.is_accessor else ():
                for index, extent in zip(array.indices(access), array.shape, strict=True):
                    for leaf in names(index):
                        if leaf.declared in threads:
                            found.append((extent, True))
                        elif leaf.declared in blocks or leaf.key == f"blockIdx.{axis}":
                            found.append((extent, self._has_thread(index, axis)))
        return max(found, key=found.count) if found else (None, False)

    def _has_thread(self, index: Sum, axis: str) -> bool:
        for leaf in names(index):
            if leaf.key == f"threadIdx.{axis}":
                return True
            variable = self.function.variables.get(leaf.declared) if leaf.declared is not None else None
            start = variable.initial if variable else None
            if start is not None and any(is_launch(c, "threadIdx", axis) for c in walk(start)):
                return True
        return False

    def _holding(self, name: str, axis: str, with_thread: bool) -> list[int]:
        """Variables whose first value has blockIdx (with threadIdx, or without) in it."""
        found = []
        for variable in self.function.variables.values():
            start = variable.initial
            if start is None:
                continue
            launch = [c for c in walk(start) if is_launch(c, name, axis)]
            thread = [c for c in walk(start) if self._is_thread(c, axis)]
            launch += [c for c in walk(start) if self._is_block(c, axis)]
            if launch and bool(thread) == with_thread:
                found.append(variable.place)
        return found

    def _is_thread(self, cursor: Cursor, axis: str) -> bool:
        return self._is(cursor, "threadIdx", axis)

    def _is_block(self, cursor: Cursor, axis: str) -> bool:
        return self._is(cursor, "blockIdx", axis)

    def _is(self, cursor: Cursor, name: str, axis: str) -> bool:
        """Whether it is that number, or a variable that was given it."""
        variable = self.function.variable(cursor)
        start = variable.initial if variable else None
        return is_launch(cursor if start is None else bare(start), name, axis)

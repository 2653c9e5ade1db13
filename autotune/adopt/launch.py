"""How a kernel is launched: as the host program or the command line says, else by what bounds its threads."""

import math
import re
from dataclasses import dataclass, field
from functools import cached_property

from autotune.adopt.arrays import Arrays, ranked
from autotune.adopt.expression import terms
from autotune.adopt.function import Function, is_launch
from autotune.adopt.host import HostLaunch, divisors
from autotune.adopt.source import Cursor, bare, binary, children, kind, number, span, walk
from autotune.declaration import Expression as Computed
from autotune.errors import UsageError

_MOST_THREADS = 1024
BLOCKS = {1: ((256, 64, 128, 512),), 2: ((16, 32, 64), (16, 8, 4)), 3: ((32, 64), (4, 8), (2, 1))}
_SQUARES = (16, 8, 32)  # of a block whose sides are one number
_TRIED = (37, 1000, 4099)


@dataclass
class Geometry:
    """``grid`` and ``block`` as expressions of family.yaml; ``policies`` are the values of those that choose a block,
    by name, the default first; ``where`` says what they follow from; ``divided`` are what blocks have to divide, with
    the threads of a block, since the launch or the kernel counts on it."""

    grid: list[str] = field(default_factory=list)
    block: list[str] = field(default_factory=list)
    policies: dict[str, tuple[int, ...]] = field(default_factory=dict)
    where: str = "from what bounds a thread"
    shared_bytes: str = ""
    divided: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Launch:
    """``host`` is what the program or the command line says."""

    arrays: Arrays
    host: HostLaunch | None = None
    not_understood: str = ""

    @property
    def function(self) -> Function:
        return self.arrays.function

    @cached_property
    def geometry(self) -> Geometry:
        """Raises UsageError where nothing bounds the blocks and no launch is known."""
        is_plain = self.host and all(item.isalnum() or item.isidentifier() for item in self.host.block)
        found = self._from_host(self.host) if self.host and is_plain else self._from_bounds()
        while len(found.grid) > 1 and found.grid[-1] == "1" and found.block[-1] == "1":
            found.grid.pop()
            found.block.pop()
        return found

    def _name(self, axis: str, free: int) -> str:
        name = "block_size" if free == 1 else f"block_{axis}"
        while name in {c.spelling for c in self.function.parameters}:
            name += "_"
        return name

    def _from_bounds(self) -> Geometry:
        found = Geometry()
        axes = [a for a in "xyz" if self._reads("threadIdx", a) or self._reads("blockIdx", a)] or ["x"]
        axes = list("xyz"[: "xyz".index(axes[-1]) + 1])
        free = [axis for axis in axes if self._is_free(axis)]
        for axis in axes:
            fixed = self._fixed(axis) if self._reads("threadIdx", axis) else 1
            found.block.append(self._name(axis, len(free)) if fixed is None else str(fixed))
            if fixed is None:
                found.policies[found.block[-1]] = BLOCKS[len(free)][free.index(axis)]
        product = math.prod(int(item) for item in found.block if item.isdigit())
        for name, values in found.policies.items():
            found.policies[name] = tuple(v for v in values if v * product <= _MOST_THREADS) or (1,)
        for axis, block in zip(axes, found.block, strict=True):
            grid = self._bounded(axis, block)
            is_open = block in found.policies and block not in (grid or "") and not self._goes_on(axis)
            if grid is None or is_open:
                why = self.not_understood or "no launch of it is in its file"
                what = "blocks" if grid is None else "threads"
                raise UsageError(
                    f"nothing in kernel {self.function.name} bounds its {what} in {axis}, and {why}: say how it is "
                    "launched, over its numbers, as in --grid 'ceil_div(n, 16), ceil_div(m, 16)' --block '16, 16'"
                )
            found.grid.append(grid)
        found.where += f"; {self.not_understood}" if self.not_understood else ""
        return found

    def _from_host(self, host: HostLaunch) -> Geometry:
        """With a block that can be chosen where the kernel reads blockDim and the grid follows from it."""
        found = Geometry(where=f"as in {host.where}")
        rank = max(len(host.grid), len(host.block))
        grid, block = ([*texts, *["1"] * (rank - len(texts))] for texts in (host.grid, host.block))
        for n, axis in enumerate("xyz"[:rank]):  # a number of blocks that fits one size only
            if (
                grid[n].isdigit()
                and not host.is_asked
                and not self._reads("gridDim", axis)
                and self._reads("blockIdx", axis)
            ):
                grid[n] = self._bounded(axis, block[n]) or grid[n]
        free = [number_ for number_ in range(rank) if self._can_choose("xyz"[number_], block[number_])]
        chosen = {n: self._chosen("xyz"[n], grid[n], block[n]) for n in free}
        chosen = {n: text for n, text in chosen.items() if text is not None}
        names: dict[int, str] = {}
        for n in chosen:
            twin = next((m for m in names if block[m] == block[n] and block[n] in host.open), None)
            names[n] = self._name("xyz"[n], len(chosen)) if twin is None else names[twin]
            usual = BLOCKS[len(chosen)][list(chosen).index(n)] if twin is None else _SQUARES
            first = [int(block[n])] if block[n].isdigit() else []
            found.policies[names[n]] = tuple(dict.fromkeys([*first, *usual]))
        for n in range(rank):
            text = self._with_names(chosen.get(n) or grid[n], block, names)
            found.grid.append(text.replace("BLOCK", names.get(n, "BLOCK")))
            found.block.append(names.get(n, block[n]))
        found.shared_bytes = self._with_names(host.shared_bytes, block, names)
        others = math.prod(int(item) for item in found.block if item.isdigit())
        for name, values in found.policies.items():
            found.policies[name] = tuple(v for v in values if v * others <= _MOST_THREADS) or values[:1]
        for n, text in enumerate(found.grid):
            is_guarded = self._bounded("xyz"[n], found.block[n]) is not None
            found.divided += [(what, by) for what, by, is_up in divisors(text) if not (is_up and is_guarded)]
        return found

    @staticmethod
    def _with_names(text: str, block: list[str], names: dict[int, str]) -> str:
        """With the names of policies for those of open block sizes."""
        for n, name in names.items():
            text = re.sub(rf"\b{block[n]}\b", name, text) if not block[n].isdigit() else text
        return text

    def _can_choose(self, axis: str, block: str) -> bool:
        if not block.isdigit():
            return self.host is not None and block in self.host.open
        return int(block) > 1 and self._reads("blockDim", axis) and self._is_free(axis) and not self._has_tile

    def _chosen(self, axis: str, grid: str, block: str) -> str | None:
        """The grid of an axis whose block is ``BLOCK``, None where it does not follow from it."""
        for whole, by, is_up in divisors(grid):
            if is_up and by == block and grid == f"ceil_div({whole}, {by})":
                return f"ceil_div({whole}, BLOCK)"
        bounded = self._bounded(axis, block)
        if not block.isdigit():
            return grid
        if grid.isdigit() and self._goes_on(axis):
            return grid
        if bounded is None:
            return None
        one, other = Computed(bounded, "grid"), Computed(grid, "grid")
        try:
            same = (
                all(
                    int(one.evaluate(dict.fromkeys(one.names, n)))
                    == int(other.evaluate(dict.fromkeys(other.names, n)))
                    for n in _TRIED
                )
                and one.names == other.names
            )
        except ArithmeticError:
            same = False
        chosen = self._bounded(axis, "BLOCK") if same else None
        return chosen if chosen and ("BLOCK" in chosen or self._goes_on(axis)) else None

    def _goes_on(self, axis: str) -> bool:
        """Whether a thread goes on by the number of threads there are, so that a block of any size comes to all."""
        for cursor in walk(self.function.body):
            is_set = kind(cursor) == "BINARY_OPERATOR" and binary(cursor) == "="
            if is_set or kind(cursor) == "COMPOUND_ASSIGNMENT_OPERATOR":
                walker, step = (
                    self.function.variable(bare(children(cursor)[0])),
                    list(walk(children(cursor)[1])),
                )
                named = [self.function.variable(c) for c in step]
                if walker is None or (is_set and walker not in named):
                    continue
                step += [c for v in named if v and v.initial is not None for c in walk(v.initial)]
                if any(is_launch(c, "blockDim", axis) for c in step):
                    return True
        return False

    @cached_property
    def _has_tile(self) -> bool:
        """Whether it has an array in shared memory of a size that the source fixes."""
        return any(
            kind(c) == "VAR_DECL" and c.type.get_canonical().kind.name == "CONSTANTARRAY"
            and any(kind(a) == "CUDASHARED_ATTR" for a in children(c))
            for c in walk(self.function.body)
        )  # fmt: skip

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

    # -- blocks -----------------------------------------------------------------------------------------

    def _bounded(self, axis: str, block: str) -> str | None:
        """The blocks that what bounds the threads asks for, None where nothing does."""
        if not self._reads("blockIdx", axis) or (axis != "x" and self._continues(axis)):
            return "1"
        limit, per_block = self._limit(axis)
        return f"ceil_div({limit}, {block})" if limit and per_block and block != "1" else limit

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

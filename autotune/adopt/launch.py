"""A kernel's launch: from the host program or the command line, else from the bounds that the kernel checks."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations

from autotune.adopt.arrays import Arrays
from autotune.adopt.elements import parts_of
from autotune.adopt.function import Bound, Function, Variable, is_launch
from autotune.adopt.host import HostLaunch, divisors, replace_names
from autotune.adopt.source import Cursor, binary, children, has_attribute, kind, number, peel, span, walk
from autotune.declaration import Expression as Computed
from autotune.errors import UsageError

_MOST_THREADS = 1024
_BLOCKS = {1: ((256, 64, 128, 512),), 2: ((16, 32, 64), (16, 8, 4)), 3: ((32, 64), (4, 8), (2, 1))}
_SQUARES = (16, 8, 32)  # of a block whose sides are one number
_TRIED = (37, 1000, 4099)


@dataclass
class LaunchShape:
    """``grid`` and ``block`` as expressions of family.yaml; ``policies`` are the values of those that choose a block,
    by name, the default first; ``where`` says what they follow from; ``divided`` are what blocks have to divide, with
    the threads of a block, since the launch or the kernel counts on it."""

    grid: list[str] = field(default_factory=list)
    block: list[str] = field(default_factory=list)
    policies: dict[str, tuple[int, ...]] = field(default_factory=dict)
    where: str = "from the bounds of a thread"
    shared_bytes: str = ""
    divided: list[tuple[str, str]] = field(default_factory=list)

    @property
    def usual(self) -> dict[str, int]:
        """The default of each policy."""
        return {name: values[0] for name, values in self.policies.items()}


@dataclass
class KernelLaunch:
    """``host`` is what the program or the command line says."""

    arrays: Arrays
    host: HostLaunch | None = None
    not_understood: str = ""

    @property
    def function(self) -> Function:
        return self.arrays.function

    @cached_property
    def geometry(self) -> LaunchShape:
        """Raises UsageError where nothing bounds the blocks and no launch is known."""
        is_plain = self.host and all(item.isalnum() or item.isidentifier() for item in self.host.block)
        shape = self._from_host(self.host) if self.host and is_plain else self._from_bounds()
        others = math.prod(int(item) for item in shape.block if item.isdigit())
        for name, values in shape.policies.items():
            fitting = tuple(v for v in values if v * others <= _MOST_THREADS)
            shape.policies[name] = fitting or (values[:1] if self.host and is_plain else (1,))
        while len(shape.grid) > 1 and shape.grid[-1] == "1" and shape.block[-1] == "1":
            shape.grid.pop()
            shape.block.pop()
        return shape

    def _name(self, axis: str, free: int) -> str:
        name = "block_size" if free == 1 else f"block_{axis}"
        while name in {c.spelling for c in self.function.parameters}:
            name += "_"
        return name

    def _from_bounds(self) -> LaunchShape:
        shape = LaunchShape()
        read = [axis for axis in "xyz" if self._reads("threadIdx", axis) or self._reads("blockIdx", axis)]
        axes = "xyz"[: "xyz".index(read[-1]) + 1] if read else "x"
        free = [axis for axis in axes if self._is_free(axis)]
        for axis in axes:
            if axis in free:
                block = self._name(axis, len(free))
                shape.policies[block] = _BLOCKS[len(free)][free.index(axis)]
            else:
                block = str(self._find_fixed_block(axis) if self._reads("threadIdx", axis) else 1)
            grid = self._find_bounded_grid(axis, block)
            if grid is None or (axis in free and block not in grid and not self._goes_on(axis)):
                raise UsageError(
                    f"nothing in kernel {self.function.name} bounds its {'blocks' if grid is None else 'threads'} in "
                    f"{axis}, and {self.not_understood or 'no launch of it is in its file'}: say how it is launched, "
                    "over its numbers, as in --grid 'ceil_div(n, 16), ceil_div(m, 16)' --block '16, 16'"
                )
            shape.grid.append(grid)
            shape.block.append(block)
        shape.where += f"; {self.not_understood}" if self.not_understood else ""
        return shape

    def _from_host(self, host: HostLaunch) -> LaunchShape:
        """With a block that can be chosen where the kernel reads blockDim and the grid follows from it."""
        shape = LaunchShape(where=f"as in {host.where}")
        rank = max(len(host.grid), len(host.block))
        grid, block = ([*texts, *["1"] * (rank - len(texts))] for texts in (host.grid, host.block))
        chosen: dict[int, str] = {}
        for n, axis in enumerate("xyz"[:rank]):
            is_counted = not self._reads("gridDim", axis) and self._reads("blockIdx", axis)
            if grid[n].isdigit() and is_counted and not host.is_asked:
                # Better than a number of blocks that fits one size only.
                grid[n] = self._find_bounded_grid(axis, block[n]) or grid[n]
            if block[n] in host.open or (block[n].isdigit() and self._can_choose(axis, int(block[n]))):
                text = self._find_grid(axis, grid[n], block[n])
                chosen |= {n: text} if text is not None else {}
        names: dict[int, str] = {}
        for n in chosen:
            twin = next((m for m in names if block[m] == block[n] and block[n] in host.open), None)
            names[n] = self._name("xyz"[n], len(chosen)) if twin is None else names[twin]
            usual = _BLOCKS[len(chosen)][list(chosen).index(n)] if twin is None else _SQUARES
            first = [int(block[n])] if block[n].isdigit() else []
            shape.policies[names[n]] = tuple(dict.fromkeys([*first, *usual]))
        opened = {block[n]: name for n, name in names.items() if not block[n].isdigit()}
        for n, axis in enumerate("xyz"[:rank]):
            words = {**opened, "BLOCK": names.get(n, "BLOCK")}
            shape.grid.append(replace_names(chosen.get(n) or grid[n], words))
            shape.block.append(names.get(n, block[n]))
            is_guarded = self._find_bounded_grid(axis, shape.block[n]) is not None
            shape.divided += [
                (what, by) for what, by, is_up in divisors(shape.grid[n]) if not (is_up and is_guarded)
            ]
        shape.shared_bytes = replace_names(host.shared_bytes, opened)
        return shape

    def _can_choose(self, axis: str, block: int) -> bool:
        """Where it has no array in shared memory of a size that the source fixes."""
        shared = (c for c in walk(self.function.body, "VAR_DECL") if has_attribute(c, "CUDASHARED_ATTR"))
        is_free = block > 1 and self._reads("blockDim", axis) and self._is_free(axis)
        return is_free and not any(parts_of(c.type)[0] for c in shared)

    def _find_grid(self, axis: str, grid: str, block: str) -> str | None:
        """The grid of an axis whose block is ``BLOCK``, None where it does not follow from it."""
        for whole, by, is_up in divisors(grid):
            if is_up and by == block and grid == f"ceil_div({whole}, {by})":
                return f"ceil_div({whole}, BLOCK)"
        if not block.isdigit() or (grid.isdigit() and self._goes_on(axis)):
            return grid
        bounded, chosen = self._find_bounded_grid(axis, block), self._find_bounded_grid(axis, "BLOCK")
        if bounded is None or chosen is None or not ("BLOCK" in chosen or self._goes_on(axis)):
            return None
        one, other = Computed(bounded, "grid"), Computed(grid, "grid")
        if one.names != other.names:
            return None
        try:
            values = [[int(e.evaluate(dict.fromkeys(e.names, n))) for n in _TRIED] for e in (one, other)]
        except ArithmeticError:
            return None
        return chosen if values[0] == values[1] else None

    def _goes_on(self, axis: str) -> bool:
        """Whether a thread goes on by the number of threads there are, so that a block of any size comes to all."""
        for cursor in walk(self.function.body, "BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR"):
            if kind(cursor) == "BINARY_OPERATOR" and binary(cursor) != "=":
                continue
            target, step = children(cursor)
            walker, named = self.function.variable(peel(target)), list(self.function.variables_in(step))
            if walker is None or (binary(cursor) == "=" and walker not in named):
                continue
            parts = [step, *(v.initial for v in named if v.initial is not None)]
            if any(is_launch(c, "blockDim", axis) for part in parts for c in walk(part)):
                return True
        return False

    # -- threads ----------------------------------------------------------------------------------------

    @cached_property
    def _read(self) -> set[tuple[str, str]]:
        members = (c for c in walk(self.function.body, "MEMBER_REF_EXPR") if children(c))
        return {(peel(children(c)[0]).spelling, c.spelling) for c in members}

    def _reads(self, name: str, axis: str) -> bool:
        return (name, axis) in self._read

    def _is_free(self, axis: str) -> bool:
        return self._reads("threadIdx", axis) and self._find_fixed_block(axis) is None

    def _find_fixed_block(self, axis: str) -> int | None:
        """What the source fixes: a number that blocks are counted by, or a tile with a place for each thread, whose
        number is the last index."""
        products = (children(c) for c in walk(self.function.body, "BINARY_OPERATOR") if binary(c) == "*")
        for one, other in (pair for both in products for pair in permutations(map(peel, both))):
            value = number(other) if self._is(one, "blockIdx", axis) else None
            if value is not None and value <= _MOST_THREADS:
                return value
        for cursor in walk(self.function.body, "ARRAY_SUBSCRIPT_EXPR"):
            base, index = children(cursor)
            counts, _ = parts_of(peel(base).type)
            if self._is(peel(index), "threadIdx", axis) and counts and 1 < counts[0] <= _MOST_THREADS:
                return counts[0]
        return None

    # -- blocks -----------------------------------------------------------------------------------------

    def _find_bounded_grid(self, axis: str, block: str) -> str | None:
        """Return the number of blocks for the bound that the kernel checks; None if it checks none."""
        if not self._reads("blockIdx", axis) or (axis != "x" and self._continues(axis)):
            return "1"
        for bound, per_block in self._bounds(axis):
            limit = self.arrays.express(self.function.arithmetic(bound.limit), bound.plus)
            if limit is not None:
                limit = _times(bound.variable, limit)
                return f"ceil_div({limit}, {block})" if per_block and block != "1" else limit
        return None

    def _continues(self, axis: str) -> bool:
        """Whether blocks in this axis only go on with the numbers of those in x: gridDim.x * blockIdx.y."""
        wanted = (("blockIdx", "x"), ("blockIdx", axis), ("gridDim", "x"))
        starts = (v.initial for v in self.function.variables.values() if v.initial is not None)
        return any(all(any(is_launch(c, *one) for c in walk(start)) for one in wanted) for start in starts)

    def _bounds(self, axis: str) -> Iterator[tuple[Bound, bool]]:
        """Yield the bounds of thread numbers (True) and of block numbers (False) that the kernel compares with: first
        those of variables, then those of expressions that no variable holds."""
        starts = [(v, v.initial) for v in self.function.variables.values() if v.initial is not None]
        held = [(v, self._adds_thread(start, axis)) for v, start in starts]
        for with_thread in (True, False):
            for variable in (v for v, holds_thread in held if holds_thread is with_thread):
                yield from ((bound, with_thread) for bound in self.function.bounds_of(variable))
        direct = [bound for bound in self.function.bounds if bound.variable is None]
        for bound in sorted(direct, key=lambda bound: -span(bound.compared)[0]):
            if (holds_thread := self._adds_thread(bound.compared, axis)) is not None:
                yield bound, holds_thread

    def _adds_thread(self, cursor: Cursor, axis: str) -> bool | None:
        """Whether it has a thread's number in it, too; None where it has not that of a block."""
        inside = list(walk(cursor))
        if not any(self._is(c, "blockIdx", axis) for c in inside):
            return None
        return any(self._is(c, "threadIdx", axis) for c in inside)

    def _is(self, cursor: Cursor, name: str, axis: str) -> bool:
        """Whether it is that number, or a variable that was given it."""
        variable = self.function.variable(cursor)
        start = variable.initial if variable else None
        return is_launch(cursor if start is None else peel(start), name, axis)


def _times(variable: Variable | None, limit: str) -> str:
    """The limit of threads where several have the same number: i = (blockIdx.x * 64 + threadIdx.x) / 32."""
    start = peel(variable.initial) if variable and variable.initial is not None else None
    together = number(children(start)[1]) if start is not None and binary(start) == "/" else None
    said = f"({limit})" if " " in limit else limit
    return f"{said} * {together}" if together else limit

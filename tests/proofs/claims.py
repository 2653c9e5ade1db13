"""What is claimed of a layout, at every shape that is not rejected, and shown by z3.

- ``addresses``: load, store and the scale of the compiled accessor touch the bytes that the host's formula says, and no
  number on the way wraps.
- ``mapping_is_one_to_one``, ``mapping_is_inside``: indices to elements.
- ``address_...``: elements and their parts to texels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import z3
from accessors import is_written
from ir import Module
from machine import Bytes, Machine, Place, Pointer, Read, Real, Room
from whole import Facts, Number, Refuted, Whole

from autotune.hardware import Limits
from autotune.layout.curve import Curve
from autotune.layout.layout import Layout

_LIMITS = Limits()


class Refused(Exception):
    """There is no such shape: every one is rejected."""


@dataclass(frozen=True)
class OpaqueCurve(Curve):
    """A curve of which it is known that each cell of a block has a place of its own; ``chosen`` is its side."""

    chosen: int = 0

    @property
    def cpp(self) -> str:
        return "Opaque"

    def side_of(self, cells: Sequence[Any]) -> int:
        return self.side or self.chosen

    def place(self, cell: Sequence[Any], side: int) -> Any:
        return place_on_curve(list(cell), side) if side > 1 else 0


def place_on_curve(cell: Sequence[Any], side: Number) -> Any:
    facts = next(each.facts for each in cell if isinstance(each, Whole))
    rank, kinds = len(cell), [z3.IntSort()] * (len(cell) + 2)
    place = facts.apply(z3.Function(f"place{rank}", *kinds), *cell, side)
    facts.know(place >= 0)
    facts.limit(place, facts.whole(side**rank) - 1)
    for axis, each in enumerate(cell):
        back = z3.Function(f"back{rank}_{axis}", z3.IntSort(), z3.IntSort(), z3.IntSort())
        facts.know(facts.apply(back, place, side) == each)
    return place


# -- a layout at any shape -----------------------------------------------------------------------------


@dataclass
class Case:
    """A layout, with facts of a shape that is not rejected and of an index."""

    layout: Layout
    facts: Facts
    shape: list[Whole]
    room: Any

    @staticmethod
    def of(layout: Layout) -> "Case":
        facts, layout = Facts(), replace(layout)  # which keeps no grid of other numbers
        shape = [
            facts.whole(size) if size else facts.number(f"n{axis}", 1)
            for axis, size in enumerate(layout.sizes)
        ]
        if layout.curve and not layout.curve.side:
            tile = layout.tiles or (1,) * len(shape)
            cells = [-(-n // size) for n, size in zip(shape, tile, strict=True)]
            side = layout.mapping.curve.chosen  # type: ignore[union-attr]
            along = [cells[axis] for axis in layout.mapping.along]
            facts.know(z3.And(*(each > side // 2 for each in along)))
            facts.know(z3.Or(*(each <= side for each in along)))
        room = layout.room(shape)
        case = Case(layout, facts, shape, room)
        case._know_limits()
        if facts.follows(z3.BoolVal(False)):
            raise Refused
        return case

    def _know_limits(self) -> None:
        """What holds of the shape where ``Stored.explain_refusal`` says nothing."""
        data, room, facts = self.layout.data, self.room, self.facts
        facts.know(room.texels < 2**data.index_bits)
        for extent in room.extents:
            facts.know(extent < 2**32)
        facts.know(room.nbytes <= _LIMITS.memory_bytes)
        if room.memory == "constant":
            facts.know(room.nbytes <= data.constant_bytes)
        if room.memory == "texture":
            if room.plane is None:
                facts.know(room.texels <= _LIMITS.texture_1d_texels)
            else:
                facts.know(room.plane[1] <= _LIMITS.texture_2d_height)

    def index(self, name: str) -> list[Whole]:
        """An index of the array, as a kernel has it."""
        at = []
        for axis, extent in enumerate(self.room.extents):
            each = self.facts.number(f"{name}{axis}")
            self.facts.limit(each, extent - 1)
            at.append(each)
        self._know_digits(at)
        return at

    def digits(self, at: Sequence[Any]) -> list[tuple[Any, int]]:
        """(block, axis) of an index."""
        grid, moved = self.grid, self.layout.mapping._move(at, self.room.extents)
        return [(moved[axis] // grid.tile[axis] // grid.side[axis], axis) for axis in self.layout.axes]

    @property
    def grid(self) -> Any:
        return self.layout.grid(self.room.extents)

    def _know_digits(self, at: Sequence[Any]) -> None:
        """Show that each block is one of those that the array has."""
        for block, axis in self.digits(at):
            most = self.facts.whole(self.grid.counts[axis])
            self.facts.show(z3.And(block >= 0, block < most), f"blocks of axis {axis}")
            self.facts.limit(block, most - 1)

    def element(self, at: Sequence[Any]) -> Any:
        return self.layout.mapping.element(at, self.room.extents)


# -- claims ---------------------------------------------------------------------------------------------


def mapping_is_inside(case: Case) -> None:
    """An index is an element of the room."""
    element = case.element(case.index("i"))
    case.facts.show(z3.And(element >= 0, element < case.grid.elements), "an element is inside")


def mapping_is_one_to_one(case: Case) -> None:
    """Two indices are two elements. Of two equal elements the blocks begin at the same one, since blocks lie apart;
    within a block the cells' places on the curve and the places in the tile are the same; so are the indices."""
    one, other = case.index("i"), case.index("j")
    facts, grid, axes = case.facts, case.grid, case.layout.axes
    blocks = [[facts.whole(block) for block, _ in case.digits(at)] for at in (one, other)]
    begins = [sum((b * facts.whole(grid.strides[axis]) for b, axis in zip(each, axes, strict=True)), facts.whole(0))
              for each in blocks]  # fmt: skip
    unit = math.prod(grid.side) * math.prod(grid.tile)
    within = [facts.whole(case.element(at)) - begin for at, begin in zip((one, other), begins, strict=True)]
    for each in within:
        facts.show(z3.And(each >= 0, each < unit), "an element is within its block")
    for place, axis in enumerate(axes):
        a, b = blocks[0][place], blocks[1][place]
        alike = [blocks[0][k] == blocks[1][k] for k in range(place)]
        with facts.supposing(*alike, a > b):
            for k in range(place):
                facts.alike(blocks[0][k], blocks[1][k], facts.whole(grid.strides[axes[k]]))
            facts.apart(a, b, facts.whole(grid.strides[axis]))
            facts.show(begins[0] - begins[1] >= unit, f"blocks along axis {axis} lie apart")
    alike = [a == b for a, b in zip(*blocks, strict=True)]
    same = z3.And(*(a == b for a, b in zip(one, other, strict=True)))
    with facts.supposing(*alike, within[0] == within[1]):
        facts.show(same, "two indices are two elements")


def parts_are_inside_and_apart(case: Case) -> None:
    """Parts of elements, of all members of a group, are texels of their own, and inside. Elements are any number."""
    layout, facts = case.layout, case.facts
    elements = facts.whole(case.grid.elements)
    count = facts.number("elements", 1)
    facts.know(count == elements)
    # The line, before it is folded into a plane.
    line = replace(layout, dims="1d")
    stride, texels = case.room.part_stride, facts.whole(layout._texels(case.shape))
    members = range(layout.group[0])
    e, f = facts.number("e"), facts.number("f")
    facts.know(z3.And(e < count, f < count))
    places: dict[tuple[int, int], tuple[Any, Any]] = {}
    for member, part in product(members, range(layout.parts)):
        one = replace(line, group=(layout.group[0], member))
        places[member, part] = tuple(_address(one, at, part, stride) for at in (e, f))  # type: ignore[assignment]
        facts.show(
            z3.And(places[member, part][0] >= 0, places[member, part][0] < texels),
            f"part {part} of member {member} is inside",
        )
    for one, other in product(places, places):
        if one < other:
            _show_apart(case, places[one][0] != places[other][1], (e, one[0]), (f, other[0]))
        elif one == other:
            _show_apart(case, z3.Implies(e != f, places[one][0] != places[one][1]), (e, one[0]), (f, one[0]))
    if scales := layout.stored_scales:
        begin, number, unit = scales.tail(texels, case.shape)
        facts.show(begin >= texels, "scales lie behind the elements")
        facts.show(begin + number * unit <= case.room.texels, "scales are inside")
        facts.show((begin * layout.texel_bytes) % 4 == 0, "a scale is aligned")


def _show_apart(case: Case, claim: Any, one: tuple[Whole, int], other: tuple[Whole, int]) -> None:
    """Show the claim of an element of a member and another, run by run where they lie in runs."""
    facts, lanes, members = case.facts, case.layout.lanes, case.layout.group[0]
    runs = [facts.whole((element * members + member) // max(lanes, 1)) for element, member in (one, other)]
    ways = [runs[0] < runs[1], runs[0] == runs[1], runs[0] > runs[1]] if lanes > 1 else [True]
    for way in ways:
        with facts.supposing(way):
            facts.show(claim, "two texels are two places")


def _address(layout: Layout, element: Any, part: int, stride: Any) -> Any:
    """``Layout.get_address`` of one part; of groups of fields without the table of all."""
    if layout.field_groups:
        members, member = layout.group
        before, count, within = layout.field_groups.place(part)
        return before * stride + (element * members + member) * count + within
    return layout.compute_address(element, part, stride)


def plane_is_one_to_one(layout: Layout) -> None:
    """Texels of the line are texels of the plane, each one of its own: a texel is in a block of rows, in a column and a
    row there."""
    case = Case.of(layout)
    facts, (width, height) = case.facts, case.room.plane
    rows = layout.data.plane[1]
    one, other = facts.number("t"), facts.number("u")
    facts.know(one < facts.whole(case.layout._texels(case.shape)))
    places = _fold(layout, one), _fold(layout, other)
    facts.show(z3.And(places[0] >= 0, places[0] < width * height), "a texel is inside the plane")
    blocks, columns, steps = (
        [facts.whole(each) for each in pair]
        for pair in (
            (one // (width * rows), other // (width * rows)),
            (one // rows % width, other // rows % width),
            (one % rows, other % rows),
        )
    )
    for at, block, column, step in zip((one, other), blocks, columns, steps, strict=True):
        facts.show(
            at == block * (width * rows) + column * rows + step, "block, column and row say which texel"
        )
    apart = places[0] != places[1]
    for way in (blocks[0] < blocks[1], blocks[0] > blocks[1]):
        with facts.supposing(way):
            facts.show(apart, "two blocks lie apart")
    for way in (steps[0] < steps[1], steps[0] > steps[1]):
        with facts.supposing(blocks[0] == blocks[1], way):
            facts.show(apart, "two rows lie apart")
    with facts.supposing(blocks[0] == blocks[1], steps[0] == steps[1], columns[0] != columns[1]):
        facts.show(apart, "two columns lie apart")


def _fold(layout: Layout, offset: Any) -> Any:
    width, rows = layout.data.plane
    return (offset // (width * rows) * rows + offset % rows) * width + offset // rows % width


def arguments_fit(case: Case) -> None:
    """What an accessor is given has the bits that it has there."""
    facts, bits = case.facts, case.layout.data.index_bits
    for each in (*case.room.strides, case.room.part_stride):
        facts.show(z3.And(facts.whole(each) >= 0, facts.whole(each) < 2**bits), "a stride fits")


def addresses(case: Case, module: Module, number: int) -> None:
    """The compiled accessor touches the bytes that the host says, and none of its numbers wraps."""
    arguments_fit(case)
    at, facts, layout = case.index("i"), case.facts, case.layout
    element = case.element(at)
    facts.show(z3.And(element >= 0, element < case.grid.elements), "an element is inside")
    texel = layout.texel_bytes
    line = [
        _address(replace(layout, dims="1d"), element, part, case.room.part_stride)
        for part in range(layout.parts)
    ]
    for part, place in enumerate(line):
        facts.show(
            z3.And(place >= 0, place < facts.whole(layout._texels(case.shape))), f"part {part} is inside"
        )
    expected = [_fold(layout, place) if layout.is_plane else place for place in line]

    def check(parts: Sequence[Any], first: Sequence[Any], begin: int) -> None:
        for k, part in enumerate(parts):
            if part is None:
                raise Refuted(f"byte {k} of a value is not read")
            value, _, which = part
            _same(case, value.place, which, first[k // texel], k % texel, begin)

    begin = layout.constant_offset if layout.memory == "constant" else 0
    machine = Machine(module, facts, {"opaque_place": _opaque})
    value = Room("value")
    for _ in machine.ways(f"@load{number}", lambda: [_argument(case), Pointer(value), *at]):
        loaded = value.load(0, layout.value_bytes)
        check(_parts(loaded, layout.value_bytes, machine), expected, begin)
    if is_written(layout):
        given = Room("given", {k: (("given", k), 1, 0) for k in range(layout.value_bytes)})
        for _, events in machine.ways(f"@store{number}", lambda: [_argument(case), Pointer(given), *at]):
            written = [
                (event.place, k, part)
                for event in events if event.kind == "store"
                for k, part in enumerate(_parts(event.value, event.size, machine))
            ]  # fmt: skip
            if len(written) != layout.value_bytes:
                raise Refuted(f"{len(written)} bytes of {layout.value_bytes} are written")
            for place, which, part in written:
                k = part[0][1]
                _same(case, place, which, expected[k // texel], k % texel, 0)
    if scales := layout.stored_scales:
        first, _, unit = scales.tail(layout._texels(case.shape), case.shape)
        row = at[0] if layout.storage and layout.storage.by_row else 0
        places = [first + row * unit + k for k in range(unit)]
        folded = [_fold(layout, place) if layout.is_plane else place for place in places]
        scale = Room("scale")
        for _ in machine.ways(f"@scale{number}", lambda: [_argument(case), Pointer(scale), *at]):
            check(_parts(scale.load(0, 4), 4, machine), folded, begin)


def _opaque(machine: Machine, _: str, *given: Any) -> Any:
    *cell, side = given
    return place_on_curve([machine.facts.whole(each) for each in cell], side)


def _same(case: Case, place: Any, byte: int, texel: Any, of_texel: int, begin: int) -> None:
    """Show that ``byte`` of what is accessed at ``place`` is that of the texel."""
    facts, layout = case.facts, case.layout
    if isinstance(place, Place) and isinstance(place.offset, tuple):  # a texture's
        x, *y = (facts.whole(each) for each in place.offset)
        if y:
            width = case.room.plane[0]
            facts.show(z3.And(x >= 0, x < width), "a column of the plane")
            x = x + y[0] * width
        facts.show(x == texel, "the texel that is read")
        if byte != of_texel:
            raise Refuted("another byte of the texel is used")
        return
    right = "constant_window" if layout.memory == "constant" else "memory"
    if place.base != right:
        raise Refuted(f"{place.base} is read in place of {right}")
    wanted = facts.whole(texel) * layout.texel_bytes + of_texel + begin
    facts.show(facts.whole(place.offset) + byte == wanted, "the byte that is accessed")


def _parts(value: Any, size: int, machine: Machine) -> list[Any]:
    parts = list(value.parts) if isinstance(value, Bytes) else [(value, size, k) for k in range(size)]
    return [_texel_of(part, machine) for part in parts]


def _texel_of(part: Any, machine: Machine) -> Any:
    """Of what a texture gives, the texel's number."""
    if part is None or not isinstance(part[0], Read) or not part[0].place.base.startswith("@"):
        return part
    event = machine.events[part[0].place.offset - 1]
    name, numbers = event.kind, event.place
    if "tex1D" in name:
        number = numbers[1]
        machine.facts.show(z3.And(number >= 0, number < 2**31), "a texel's number is an int")
    else:
        x, y = numbers[1:]
        if not (isinstance(x, Real) and isinstance(y, Real) and x.more == y.more == 0.5):
            raise Refuted("a texel is not read at its centre")
        return Read(Place(name, (x.whole, y.whole)), part[1]), part[1], part[2]
    return Read(Place(name, (number,)), part[1]), part[1], part[2]


def _argument(case: Case) -> Pointer:
    """The accessor as ``Stored.argument`` makes it."""
    room = case.room
    if case.layout.data.role == "shared":
        return Pointer("memory")
    extents = [0x11_00_00_01 + axis for axis in range(len(room.extents))]
    strides = [0x22_00_00_01 + axis for axis in range(len(room.extents))]
    made = replace(room, extents=tuple(extents), strides=tuple(strides), part_stride=0x33_00_00_01).argument(
        0x44_00_00_01
    )
    found = Room("argument")
    width = (case.layout.data.index_bits + 1) // 8
    members = [
        (0x44_00_00_01, 8, Pointer("memory")),
        *((mark, 4, each) for mark, each in zip(extents, room.extents, strict=True)),
        *((mark, width, each) for mark, each in zip(strides, room.strides, strict=True)),
        (0x33_00_00_01, width, room.part_stride),
    ]
    for mark, size, each in members:
        place = made.find(mark.to_bytes(size, "little"))
        if place >= 0:
            found.store(place, each, size)
    return Pointer(found)

"""Every layout is proved for all shapes; wrong mappings, planted in the headers or on the host, are found."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import pytest

pytest.importorskip("z3", reason="needs z3-solver (dependency group heavy)")

from accessors import compiled, source
from bits import (
    CURVES,
    compiled_bits,
    hilbert_is_the_hosts,
    morton_joins_bits,
    packing_is_the_hosts,
    swizzle_has_no_conflicts,
)
from claims import Case, mapping_is_one_to_one, parts_are_inside_and_apart
from host import host_moves_as_it_says
from mappings import curves, laid, plain, record, shared
from proofs import about_bits, about_layouts, layouts, prove_layout
from whole import Facts, Refuted

from autotune.errors import FamilyError
from autotune.hardware import Limits
from autotune.layout.arrays import Data, Field
from autotune.layout.bit_packing import PACKINGS
from autotune.layout.layout import Layout
from autotune.layout.mapping import Grid, Mapping
from autotune.layout.views import view_refusal, view_room

pytestmark = pytest.mark.zig
_PARTS = 8


@pytest.mark.parametrize("number", range(_PARTS))
def test_every_layout_is_proved(number: int) -> None:
    """As ``python tests/proofs`` does."""
    for proof in about_layouts(list(layouts())[number::_PARTS]):
        proof.prove()


def test_bits_are_proved() -> None:
    for proof in about_bits():
        proof.prove()


# -- wrong mappings in the headers --------------------------------------------------------------------------

_SCALED = laid(plain(2), storage="scaled_int8_by_row", records="aosoa100")
_PLANE = laid(record("Three", 2, index_bits=64, plane=(32, 2)), dims="2d")
_OPEN = next(
    layout for name, layout in curves(laid(plain(2), curve="morton", tiles="8x4"), 1) if name.endswith("2")
)
PLANTED: dict[str, tuple[Layout, str, str, str]] = {
    "tiles whose rows overlap": (
        laid(plain(2), tiles="8x4"), "tile.cuh", "tile[axis] % Sizes::known(axis)",
        "tile[axis] % (Sizes::known(axis) / 2)",
    ),
    "tiles that count from the next": (
        laid(plain(2), tiles="8x4"), "tile.cuh", "tile[axis] /= Sizes::known(axis)",
        "tile[axis] = (tile[axis] + 1) / Sizes::known(axis)",
    ),
    "places of a curve without their tiles": (_OPEN, "curve.cuh", " * Cell::volume()", ""),
    "blocks of a curve in its places": (_OPEN, "curve.cuh", "index[ALONG] >>= bits", "index[ALONG] >>= 0"),
    "a swizzle that leaves its row": (
        laid(plain(2), swizzle="xor8"), "swizzle.cuh", "(row & (GROUPS - 1)) * WIDTH",
        "(row & (2 * GROUPS - 1)) * WIDTH",
    ),
    "a swizzle of a shared array that leaves its row": (
        shared((9, 21), swizzle="xor8"), "swizzle.cuh", "(row & (GROUPS - 1)) * WIDTH", "(row & 31) * WIDTH",
    ),
    "a shared array with another row": (
        shared((9, 21), padding="1+1"), "shared_array.cuh", "offset(static_cast<unsigned>(indices)...)",
        "offset(static_cast<unsigned>(indices & 7)...)",
    ),
    "runs of records that are too short": (
        laid(record("Three"), records="soa"), "records.cuh", "part * part_stride + element",
        "part * (part_stride - 1) + element",
    ),
    "lanes that are no lanes": (
        laid(record("Three"), records="aosoa4"), "records.cuh", "* LANES + element % LANES",
        "* LANES + element % PARTS",
    ),
    "groups of fields in each other": (
        laid(record("Six"), records="u+v+w-x+y+z"), "fields.cuh", "element * (Group::count / width)", "element",
    ),
    "members of a group in one place": (
        laid(record("Three"), (2, 1)), "records.cuh", "index * MEMBERS + MEMBER", "index * MEMBERS",
    ),
    "a constant array at another place": (
        replace(laid(plain(1), memory="constant"), constant_offset=256), "memory.cuh",
        "constant_window<65536> + OFFSET", "constant_window<65536>",
    ),
    # Faults that the proofs found:
    "tiles of a curve that wrap": (
        _OPEN, "curve.cuh", "(this->extents()[ALONG] - 1) / Cell::known(ALONG) + 1",
        "(this->extents()[ALONG] + Cell::known(ALONG) - 1) / Cell::known(ALONG)",
    ),
    "a scale that wraps": (
        _SCALED, "storage.cuh", "(codes.part_stride() - 1) / lanes + 1",
        "(codes.part_stride() + lanes - 1) / lanes",
    ),
    "rows of a plane that wrap": (
        _PLANE, "dims.cuh", "((offset >> (LOG2_WIDTH + LOG2_ROWS)) * rows + (offset & (rows - 1))) * width",
        "static_cast<Index>(y(offset)) * width",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_header_is_found(name: str) -> None:
    layout, header, right, wrong = PLANTED[name]
    prove_layout(layout, compiled(source([layout])), 0)
    with pytest.raises(Refuted):
        prove_layout(layout, compiled(source([layout]), {header: (right, wrong)}), 0)


@pytest.mark.parametrize(
    ("header", "right", "wrong", "claim"),
    [
        ("curve.cuh", "0x00FF00FFu", "0x00FF007Fu", lambda module: morton_joins_bits(module, 2, 32)),
        ("curve.cuh", "joined << 1 |", "joined << 2 |", lambda module: morton_joins_bits(module, 3, 32)),
        ("curve.cuh", "is_high ? lower : swapped", "is_high ? bit : swapped",
         lambda module: hilbert_is_the_hosts(module, 2, 32)),
        ("curve.cuh", "turned[RANK - 1] >> 1", "turned[0] >> 1", lambda module: hilbert_is_the_hosts(module, 3, 32)),
        ("swizzle.cuh", "(row & (GROUPS - 1)) * WIDTH", "(row & (GROUPS - 1)) * 2",
         lambda module: swizzle_has_no_conflicts(module, 8, 4)),
        ("swizzle.cuh", "(row & (GROUPS - 1)) * WIDTH", "(row & (GROUPS / 2)) * WIDTH",
         lambda module: swizzle_has_no_conflicts(module, 32, 1)),
        ("packing.cuh", "word.plane[p] >> k & 1u", "word.plane[p] >> (31 - k) & 1u",
         lambda module: packing_is_the_hosts(module, PACKINGS["planes2"])),
        ("packing.cuh", "(k * BITS % 32)", "(32 - BITS - k * BITS)",
         lambda module: packing_is_the_hosts(module, PACKINGS["bits4"])),
        ("packing.cuh", "(((x & low) + low) | x) & ~low", "((x & low) + low) & ~low",
         lambda module: packing_is_the_hosts(module, PACKINGS["bits2"])),
    ],
)  # fmt: skip
def test_wrong_bits_are_found(header: str, right: str, wrong: str, claim: Callable[[Any], None]) -> None:
    with pytest.raises(Refuted):
        claim(compiled_bits({header: (right, wrong)}))


# -- wrong mappings on the host ---------------------------------------------------------------------------------


class Forgetful(Mapping):
    """Forgets what pads a row."""

    def _make_grid(self, extents: Sequence[int]) -> Grid:
        grid, strides = super()._make_grid(extents), [1] * len(extents)
        for place in range(len(extents) - 1, 0, -1):
            strides[self.axes[place - 1]] = strides[self.axes[place]] * extents[self.axes[place]]
        return replace(grid, strides=tuple(strides))


class Crowded(Layout):
    """A layout whose rows begin in those before them."""

    @cached_property
    def mapping(self) -> Mapping:
        right = super().mapping
        return Forgetful(right.axes, right.padding, right.plus, right.tile, right.curve, right.steps)


def test_rows_that_overlap_on_the_host_are_found() -> None:
    right = laid(plain(2), tiles="4x4")
    wrong = Crowded(data=right.data, tiles=right.tiles)
    mapping_is_one_to_one(Case.of(right))
    with pytest.raises(Refuted, match="not so for"):
        mapping_is_one_to_one(Case.of(wrong))


def test_a_room_that_is_too_small_is_found() -> None:
    class Small(Layout):
        def _texels(self, shape: Sequence[int]) -> int:
            return self.grid(shape).elements * self.parts  # without what the last run has more

    right = laid(record("Three"), records="aosoa4")
    parts_are_inside_and_apart(Case.of(right))
    with pytest.raises(Refuted, match="is inside"):
        parts_are_inside_and_apart(Case.of(Small(data=right.data, records=right.records)))


def test_a_host_that_moves_elsewhere_is_found() -> None:
    class Turned(Mapping):
        @cached_property
        def _order(self) -> tuple[int, ...]:
            return tuple(reversed(super()._order))

    class Moved(Layout):
        @cached_property
        def mapping(self) -> Mapping:
            return Turned(super().mapping.axes, tile=self.tiles)

    right = laid(plain(2), tiles="4x2")
    assert host_moves_as_it_says(right) > 8
    with pytest.raises(Refuted, match="elements: not where the formula says"):
        host_moves_as_it_says(Moved(data=right.data, tiles=right.tiles))


# -- where a proof fails above some size, that is rejected -------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "choices", "count"),
    [
        (plain(2), {"tiles": "65536x32768"}, 2**31),
        (plain(3), {"tiles": "2048x2048x1024"}, 2**32),
        (plain(2), {"curve": "hilbert2147483648"}, 2**31),
        (plain(2), {"swizzle": "xor65536x32768"}, 2**31),
        (record("Three"), {"records": "aosoa2147483648"}, 2**31),
        (plain(1, "uint8", packed="i", low=0, high=1), {"packing": "int8", "vector": 2**24}, 2**31),
    ],
)
def test_what_32_bits_do_not_count_is_refused(data: Data, choices: dict[str, Any], count: int) -> None:
    (name, value), *_ = reversed(choices.items())
    with pytest.raises(FamilyError, match=f"{name} {value} joins {count} elements, .* fewer than 2147483648"):
        laid(data, **choices)


def test_a_tile_that_is_refused_would_wrap() -> None:
    """The limit is needed: what the host would say is not what the code does."""
    layout = replace(laid(plain(3, index_bits=64), tiles="8x8x8"), tiles=(2, 65536, 65536))
    assert math.prod(layout.tiles[1:]) == 2**32
    with pytest.raises(Refuted, match="the byte that is accessed"):
        prove_layout(layout, compiled(source([layout])), 0)


def test_strides_beyond_their_bits_are_refused() -> None:
    """Of one row no element is far away, but its accessor has the stride."""
    shape, element = ("i", "j", "k"), (Field("", "float32"),)
    view = Layout(data=Data(name="v", role="view", of="a", pitch="p", fields=element, shape=shape))
    whole = laid(plain(1)).room((100,))
    sizes = {"i": 1, "j": 1, "k": 5, "p": 2**32}
    assert view_refusal(view, view_room(view, sizes | {"p": 2**32 - 1}), whole, Limits()) == ""
    told = view_refusal(view, view_room(view, sizes), whole, Limits())
    assert told == "v: strides of (4294967296, 4294967296, 1) pass the range of 32-bit addresses"
    wide = replace(view, data=replace(view.data, index_bits=64))
    assert view_refusal(wide, view_room(wide, sizes), whole, Limits()) == ""


# -- the machinery -----------------------------------------------------------------------------------------------


def test_what_does_not_follow_is_said_with_numbers() -> None:
    facts = Facts()
    one, other = facts.number("one"), facts.number("other")
    facts.limit(one, other - 1)
    facts.show(one < other, "smaller")
    facts.show(one * other <= other * other - other, "products")
    with pytest.raises(Refuted, match="larger: not so for one = "):
        facts.show(one * 2 > other, "larger")
    assert not facts.follows(other >= 4)
    with facts.supposing(one == 3):
        assert facts.follows(other >= 4)
        facts.show(other >= 4, "while that is supposed")
    assert not facts.follows(other >= 4)
    assert facts.follows(one // 4 * 4 + one % 4 == one)
    assert facts.follows((one ^ (other % 8)) >= 0)


def test_all_kinds_are_among_the_layouts() -> None:
    """What is proved is what can be chosen: a new dimension or value needs a proof."""
    from autotune.layout import DIMENSIONS
    from autotune.layout.storage import STORAGES

    told = " ".join(name for name, _ in layouts())
    names = {"grouping": "merged", "vector": "packing planes4 by 4", "dims": "dims 2d"}
    for dimension in DIMENSIONS:
        assert names.get(dimension, dimension) in told, dimension
    for packing in PACKINGS:
        assert f"packing {packing} by 1" in told, packing
    assert set(CURVES) == {"morton", "hilbert"}
    sizes = {(each.bytes, each.is_scaled, each.by_row) for each in STORAGES.values()}
    proved = {
        (layout.storage.bytes, layout.storage.is_scaled, layout.storage.by_row)
        for _, layout in layouts()
        if layout.storage
    }
    assert sizes - proved <= {(4, False, False), (2, True, True)}

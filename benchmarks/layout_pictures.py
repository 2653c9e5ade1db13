"""Pictures of how each layout stores a small array, made from the addresses that the layout library computes.

    python benchmarks/layout_pictures.py

Prints what pages.py puts into docs/reference/layout-pictures.md. The figures in it are those of
``benchmarks/results/layout-costs-h200.csv`` (``layout_costs.py`` makes it).
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from result_files import read_rows

from autotune.layout import STORAGES, Data, Field, Layout, Links, named_orders, packing
from autotune.layout.curve import Curve
from autotune.layout.swizzle import Swizzle

ROOT = Path(__file__).resolve().parents[1]
COSTS = ROOT / "benchmarks" / "results" / "layout-costs-h200.csv"
EMPTY = "."

NUMBERS = Data(
    name="x", role="input", fields=(Field("", "float32"),), shape=("row", "column"), plane=(8, 2), packed=""
)
RECORDS = Data(
    name="x", role="input", record="R", fields=tuple(Field(n, "float32") for n in "xyzm"), shape=("element",)
)
PACKED = Data(name="x", role="input", fields=(Field("", "int32"),), shape=("element",), packed="element")


@dataclass(frozen=True)
class Picture:
    """One layout of a small array; ``costs`` are the layouts of layout_costs.py whose times are shown."""

    title: str
    yaml: str
    told: str
    drawing: str
    costs: tuple[tuple[str, str], ...] = ()


# -- drawing --------------------------------------------------------------------------------------------------------


def cells(layouts: Sequence[Layout], shape: tuple[int, ...], names: str = "") -> list[str]:
    """Return what each number's place holds, in the order of the addresses: an element by its indices, after a field's
    name or that of its array; a dot for an empty place."""
    room, data = layouts[0].room(shape), layouts[0].data
    inside = len(data.fields) // layouts[0].parts if data.record else 1  # numbers of a texel
    found = [EMPTY] * (room.texels * inside)
    for layout, name in zip(layouts, names or " ", strict=False):
        for index in np.ndindex(*room.extents):
            element = int(layout.mapping.element(index, room.extents))
            for number in range(layout.parts * inside):
                texel = int(layout.compute_address(element, number // inside, room.part_stride))
                field = data.fields[number].name if data.record else name.strip()
                found[texel * inside + number % inside] = field + "".join(map(str, index))
    return found


def drawn(labels: Sequence[str], across: int) -> str:
    """Draw ``across`` labels in a line, with the address of each line's first."""
    wide = max(map(len, labels))
    lines = [labels[begin : begin + across] for begin in range(0, len(labels), across)]
    return "\n".join(
        f"{number * across:4} | {' '.join(label.rjust(wide) for label in line)}"
        for number, line in enumerate(lines)
    )


def of_numbers(across: int = 8, shape: tuple[int, int] = (4, 8), **choice: Any) -> str:
    return drawn(cells([Layout(data=NUMBERS, **choice)], shape), across)


def of_records(across: int = 8, count: int = 6, **choice: Any) -> str:
    return drawn(cells([Layout(data=RECORDS, **choice)], (count,)), across)


def of_words(name: str, count: int, vector: int = 1) -> str:
    """Return what each 32-bit word holds, the lowest bits first, and each access to several words."""
    layout = Layout(data=PACKED, packing=packing(name))
    assert layout.packing is not None
    each = layout.packing.elements
    lines = []
    for word in range(layout.room((count,)).extents[0]):
        inside = [str(k) for k in range(word * each, min(count, (word + 1) * each))]
        words = [f"bit {plane} of {inside[0]} .. {inside[-1]}" for plane in range(layout.packing.bits)]
        lines += words if layout.packing.planar else [" ".join(inside)]
    accesses = [" | ".join(lines[begin : begin + vector]) for begin in range(0, len(lines), vector)]
    return "\n".join(f"{place * vector:4} | {line}" for place, line in enumerate(accesses))


def of_tree(order: Any) -> str:
    """A tree of 15, named level by level (1 above 2 and 3, those above 4 to 7), as it is stored."""
    tree = Links.from_pairs(np.repeat(np.arange(7), 2), np.arange(1, 15), 15)
    return drawn([str(element + 1) for element in order(tree)], 15)


# -- the page -------------------------------------------------------------------------------------------------------


def _number(kind: str, *values: str) -> tuple[tuple[str, str], ...]:
    return tuple(("numbers", f"{kind}={value}") for value in values)


def _record(*values: str) -> tuple[tuple[str, str], ...]:
    return tuple(("records", f"records={value}") for value in values)


def pictures() -> Iterator[Picture]:
    yield Picture(
        "Rows one behind the other",
        "no policy",
        "Four rows of eight, `23` is row 2, column 3. Neighbours along a row are neighbours in memory.",
        of_numbers(),
    )
    yield Picture(
        "axes",
        "{layout: axes, values: [rows, columns], means: {columns: [column, row], ...}}",
        "Another index is contiguous. Pays if neighbouring threads differ in that one.",
        of_numbers(axes=(1, 0)),
        _number("axes", "columns"),
    )
    yield Picture(
        "padding",
        "{layout: padding, values: [1, 8+1]}",
        "Rows are a multiple of a number of elements, and a gap follows: other banks, whole sectors; costs memory.",
        of_numbers(across=9, padding=8, plus=1),
        _number("padding", "32+8"),
    )
    yield Picture(
        "tiles",
        "{layout: tiles, values: [none, 2x4]}",
        "Blocks are stored together: a square is read from few sectors. Costs arithmetic, and rows are scattered.",
        of_numbers(tiles=(2, 4)),
        _number("tiles", "4x8", "8x8", "16x16"),
    )
    for kind in ("morton", "hilbert"):
        yield Picture(
            f"curve: {kind}", f"{{layout: curve, values: [none, {kind}]}}",
            "Neighbours in both directions stay near at every scale."
            + (" Each element is next to the one before it, for more arithmetic." if kind == "hilbert" else ""),
            of_numbers(curve=Curve(kind, (0, 1))), _number("curve", kind),
        )  # fmt: skip
    yield Picture(
        "swizzle",
        "{layout: swizzle, values: [none, xor4]}",
        "Columns change places within each row, so that a column is in another bank in each row. For shared memory "
        "and for arrays that are copied there unchanged.",
        of_numbers(steps=(Swizzle(4, 1),)),
        _number("swizzle", "xor8x4"),
    )
    yield Picture(
        "dims: 2d, 2d_pitched",
        "{layout: dims, values: [1d, 2d]}",
        "The line is folded into a plane, here eight texels wide in blocks of two rows, whatever the array's shape. "
        "For texture memory, whose cache keeps squares.",
        of_numbers(dims="2d"),
        (("numbers", "memory=texture,dims=2d"),),
    )
    yield Picture(
        "dims: image, image_pitched",
        "{layout: dims, values: [1d, image]}",
        "The array's own rows as a texture: the hardware orders the texels, and clamps, wraps or interpolates.",
        of_numbers(),
        (("numbers", "memory=texture,dims=image"),),
    )
    yield Picture(
        "memory",
        "{layout: memory, values: [global, readonly, texture, constant]}",
        "The same bytes by another path: `ld.global`, `ld.global.nc`, `tex1Dfetch`, the constant cache (64 KiB, fast "
        "where all threads of a warp read one address).",
        of_numbers(shape=(2, 8)),
        (("numbers", "memory=readonly"), ("numbers", "memory=texture")),
    )
    halves = Layout(data=NUMBERS, storage=STORAGES["float16"])
    yield Picture(
        "storage",
        "{layout: storage, values: [float32, float16, scaled_int8]}",
        "Fewer bits for each number, here two bytes: the same places in half the room. Half the traffic, for rounding "
        f"and a conversion. `float16` takes {halves.room((4, 8)).nbytes} bytes of "
        f"{Layout(data=NUMBERS).room((4, 8)).nbytes}.",
        of_numbers(storage=STORAGES["float16"], shape=(2, 8)),
        _number(
            "storage",
            "float16",
            "bfloat16",
            "float8_e4m3",
            "scaled_int16",
            "scaled_int8",
            "scaled_int8_by_row",
        ),
    )
    yield Picture(
        "records: aos",
        "{layout: records, values: [aos, ...]}",
        "A record's fields next to each other: best if all of a record is read, and if records are read at random.",
        of_records(),
    )
    yield Picture(
        "records: soa",
        "{layout: records, values: [aos, soa]}",
        "An array for each field: best if few fields of all records are read.",
        of_records(records="soa"),
        _record("soa"),
    )
    yield Picture(
        "records: aosoa<lanes>",
        "{layout: records, values: [aos, aosoa4]}",
        "Short arrays of each field: reads as wide as soa's, and a record stays within a few sectors.",
        of_records(records="aosoa4", count=8),
        _record("aosoa4", "aosoa32"),
    )
    yield Picture(
        "records: groups of fields",
        "{layout: records, values: [aos, x+y+z-m]}",
        "Fields that are read together are stored together, others separately.",
        of_records(records="x+y+z-m"),
        _record("three_apart", "four_and_four"),
    )
    pair = [Layout(data=Data(name=n, role="input", fields=(Field("", "float32"),), shape=("element",)), group=(2, k))
            for k, n in enumerate("ab")]  # fmt: skip
    yield Picture(
        "grouping: merged",
        "{layout: grouping, data: [a, b], values: [split, merged]}",
        "Two arrays over one index space, element by element in turn: one sector has both.",
        drawn(cells(pair, (8,), "ab"), 8),
    )
    for name, count in (("int8", 12), ("bits4", 16), ("bits2", 32), ("planes2", 64)):
        wide = f"packing={name},vector={2 if name == 'planes2' else 4}"
        told = " A word has one bit of 32 elements." if name.startswith("planes") else ""
        yield Picture(
            f"packing: {name}",
            f"{{layout: packing, values: [int32, {name}]}}",
            f"Which elements each word of 32 bits has, the lowest bits first.{told}",
            of_words(name, count),
            (("packed", f"packing={name}"), ("packed", wide)),
        )
    yield Picture(
        "vector",
        "{layout: vector, values: [1, 2]}",
        "One access moves several words of a packing: fewer instructions, up to 16 bytes each.",
        of_words("int8", 16, 2),
    )
    yield from _orders()


def _orders() -> Iterator[Picture]:
    named = " A tree of 15, named level by level: 1 above 2 and 3, those above 4 to 7."
    orders: tuple[tuple[str, Any, str], ...] = (
        ("breadth_first", named_orders.breadth_first, f"The first levels are always in the cache.{named}"),
        ("depth_first", named_orders.depth_first, f"The first child is the next element.{named}"),
        (
            "van_emde_boas",
            named_orders.van_emde_boas,
            f"Any path crosses few blocks, of whatever size blocks are.{named}",
        ),
        (
            "breadth_first_blocks",
            lambda tree: named_orders.breadth_first_blocks(tree, 1, 2),
            f"Here a level, then blocks of two: a step downwards is often in the same sector.{named}",
        ),
        (
            "b_tree",
            lambda _tree: named_orders.b_tree(15, 3),
            "15 ascending keys, 1 to 15, as a search tree of nodes of three: one access has all that a step compares.",
        ),
    )
    for name, order, told in orders:
        means = f"{{...: {{order: {name}, ...}}}}"
        yield Picture(
            f"order: {name}", f"{{layout: order, data: [node], means: {means}}}", told, of_tree(order)
        )


def costs() -> dict[tuple[str, str], list[dict[str, str]]]:
    """The rows of each array and layout."""
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in read_rows(COSTS):
        found.setdefault((row["array"], row["layout"]), []).append(row)
    return found


def tables() -> dict[str, str]:
    """What docs/reference/layout-pictures.md has (pages.py)."""
    known = costs()
    lines = []
    for picture in pictures():
        lines += [f"## {picture.title}", "", f"`{picture.yaml}`", "", picture.told, ""]
        lines += ["```text", picture.drawing, "```", ""]
        lines += _figures([each for each in picture.costs if each in known], known)
    return {"fastest": "\n".join(_fastest(known)).rstrip(), "pictures": "\n".join(lines).rstrip()}


def _fastest(known: dict[tuple[str, str], list[dict[str, str]]]) -> list[str]:
    """A table: for each way of reading the three fastest layouts and the slowest."""
    by_way: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for (array, layout), rows in known.items():
        for row in rows:
            by_way.setdefault((array, row["read"]), []).append((float(row["of_control"]), layout))
    lines = ["| array | read | fastest | slowest |", "|---|---|---|---|"]
    for (array, way), layouts in by_way.items():
        told = [f"`{layout}` {part:.2f}" for part, layout in sorted(layouts)]
        lines.append(f"| {array} | {_in_words(way)} | {', '.join(told[:3])} | {told[-1]} |")
    return [*lines, ""]


def _in_words(way: str) -> str:
    """A way of reading as the page names it: ``whole_by_chance`` is ``whole at random``."""
    return way.replace("_", " ").replace("by chance", "at random").replace("chance", "at random")


def _figures(
    asked: Sequence[tuple[str, str]], known: dict[tuple[str, str], list[dict[str, str]]]
) -> list[str]:
    """A table: a row a layout, a column a way of reading."""
    if not asked:
        return []
    ways = [_in_words(row["read"]) for row in known[asked[0]]]
    lines = [f"| H200 | {' | '.join(ways)} |", f"|---|{'---|' * len(ways)}"]
    for each in asked:
        parts = [f"{float(row['of_control']):.2f}" for row in known[each]]
        lines.append(f"| `{each[1]}` | {' | '.join(parts)} |")
    return [*lines, ""]


def main(words: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args(words)
    print("\n\n".join(tables().values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

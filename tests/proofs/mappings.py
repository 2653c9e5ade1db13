"""The layouts of which claims are shown: every kind of mapping, and what goes together with it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

from claims import OpaqueCurve

from autotune.layout.arrays import Data, Field
from autotune.layout.dimensions import layout_of
from autotune.layout.layout import Layout

_RECORDS = {
    "Three": ("float32", "float32", "float32"),
    "Four": ("float32", "float32", "float32", "float32"),
    "Six": ("float32",) * 6,
    "Mixed": ("uint16", "uint8", "uint8", "float32"),
    "Wide": ("float64", "uint32", "uint32"),
}


def plain(rank: int, kind: str = "float32", **more: Any) -> Data:
    return Data(name="a", role="input", fields=(Field("", kind),), shape=tuple("ijklmn"[:rank]), **more)


def record(name: str, rank: int = 1, **more: Any) -> Data:
    fields = tuple(Field(letter, kind) for letter, kind in zip("uvwxyz", _RECORDS[name], strict=False))
    return Data(name="a", role="input", record=name, fields=fields, shape=tuple("ijklmn"[:rank]), **more)


def laid(data: Data, group: tuple[int, int] = (1, 0), **choices: Any) -> Layout:
    """As policies choose; a kernel writes it where it may."""
    may_write = not choices.keys() & {"memory", "storage"}
    data = replace(data, role="scratch" if may_write else "input")
    return layout_of(data, choices, Layout(data=data, group=group))


def shared(sizes: tuple[int, ...], kind: str = "float32", **choices: Any) -> Layout:
    """Of an array in shared memory."""
    data = replace(plain(len(sizes), kind), role="shared")
    return replace(layout_of(data, choices), sizes=sizes)


def curves(layout: Layout, sides: int) -> Iterator[tuple[str, Layout]]:
    """With a curve of which no more is known than that it is one, of every side that it can have."""
    curve = layout.curve
    assert curve is not None
    for side in (0,) if curve.side else (2**bits for bits in range(sides + 1)):
        opaque = OpaqueCurve(curve.kind, curve.along, curve.side, chosen=side)
        yield f" of side {side}" if side else "", replace(layout, curve=opaque)


def layouts() -> Iterator[tuple[str, Layout]]:
    """(name, layout) of each."""
    for bits in (32, 64):
        wide = f", {bits}-bit addresses"
        for rank in (1, 2, 3):
            for axes in permutations("ijk"[:rank]):
                yield f"axes {''.join(axes)}{wide}", laid(plain(rank, index_bits=bits), axes=[*axes])
        yield f"axes of six extents{wide}", laid(plain(6, index_bits=bits), axes=[*"kimjln"])
        for padding in (32, "128B", "32+1", "3+2", "128B+16B"):
            for rank in (1, 2, 3):
                yield (
                    f"padding {padding}, {rank} extents{wide}",
                    laid(plain(rank, index_bits=bits), padding=padding),
                )
        for tile in ("8x8", "8x3", "1x32", "5x7"):
            yield f"tiles {tile}{wide}", laid(plain(2, index_bits=bits), tiles=tile)
        yield (
            f"tiles 8x3, axes ji, padding 5+2{wide}",
            laid(plain(2, index_bits=bits), tiles="8x3", axes=["j", "i"], padding="5+2"),
        )
        yield (
            f"tiles 4x2x8, axes kij{wide}",
            laid(plain(3, index_bits=bits), tiles="4x2x8", axes=["k", "i", "j"]),
        )
        for swizzle in ("xor8", "xor32", "xor8x4"):
            yield f"swizzle {swizzle}{wide}", laid(plain(2, index_bits=bits), swizzle=swizzle)
        yield (
            f"swizzle xor8x2, axes kji{wide}",
            laid(plain(3, index_bits=bits), swizzle="xor8x2", axes=["k", "j", "i"]),
        )
        yield (
            f"swizzle xor4 of tiles 8x16{wide}",
            laid(plain(2, index_bits=bits), swizzle="xor4", tiles="8x16"),
        )
        yield f"tiles 65536x32767{wide}", laid(plain(2, index_bits=bits), tiles="65536x32767")
        yield from _curves(bits)
        for records in ("aos", "soa", "aosoa2", "aosoa3", "aosoa4", "aosoa8", "aosoa32"):
            for name in _RECORDS:
                is_more = bits == 64 and not (
                    name in ("Three", "Six") and records in ("aos", "soa", "aosoa4")
                )
                if not is_more and (name != "Mixed" or records == "aos"):
                    yield (
                        f"records {records} of {name}{wide}",
                        laid(record(name, index_bits=bits), records=records),
                    )
        for groups in ("u+v-w", "w+u-v", "u-v-w"):
            yield f"groups {groups}{wide}", laid(record("Three", 2, index_bits=bits), records=groups)
        for groups in ("u+v+w+x-y-z", "y+u-z+x+w+v"):
            yield f"groups {groups}{wide}", laid(record("Six", 1, index_bits=bits), records=groups)
        yield f"groups u-v+w{wide}", laid(record("Wide", 1, index_bits=bits), records="u-v+w")
        for members in (2, 3):
            for member in range(members):
                for records in ("aos", "soa", "aosoa4", "u+v-w"):
                    yield (
                        f"merged {member} of {members}, {records}{wide}",
                        laid(
                            record("Three", 2, index_bits=bits), (members, member), records=records, padding=4
                        ),
                    )
        for plane in ((4096, 1), (4096, 32), (16, 2)):
            yield (
                f"dims 2d {plane[0]} by {plane[1]}{wide}",
                laid(record("Three", 2, index_bits=bits, plane=plane), dims="2d", records="aosoa4"),
            )
    for packing in ("int32", "int16", "int8", "bits4", "bits2", "planes1", "planes2", "planes4"):
        for vector in (1, 2, 4):
            data = plain(2, "uint8", packed="j", low=0, high=1)
            yield f"packing {packing} by {vector}", laid(data, packing=packing, vector=vector, padding=4)
    yield from _signed()
    yield from _shared()
    yield from _memories()
    yield from _storages()
    yield from _together()


def _curves(bits: int) -> Iterator[tuple[str, Layout]]:
    wide = f", {bits}-bit addresses"
    kinds: Mapping[str, tuple[int, Mapping[str, Any]]] = {
        "curve8": (2, {"curve": "morton8"}),
        "curve4 of tiles 2x3": (2, {"curve": "morton4", "tiles": "2x3", "padding": "4+1"}),
        "curve4 of three extents": (3, {"curve": "morton4", "axes": ["j", "k", "i"]}),
        "curve4 along ik": (3, {"curve": {"curve": "morton4", "along": ["i", "k"]}}),
    }
    for name, (rank, chosen) in kinds.items():
        for more, layout in curves(laid(plain(rank, index_bits=bits), **chosen), 0):
            yield f"{name}{more}{wide}", layout
    open_sides: Mapping[str, tuple[int, int, Mapping[str, Any]]] = {
        "curve of tiles 8x4": (2, bits // 2, {"curve": "morton", "tiles": "8x4"}),
        "curve of three extents": (3, bits // 3, {"curve": "morton"}),
    }
    for name, (rank, most, chosen) in open_sides.items():
        for more, layout in curves(laid(plain(rank, index_bits=bits), **chosen), most):
            yield f"{name}{more}{wide}", layout


def _signed() -> Iterator[tuple[str, Layout]]:
    """With offsets that have a sign: whatever goes together with a mapping."""
    for choices in (
        {"axes": ["k", "i", "j"]}, {"padding": "128B+16B"}, {"tiles": "5x7x3"}, {"swizzle": "xor8x2"},
        {"memory": "texture"}, {"memory": "readonly"}, {"storage": "scaled_int8_by_row"},
        {"curve": "morton4", "tiles": "2x3x1"},
    ):  # fmt: skip
        what = ", ".join(f"{key} {value}" for key, value in choices.items())
        layout = laid(plain(3, index_bits=31), **choices)
        for more, each in curves(layout, 0) if layout.curve else [("", layout)]:
            yield f"{what}{more}, 31-bit addresses", each
    for records in ("aos", "soa", "aosoa3", "aosoa4", "u+v-w"):
        yield f"records {records}, 31-bit addresses", laid(record("Three", 2, index_bits=31), records=records)
    plane = record("Three", 2, index_bits=31, plane=(16, 2))
    yield "dims 2d, 31-bit addresses", laid(plane, dims="2d", records="aosoa4")
    merged = laid(record("Three", 2, index_bits=31), (3, 1), records="soa", padding=4)
    yield "merged, 31-bit addresses", merged


def _shared() -> Iterator[tuple[str, Layout]]:
    """Arrays in shared memory: every swizzle of rows that are whole spans of it and of rows that are not, and with all
    that goes together with it."""
    for bits in range(1, 7):
        for width in (1, 2, 4, 8):
            swizzle = f"xor{1 << bits}x{width}"
            for sizes in ((32, 32), (9, 21)):
                yield f"shared {sizes[0]}x{sizes[1]}, swizzle {swizzle}", shared(sizes, swizzle=swizzle)
    for kind in ("uint8", "uint16", "float64"):
        yield f"shared 16x40 of {kind}, swizzle xor8x2", shared((16, 40), kind, swizzle="xor8x2")
    yield "shared of one extent", shared((100,), padding="32+3")
    for choices in (
        {}, {"padding": "1+1"}, {"axes": ["k", "j", "i"], "swizzle": "xor4"}, {"tiles": "2x4x4", "swizzle": "xor8x2"},
        {"swizzle": "xor16", "padding": "8+2"},
    ):  # fmt: skip
        what = ", ".join(f"{key} {value}" for key, value in choices.items()) or "rows"
        yield f"shared 4x6x20, {what}", shared((4, 6, 20), **choices)
    curved = shared((8, 24), curve="morton4", tiles="2x3", swizzle="xor4")
    for more, layout in curves(curved, 0):
        yield f"shared 8x24, curve4 of tiles 2x3, swizzle xor4{more}", layout


def _memories() -> Iterator[tuple[str, Layout]]:
    for memory in ("readonly", "texture", "constant"):
        for records in ("aos", "soa", "aosoa4", "u+v-w"):
            layout = laid(record("Three", 2), memory=memory, records=records, padding=2)
            yield (
                f"memory {memory}, {records}",
                replace(layout, constant_offset=4096 * (memory == "constant")),
            )
        plane = laid(record("Three", 2, plane=(16, 2)), memory=memory, dims="2d", records="aosoa4")
        yield f"memory {memory}, dims 2d", plane


def _storages() -> Iterator[tuple[str, Layout]]:
    for bits in (32, 64):
        narrow = ("float16", "float8_e4m3", "scaled_int16", "scaled_int8") if bits == 32 else ()
        for storage in (*narrow, "scaled_int8_by_row"):
            wide = f", {bits}-bit addresses"
            yield f"storage {storage}{wide}", laid(plain(2, index_bits=bits), storage=storage, padding="3+1")
            for records in ("aos", "soa", "aosoa3", "aosoa4", "aosoa7", "u+v-w"):
                yield (
                    f"storage {storage}, {records}{wide}",
                    laid(record("Three", 2, index_bits=bits), storage=storage, records=records),
                )
        for records in ("aosoa7", "aosoa8", "aosoa100"):
            yield (
                f"storage scaled_int8_by_row, {records} of numbers, {bits}-bit addresses",
                laid(plain(2, index_bits=bits), storage="scaled_int8_by_row", records=records),
            )
    yield (
        "storage scaled_int8_by_row, dims 2d",
        laid(record("Three", 2, plane=(16, 2)), storage="scaled_int8_by_row", dims="2d", records="soa"),
    )


def _together() -> Iterator[tuple[str, Layout]]:
    """Every stage with every other, and with extents that the accessor's type has."""
    for bits, sizes in ((32, (0, 3)), (64, (0, 3)), (32, (7, 0)), (32, (7, 3))):
        name = f"{bits}-bit addresses, extents {' '.join(str(size or 'any') for size in sizes)}"
        for choices in (
            {}, {"axes": ["j", "i"], "padding": "2+1"}, {"tiles": "4x2"}, {"swizzle": "xor4"}, {"records": "soa"},
        ):  # fmt: skip
            what = ", ".join(f"{key} {value}" for key, value in choices.items()) or "rows"
            yield (
                f"{what}, {name}",
                replace(laid(record("Three", 2, index_bits=bits), **choices), sizes=sizes),
            )
        curved = laid(plain(2, index_bits=bits), curve="morton4", tiles="2x3")
        for more, layout in curves(replace(curved, sizes=sizes), 0):
            yield f"curve4 of tiles 2x3{more}, {name}", layout
    yield "all of them", laid(
        record("Three", 3, plane=(64, 4)), axes=["k", "i", "j"], tiles="2x4x8", swizzle="xor4", records="aosoa4",
        storage="scaled_int8_by_row", padding="16+3", dims="2d",
    )  # fmt: skip
    layout = laid(
        record("Six", 3), axes=["k", "i", "j"], tiles="2x4x8", swizzle="xor4", records="u+v+w+x-y-z", padding="16+3",
        curve="morton4",
    )  # fmt: skip
    for more, each in curves(layout, 0):
        yield f"all of them with a curve{more}", each

"""What a layout tells a device: the accessor's bytes, and that it does not fit."""

import ctypes
from dataclasses import replace
from typing import Any

import pytest
from layouts import data, record

from autotune.hardware import Limits
from autotune.layout.layout import Layout


@pytest.mark.parametrize(
    ("shape", "sizes", "size"),
    [((5, 3), (0, 3), 12), ((5, 3), (5, 0), 16), ((5, 3), (5, 3), 8), ((2, 5, 3), (0, 5, 3), 12)],
)
def test_what_the_type_says_is_not_passed(shape: tuple[int, ...], sizes: tuple[int, ...], size: int) -> None:
    raw = Layout(data=data(rank=len(shape)), sizes=sizes).room(shape).argument(7)
    assert len(raw) == -(-size // 8) * 8
    given = [n for n, known in zip(shape, sizes, strict=True) if not known]
    assert [int.from_bytes(raw[8 + 4 * n : 12 + 4 * n], "little") for n in range(len(given))] == given


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_argument_is_the_cpp_struct(bits: int, rank: int) -> None:
    index: Any = ctypes.c_uint32 if bits == 32 else ctypes.c_uint64

    class Mapping(ctypes.Structure):
        _fields_ = (("extents", ctypes.c_uint32 * rank), ("strides", index * (rank - 1)))  # without the 1

    class Accessor(ctypes.Structure):
        _fields_ = (("memory", ctypes.c_uint64), ("mapping", Mapping), ("part_stride", index))

    shape = (5, 3, 2)[:rank]
    stored = Layout(data=record("int32", "int32", rank=rank, index_bits=bits), padding=4, records="soa").room(
        shape
    )
    raw = stored.argument(0x1234_5678_9ABC_DEF0)
    assert len(raw) == ctypes.sizeof(Accessor)
    read = Accessor.from_buffer_copy(raw)
    assert read.memory == 0x1234_5678_9ABC_DEF0
    assert tuple(read.mapping.extents) == stored.extents == shape
    assert (*read.mapping.strides, 1) == stored.strides
    assert read.part_stride == stored.part_stride == {1: 8, 2: 20, 3: 60}[rank]


def refusal(shape: tuple[int, ...], limits: Limits | None = None, declared: Any = None, **choice: Any) -> str:
    layout = Layout(data=declared or data(rank=len(shape)), **choice)
    return layout.room(shape).explain_refusal(layout.data, limits or Limits())


# (the largest shape that fits, one larger, the layout, what is said of the larger)
LIMITS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], str]] = [
    (
        (16384,),
        (16385,),
        {"memory": "constant"},
        "a: 65540 bytes do not fit in 65536 bytes of constant memory",
    ),
    (
        (15360,),
        (15361,),
        {"memory": "constant", "constant_offset": 4096},
        "a: 61444 bytes do not fit in 61440 bytes of constant memory",
    ),
    (
        (2**28,),
        (2**28 + 1,),
        {"memory": "texture"},
        "a: 268435457 texels pass the 1D texture limit of 268435456",
    ),
    (
        (4096 * 65536,),
        (4096 * 65536 + 1,),
        {"memory": "texture", "dims": "2d"},
        "a: a plane of (4096, 65537) texels passes the 2D texture limit of (131072, 65536)",
    ),
    (
        (4096 * 65000,),
        (4096 * 65000 + 1,),
        {"memory": "texture", "dims": "2d_pitched"},
        "a: a plane of (4096, 65001) texels passes the 2D texture limit of (131072, 65000)",
    ),
    (
        (2**16, 2**16 - 1),
        (2**16, 2**16),
        {},
        "a: 4294967296 texels pass the range of 32-bit addresses",
    ),
]


@pytest.mark.parametrize(("fits", "does_not", "choice", "problem"), LIMITS)
def test_limit(
    fits: tuple[int, ...], does_not: tuple[int, ...], choice: dict[str, Any], problem: str
) -> None:
    assert refusal(fits, **choice) == ""
    assert problem in refusal(does_not, **choice)


def test_memory() -> None:
    limits = Limits(memory_bytes=2**20)
    assert refusal((2**18,), limits) == ""
    assert refusal((2**18 + 1,), limits) == "a: 1048580 bytes pass the device's memory of 1048576"


def test_own_share_of_constant_memory() -> None:
    small = data(constant_bytes=1024)
    assert refusal((256,), declared=small, memory="constant") == ""
    assert "do not fit in 1024 bytes" in refusal((257,), declared=small, memory="constant")


def test_constant_memory_that_others_have_taken() -> None:
    assert "4 bytes do not fit in 0 bytes" in refusal((1,), memory="constant", constant_offset=65536)


def test_wide_addresses_with_extents_of_32_bits() -> None:
    wide = data(rank=2, index_bits=64)
    assert refusal((2**16, 2**16), declared=wide) == ""
    assert "pass the range of 64-bit addresses (extents: 32-bit)" in refusal((1, 2**32), declared=wide)


def test_addresses_of_31_bits() -> None:
    signed = data(rank=2, index_bits=31)
    assert refusal((2**16, 2**15 - 1), declared=signed) == ""
    assert refusal((2**16, 2**15), declared=signed) == (
        "a: 2147483648 texels pass the range of 31-bit addresses (index_bits: 64 in family.yaml widens it)"
    )


def test_wide_plane() -> None:
    limits = Limits(texture_2d_width=2048)
    assert "passes the 2D texture limit of (2048, 65536)" in refusal(
        (1,), limits, memory="texture", dims="2d"
    )


def test_only_textures_have_texture_limits() -> None:
    limits = Limits(texture_1d_texels=1, texture_2d_width=1, constant_bytes=0)
    for memory in ("global", "readonly"):
        for dims in ("1d", "2d", "2d_pitched"):
            assert refusal((9,), limits, memory=memory, dims=dims) == ""


def test_strides_have_the_bits_of_an_address() -> None:
    """Of a view with one row: its stride counts for no element, and its accessor has it all the same."""
    layout = Layout(data=data(rank=2))
    stored = replace(layout.room((1, 4)), strides=(2**32, 1))
    assert stored.explain_refusal(layout.data, Limits()) == (
        "a: strides of (4294967296, 1) pass the range of 32-bit addresses"
    )
    assert replace(stored, strides=(2**32 - 1, 1)).explain_refusal(layout.data, Limits()) == ""

"""What the cpu device has of the toolkit's headers: half and bfloat16, cooperative groups, CUB; held against numpy and
against what is computed here by other means."""

import hashlib
from collections.abc import Iterator
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from test_cpu_shim import build, number, pointer

from autotune.compile.hostcxx import HostCxx, find_compiler
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.toolchain import Batch, VariantSource
from autotune.compile.variant import Geometry
from autotune.device.backend import LaunchError
from autotune.device.cpu.backend import CpuBackend, CpuModule
from autotune.files import include_dir

SOURCE = Path(__file__).parents[1] / "support" / "cpu_headers.cu"
KERNELS = (
    "half_arithmetic", "bfloat_arithmetic", "half_conversions", "half_integers", "long_integers", "pairs", "half_sums",
    "vectors", "groups", "together", "reductions", "scans", "arrangements", "merges", "conversions",
)  # fmt: skip
THREADS, ITEMS = 96, 3
Bits = NDArray[np.uint16]
Loaded = tuple[CpuBackend, CpuModule]


def unit() -> Batch:
    key = hashlib.sha256(SOURCE.read_bytes()).hexdigest()
    variant = VariantSource(key, "V", "", KERNELS, "", tuple((name, name) for name in KERNELS), is_plain=True)
    return Batch(SOURCE, (include_dir(),), (variant,))


@pytest.fixture(scope="module")
def straight() -> Iterator[Loaded]:
    """Threads in the order of their numbers: where none meets another it is enough."""
    with CpuBackend(2) as backend:
        (compiled,) = build(unit(), backend.toolchain())
        module = backend.load(compiled)
        yield backend, module
        module.unload()


@pytest.fixture(params=[None, 2, 7], ids=["ascending", "descending", "drawn"])
def loaded(straight: Loaded, request: pytest.FixtureRequest) -> Iterator[Loaded]:
    """What is right is right in any order."""
    with nullcontext() if request.param is None else straight[0].shuffle(request.param):
        yield straight


def launch(
    on: Loaded, kernel: str, blocks: int, threads: int | tuple[int, int, int], *arguments: Any
) -> None:
    backend, module = on
    block = threads if isinstance(threads, tuple) else (threads, 1, 1)
    told = [pointer(a) if isinstance(a, np.ndarray) else number(a) for a in arguments]
    backend.launch(module, kernel, Geometry((blocks, 1, 1), block), told)


@pytest.mark.nvrtc
def test_the_kernels_are_cuda() -> None:
    assert Nvrtc("sm_90").build(unit()).image


@pytest.mark.zig
def test_another_compiler_takes_them_too() -> None:
    zig = find_compiler("", {"PATH": ""})
    (compiled,) = build(unit(), HostCxx(zig))
    assert compiled.symbols["pairs"]


# -- half and bfloat16 ------------------------------------------------------------------------------------------------


def interesting(seed: int, count: int = 1500) -> Bits:
    """Numbers of every kind, the rare ones often."""
    generator = np.random.default_rng(seed)
    rare = [0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0x3C00, 0x3F80, 0x7F, 0x80, 0x7F7F,
            0x7F80, 0xFF80, 0x7FC0]  # fmt: skip
    drawn = generator.integers(0, 1 << 16, count)
    near = 0x3C00 + generator.integers(-40, 40, count)
    return np.where(generator.random(count) < 0.3, generator.choice(rare, count),
                    np.where(generator.random(count) < 0.5, near, drawn)).astype(np.uint16)  # fmt: skip


def as_floats(bits: Any, kind: str) -> NDArray[np.float64]:
    words = np.asarray(bits, np.uint16)
    with np.errstate(invalid="ignore"):  # a NaN that signals
        if kind == "half":
            return words.view(np.float16).astype(np.float64)
        return (words.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def nearest(exact: Fraction, kind: str) -> int:
    """The bits of the number of that kind nearest to it, of two the one with an even last bit: by bisection in the
    list of all, which are ordered as their bits are. What follows the largest one stands for infinity."""
    infinity = 0x7C00 if kind == "half" else 0x7F80

    def value(bits: int) -> Fraction:
        if bits < infinity:
            return Fraction(float(as_floats([bits], kind)[0]))
        return 2 * value(infinity - 1) - value(infinity - 2)

    low, high = 0, infinity - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if value(middle) <= abs(exact) else (low, middle - 1)
    distance = (abs(exact) - value(low)) - (value(low + 1) - abs(exact))
    found = low if distance < 0 or (distance == 0 and low % 2 == 0) else low + 1
    return found | (0x8000 if exact < 0 else 0)


@pytest.mark.parametrize("kind", ["half", "bfloat"])
def test_each_operation_rounds_its_exact_result_once(straight: Loaded, kind: str) -> None:
    a, b, c = (interesting(seed) for seed in (1, 2, 3))
    # Sums whose product is a tie but for what the third number adds.
    a[:200], b[:200] = (0x3C01, 0x3C00 | 0x200) if kind == "half" else (0x3F81, 0x3FC0)
    c[:200] = np.arange(200) + np.where(np.arange(200) % 2, 0x8000, 0)
    out = np.zeros((a.size, 8), np.uint16)
    launch(straight, f"{kind}_arithmetic", 100, 32, a, b, c, out, a.size)
    x, y, z = (as_floats(bits, kind) for bits in (a, b, c))
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    operations = [lambda p, q, _: p + q, lambda p, q, _: p - q, lambda p, q, _: p * q, lambda p, q, _: p / q,
                  lambda p, q, r: p * q + r]  # fmt: skip
    for i in np.flatnonzero(finite):
        p, q, r = (Fraction(float(values[i])) for values in (x, y, z))
        for number_, operation in enumerate(operations):
            if number_ == 3 and q == 0:
                continue
            exact = operation(p, q, r)
            if exact:  # of zero the sign is another matter
                assert out[i, number_] == nearest(exact, kind), (hex(a[i]), hex(b[i]), hex(c[i]), number_)
            else:
                assert out[i, number_] & 0x7FFF == 0


def test_halves_are_numpys(straight: Loaded) -> None:
    """With zeros, infinities and NaN."""
    a, b, c = (interesting(seed) for seed in (4, 5, 6))
    out = np.zeros((a.size, 8), np.uint16)
    launch(straight, "half_arithmetic", 100, 32, a, b, c, out, a.size)
    x, y = a.view(np.float16), b.view(np.float16)
    with np.errstate(all="ignore"):
        expected = [x + y, x - y, x * y, x / y]
    for number_, values in enumerate(expected):
        got = out[:, number_].copy().view(np.float16)
        assert (np.isnan(got) == np.isnan(values)).all()
        kept = ~np.isnan(values)
        assert (got.view(np.uint16)[kept] == values.view(np.uint16)[kept]).all()
        assert (got.view(np.uint16)[~kept] == 0x7FFF).all()
    most = np.fmax(x, y)
    got = out[:, 5].copy().view(np.float16)
    assert ((got == most) | (np.isnan(got) & np.isnan(most))).all()
    least = np.minimum(x, y)
    got = out[:, 6].copy().view(np.float16)
    assert ((got == least) | (np.isnan(got) & np.isnan(least))).all()
    nan = np.isnan(x) | np.isnan(y)
    flags = (x < y) + 2 * (x == y) + 4 * (x != y) + 8 * ((x >= y) | nan) + 16 * np.isnan(x)
    assert (out[:, 7] == flags).all()


def test_conversions_to_16_bits(straight: Loaded) -> None:
    generator = np.random.default_rng(7)
    with np.errstate(invalid="ignore"):
        every = as_floats(np.arange(1 << 16), "half").astype(np.float32)
    ties = (every[:-1].astype(np.float64) + every[1:]) / 2
    with np.errstate(all="ignore"):
        drawn = generator.integers(0, 1 << 32, 40000).astype(np.uint32).view(np.float32)
        small = generator.normal(size=9999).astype(np.float32) * 1e-7
        x = np.concatenate([every, ties.astype(np.float32), drawn, small])
        d = x.astype(np.float64) * (1 + 2.0**-40)  # a hair beyond a float
    out, back = np.zeros((x.size, 6), np.uint16), np.zeros((x.size, 2), np.float32)
    launch(straight, "half_conversions", -(-x.size // 64), 64, x, d, out, back, x.size)
    with np.errstate(all="ignore"):
        near = x.astype(np.float16)
    keep = ~np.isnan(x)
    assert (out[keep, 0] == near[keep].view(np.uint16)).all()
    assert (out[~keep] == 0x7FFF).all()
    assert (back[keep, 0] == near[keep].astype(np.float32)).all()
    with np.errstate(all="ignore"):
        assert (out[keep, 4] == d[keep].astype(np.float16).view(np.uint16)).all()
    zero, down, up = (out[:, column].copy().view(np.float16).astype(np.float64) for column in (1, 2, 3))
    with np.errstate(all="ignore"):
        assert ((down <= x) & (x <= up))[keep].all()
        assert (np.abs(zero) <= np.abs(x))[keep].all()
        exact = near.astype(np.float64) == x
    for found in (zero, down, up):
        assert (found[exact] == x[exact]).all()
    finite = keep & (np.abs(x) < 60000) & ~exact
    ulp = np.spacing(np.abs(zero[finite]).astype(np.float16)).astype(np.float64)
    assert (up[finite] - down[finite] == ulp).all()
    # bfloat16 by its definition: the upper half of a float, rounded.
    word = x.view(np.uint32).astype(np.uint64)
    brain = ((word + 0x7FFF + (word >> 16 & 1)) >> 16).astype(np.uint16)
    assert (out[keep, 5] == brain[keep]).all()
    assert (back[keep, 1].view(np.uint32) == brain[keep].astype(np.uint32) << 16).all()


def test_halves_and_integers(straight: Loaded) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    out = np.zeros((bits.size, 8), np.int32)
    launch(straight, "half_integers", bits.size // 64, 64, bits, out, bits.size)
    x = as_floats(bits, "half")
    for column, rounded in enumerate([np.rint, np.trunc, np.floor, np.ceil]):
        with np.errstate(all="ignore"):
            expected = np.clip(
                np.nan_to_num(rounded(x), nan=0, posinf=1e30, neginf=-1e30), -(2**31), 2**31 - 1
            )
        assert (out[:, column] == expected.astype(np.int64)).all()
    with np.errstate(invalid="ignore"):
        short = np.clip(np.nan_to_num(np.rint(x), nan=0, posinf=1e9, neginf=-1e9), -32768, 32767)
        positive = np.clip(np.nan_to_num(np.trunc(x), nan=0, posinf=1e30, neginf=0), 0, 2**32 - 1)
    assert (out[:, 4].view(np.uint32) == positive.astype(np.uint64)).all()
    assert (out[:, 5] == short).all()
    with np.errstate(all="ignore"):
        again = out[:, 0].astype(np.float16).view(np.uint16)
        floors = np.floor(x).astype(np.float16)
    assert (out[:, 6].astype(np.uint16) == again).all()
    got = (out[:, 7] & 0xFFFF).astype(np.uint16).view(np.float16)
    assert ((got == floors) | np.isnan(floors)).all()


def test_large_integers_are_rounded_once(straight: Loaded) -> None:
    """One more than a tie, which a double between would lose."""
    values = np.array(
        [
            (1 << 62) + (1 << 54) + 1,
            (1 << 62) + (1 << 54),
            -((1 << 62) + (1 << 54) + 1),
            2**63 - 1,
            -(2**63),
            65519,
            7,
        ],
        np.int64,
    )
    out = np.zeros((values.size, 2), np.uint16)
    launch(straight, "long_integers", 1, 32, values, out, values.size)
    assert [int(word) for word in out[:, 0]] == [nearest(Fraction(int(v)), "bfloat") for v in values]
    assert list(out[:, 1]) == [0x7BFF, 0x7BFF, 0xFBFF, 0x7BFF, 0xFBFF, 0x7BFF, 0x4700]


def test_the_lower_half_of_a_word_is_x(straight: Loaded) -> None:
    a, b = np.array([1.5, -3], np.float16), np.array([0.25, 8], np.float16)
    out = np.zeros((12, 2), np.float16)
    launch(straight, "pairs", 1, 1, np.stack([a, b]), out)
    half = np.float16(0.5)
    expected = [
        a + b,
        a * b + half,
        a[::-1],
        [a[0], b[0]],
        [a[1], b[0]],
        [a[0], b[1]],
        a * b - a,
        np.maximum(a, b),
    ]
    assert (out[:8] == np.array(expected, np.float16)).all()
    words = out.view(np.uint32)
    assert words[8] == 0xFFFF0000
    assert words[9] == 0
    assert (out[10] == [a[1], a[1]]).all()
    np.testing.assert_allclose(out[11], np.exp(1.5), rtol=2**-10)


def test_sums_of_halves_in_memory_and_over_lanes(loaded: Loaded) -> None:
    sums, pair, brain = np.zeros(4, np.float16), np.zeros(2, np.float16), np.zeros(2, np.uint16)
    lanes = np.zeros(128, np.float32)
    launch(loaded, "half_sums", 4, 32, sums, pair, brain, lanes)
    assert list(sums) == [0, 128, 0, 0]
    assert list(pair) == [64, 256]
    assert as_floats(brain, "bfloat")[0] == 128
    assert (lanes == 31 * 16).all()


def test_four_floats_at_once(straight: Loaded) -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    launch(straight, "vectors", 2, 8, x, out, 64)
    expected = x.reshape(-1, 4).copy()
    expected[:, 0] *= 2
    assert (out.reshape(-1, 4) == expected[:, ::-1]).all()


def test_conversions_of_wider_numbers(straight: Loaded) -> None:
    x = np.array([2.5, -2.5, 3e9, -1, np.nan, 1e20, -0.5, 4294967040], np.float32)
    d = np.array([2.1, -2.1, 1e300, 1 + 2**-30, -1 - 2**-30, 1e-320, 0, 16777217], np.float64)
    large = np.array([2**62 + 1, -(2**62) - 1, 2**24 + 1, 5, -5, 2**63 - 1, 0, 33554435], np.int64)
    out, floats = np.zeros((8, 8), np.int32), np.zeros((8, 4), np.float32)
    launch(straight, "conversions", 1, 8, x, d, large, out, floats)
    top = 2**31 - 1
    assert list(out[:, 0]) == [2, -2, top, -1, 0, top, 0, top]
    assert list(out[:, 1]) == [2, -3, top, -1, 0, top, -1, top]
    assert list(out[:, 2].view(np.uint32)) == [2, 0, 3000000000, 0, 0, 2**32 - 1, 0, 4294967040]
    assert list(out[:, 3]) == [3, -2, top, 2, -1, 1, 0, 16777217]
    assert (out[:, 4] == 0x00FF8701).all()  # bytes 1 and 7, the sign of byte 6, byte 0
    # The bytes 3, 2, -1, 1 and 7, 6, 5, 4 of both words.
    assert list(out[:, 5]) == [3 * 7 + 2 * 6 - 5 + 4 + i for i in range(8)]
    high = [((int(v) % 2**64 << 33) >> 64) % 2**32 for v in large]
    assert list(out[:, 6].view(np.uint32)) == high
    assert (out[:, 7].view(np.uint32) == d.view(np.uint32)[::2] ^ d.view(np.uint32)[1::2]).all()
    for i in range(8):
        inner, above = float(floats[i, 0]), float(floats[i, 1])
        assert abs(inner) <= abs(d[i])
        assert d[i] <= above
        assert int(floats[i, 2]) <= int(large[i])
        assert floats[i, 3] == np.float32(large[i])
    assert list(floats[:2, 0]) == [np.float32(2.0999999), np.float32(-2.0999999)]
    assert list(floats[:, 2]) == [2**62, -(2**62) - 2**39, 2**24, 5, -5, 2**63 - 2**39, 0, 33554432]


# -- cooperative groups -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [(64, 1, 1), (16, 2, 2)])
def test_groups_within_a_block(loaded: Loaded, block: tuple[int, int, int]) -> None:
    values = np.random.default_rng(8).permutation(1000)[:64].astype(np.int32)
    values[17] = 5
    out = np.zeros((64, 24), np.int32)
    launch(loaded, "groups", 1, block, values, out)
    for rank in range(64):
        tile, four, warp = ([*range(rank // n * n, rank // n * n + n)] for n in (8, 4, 32))
        place, v, mine = rank % 8, values, out[rank]
        assert mine[0] == place + 100 * (rank // 8) + 10000 * 8
        assert mine[1] == v[tile[3]]
        assert mine[2] == v[tile[place + 2] if place + 2 < 8 else rank]
        assert mine[3] == v[tile[place - 2] if place >= 2 else rank]
        assert mine[4] == v[tile[place ^ 5]]
        assert mine[5] == sum(1 << n for n, t in enumerate(tile) if v[t] % 2)
        assert mine[6] == any(v[t] == 5 for t in tile) + 2
        assert mine[7] == v[tile].sum()
        assert mine[8] == v[warp].max()
        assert mine[9] == v[four].min()
        assert mine[10] == rank // 4 % 2 + 10 * 2 + 100 * 4
        assert mine[11] == v[tile[: place + 1]].sum()
        assert mine[12] == v[tile[:place]].sum()
        assert mine[13] == sum(1 << n for n, t in enumerate(tile) if v[t] % 3 == v[rank] % 3)
        assert mine[14] == 15 + 1000
        some = [w for w in warp if v[w] % 3 == 0]
        if rank in some:
            after = some[some.index(rank) + 1 :]
            assert mine[15] == some.index(rank) + 100 * len(some)
            assert mine[16] == v[some[1]]
            assert mine[17] == v[some].sum()
            assert mine[18] == v[after[0] if after else rank]
        else:
            assert (mine[15:19] == -1).all()
        assert mine[19] == sum(v[w] for w in warp if v[w] % 2 == v[rank] % 2)
        assert mine[20] == rank % 16 + 100 * 16
        assert mine[21] == v[tile[1]]
        assert mine[22] == 10 * block[0] + 10000 * (rank // block[0] % block[1])
        assert mine[23] == np.int32(
            np.uint32(sum(1 << n for n, w in enumerate(warp) if v[w] % 5 == v[rank] % 5)).view(np.int32)
        )


def test_a_grid_waits_for_itself_in_a_cooperative_launch() -> None:
    with CpuBackend(3) as backend:
        (compiled,) = build(unit(), backend.toolchain())
        module = backend.load(compiled)
        marks, seen = np.zeros(3, np.uint32), np.zeros(4, np.uint32)
        told = [pointer(marks), pointer(seen), number(8)]
        backend.launch_cooperative(module, "together", Geometry((3, 1, 1), (33, 1, 1)), told)
        assert list(seen) == [8 * 6, 8 * 6, 8 * 6, 3]
        # By itself a block is the grid; several that were not launched together would wait for ever.
        backend.launch(module, "together", Geometry((1, 1, 1), (33, 1, 1)), told)
        assert seen[0] == 8
        with pytest.raises(LaunchError, match=r"waits for the whole grid.*launch_cooperative"):
            backend.launch(module, "together", Geometry((3, 1, 1), (33, 1, 1)), told)
        module.unload()


# -- CUB --------------------------------------------------------------------------------------------------------------


def composed(lines: list[tuple[int, int]], begin: tuple[int, int]) -> tuple[int, int]:
    """One line after the other, in 32 bits."""
    slope, offset = begin
    for after, by in lines:
        slope, offset = slope * after % 2**32, (after * offset + by) % 2**32
    return slope, offset


@pytest.mark.parametrize("valid", [1, 31, 40, 96])
def test_reductions(loaded: Loaded, valid: int) -> None:
    generator = np.random.default_rng(valid)
    values, x = (
        generator.integers(0, 10000, THREADS).astype(np.int32),
        generator.normal(size=THREADS).astype(np.float32),
    )
    out, sums = np.zeros(300, np.int32), np.zeros(1, np.float32)
    launch(loaded, "reductions", 1, THREADS, values, x, out, sums, valid)
    assert list(out[:3]) == list(values.reshape(3, 32).sum(1))
    assert list(out[3:6]) == [values.sum(), values[:valid].sum(), values.sum() + sum(range(THREADS))]
    # Neighbours first, then pairs of them: Join is neither commutative nor associative.
    joined = values.reshape(-1, 8).astype(np.int64)
    while joined.shape[1] > 1:
        joined = joined[:, ::2] * 31 + joined[:, 1::2]
    assert (out[10:22] == joined[:, 0].astype(np.int32)).all()
    line = composed([(int(v), rank) for rank, v in enumerate(values)], (1, 0))
    assert [int(word) for word in out[6:8].view(np.uint32)] == list(line)
    assert out[8] == (values % 7).argmax()
    # The sum in the order of the warps: pairs within a warp, then one warp after the other.
    pairs = x.reshape(3, 32)
    while pairs.shape[1] > 1:
        pairs = pairs[:, ::2] + pairs[:, 1::2]
    assert sums[0] == (pairs[0, 0] + pairs[1, 0]) + pairs[2, 0]
    for rank in range(THREADS):
        segment = [r for r in range(rank, THREADS) if r // 5 == rank // 5 and r // 32 == rank // 32]
        expected = values[segment].sum() if rank % 5 == 0 or rank % 32 == 0 else 0
        assert out[100 + rank] == out[200 + rank] == expected


def test_scans(loaded: Loaded) -> None:
    values = np.random.default_rng(9).integers(0, 10000, THREADS * ITEMS).astype(np.int32)
    out = np.zeros(11 * THREADS, np.int32)
    launch(loaded, "scans", 1, THREADS, values, out)
    parts, one = out.reshape(11, THREADS), values[:THREADS]
    warps = one.reshape(3, 32)
    assert (parts[0].reshape(3, 32) == warps.cumsum(1)).all()
    assert (parts[1].reshape(3, 32) == (warps.cumsum(1) - warps) * 2 + warps.sum(1, keepdims=True)).all()
    assert (parts[2] == (one.cumsum() - one) * 2 + one.sum()).all()
    assert (parts[3] == np.maximum.accumulate(one)).all()
    assert (parts[4:7].reshape(-1) == values.cumsum() - values).all()
    assert (parts[7:10].reshape(-1) == values.cumsum() + 7).all()
    lines = [(int(v), rank) for rank, v in enumerate(one)]
    expected = [composed(lines[:rank], (1, 5))[1] for rank in range(THREADS)]
    assert [int(word) for word in parts[10].view(np.uint32)] == expected


@pytest.mark.parametrize("valid", [0, 100, 288])
def test_arrangements_and_sorts(loaded: Loaded, valid: int) -> None:
    total = THREADS * ITEMS
    values = np.random.default_rng(valid).integers(0, 10000, total).astype(np.int32)
    out = np.full((7, total), -7, np.int32)
    launch(loaded, "arrangements", 1, THREADS, values, out, valid)
    place = np.arange(total)
    assert (out[0] == np.where(place < valid, values, -1)).all()
    # What is loaded striped and then exchanged is in its old order.
    assert (out[1] == np.where(place < valid, values, -7)).all()
    assert (out[2] == values.reshape(3, ITEMS, 32).transpose(0, 2, 1).reshape(-1)).all()
    assert (out[3] == np.argsort(-(values % 64), kind="stable")).all()
    assert (out[4] == np.sort(values - 5000)).all()
    steps = values // 2000
    assert (out[5] == np.append(True, steps[1:] != steps[:-1])).all()
    assert (out[6] == np.append(steps[0], np.diff(steps))).all()


@pytest.mark.parametrize("valid", [1, 100, 192])
def test_sorts_by_a_comparison(loaded: Loaded, valid: int) -> None:
    """Equal ones keep their order."""
    values = np.random.default_rng(valid).integers(0, 10000, 64 * ITEMS).astype(np.int32)
    out = np.zeros((2, values.size), np.int32)
    launch(loaded, "merges", 1, 64, values, out, valid)
    assert (out[0] == np.argsort(values % 100, kind="stable")).all()
    some = values[:valid]
    assert (out[1, :valid] == some[np.argsort(some % 100, kind="stable")]).all()
    assert (out[1, valid:] == 99).all()

"""CUDA C++ on the host: what kernels rely on, each in a small kernel of cpu_kernels.cu, and how it fails."""

import hashlib
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache, default_root
from autotune.compile.hostcxx import HostCxx
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.toolchain import Batch, Compiled, VariantSource
from autotune.compile.variant import Geometry
from autotune.device.backend import LaunchError
from autotune.device.cpu.backend import CpuBackend, CpuModule
from autotune.files import include_dir
from autotune.layout.stored import Known, Stored

SOURCE = Path(__file__).parents[1] / "support" / "cpu_kernels.cu"
KERNELS = (
    "coverage",
    "coverage_with_barriers",
    "block_sum",
    "early_return",
    "predicates",
    "shuffles",
    "atomics",
    "texels",
    "reversed",
    "diverged",
    "trap_in_block",
    "arithmetic",
    "no_barrier",
    "no_warp_barrier",
    "chained_blocks",
    "unwritten",
    "lost_updates",
    "tickets",
)
MAPPING = "autotune::Strided<autotune::Extents<0>, autotune::Strides<unsigned, 1>>"
KNOWN = Known((0,), (1,))  # what it says
ARRAY = f"autotune::Array<float, autotune::{{memory}}, {MAPPING}, autotune::{{dims}}>"
GLOBAL = ARRAY.format(memory="Global<unsigned>", dims="Dims1D")


def batch_of(structs: dict[str, str], kernels: tuple[str, ...], source: Path = SOURCE) -> Batch:
    text = source.read_text()
    variants = []
    for name, body in structs.items():
        key = hashlib.sha256(f"{name}{body}{kernels}{text}".encode()).hexdigest()
        variants.append(VariantSource(key, name, f"struct {name} {{ {body} }};\n", kernels))
    return Batch(source, (include_dir(),), tuple(variants))


def build(batch: Batch, toolchain: HostCxx) -> list[Compiled]:
    compiled = compile_batch(batch, toolchain, Cache(default_root()))
    assert all(isinstance(item, Compiled) for item in compiled), compiled
    return compiled  # type: ignore[return-value]


@pytest.fixture(params=[1, 4], ids=["one thread", "four threads"])
def threads(request: pytest.FixtureRequest) -> int:
    count: int = request.param
    return count


@pytest.fixture(params=[None, 2, 7], ids=["ascending", "descending", "drawn"])
def backend(threads: int, request: pytest.FixtureRequest) -> Iterator[CpuBackend]:
    """What is right is right in any order."""
    with (
        CpuBackend(threads) as made,
        nullcontext() if request.param is None else made.shuffle(request.param),
    ):
        yield made


@pytest.fixture
def module(backend: CpuBackend) -> Iterator[CpuModule]:
    (compiled,) = build(batch_of({"V": ""}, KERNELS), backend.toolchain())
    loaded = backend.load(compiled)
    yield loaded
    loaded.unload()


def pointer(array: NDArray[Any]) -> bytes:
    return struct.pack("P", array.ctypes.data)


def number(value: int) -> bytes:
    return struct.pack("i", value)


def stored(array: NDArray[Any], memory: str = "global", **fields: Any) -> Stored:
    """One-dimensional data as they are, a texel an element."""
    buffer = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    extents = (array.size,)
    return Stored(buffer, buffer.nbytes, array.itemsize, memory, extents, (1,), 0, known=KNOWN, **fields)


@pytest.mark.nvrtc
def test_the_kernels_are_cuda():
    """What holds here would be worth little if CUDA did not take the same source."""
    body = f"using in = {GLOBAL}; using out = {GLOBAL};"
    assert Nvrtc("sm_90").build(batch_of({"V": body}, (*KERNELS, "copy"))).image


@pytest.mark.parametrize("kernel", ["coverage", "coverage_with_barriers"])
@pytest.mark.parametrize("block", [(1, 1, 1), (33, 1, 1), (5, 3, 7), (1, 64, 2), (1024, 1, 1)])
@pytest.mark.parametrize("grid", [(1, 1, 1), (7, 3, 5), (1, 1, 300)])
def test_every_thread_of_a_grid_runs_once(backend, module, kernel, grid, block):
    threads = int(np.prod(block))
    visits = np.zeros((int(np.prod(grid)), threads), np.uint32)
    for _ in range(2):  # the second time with a notion of what a block costs
        backend.launch(module, kernel, Geometry(grid, block), [pointer(visits)])
    once = 1 if kernel == "coverage" else 1 + np.arange(threads, dtype=np.uint32) % block[0]
    assert (visits == 2 * once).all()


@pytest.mark.parametrize("block", [32, 256, 1024])
def test_a_reduction_in_shared_memory(backend, module, block):
    values = np.random.default_rng(1).integers(-99, 99, (50, block), dtype=np.int32)
    sums = np.zeros(50, np.int32)
    backend.launch(module, "block_sum", Geometry((50, 1, 1), (block, 1, 1)), [pointer(values), pointer(sums)])
    assert (sums == values.sum(1)).all()


@pytest.mark.parametrize("stay", [0, 1, 40, 96])
def test_threads_that_have_returned_are_not_waited_for(backend, module, stay):
    out = np.zeros((20, 96), np.int32)
    backend.launch(module, "early_return", Geometry((20, 1, 1), (96, 1, 1)), [pointer(out), number(stay)])
    assert (out[:, :stay] == stay + sum(x % 2 == 0 for x in range(stay, 96))).all()
    assert (out[:, stay:] == 0).all()


def test_barriers_count_predicates(backend, module):
    out = np.zeros((100, 3), np.int32)
    backend.launch(module, "predicates", Geometry((1, 1, 1), (100, 1, 1)), [pointer(out)])
    assert (out == [34, 1, 0]).all()


def test_lanes_of_a_warp_exchange_values(backend, module):
    values = np.random.default_rng(2).permutation(96).astype(np.int32)
    out = np.zeros((96, 12))
    backend.launch(module, "shuffles", Geometry((1, 1, 1), (96, 1, 1)), [pointer(values), pointer(out)])
    lane = np.arange(32)
    for w in range(3):
        v, got = values[32 * w :][:32].astype(np.int64), out[32 * w :][:32].T
        assert (got[0] == v.sum()).all()
        assert (got[1] == v.sum() / 2).all()
        assert (got[2] == float(v.sum() << 32)).all()
        assert (got[3] == v[np.maximum(lane - 1, 0)]).all()
        assert (got[4] == v[lane ^ 5]).all()
        assert (got[5] == v[np.where(lane % 8 < 5, lane + 3, lane)]).all()
        assert (got[6] == v[lane // 8 * 8 + 1]).all()
        assert (got[7] == float(sum(1 << int(i) for i in lane[v % 2 == 1]))).all()
        assert (got[8] == 2 + (77 in v)).all()
        assert (got[9] == v.sum() + v.min() * 1e4).all()
        assert (got[10] == np.where(lane < 16, v[lane ^ 1], v[16:].max())).all()
        assert (got[11] == 32).all()


def test_atomics_of_many_blocks(backend, module):
    threads = 400 * 64
    i, f, d, u = np.zeros(6, np.int32), np.zeros(1, np.float32), np.zeros(1), np.zeros(1, np.uint64)
    arguments = [pointer(array) for array in (i, f, d, u)]
    backend.launch(module, "atomics", Geometry((400, 1, 1), (64, 1, 1)), arguments)
    assert i.tolist() == [threads, threads - 1, 1 - threads, 2**31 - 1, -2 * threads, threads]
    assert (f[0], d[0], int(u[0])) == (threads, threads / 4, threads << 33)


def test_texels_are_the_nearest_ones(backend, module):
    line = backend.place(stored(np.arange(5, dtype=np.float32), "texture"))
    plane = backend.place(stored(np.arange(12, dtype=np.float32), "texture", plane=(4, 3)))
    out = np.zeros(5, np.float32)
    arguments = [line.argument[:8], plane.argument[:8], pointer(out)]
    backend.launch(module, "texels", Geometry((1, 1, 1), (1, 1, 1)), arguments)
    assert out.tolist() == [2, 0, 5, 4, 11]


def test_dynamic_shared_memory(backend, module):
    out = np.zeros((30, 512), np.int32)
    backend.launch(module, "reversed", Geometry((30, 1, 1), (512, 1, 1), 4 * 512), [pointer(out)])
    assert (out[:, ::-1] == 1000 * np.arange(30)[:, None] + np.arange(512)).all()


def test_arithmetic(backend, module):
    out = np.zeros(8, np.int32)
    backend.launch(module, "arithmetic", Geometry((1, 1, 1), (1, 1, 1)), [pointer(out)])
    assert out.tolist() == [8 + 3100 + 40000, 1, 3, -15, 2, 12, 3, 16 + 16 + 4 + 16 + 12]


MEMORIES = {
    "global": ("Global<unsigned>", "Dims1D", None),
    "readonly": ("ReadOnly<unsigned>", "Dims1D", None),
    "texture": ("Texture1D<unsigned>", "Dims1D", None),
    "plane": ("Texture2D<unsigned>", "Dims2D<4, 0>", (16, 16)),
    "constant": ("Constant<unsigned, 64>", "Dims1D", None),
}


def test_every_memory_reads_the_same(backend):
    structs = {
        name: f"using in = {ARRAY.format(memory=memory, dims=dims)}; using out = {GLOBAL};"
        for name, (memory, dims, _) in MEMORIES.items()
    }
    compiled = build(batch_of(structs, ("copy",)), backend.toolchain())
    assert len({item.image for item in compiled}) == 1
    values = np.random.default_rng(3).random(256, np.float32)
    for item, (name, (_, _, plane)) in zip(compiled, MEMORIES.items(), strict=True):
        module = backend.load(item)
        memory = {"plane": "texture"}.get(name, name)
        source = backend.place(stored(values, memory, plane=plane, constant_offset=64), module)
        target = backend.place(Stored(None, values.nbytes, 4, "global", values.shape, (1,), 0, known=KNOWN))
        backend.fill(target, 0xA5)
        assert (backend.download(target) == 0xA5).all()
        backend.launch(module, "copy", Geometry((9, 1, 1), (32, 1, 1)), [source.argument, target.argument])
        assert (backend.download(target).view(np.float32) == values).all(), name
        values[7] += 1
        assert backend.count_mismatches(target, backend.place(stored(values))) == 1
        for placed in (source, target):
            placed.free()
        module.unload()
        module.unload()


def test_constant_data_stay_in_their_window(backend, module):
    with pytest.raises(LaunchError, match="end at byte 65540 of a window of 65536"):
        backend.place(stored(np.zeros(1, np.int32), "constant", constant_offset=65536), module)


def test_threads_that_wait_for_ever_are_an_error(backend, module):
    out = np.zeros(64, np.int32)
    geometry = Geometry((100, 1, 1), (64, 1, 1))
    for _ in range(3):
        with pytest.raises(LaunchError, match="diverged: threads of a block wait at a barrier"):
            backend.launch(module, "diverged", geometry, [pointer(out)])
    test_a_reduction_in_shared_memory(backend, module, 256)  # nothing is left of it


@pytest.mark.parametrize("block", [0, 150, 299])
def test_a_trap_ends_the_launch(backend, module, block):
    geometry = Geometry((300, 1, 1), (64, 1, 1))
    with pytest.raises(LaunchError, match="trap_in_block: the kernel trapped"):
        backend.launch(module, "trap_in_block", geometry, [number(block)])
    backend.launch(module, "trap_in_block", geometry, [number(-1)])


def test_launches_that_cannot_be(backend, module):
    out = pointer(np.zeros(1, np.uint32))
    for grid, block in (((0, 1, 1), (1, 1, 1)), ((1, 1, 1), (1, 0, 1)), ((1, 1, 1), (1025, 1, 1))):
        with pytest.raises(LaunchError, match="the grid is empty, or a block has no threads or more"):
            backend.launch(module, "coverage", Geometry(grid, block), [out])
    for arguments in ([], [out, out], [out + out]):
        with pytest.raises(LaunchError, match="not as many, or not of the sizes"):
            backend.launch(module, "coverage", Geometry((1, 1, 1), (1, 1, 1)), arguments)


def test_python_threads_launch_at_once(backend, module):
    def work(number: int) -> None:
        values = np.random.default_rng(number).integers(-99, 99, (200, 128), dtype=np.int32)
        for _ in range(20):
            sums = np.zeros(200, np.int32)
            arguments = [pointer(values), pointer(sums)]
            backend.launch(module, "block_sum", Geometry((200, 1, 1), (128, 1, 1)), arguments)
            assert (sums == values.sum(1)).all()

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(work, range(8))) == [None] * 8


def test_a_library_is_closed_with_its_last_module(backend):
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return
    structs = {
        "A": f"using in = {GLOBAL}; using out = {GLOBAL};",
        "B": f"using in = {GLOBAL}; using out = {GLOBAL};",
    }
    first, second = (backend.load(c) for c in build(batch_of(structs, ("copy",)), backend.toolchain()))
    image = build(batch_of(structs, ("copy",)), backend.toolchain())[0].image.name
    first.unload()
    assert image in maps.read_text()
    second.unload()
    assert image not in maps.read_text()


# ---- orders other than the ascending one


@pytest.fixture
def alone() -> Iterator[tuple[CpuBackend, CpuModule]]:
    """One thread of the host: a launch with the same seed is the same from time to time."""
    with CpuBackend(1) as backend:
        (compiled,) = build(batch_of({"V": ""}, KERNELS), backend.toolchain())
        module = backend.load(compiled)
        yield backend, module
        module.unload()


@pytest.mark.parametrize("seed", [*range(2, 12)])
@pytest.mark.parametrize(
    ("kernel", "blocks", "threads"),
    [("no_barrier", 1, 2), ("no_barrier", 3, 256), ("no_warp_barrier", 2, 64), ("chained_blocks", 9, 32)],
)
def test_what_relies_on_an_order_shows(alone, kernel, blocks, threads, seed):
    """Two threads that are drawn come in ascending order half of the time; of more, two hardly ever all do."""
    backend, module = alone
    count = blocks * threads

    def is_right(first: int) -> bool:
        out = np.zeros(count, np.int32)
        geometry = Geometry((blocks, 1, 1), (threads, 1, 1))
        backend.launch(module, kernel, geometry, [pointer(out), number(first)])
        return bool((out == first + np.arange(count)).all())

    assert is_right(1)
    with backend.shuffle(seed):
        seen = [not is_right(10 * launch) for launch in range(2, 22)]
    assert all(seen) if count > 2 or seed % 2 == 0 else 0 < sum(seen) < len(seen)
    assert is_right(5)


def tickets(backend: CpuBackend, module: CpuModule) -> NDArray[np.int32]:
    taken, out = np.zeros(1, np.int32), np.zeros((3, 64, 2), np.int32)
    arguments = [pointer(taken), pointer(out)]
    backend.launch(module, "tickets", Geometry((3, 1, 1), (64, 1, 1)), arguments)
    return out


def test_an_order_is_its_seed_s(alone):
    def drawn(seed: int) -> list[NDArray[np.int32]]:
        with backend.shuffle(seed):
            return [tickets(backend, module) for _ in range(2)]

    backend, module = alone
    first, second = drawn(5)
    assert all((a == b).all() for a, b in zip((first, second), drawn(5), strict=True))
    assert (first != second).any(), "each launch has an order of its own"
    assert (first != drawn(7)[0]).any()
    backwards = np.arange(3)[::-1] * 128
    assert (drawn(4)[1][:, ::-1, 0] == backwards[:, None] + np.arange(64)).all()
    assert (drawn(4)[1][:, ::-1, 1] == backwards[:, None] + 64 + np.arange(64)).all()


def test_an_order_ends_with_its_block(alone):
    backend, module = alone
    with backend.shuffle(1):
        with backend.shuffle(2):
            tickets(backend, module)
        assert (tickets(backend, module) != np.arange(384).reshape(3, 2, 64).swapaxes(1, 2)).any()
    assert (tickets(backend, module) == np.arange(384).reshape(3, 2, 64).swapaxes(1, 2)).all()


def test_a_drawn_order_is_a_permutation_of_many_blocks(alone):
    backend, module = alone
    for grid in ((1, 1, 1), (2, 1, 1), (5, 1, 1), (17, 3, 5), (1, 1, 4097)):
        visits = np.zeros(int(np.prod(grid)), np.uint32)
        with backend.shuffle(3):
            for _ in range(3):
                backend.launch(module, "coverage", Geometry(grid, (1, 1, 1)), [pointer(visits)])
        assert (visits == 3).all()


def test_shared_memory_that_nobody_wrote_holds_no_number(alone):
    """In the thread's own instance of the library's, which is there from its first launch on."""
    backend, module = alone
    tickets(backend, module)
    out = np.zeros((2, 64, 2), np.int32)
    for seed in (1, 2):
        with backend.shuffle(seed):
            backend.launch(module, "unwritten", Geometry((2, 1, 1), (64, 1, 1), 256), [pointer(out)])
        assert (out == -1).all()
        out[:] = 0


def test_blocks_meet_on_several_threads_of_the_host(alone):
    """However little there is to do; otherwise one thread would do all of it, and no addition would be lost. A machine
    that is busy may run them one after the other: so any of many launches will do."""
    module = alone[1]
    with CpuBackend(4) as backend, backend.shuffle(1):
        for _ in range(200):
            out = np.zeros(1, np.int32)
            arguments = [pointer(out), number(50_000)]
            backend.launch(module, "lost_updates", Geometry((64, 1, 1), (1, 1, 1)), arguments)
            if out[0] != 64 * 50_000:
                return
    raise AssertionError("nothing was lost")

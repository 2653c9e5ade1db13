"""``warp.cuh``, ``block.cuh`` and ``mbarrier.cuh`` on the cpu device, in several orders."""

import hashlib
import struct
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from autotune.compile import (
    Batch,
    Cache,
    Compiled,
    Geometry,
    Nvrtc,
    VariantSource,
    compile_batch,
    default_root,
)
from autotune.device.cpu.backend import CpuBackend, CpuModule
from autotune.files import include_dir

SOURCE = """
#include "autotune/block.cuh"
#include "autotune/mbarrier.cuh"

// Of each thread: sums over 32, 8 and 1 lanes, the largest and the smallest of 32, the running sum.
template <class V>
__global__ void over_warps(const int* in, double* out) {
  const unsigned i = threadIdx.x;
  double* const own = out + 6 * i;
  own[0] = autotune::warp::sum(in[i]);
  own[1] = autotune::warp::sum<8>(static_cast<double>(in[i]));
  own[2] = autotune::warp::sum<1>(in[i]);
  own[3] = autotune::warp::max(in[i]);
  own[4] = autotune::warp::min<16>(in[i]);
  own[5] = static_cast<double>(autotune::warp::inclusive_sum(static_cast<long long>(in[i])));
}

// Twice, one after the other, so that a call may not spoil what the one before left for slow threads.
template <class V>
__global__ void over_blocks(const unsigned* in, unsigned* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned* const own = out + 6 * i;
  for (unsigned turn = 0; turn < 2; ++turn) {
    own[3 * turn] = autotune::block::sum(in[i] + turn);
    own[3 * turn + 1] = autotune::block::exclusive_sum(in[i] + turn, own[3 * turn + 2]);
  }
}

// Warp by warp, each adds what the one before it left, `turns` times around.
template <class V>
__global__ void relay(unsigned* out, unsigned turns) {
  __shared__ autotune::MBarrier passed[32];
  __shared__ unsigned total;
  const unsigned warp = threadIdx.x / 32, warps = blockDim.x / 32;
  if (threadIdx.x % 32 == 0) passed[warp].init(32);
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  for (unsigned turn = 0; turn < turns; ++turn) {
    const unsigned before = (warp + warps - 1) % warps;
    if (turn + warp > 0) passed[before].wait((warp > 0 ? turn : turn - 1) & 1);
    if (threadIdx.x % 32 == 0) total = total * 3 + warp;
    __syncwarp();
    passed[warp].arrive();
  }
  while (!__all_sync(0xffffffffu, total == V::expected)) __syncthreads();
  out[threadIdx.x] = total;
}
"""
KERNELS = ("over_warps", "over_blocks", "relay")
TURNS, WARPS = 5, 3


def expected() -> int:
    total = 0
    for _ in range(TURNS):
        for warp in range(WARPS):
            total = (total * 3 + warp) % 2**32
    return total


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    source = tmp_path_factory.mktemp("reductions") / "reductions.cu"
    source.write_text(SOURCE)
    body = f"struct V {{ static constexpr unsigned expected = {expected()}u; }};\n"
    headers = b"".join(
        (include_dir() / "autotune" / f"{name}.cuh").read_bytes() for name in ("warp", "block", "mbarrier")
    )
    key = hashlib.sha256((SOURCE + body).encode() + headers).hexdigest()
    return Batch(source, (include_dir(),), (VariantSource(key, "V", body, KERNELS),))


@pytest.fixture(params=[None, 2, 7], ids=["ascending", "descending", "drawn"])
def backend(request: pytest.FixtureRequest) -> Iterator[CpuBackend]:
    with CpuBackend(2) as made, nullcontext() if request.param is None else made.shuffle(request.param):
        yield made


@pytest.fixture
def module(backend: CpuBackend, batch: Batch) -> Iterator[CpuModule]:
    (compiled,) = compile_batch(batch, backend.toolchain(), Cache(default_root()))
    assert isinstance(compiled, Compiled), compiled
    loaded = backend.load(compiled)
    yield loaded
    loaded.unload()


def pointer(array: NDArray[Any]) -> bytes:
    return struct.pack("P", array.ctypes.data)


@pytest.mark.nvrtc
def test_cuda_takes_the_same_source(batch: Batch) -> None:
    assert Nvrtc("sm_90").build(batch).image


def test_lanes_are_reduced(backend: CpuBackend, module: CpuModule) -> None:
    values = np.random.default_rng(3).integers(-1000, 1000, 96).astype(np.int32)
    out = np.zeros((96, 6))
    backend.launch(module, "over_warps", Geometry((1, 1, 1), (96, 1, 1)), [pointer(values), pointer(out)])
    for groups, column in ((32, 0), (8, 1), (1, 2)):
        assert (out[:, column] == values.reshape(-1, groups).sum(1).repeat(groups)).all()
    assert (out[:, 3] == values.reshape(-1, 32).max(1).repeat(32)).all()
    assert (out[:, 4] == values.reshape(-1, 16).min(1).repeat(16)).all()
    assert (out[:, 5] == values.reshape(-1, 32).cumsum(1).reshape(-1)).all()


@pytest.mark.parametrize("threads", [32, 96, 1024])
def test_blocks_are_summed(backend: CpuBackend, module: CpuModule, threads: int) -> None:
    values = np.random.default_rng(4).integers(0, 2**32, 3 * threads, dtype=np.uint32)
    out = np.zeros((3 * threads, 2, 3), np.uint32)
    geometry = Geometry((3, 1, 1), (threads, 1, 1))
    backend.launch(module, "over_blocks", geometry, [pointer(values), pointer(out)])
    for turn in range(2):
        each = (values + np.uint32(turn)).reshape(3, threads)
        total = each.sum(1, dtype=np.uint32).repeat(threads)
        before = each.cumsum(1, dtype=np.uint32) - each
        assert (out[:, turn, 0] == total).all()
        assert (out[:, turn, 1] == before.reshape(-1)).all()
        assert (out[:, turn, 2] == total).all()


def test_warps_pass_on_what_they_did(backend: CpuBackend, module: CpuModule) -> None:
    """Each waits for the phase that the warp before it ended, by turns of parity."""
    out = np.zeros(32 * WARPS, np.uint32)
    geometry = Geometry((1, 1, 1), (32 * WARPS, 1, 1))
    backend.launch(module, "relay", geometry, [pointer(out), struct.pack("I", TURNS)])
    assert (out == expected()).all()


def test_no_kernel_writes_out_a_reduction_of_a_warp_that_the_library_has() -> None:
    """But those whose machine code differs with the library's, which sums in all lanes, or in another order."""
    folder = include_dir().parents[0]
    written = {
        f"{path.parent.name}/{path.name}": count
        for path in sorted(folder.glob("*/*.cu*"))
        if (count := path.read_text().count("lanes /= 2)"))
    }
    assert written == {
        "allpairs/allpairs.cu": 1,
        "eri/tile_integrals.cuh": 2,
        "ion_placement/lattice.cuh": 1,
        "reaction_diffusion/reaction_diffusion.cu": 1,
        "reaction_diffusion/record.cuh": 2,
    }


@pytest.mark.parametrize("folder", ["kernels", "examples"])
def test_no_source_reaches_into_the_memory_of_an_accessor(folder: str) -> None:
    sources = [
        path
        for suffix in ("cu", "cuh", "hpp", "cpp")
        for path in Path(include_dir().parents[1], folder).rglob(f"*.{suffix}")
        if "include" not in path.parts
    ]
    assert len(sources) > 10
    assert [path.name for path in sources if "memory.base" in path.read_text()] == []

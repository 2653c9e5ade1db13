"""What a GPU can do at most, measured: the ceilings that times are held against (``autotune limits``).

Each ceiling is a count that is known beforehand over the median time of a kernel in ``ceilings.cu``. The
kernels and their counts are of the kind of Williams, Waterman and Patterson's roofline ("Roofline: an insightful
visual performance model", CACM 2009): the ceilings are what a program reaches, not what a data sheet says.
"""

import hashlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from autotune.compile import Batch, Cache, Geometry, VariantSource, compile_one
from autotune.device import Backend, Module, Placed, make_raw
from autotune.layout import handle
from autotune.measure.figure import spread

CHAINS, UNROLL = 8, 16  # of ceilings.cu
BLOCK = 256
_SAMPLES = 15
_LAUNCHES = 64
_L2_VALUES = 1 << 18  # of 16 bytes: 4 MiB fit every L2 since compute capability 7.0
_MOST_BYTES = 1 << 30  # of device memory: well over every L2

_KERNELS = (
    "nothing", "copy_memory", "read_memory", "fetch_records", "read_l2", "read_shared", "fma_fp32", "fma_fp64",
    "rsqrt_mufu", "count_bits", "add_integers",
)  # fmt: skip


@dataclass(frozen=True)
class Ceiling:
    """``kernel`` is launched with ``steps``; ``what`` says in words what is counted."""

    kernel: str
    what: str
    steps: int = 0


# Without ``_per_s`` a name is that of a profiled counter, or of the bytes that a family declares.
CEILINGS: Mapping[str, Ceiling] = {
    "bytes_per_s": Ceiling("copy_memory", "bytes read and written by a copy in device memory"),
    "dram_bytes_per_s": Ceiling("copy_memory", "the same, compared with the counter dram_bytes"),
    "dram_read_bytes_per_s": Ceiling("read_memory", "bytes read in order from device memory"),
    "random_64_byte_fetches_per_s": Ceiling("fetch_records", "records of 64 bytes at random places", 64),
    "l2_read_bytes_per_s": Ceiling("read_l2", "bytes read from L2, past L1", 512),
    "shared_read_bytes_per_s": Ceiling("read_shared", "bytes read from shared memory", 256),
    "fp32_fma_per_s": Ceiling("fma_fp32", "fused multiply-adds of 32 bits, one each", 512),
    "fp64_fma_per_s": Ceiling("fma_fp64", "fused multiply-adds of 64 bits, one each", 64),
    "mufu_per_s": Ceiling("rsqrt_mufu", "operations of the special function unit (rsqrt)", 64),
    "popc_per_s": Ceiling("count_bits", "population counts of 32 bits", 64),
    "integer_add_per_s": Ceiling("add_integers", "integer adds of 32 bits", 256),
    "launches_per_s": Ceiling("nothing", "empty kernels, queued one after the other"),
}


def batch() -> Batch:
    """The microbenchmarks as a compiler takes them."""
    source = Path(__file__).with_name("ceilings.cu")
    struct = f"struct Ceilings {{ static constexpr int chains = {CHAINS}; static constexpr int unroll = {UNROLL}; }};\n"
    key = hashlib.sha256(struct.encode() + source.read_bytes()).hexdigest()
    return Batch(source, (), (VariantSource(key, "Ceilings", struct, _KERNELS),))


def measure_ceilings(backend: Backend, cache: Cache) -> dict[str, Any]:
    """Run every microbenchmark. Raises CompilerError, LaunchError."""
    built = compile_one(batch(), backend.toolchain(), cache, "the microbenchmarks do not compile: ")
    device = backend.device
    most = min(_MOST_BYTES, device.limits.memory_bytes // 8)
    nbytes = 1 << (most.bit_length() - 1)  # a power of two
    with ExitStack() as placed:
        run = _Run(backend, backend.load(built), nbytes, _room(backend, placed, nbytes),
                   _room(backend, placed, nbytes))  # fmt: skip
        times = {one.kernel: run.times_ms(one) for one in CEILINGS.values()}
    ceilings = {name: run.count(one) / (median(times[one.kernel]) / 1000) for name, one in CEILINGS.items()}
    about = backend.describe()
    return {
        "device_name": device.name,
        "arch": device.arch,
        "multiprocessors": device.multiprocessors,
        "driver": about.get("driver", device.driver),
        "clock_mhz": about.get("clock_mhz"),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "ceilings": ceilings,
        "spread_relative": {name: spread(times[one.kernel]) for name, one in CEILINGS.items()},
    }


@dataclass(frozen=True)
class _Run:
    """``first`` and ``second`` are the addresses of ``nbytes`` of device memory each."""

    backend: Backend
    module: Module
    nbytes: int
    first: int
    second: int

    @property
    def threads(self) -> int:
        return self.backend.device.multiprocessors * (2048 // BLOCK) * BLOCK

    def count(self, one: Ceiling) -> int:
        """What one sample of ``one`` does, in the ceiling's unit."""
        counts = {
            "nothing": _LAUNCHES,
            "copy_memory": 2 * self.nbytes,
            "read_memory": self.nbytes,
            "fetch_records": self.threads // 4 * one.steps,
            "read_l2": self.threads * one.steps * 16,
            "read_shared": self.threads * one.steps * UNROLL * 16,
        }
        return counts.get(one.kernel, self.threads * one.steps * UNROLL * CHAINS)

    def times_ms(self, one: Ceiling) -> list[float]:
        """Two calls to warm up, then the samples."""
        empty = one.kernel == "nothing"
        blocks, size = (1, 32) if empty else (self.threads // BLOCK, BLOCK)
        geometry = Geometry((blocks, 1, 1), (size, 1, 1))
        words = self._words(one)
        arguments = [np.array(words, np.uint64).tobytes()] if words else []

        def plan() -> None:
            for _ in range(_LAUNCHES if empty else 1):
                self.backend.launch(self.module, one.kernel, geometry, arguments)

        self.backend.sample(plan, 2, False)
        return self.backend.sample(plan, _SAMPLES, False)

    def _words(self, one: Ceiling) -> list[int]:
        values = self.nbytes // 16
        words = {
            "nothing": [],
            "copy_memory": [self.first, self.second, values],
            "read_memory": [self.first, values, self.second],
            "fetch_records": [self.first, self.nbytes // 64, one.steps, self.second],
            "read_l2": [self.first, _L2_VALUES, one.steps, self.second],
        }
        return words.get(one.kernel, [one.steps, self.second])


def _room(backend: Backend, placed: ExitStack, nbytes: int) -> int:
    """The address of ``nbytes`` of device memory, cleared, until ``placed`` is closed."""
    made: Placed = backend.place(make_raw(nbytes))
    free: Callable[[], None] = made.free
    placed.callback(free)
    backend.fill(made, 0)
    return handle(made.argument)

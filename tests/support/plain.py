"""Unmodified kernels for tests: their text, and their results on the cpu device."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.compile import Cache, default_root
from autotune.declaration import Configuration, Family, bind
from autotune.declaration.plain_kernel import Kernel
from autotune.device import CpuBackend
from autotune.device.resident import run_once

ADD = """\
extern "C" __global__ void vector_add(float* c, const float* a, const float* b, int n) {
  const int i = blockIdx.x * block_size + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
"""
SAXPY = """\
__global__ void saxpy(float* y, const float* __restrict__ x, float a, long long n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""
BLUR = """\
#include <cuda_runtime.h>
#include <stdint.h>

#define taps (2 * RADIUS + 1)
__constant__ float weights[16];

__global__ void blur(float* out, const float* in, int32_t n) {
  extern __shared__ float tile[];
  const int first = blockIdx.x * (block_size * per_thread);
  for (int k = threadIdx.x; k < block_size * per_thread + taps - 1; k += block_size) {
    const int at = min(max(first + k - RADIUS, 0), n - 1);
    tile[k] = in[at];
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < per_thread; ++j) {
    const int i = threadIdx.x + j * block_size;
    float sum = 0;
    for (int t = 0; t < taps; ++t) sum += weights[t] * tile[i + t];
    if (first + i < n) out[first + i] = sum;
  }
}
"""
MATRIX = """\
namespace dense {
template <int rows_at_once, typename T>
__global__ void times(T* y, Policy::matrix matrix, const T* x, unsigned int m, int n) {
  const unsigned first = (blockIdx.x * blockDim.x + threadIdx.x) * rows_at_once;
  for (unsigned i = first; i < first + rows_at_once && i < m; ++i) {
    T sum = 0;
    for (int j = 0; j < n; ++j) sum += matrix.load(i, j) * x[j];
    y[i] = sum;
  }
}
}  // namespace dense
"""


def vector_add(**changes: Any) -> Kernel:
    """``block_size`` is a macro; arrays are pointers and the size is an argument."""
    arguments = {"c": "output float32[n]", "a": "input float32[n]", "b": "input float32[n]", "n": "int32"}
    told: dict[str, Any] = {
        "arguments": arguments, "grid": "ceil_div(n, block_size)", "block": "block_size",
        "policies": {"block_size": [64, 128, 256]},
    }  # fmt: skip
    return Kernel(ADD, "vector_add", **{**told, **changes})


def blur() -> Kernel:
    """A stencil with its filter in constant memory and its tile in dynamic shared memory."""
    return Kernel(
        BLUR, "blur",
        arguments={"out": "output float32[n]", "in": "input float32[n]", "n": "int32"},
        symbols={"weights": "float32[taps]"},
        extents={"taps": {"value": "2 * RADIUS + 1"}},
        options={"RADIUS": {"values": [1, 3], "default": 1}},
        grid="ceil_div(n, block_size * per_thread)", block="block_size",
        shared_bytes="4 * (block_size * per_thread + 2 * RADIUS)",
        policies={"block_size": [32, 64], "per_thread": [1, 2]},
    )  # fmt: skip


def matrix(**policies: Any) -> Kernel:
    """A kernel template in a namespace, of whose arrays one is an accessor."""
    return Kernel(
        MATRIX, "dense::times",
        arguments={
            "y": "output float32[m]",
            "matrix": {"role": "input", "type": "float32", "shape": ["m", "n"], "access": "accessor"},
            "x": "input float32[n]", "m": "uint32", "n": "int32",
        },
        template=["rows_at_once", "float32"], grid="ceil_div(m, 32 * rows_at_once)", block=32,
        policies={"rows_at_once": [1, 3], **policies}, tolerance={"relative": 1e-5},
    )  # fmt: skip


def outputs(
    family: Family, configuration: Configuration, arrays: Mapping[str, Any], **options: Any
) -> dict[str, NDArray[Any]]:
    """Of one configuration on the cpu device."""
    return run_once(
        family, configuration, bind(family, arrays, options, {}), CpuBackend(1), Cache(default_root())
    )


def workload(folder: Path, family: str, **shapes: tuple[int, ...]) -> Path:
    """A workload of random arrays."""
    lines = ["schema: 1", "workload: small", f"family: {family}", "arrays:"]
    for seed, (name, shape) in enumerate(shapes.items()):
        lines.append(f"  {name}: {{random: uniform, shape: {list(shape)}, seed: {seed}}}")
    path = folder / "small.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


def floats(count: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).random(count, dtype=np.float32)

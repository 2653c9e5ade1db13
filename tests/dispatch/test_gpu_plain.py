"""Unmodified kernels on a real CUDA device: pointers, sizes, symbols, templates, compilers, in place, a baseline."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain import SAXPY, blur, floats, matrix, vector_add, workload

import autotune
from autotune.cli.commands import main
from autotune.compile import Cache, Variant, batch, compile_one, default_root
from autotune.declaration import bind
from autotune.declaration.plain_kernel import Kernel
from autotune.device import Resident
from autotune.record import read_record

pytestmark = pytest.mark.gpu

HIDDEN = """\
namespace deep { static __constant__ int shift[4]; }
static __constant__ float factor[2];
__device__ float bias[3];
template <typename T, int which>
__global__ void hidden(T* y, const T* x, signed char small, unsigned long long n, double wide) {
  extern __shared__ T tile[];
  const unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  if (i < n) y[i] = tile[threadIdx.x] * factor[which] + bias[which] + deep::shift[which] + small + static_cast<T>(wide);
}
"""
PTX = """\
extern "C" __global__ void twice(float* y, const float* x, int n) {
  const int i = blockIdx.x * block_size + threadIdx.x;
  float sum;
  if (i >= n) return;
  asm("add.f32 %0, %1, %2;" : "=f"(sum) : "f"(x[i]), "f"(x[i]));
  y[i] = sum;
}
"""


@pytest.fixture
def backend() -> Iterator[Any]:
    from autotune.device.cuda.backend import CudaBackend

    with CudaBackend(0) as opened:
        yield opened


def on_gpu(
    backend: Any, kernel: Kernel, arrays: dict[str, Any], compiler: str = "", **given: Any
) -> list[Any]:
    """The outputs of every configuration, each run twice."""
    family = kernel.family
    options = {name: value for name, value in given.items() if name in family.options}
    scalars = {name: value for name, value in given.items() if name in family.scalars}
    inputs, found = bind(family, arrays, options, scalars), []
    for configuration in family.space.configurations():
        variant = Variant.make(family, configuration, inputs.options)
        toolchain, cache = backend.toolchain(compiler), Cache(default_root())
        module = backend.load(compile_one(batch(family, (variant,)), toolchain, cache, ""))
        with backend.current():
            resident = Resident(backend, inputs)
            execution = resident.execution(variant, module)
            for _ in range(2):
                execution.run()
            found += [execution.restore(d.name, d.shape_for(inputs.sizes)) for d in family.outputs]
            resident.close()
    return found


def hidden() -> Kernel:
    return Kernel(
        HIDDEN, "hidden",
        arguments={
            "y": "output float32[n]", "x": "input float32[n]", "small": "int8", "n": "uint64", "wide": "float64",
        },
        symbols={
            "factor": "float32[two]", "bias": "float32[three]",
            "moved": {"role": "input", "type": "int32", "shape": ["four"], "symbol": "deep::shift"},
        },
        extents={"two": {"value": 2}, "three": {"value": 3}, "four": {"value": 4}},
        template=["float32", 1], grid="ceil_div(n, bs)", block="bs", shared_bytes="4 * bs",
        policies={"bs": [64, 256]}, tolerance={"relative": 1e-6},
    )  # fmt: skip


@pytest.mark.parametrize("compiler", ["nvrtc", "nvcc"])
def test_what_kernels_as_they_stand_compute(compiler: str, backend: Any) -> None:
    a, b = floats(1000), floats(1000, 1)
    for got in on_gpu(backend, vector_add(), {"a": a, "b": b}, compiler):
        np.testing.assert_array_equal(got, a + b)
    weights = floats(7, 2)
    expected = np.convolve(np.pad(a, 3, "edge"), weights[::-1], "valid")
    for got in on_gpu(backend, blur(), {"in": a, "weights": weights}, compiler, RADIUS=3):
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    memories = ["global", "readonly", "texture", "constant"]
    columns = {"rows": ["m", "n"], "columns": ["n", "m"]}
    mixed = matrix(
        memory={"layout": "memory", "data": ["matrix"], "values": memories},
        axes={"layout": "axes", "data": ["matrix"], "values": ["rows", "columns"], "means": columns},
    )
    table = a.reshape(50, 20)
    for got in on_gpu(backend, mixed, {"matrix": table, "x": b[:20]}, compiler):
        np.testing.assert_allclose(got, table @ b[:20], rtol=1e-5)


@pytest.mark.parametrize("compiler", ["nvrtc", "nvcc"])
def test_symbols_that_are_static_or_in_a_namespace(compiler: str, backend: Any) -> None:
    x = floats(500)
    arrays = {"x": x, "factor": [2, 3], "bias": [0, 10, 20], "moved": [1, 2, 3, 4]}
    for got in on_gpu(backend, hidden(), arrays, compiler, small=-5, wide=0.25):
        np.testing.assert_allclose(got, 3 * x + 10 + 2 - 5 + 0.25, rtol=1e-6)


@pytest.mark.parametrize("name", ["numpy", "torch", "cupy"])
def test_calls_with_arrays_of_the_host_and_of_other_libraries(name: str) -> None:
    library: Any = pytest.importorskip(name)
    to = {
        "numpy": np.asarray,
        "torch": lambda a: library.as_tensor(a, device="cuda"),
        "cupy": library.asarray,
    }
    back = {"numpy": np.asarray, "torch": lambda a: a.cpu().numpy(), "cupy": lambda a: a.get()}
    given, plain = to[name], back[name]
    saxpy = Kernel(
        SAXPY, "saxpy",
        arguments={"y": "inout float32[n]", "x": "input float32[n]", "a": np.float32(2), "n": "int64"},
        grid="ceil_div(n, bs)", block="bs", policies={"bs": [64, 128]},
    )  # fmt: skip
    with pytest.warns(UserWarning, match="no usable policy file"):
        add, update, stencil = (
            autotune.load(one, device="cuda", policies="/nowhere") for one in (vector_add(), saxpy, blur())
        )
    with add, update, stencil:
        for seed in range(4):
            a, b, w = floats(777, seed), floats(777, seed + 9), floats(3, seed)
            np.testing.assert_array_equal(plain(add(given(a), given(b))), a + b)
            y = given(b)
            np.testing.assert_allclose(plain(update(y, given(a), a=seed)), seed * a + b, rtol=1e-6)
            np.testing.assert_array_equal(plain(y), b)
            expected = np.convolve(np.pad(a, 1, "edge"), w[::-1], "valid")
            np.testing.assert_allclose(plain(stencil(given(a), given(w))), expected, rtol=1e-5)


def test_a_kernel_that_only_a_gpu_takes_is_proved_against_its_control_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    old = PTX.replace("twice", "before").replace("block_size", "blockDim.x")
    math = {"compile_option": True, "values": ["as_is", "fast"], "means": {"fast": "-use_fast_math"}}
    baseline = {"source": "before.cu", "kernel": "before", "arguments": ["y", "x", "n"], "block": [128]}
    baseline["grid"] = ["ceil_div(n, 128)"]
    kernel = Kernel(
        PTX, "twice", arguments={"y": "output float32[n]", "x": "input float32[n]", "n": "int32"},
        grid="ceil_div(n, block_size)", block="block_size",
        policies={"block_size": [32, 256], "math": math}, baseline=baseline,
        headers={"before.cu": old},
    )  # fmt: skip
    given = workload(tmp_path, "twice", x=(1 << 22,))
    assert main(["sweep", str(kernel.folder), "-w", str(given), "--device", "cuda", "--out", "out"]) == 0
    told = capsys.readouterr().out
    assert "against the result of control only" in told
    (study,) = read_record(tmp_path / "out")
    assert set(study.states()) == {"measured"}
    timed = study.about.baseline
    assert timed is not None and timed.median_ms > 0 and timed.registers
    with autotune.load(kernel, device="cuda", policies="policies") as twice:
        x = floats(1000)
        np.testing.assert_array_equal(twice(x), 2 * x)

"""Tensors of 16 and 8 bit floats on a real GPU; the rounding of its own instructions, for every number there is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import FAMILY, write_family
from lending import loaded

from autotune.layout import STORAGES

pytestmark = [pytest.mark.gpu, pytest.mark.torch]
ONE = np.ones(1, np.float32)
NAMES = {
    "float16": "float16", "bfloat16": "bfloat16", "float8_e4m3": "float8_e4m3fn", "float8_e5m2": "float8_e5m2"
}  # fmt: skip
SOURCE = """\
#include "autotune/array.cuh"
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) doubler(typename Policy::x x, typename Policy::y y) {
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i < x.extent(0)) y.store(x.load(i), i);
}
"""


def copier(folder: Path, x: str, y: str, layout: str = "") -> Path:
    """y = x, each in its elements; ``layout`` is of x."""
    text = FAMILY.replace(
        "role: input, type: float32, shape: [n]", f"role: input, type: {x}, shape: [n]{layout}"
    )
    text = text.replace("role: output, type: float32", f"role: output, type: {y}")
    return write_family(folder / "doubler", text, SOURCE)


def numbers() -> Any:
    random = np.random.default_rng(1)
    edges = [0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 57344, 65504, 65519.9, 65520, 6e-8, 3e-8]
    bits = random.integers(0, 2**32, 1 << 18, np.uint32).view(np.float32)
    near = np.exp2(random.uniform(-30, 18, 1 << 18)).astype(np.float32)
    return np.concatenate([np.array(edges, np.float32), bits, near])


@pytest.mark.parametrize("name", NAMES)
def test_a_gpu_rounds_as_the_host_does(tmp_path: Path, name: str) -> None:
    import torch

    given, storage = numbers(), STORAGES[name]
    expected = storage.widen(storage.narrow(given, ONE), ONE)
    with loaded(copier(tmp_path, "float32", name)) as kernel:  # by a kernel's store
        made = kernel(torch.from_numpy(given).cuda())
        assert made.dtype == getattr(torch, NAMES[name])
        np.testing.assert_array_equal(made.float().cpu().numpy(), expected)
    with loaded(
        copier(tmp_path / "moved", name, "float32")
    ) as kernel:  # by the move of a float tensor, and by a load
        back = kernel(torch.from_numpy(given).cuda())
        assert back.dtype == torch.float32
        np.testing.assert_array_equal(back.cpu().numpy(), expected)
        np.testing.assert_array_equal(kernel(made).cpu().numpy(), expected)
        np.testing.assert_array_equal(kernel(made.cpu()).numpy(), expected)
        np.testing.assert_array_equal(kernel(given), expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_tensor_is_used_where_it_is(tmp_path: Path, name: str) -> None:
    import torch

    kind = getattr(torch, NAMES[name])
    with loaded(copier(tmp_path, name, name)) as kernel:
        for start in range(3):
            x = torch.linspace(-3, 3 + start, 1000, device="cuda").to(kind)
            out = torch.empty_like(x)
            assert kernel(x, out=out) is out
            assert torch.equal(out.view(torch.uint8), x.view(torch.uint8))
            assert torch.equal(kernel(x).float(), x.float())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            made = kernel(x)
        x.copy_(torch.linspace(5, 6, 1000, device="cuda").to(kind))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(made.float(), x.float())


@pytest.mark.parametrize("storage", ["scaled_int8", "scaled_int16_by_row"])
def test_the_scale_is_that_of_each_call(tmp_path: Path, storage: str) -> None:
    import torch

    with loaded(copier(tmp_path, "float32", "float32", f", layout: {{storage: {storage}}}")) as kernel:
        for largest in (1.0, 300.0):
            x = torch.linspace(-largest, largest, 777, device="cuda")
            assert float((kernel(x) - x).abs().max()) <= largest / 127


def test_cupy_has_float16(tmp_path: Path) -> None:
    cupy = pytest.importorskip("cupy")
    with loaded(copier(tmp_path, "float16", "float16")) as kernel:
        x = cupy.linspace(-3, 3, 1000).astype(cupy.float16)
        made = kernel(x)
        assert made.dtype == cupy.float16
        assert bool((made == x).all())

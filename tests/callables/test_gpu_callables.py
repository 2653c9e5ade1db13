"""Kernels in Python on a GPU: the same promises as on the cpu."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune.callables import Layouts, cupy_raw
from autotune.record import read_record

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]
SOURCE = """
extern "C" __global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (HOW == 2) y += 1LL << 40;
  if (i < n) y[i] = (HOW == 1 ? 3 : 2) * x[i];
}
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compile_cache: str) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.chdir(tmp_path)


def test_a_raw_kernel_that_crashes_or_is_wrong_is_one_failed_trial_each() -> None:
    cupy = pytest.importorskip("cupy")
    x = cupy.arange(1 << 16, dtype=cupy.float32)
    call = cupy_raw(cupy.RawKernel(SOURCE, "scale"), ["x", "y", "n"], "ceil_div(n, block)", "block")
    given = {"x": x, "y": cupy.empty_like(x), "n": np.int32(x.size)}
    found = autotune.tune(call, {"block": [128, 256], "HOW": [0, 1, 2]}, given, progress=False)
    ended = {(trial.configuration["HOW"], trial.state) for trial in found.sweep.trials}
    assert ended == {(0, "measured"), (1, "wrong_result"), (2, "crashed")}
    found(**given)
    assert bool((given["y"] == 2 * x).all())


def test_a_triton_kernel_is_tuned_on_the_gpu() -> None:
    pytest.importorskip("triton")
    import torch

    sys.modules.pop("triton_kernels", None)
    import triton_kernels as kernels

    n = 10_000
    x, out = torch.rand(n, device="cuda"), torch.empty(n, device="cuda")
    kernels.add[lambda meta: (-(-n // meta["BLOCK"]),)](x, x, out, n)
    assert torch.equal(out, x + x)
    (study,) = read_record("autotune-results/add_float32")
    assert [trial.state for trial in study.trials] == ["measured"] * 2
    assert study.about.device_kind == "cuda"


def test_layouts_are_applied_on_the_gpu_and_undone() -> None:
    cupy = pytest.importorskip("cupy")
    from called_functions import viewed

    matrix = cupy.random.default_rng(0).standard_normal((640, 96), dtype=cupy.float32)
    given: dict[str, Any] = {"matrix": matrix, "sums": cupy.zeros(640, cupy.float32)}
    layouts = Layouts(axes=("matrix",), padding=("matrix",))
    found = autotune.tune(viewed, {"order": ["rows", "columns"]}, given, layouts=layouts, progress=False)
    assert {trial.state for trial in found.sweep.trials} == {"measured"}
    with found.bound(**given) as call:
        call.call()
        np.testing.assert_allclose(call.output("sums"), matrix.get().sum(axis=1), rtol=1e-3, atol=1e-3)

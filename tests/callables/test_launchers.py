"""Kernels of CuPy, Numba and Warp as they are, with their launches."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune.callables import LibraryLaunch, cupy_elementwise, cupy_raw, numba_kernel, warp_kernel
from autotune.errors import UsageError

X = np.arange(64, dtype=np.float32)
CODE = """
def scale(x, y, n, *, macros, grid, block, shared):
    threads = grid[0] * block[0]
    assert threads >= n and shared == 4 * block[0]
    y[:n] = x[:n] * int(macros.get("FACTOR", 1))
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compile_cache: str) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "support" / "fake_cupy"))
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    import cupy

    yield cupy
    sys.modules.pop("cupy", None)


def tuned(call: LibraryLaunch, space: dict[str, list[Any]], **inputs: Any) -> Any:
    return autotune.tune(call, space, inputs, progress=False)


@pytest.mark.parametrize("of", ["RawKernel", "RawModule"])
def test_a_raw_kernel_gets_its_launch_and_macros(cupy: Any, of: str) -> None:
    kernel = cupy.RawKernel(CODE, "scale", ("-DNAME=1",)) if of == "RawKernel" else cupy.RawModule(code=CODE)
    call = cupy_raw(kernel, ["x", "y", "n"], "ceil_div(n, block)", "block", "4 * block", name="scale")
    y = np.zeros_like(X)
    found = tuned(call, {"block": [16, 32], "FACTOR": [2, 3]}, x=X, y=y, n=np.int32(64))
    ended = {trial.configuration.id: trial.state for trial in found.sweep.trials}
    assert ended == {
        "FACTOR=2,block=16": "measured", "FACTOR=2,block=32": "measured",
        "FACTOR=3,block=16": "wrong_result", "FACTOR=3,block=32": "wrong_result",
    }  # fmt: skip
    assert found.sweep.family.name == "scale_float32"
    found(x=X, y=y, n=np.int32(64))
    np.testing.assert_array_equal(y, 2 * X)


def test_an_elementwise_kernel_gets_its_block_size_and_macros(cupy: Any) -> None:
    kernel = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = x * y + SHIFT", "shifted")
    call = cupy_elementwise(kernel, ["x", "y", "z"])
    space = {"block_size": [64, 128], "SHIFT": [1]}
    found = tuned(call, space, x=X, y=X, z=np.zeros_like(X))
    assert {trial.state for trial in found.sweep.trials} == {"measured"}
    assert found.declared.arrays["z"].role == "output"


def test_a_kernel_without_text_is_refused(cupy: Any) -> None:
    with pytest.raises(UsageError, match=r"give a cupy.RawKernel made from text, or name= of a function"):
        cupy_raw(cupy.RawModule(code=CODE), ["x"], 1, 1)


@pytest.mark.numba
def test_a_numba_kernel_gets_its_launch_and_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    from numba_kernels import scaled

    call = numba_kernel(scaled, ["x", "y", "factor"], "ceil_div(x_0, block)", "block")
    y = np.zeros(16, np.float32)
    found = tuned(call, {"block": [8, 16], "TILE": [4, 8]}, x=X[:16], y=y, factor=2.0)
    assert [trial.state for trial in found.sweep.trials] == ["measured"] * 4
    found(x=X[:16], y=y, factor=2.0)
    np.testing.assert_array_equal(y, 2 * X[:16])


@pytest.mark.warp
@pytest.mark.filterwarnings("default")
def test_a_warp_kernel_gets_its_launch_and_constants() -> None:
    import warp
    from warp_kernels import lengths

    points = warp.array(np.arange(12, dtype=np.float32).reshape(4, 3), dtype=warp.vec3, device="cpu")
    out = warp.zeros(4, dtype=warp.float32, device="cpu")
    call = warp_kernel(lengths, ["points", "out"], "out_0", "block_dim")
    found = tuned(call, {"block_dim": [1, 4], "STEPS": [2, 3]}, points=points, out=out)
    assert [trial.state for trial in found.sweep.trials] == ["measured"] * 4


def test_a_choice_that_the_kernel_does_not_know_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from called_functions import options_of

    from autotune.callables.launchers import _with_globals

    with pytest.raises(UsageError, match="options_of has neither an argument nor a global 'TILE'"):
        _with_globals(options_of, {"TILE": 3})

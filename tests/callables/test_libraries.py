"""Arrays of the libraries: what is handed over is theirs, in memory of ours, and what comes back is compared."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from called_functions import tensors

import autotune
from autotune.callables import libraries
from autotune.callables.libraries import Kind, Memory
from autotune.device import LaunchError


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compile_cache: str) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)
    monkeypatch.chdir(tmp_path)


@pytest.mark.torch
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_tensors_of_16_bits_and_of_bool_keep_their_elements(kind: str) -> None:
    import torch

    x = torch.randn(33).to(getattr(torch, kind))
    mask, out = torch.arange(33) % 2 == 0, torch.empty_like(x)
    found = autotune.tune(tensors, {"parts": [1]}, {"x": x, "mask": mask, "out": out}, progress=False)
    assert [trial.state for trial in found.sweep.trials] == ["measured"]
    assert found.sweep.family.name == f"tensors_{kind}_bool"
    assert {n: (a.role, a.kind.name) for n, a in found.declared.arrays.items()} == {
        "x": ("input", kind), "mask": ("input", "uint8"), "out": ("output", kind), "result": ("output", kind),
    }  # fmt: skip


def memory(array: Any) -> Memory:
    return Memory(array.ctypes.data, array.shape, array.strides, array.dtype, None, array)


@pytest.mark.torch
def test_strides_are_handed_over() -> None:
    import torch

    given = np.arange(24, dtype=np.float32).reshape(4, 6).T[1:, ::2]
    for library in ("numpy", "torch"):
        seen = libraries.hand_over(Kind(library, "float32"), memory(given))
        np.testing.assert_array_equal(np.asarray(seen), given)
    assert isinstance(seen, torch.Tensor) and seen.stride() == (1, 12)
    seen[0, 0] = -1
    assert given[0, 0] == -1, "the same memory"


def test_the_order_of_axes_is_known_where_an_array_fills_its_memory() -> None:
    array = np.zeros((2, 3, 4), np.float32)
    assert libraries.axes_of(array) == (0, 1, 2)
    assert libraries.axes_of(array.transpose(2, 0, 1)) == (1, 2, 0)
    assert libraries.axes_of(array[:, :2]) is None


def test_what_comes_back_as_something_else_is_said() -> None:
    room = np.zeros(3, np.float32)
    with pytest.raises(
        LaunchError, match=r"y is float32 of shape \(2,\), and the first call gave float32 of shape"
    ):
        libraries.copy_back("y", Kind("numpy", "float32"), memory(room), np.zeros(2, np.float32))
    with pytest.raises(LaunchError, match="gives back a object as y"):
        libraries.kind_of_result("y", object())

"""Arrays of 16 and 8 bit floats in a call: of numpy, and of a library that calls itself torch, on the cpu device and on
a device that lends. What is different on a real GPU is in test_gpu_half.py."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fakes import FAMILY, write_family
from lending import Array, World, loaded, make_world

from autotune.device import foreign
from autotune.errors import WorkloadError
from autotune.layout import STORAGES

ONE = np.ones(1, np.float32)
NUMBERS = np.linspace(-3, 3, 77, dtype=np.float32)


def rounded(numbers: Any, name: str) -> Any:
    storage = STORAGES[name]
    return storage.widen(storage.narrow(np.asarray(numbers, np.float32), ONE), ONE)


class Tensor:
    """What torch.Tensor shows of itself; ``codes`` is its memory, or float32."""

    __module__ = "torch"
    requires_grad, layout = False, "torch.strided"

    def __init__(self, numbers: Any, name: str, device: str = "cuda") -> None:
        self.name, self.dtype = name, Elements(f"torch.{name.replace('e4m3', 'e4m3fn')}")
        self.device = SimpleNamespace(type=device, index=0 if device == "cuda" else None)
        self.is_cuda = device == "cuda"
        given = np.asarray(numbers, np.float32)
        self.codes = Array(STORAGES[name].narrow(given, ONE) if name != "float32" else given).memory

    @property
    def numbers(self) -> Any:
        return self.codes if self.name == "float32" else STORAGES[self.name].widen(self.codes, ONE)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.codes.shape

    @property
    def __cuda_array_interface__(self) -> Any:
        if not self.is_cuda:
            raise AttributeError("of the host")
        kind = {"float32": "<f4", "float16": "<f2"}[self.name]
        return {"data": (self.data_ptr(), False), "typestr": kind, "shape": self.shape, "version": 2}

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.numpy()

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.codes.itemsize for step in self.codes.strides)

    def data_ptr(self) -> int:
        return int(self.codes.ctypes.data)

    def is_contiguous(self) -> bool:
        return True

    def get_device(self) -> int:
        return 0

    def cpu(self) -> "Tensor":
        return Tensor(self.numbers, self.name, "cpu")

    def detach(self) -> "Tensor":
        return self

    def float(self) -> "Tensor":
        return Tensor(self.numbers, "float32", "cpu")

    def to(self, name: str) -> "Tensor":
        return Tensor(self.numbers, name.replace("fn", ""), "cpu")

    def view(self, kind: str) -> Any:
        return SimpleNamespace(numpy=lambda: self.codes.view(kind))

    def numpy(self) -> Any:
        assert self.name in ("float32", "float16"), "numpy has no name for others"
        return self.codes if self.name == "float32" else self.codes.view(np.float16)


class Elements(str):
    __slots__ = ()
    is_floating_point = True


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    library: Any = ModuleType("torch")
    library._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda ordinal: 0)
    library.int16, library.int8 = "i2", "i1"
    for name in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float32"):
        setattr(library, name, name)
    library.empty = lambda shape, dtype, device: Tensor(
        np.full(shape, 77), dtype.replace("fn", ""), device.type
    )
    library.from_numpy = lambda array: Tensor(array, "float32", "cpu")
    monkeypatch.setitem(sys.modules, "torch", library)
    return make_world(monkeypatch)


def doubler(folder: Path, x: str, y: str = "float32", x_storage: str = "") -> Path:
    text = FAMILY.replace("x: {role: input, type: float32", f"x: {{role: input, type: {x}")
    text = text.replace("y: {role: output, type: float32", f"y: {{role: output, type: {y}")
    if x_storage:
        text = text.replace("shape: [n]}\n  y:", f"shape: [n], layout: {{storage: {x_storage}}}}}\n  y:")
    return write_family(folder / "doubler", text)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3"])
def test_an_element_of_numpy(tmp_path: Path, name: str) -> None:
    with loaded(doubler(tmp_path, name, name), "cpu") as kernel:
        expected = rounded(2 * rounded(NUMBERS, name), name)
        made = kernel(NUMBERS)
        assert made.dtype == (np.float16 if name == "float16" else np.float32)
        np.testing.assert_array_equal(made, expected)
        np.testing.assert_array_equal(kernel(NUMBERS.astype(np.float64)), expected)
        out = np.zeros_like(NUMBERS)
        assert kernel(rounded(NUMBERS, name), out=out) is out
        np.testing.assert_array_equal(out, expected)
        with pytest.raises(WorkloadError, match=f"y is {name} of shape"):
            kernel(NUMBERS, out=np.zeros(len(NUMBERS), np.int32))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e5m2"])
def test_tensors_of_the_host(world: World, tmp_path: Path, name: str) -> None:
    with loaded(doubler(tmp_path, name, name), "cpu") as kernel:
        expected = rounded(2 * rounded(NUMBERS, name), name)
        made = kernel(Tensor(NUMBERS, name, "cpu"))
        assert (type(made), made.name) == (Tensor, name)
        np.testing.assert_array_equal(made.numbers, expected)
        out = Tensor(np.zeros(77), name, "cpu")
        assert kernel(Tensor(NUMBERS, name, "cpu"), out=out) is out
        np.testing.assert_array_equal(out.numbers, expected)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3"])
def test_tensors_of_a_gpu_are_used_where_they_are(world: World, tmp_path: Path, name: str) -> None:
    with loaded(doubler(tmp_path, name, name)) as kernel:
        for shift in range(3):
            made = kernel(Tensor(NUMBERS + shift, name))
            assert (type(made), made.name) == (Tensor, name)
            np.testing.assert_array_equal(made.numbers, rounded(2 * rounded(NUMBERS + shift, name), name))
        assert world.gpu.seen == ["bound"]  # nothing was placed, nothing copied


def test_a_stored_array_takes_what_it_is_stored_as(world: World, tmp_path: Path) -> None:
    with loaded(doubler(tmp_path, "float32", x_storage="bfloat16")) as kernel:
        made = kernel(Tensor(NUMBERS, "bfloat16"))
        assert made.name == "float32"
        np.testing.assert_array_equal(made.numbers, 2 * rounded(NUMBERS, "bfloat16"))
        assert world.gpu.seen == ["bound"]
        np.testing.assert_array_equal(kernel(Array(NUMBERS)).memory, 2 * rounded(NUMBERS, "bfloat16"))


def test_what_goes_through_the_host(world: World, tmp_path: Path) -> None:
    with loaded(doubler(tmp_path, "float32")) as kernel:
        made = kernel(Tensor(NUMBERS, "bfloat16"))
        np.testing.assert_array_equal(made.numbers, 2 * rounded(NUMBERS, "bfloat16"))
    with loaded(doubler(tmp_path / "scaled", "float32", x_storage="scaled_int16")) as kernel:
        for largest in (1, 50):  # the scale is that of each call
            made = kernel(Array(NUMBERS * largest)).memory
            np.testing.assert_allclose(made, 2 * NUMBERS * largest, atol=6 * largest / 32767)


def test_another_library_has_no_bfloat16(world: World, tmp_path: Path) -> None:
    with loaded(doubler(tmp_path, "bfloat16", "bfloat16")) as kernel:
        made = kernel(Array(NUMBERS))
        assert made.dtype == np.float32
        np.testing.assert_array_equal(made.memory, rounded(2 * rounded(NUMBERS, "bfloat16"), "bfloat16"))


def test_dlpack_has_names_for_them() -> None:
    from autotune.device.elements import find_dlpack_type

    assert find_dlpack_type(4, 16) == STORAGES["bfloat16"].dtype
    assert find_dlpack_type(10, 8) == STORAGES["float8_e4m3"].dtype
    assert find_dlpack_type(2, 16) is None
    assert foreign.to_host(NUMBERS) is NUMBERS

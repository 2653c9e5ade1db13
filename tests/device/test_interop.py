"""Arrays and streams of other libraries, as far as they can be looked at without a GPU."""

import ctypes
import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from autotune.device.foreign import (
    View,
    allocator,
    current_stream,
    fetch,
    get_writable,
    like,
    obstacle,
    reader,
    stream_handle,
    to_host,
    view,
)
from autotune.errors import UsageError, WorkloadError


class Interface:
    """An array on a GPU, by the CUDA Array Interface."""

    def __init__(self, **said: Any) -> None:
        self.__cuda_array_interface__ = {"data": (4096, False), "typestr": "<f4", "version": 3, **said}


class Capsule:
    """An array on a GPU, by DLPack; its memory is numpy's."""

    def __init__(self, memory: NDArray[Any], device: int = 2) -> None:
        self.memory, self.device, self.streams = memory, device, []

    def __dlpack__(self, stream: Any = None, **_: Any) -> Any:
        self.streams.append(stream)
        return self.memory.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 1


def seen(array: Any, stream: int = 0) -> View:
    found = view(array, stream)
    assert found is not None
    return found


def test_the_interface_is_read_with_its_defaults() -> None:
    found = seen(Interface(shape=(2, 3)))
    assert (found.address, found.shape, found.strides, found.dtype) == (4096, (2, 3), (12, 4), np.dtype("f4"))
    assert (found.ordinal, found.stream, found.is_contiguous, found.nbytes) == (-1, None, True, 24)
    assert seen(Interface(shape=(2, 3), strides=None, stream=1)).stream == 0
    assert seen(Interface(shape=(2, 3), stream=77)).stream == 77
    assert not seen(Interface(shape=(2, 3), strides=(24, 8))).is_contiguous
    assert seen(Interface(shape=(1, 3), strides=(99, 4))).is_contiguous  # the stride of one row is never used
    records = seen(Interface(shape=(2,), typestr="|V8", descr=[("a", "<i4"), ("b", "<f4")]))
    assert records.dtype == np.dtype([("a", "i4"), ("b", "f4")])
    with pytest.raises(WorkloadError, match="mask"):
        view(Interface(shape=(2,), mask=object()))


def test_the_number_of_the_gpu() -> None:
    for name in ("index", "id"):
        array = Interface(shape=(2,))
        array.device = SimpleNamespace(**{name: 3})  # type: ignore[attr-defined]
        assert seen(array).ordinal == 3


def test_what_is_the_hosts_is_no_view() -> None:
    for array in (np.zeros(3), [1, 2], 3.5, np.float32(1), Capsule(np.zeros(3), device=1), "text"):
        assert view(array) is None


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_dlpack_says_what_numpy_says(drawn: st.DataObject) -> None:
    shape = tuple(drawn.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    kind = drawn.draw(st.sampled_from(["int8", "uint16", "int32", "uint64", "float32", "float64"]))
    base = np.arange(np.prod(shape) * 8).astype(kind).reshape([2 * n for n in shape] + [-1])[..., 0]
    array = base[tuple(slice(None, None, drawn.draw(st.sampled_from([1, 2]))) for _ in shape)]
    array = array.transpose(drawn.draw(st.permutations(range(array.ndim))))
    found = seen(Capsule(array))
    assert (found.address, found.shape, found.dtype) == (array.ctypes.data, array.shape, array.dtype)
    used = [(s, t) for s, t, n in zip(found.strides, array.strides, array.shape, strict=True) if n > 1]
    assert all(s == t for s, t in used)
    assert found.ordinal == 1


def test_dlpack_is_told_the_stream_and_keeps_the_memory() -> None:
    array = Capsule(np.arange(5.0))
    assert seen(array).stream is None
    found = seen(array, 71)
    assert array.streams == [1, 71]
    address = found.address
    array.memory = np.zeros(1)
    assert ctypes.c_double.from_address(address + 8).value == 1.0


def test_an_array_that_only_knows_dlpack_on_the_host() -> None:
    array = Capsule(np.arange(5), device=1)
    np.testing.assert_array_equal(to_host(array), np.arange(5))
    given = np.arange(3)
    assert to_host(given) is given


def test_copies_to_the_host_are_the_owners() -> None:
    def owned(**ways: Any) -> View:
        return View(SimpleNamespace(**ways), 0, (2,), (8,), np.dtype("f8"))

    content = np.array([1.0, 2.0])
    torch_like = SimpleNamespace(detach=lambda: SimpleNamespace(numpy=lambda: content))
    for source in (
        owned(cpu=lambda: torch_like),
        owned(get=lambda: content),
        owned(copy_to_host=lambda: content),
    ):
        np.testing.assert_array_equal(to_host(source), content)
    with pytest.raises(WorkloadError, match="copy it to a numpy array first"):
        owned().to_host()


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (None, 0), (0, 0), (1, 0), (2, 2), (12345, 12345),
        (SimpleNamespace(__cuda_stream__=lambda: (0, 9)), 9),
        (SimpleNamespace(__cuda_stream__=(0, 9)), 9),
        (SimpleNamespace(cuda_stream=8), 8), (SimpleNamespace(ptr=7), 7), (SimpleNamespace(handle=6), 6),
    ],
)  # fmt: skip
def test_streams(stream: Any, handle: int) -> None:
    assert stream_handle(stream) == handle


@pytest.mark.parametrize("wrong", ["default", 1.0, True, object()])
def test_what_is_no_stream_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="__cuda_stream__"):
        stream_handle(wrong)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is asked of torch."""
    library: Any = ModuleType("torch")
    library._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda ordinal: 70 + ordinal)
    library.cuda = SimpleNamespace(current_stream=lambda ordinal: SimpleNamespace(cuda_stream=80 + ordinal))
    library.from_numpy = lambda array: ("tensor of", array)
    library.empty = lambda shape, dtype, device: (shape, dtype, device)
    library.float32, library.uint8 = "torch.float32", "torch.uint8"
    monkeypatch.setitem(sys.modules, "torch", library)
    return library


class Tensor:
    __module__ = "torch"
    is_cuda, device = True, "cuda:1"

    def get_device(self) -> int:
        return 1


def test_torch(torch: Any) -> None:
    tensor = Tensor()
    assert current_stream(tensor) == 71
    del torch._C._cuda_getCurrentRawStream
    assert current_stream(tensor) == 81
    array = np.zeros(2, np.float32)
    assert like(tensor, array) == ("tensor of", array)
    assert like(np.zeros(1), array) is array
    assert allocator(tensor, (2, 3), np.dtype("f4"))() == ((2, 3), "torch.float32", "cuda:1")
    records = np.dtype([("a", "i4"), ("b", "i4")])
    assert allocator(tensor, (2,), records)() == ((2, 8), "torch.uint8", "cuda:1")
    tensor.is_cuda = False
    assert current_stream(tensor) == 0


def tensor(**different: Any) -> Any:
    """What is asked of a tensor before a kernel takes it."""
    usual = {
        "requires_grad": False, "dtype": Elements("torch.float32"), "layout": "torch.strided",
        "device": SimpleNamespace(type="cuda"),
    }  # fmt: skip
    made = Tensor()
    made.__dict__.update({**usual, **different})
    return made


class Elements(str):
    __slots__ = ()

    @property
    def is_floating_point(self) -> bool:
        return "float" in self


@pytest.mark.parametrize(
    ("different", "told"),
    [
        ({"requires_grad": True}, r"requires a gradient.*give tensor\.detach\(\)"),
        (
            {"dtype": Elements("torch.float8_e8m0fnu")},
            r"float8_e8m0fnu, which no family declares: give tensor\.float\(\)",
        ),
        ({"dtype": Elements("torch.complex64")}, "complex64.*a tensor of a declared type"),
        ({"layout": "torch.sparse_csr"}, r"tensor\.to_dense\(\)"),
        ({"device": SimpleNamespace(type="meta")}, r"tensor\.cpu\(\) or tensor\.cuda\(\)"),
    ],
)
def test_a_tensor_that_no_kernel_can_take(torch: Any, different: dict[str, Any], told: str) -> None:
    assert re.search(told, obstacle(tensor(**different)))
    with pytest.raises(WorkloadError, match=told):
        fetch(tensor(**different))
    host = SimpleNamespace(type="cpu")
    assert get_writable(tensor(**{"device": host, **different}, numpy=lambda: np.zeros(1))) is None


def test_a_tensor_that_a_kernel_takes(torch: Any) -> None:
    for elements in ("float32", "int8", "uint64", "bool", "float16", "bfloat16", "float8_e4m3fn"):
        assert obstacle(tensor(dtype=Elements(f"torch.{elements}"))) == ""
    memory = np.zeros(3)
    assert get_writable(memory) is memory
    assert get_writable(tensor(device=SimpleNamespace(type="cpu"), numpy=lambda: memory)) is memory
    assert get_writable(tensor()) is None  # on a GPU
    assert get_writable([1.0]) is None
    assert obstacle(None) == obstacle(np.zeros(2)) == obstacle([1]) == ""


def test_a_reader_tells_a_tensor_with_a_gradient_from_one_without(torch: Any) -> None:
    def one(requires_grad: bool) -> Any:
        return tensor(
            requires_grad=requires_grad, data_ptr=lambda: 64, shape=(3,), is_contiguous=lambda: True
        )

    read = reader(one(False))
    assert read(one(False)) == read(one(False))
    assert read(one(False))[1] != read(one(True))[1]


def test_a_reader_tells_arrays_apart_by_what_matters() -> None:
    first, second = Interface(shape=(2, 3)), Interface(shape=(2, 3), data=(8192, False))
    read = reader(first)
    assert (read(first)[0], read(second)[0]) == (4096, 8192)
    assert read(first)[1] == read(second)[1]
    for other in (
        Interface(shape=(3, 2)),
        Interface(shape=(2, 3), typestr="<i4"),
        Interface(shape=(2, 3), strides=(4, 8)),
    ):
        assert read(other)[1] != read(first)[1]

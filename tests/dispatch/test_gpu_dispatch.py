"""The run time on a real CUDA device: other libraries' arrays and streams, threads, what is left behind."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import write_family
from layouts import data, random_array, record
from lending import filtered, tuned, weights, write_adder, write_filter

import autotune
from autotune.compile.cache import Cache, default_root
from autotune.device.foreign import View
from autotune.device.transform import LayoutTransform, explain_refusal
from autotune.dispatch.tuned_kernel import TunedKernel
from autotune.layout.bit_packing import packing
from autotune.layout.layout import Layout

pytestmark = pytest.mark.gpu


def loaded(family: Path | str) -> TunedKernel:
    with pytest.warns(UserWarning, match="no usable policy file"):
        return autotune.load(family, device="cuda", policies="/nowhere")


@pytest.fixture
def doubler(tmp_path: Path) -> Path:
    return write_family(tmp_path / "doubler")


@pytest.fixture
def adder(tmp_path: Path) -> Path:
    return write_adder(tmp_path / "adder")


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_arrays_of_another_library(name: str, adder: Path, doubler: Path) -> None:
    library: Any = pytest.importorskip(name)
    on_gpu = (lambda a: library.as_tensor(a, device="cuda")) if name == "torch" else library.asarray
    back = (lambda a: a.cpu().numpy()) if name == "torch" else (lambda a: a.get())
    table, shift = np.arange(12, dtype=np.int32).reshape(3, 4), np.array([5, 6, 7, 8], np.int32)
    with loaded(adder) as kernel, loaded(doubler) as double:
        result = kernel(on_gpu(table), on_gpu(shift))
        assert type(result) is type(on_gpu(table))
        np.testing.assert_array_equal(back(result), table + shift)
        turned = on_gpu(np.ascontiguousarray(table.T)).T
        np.testing.assert_array_equal(back(kernel(turned, on_gpu(shift), sign=-1)), table - shift)
        out = on_gpu(np.zeros_like(table))
        with kernel.prepare(on_gpu(table)) as handle:
            for k in range(4):
                assert handle(on_gpu(shift * k), out=out) is out
                np.testing.assert_array_equal(back(out), table + shift * k)
                np.testing.assert_array_equal(back(handle(shift * k)), table + shift * k)
        for start in range(4):
            x = np.arange(start, 100_000, dtype=np.float32)
            np.testing.assert_array_equal(back(double(on_gpu(x))), 2 * x)
            np.testing.assert_array_equal(
                back(double(on_gpu(x.astype(np.float64)))), 2 * x
            )  # through the host
            np.testing.assert_array_equal(double(x), 2 * x)


def test_arrays_of_the_host_are_stored_by_the_device() -> None:
    with tuned("allpairs") as kernel:
        for count in (70, 71, 70):
            x = np.random.default_rng(count).integers(0, 3, (count, 333), np.int32)
            expected = (x[:, None] != x[None]).sum(-1)
            np.testing.assert_array_equal(kernel(x), expected)
            np.testing.assert_array_equal(kernel(x[::-1]), expected[::-1, ::-1])
            with kernel.prepare(x) as handle:
                np.testing.assert_array_equal(handle(), expected)
                np.testing.assert_array_equal(handle(missing="masked"), expected)


def test_numbers_of_every_width() -> None:
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(5).integers(0, 3, (70, 333), np.int32)
    expected = (x[:, None] != x[None]).sum(-1)
    with tuned("allpairs") as kernel:
        for kind in (torch.int32, torch.int8, torch.int64):
            distance = kernel(torch.as_tensor(x, device="cuda").to(kind))
            assert (distance.dtype, distance.is_cuda) == (torch.int32, True)
            np.testing.assert_array_equal(distance.cpu().numpy(), expected)


class DLPackOnly:
    """An array that shows nothing but DLPack."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __dlpack__(self, **named: Any) -> Any:
        return self.tensor.__dlpack__(**named)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


def test_an_array_that_only_knows_dlpack(doubler: Path) -> None:
    torch = pytest.importorskip("torch")
    out = torch.zeros(1000, device="cuda")
    with loaded(doubler) as kernel:
        for start in range(3):
            x = torch.arange(start, start + 1000, dtype=torch.float32, device="cuda")
            assert kernel(DLPackOnly(x), out=out) is out
            assert torch.equal(out, 2 * x)
        assert kernel(DLPackOnly(x)).get()[1] == 2 * x[1].item()  # PyCUDA's kind


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_the_order_of_the_callers_stream_is_kept(name: str, doubler: Path) -> None:
    """x is still being made when the kernel is called, and overwritten right after."""
    library: Any = pytest.importorskip(name)
    count = 1 << 22
    if name == "torch":
        fresh = lambda: library.zeros(count, device="cuda")  # noqa: E731
        streams = [library.cuda.Stream() for _ in range(2)]
        entered = library.cuda.stream
    else:
        fresh = lambda: library.zeros(count, library.float32)  # noqa: E731
        streams = [library.cuda.Stream(non_blocking=True) for _ in range(2)]
        entered = lambda stream: stream  # noqa: E731
    with loaded(doubler) as kernel:
        for round_ in range(10):
            for stream in streams:
                with entered(stream):
                    x = fresh()
                    for _ in range(50):
                        x += 1
                    y = kernel(x)
                    z = y + 0
                    y.fill_(-1) if name == "torch" else y.fill(-1)
                    x.fill_(-1) if name == "torch" else x.fill(-1)
                    assert float(z.min()) == float(z.max()) == 100.0, round_


def test_eight_threads(doubler: Path) -> None:
    """1,000 calls each, half of the threads on streams of their own; the check is on the device, at the end."""
    torch = pytest.importorskip("torch")

    def calls(thread: int) -> int:
        stream = torch.cuda.Stream() if thread % 2 else torch.cuda.default_stream()
        with torch.cuda.stream(stream):
            wrong = torch.zeros((), dtype=torch.int64, device="cuda")
            for k in range(1000):
                x = torch.full((100 + thread % 3,), float(1000 * thread + k), device="cuda")
                wrong += (kernel(x) != 2 * x).sum()
            return int(wrong)

    with loaded(doubler) as kernel, ThreadPoolExecutor(8) as threads:
        assert list(threads.map(calls, range(8))) == [0] * 8


@pytest.mark.parametrize("axes", ["rows", "columns"])
def test_handles_of_one_module_read_their_own_constants(axes: str, tmp_path: Path) -> None:
    """In turn on one stream, and from two threads on streams of their own; x is read by a texture over the caller's
    array. The kernels take long enough to be under way when the next call is queued."""
    cupy = pytest.importorskip("cupy")
    x, tables = np.random.default_rng(1).integers(-9, 9, 1 << 22).astype(np.float32), [weights(1), weights(2)]
    on_gpu = cupy.asarray(x)
    expected = [cupy.asarray(filtered(x, by)) for by in tables]
    with loaded(write_filter(tmp_path / "filter", axes)) as kernel:
        handles = [kernel.prepare(on_gpu, cupy.asarray(by)) for by in tables]
        outs = [[cupy.empty_like(on_gpu) for _ in range(8)] for _ in tables]
        for k in range(8):
            for handle, mine in zip(handles, outs, strict=True):
                assert handle(out=mine[k]) is mine[k]
        for mine, right in zip(outs, expected, strict=True):
            assert all(bool((out == right).all()) for out in mine)

        def calls(thread: int) -> int:
            stream = cupy.cuda.Stream(non_blocking=True) if thread % 4 < 2 else cupy.cuda.Stream.null
            with cupy.cuda.Device(0), stream:
                out, right = cupy.empty_like(on_gpu), cupy.zeros((), cupy.int64)
                for _ in range(100):
                    handles[thread % 2](out=out)
                    right += (out == expected[thread % 2]).all()
                return int(right)

        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(calls, range(4))) == [100] * 4


def test_constants_and_textures_over_arrays_of_the_caller(tmp_path: Path) -> None:
    """What is queued before the call changes them; a part of an array begins where no texture can."""
    cupy = pytest.importorskip("cupy")
    with loaded(write_filter(tmp_path / "filter")) as kernel:
        x, by = cupy.arange(100_000, dtype=cupy.float32) % 64, cupy.asarray(weights(3))
        out = cupy.empty_like(x)
        for k in range(6):
            by += k
            by[1] += 1
            x += 1
            assert kernel(x, by, out=out) is out
            np.testing.assert_array_equal(out.get(), filtered(x.get(), by.get()))
            np.testing.assert_array_equal(kernel(x.get(), by.get()), out.get())
            np.testing.assert_array_equal(kernel(x[k:], by).get(), filtered(x.get()[k:], by.get()))
            np.testing.assert_array_equal(kernel(x, by, scale=2).get(), 2 * out.get())
        many = [x + k for k in range(80)]
        for _ in range(2):
            results = [kernel(one, by) for one in many]
            for one, result in zip(many, results, strict=True):
                np.testing.assert_array_equal(result.get(), filtered(one.get(), by.get()))


def _layouts() -> list[Layout]:
    """Every step that the device can do, alone and together."""
    plain, records = data("int32", rank=2), record("int32", "float32", "int32", rank=2, plane=(32, 4))
    made = [
        Layout(data=records, axes=axes, records=kind, dims=dims, padding=padding, memory=memory)
        for axes in ((0, 1), (1, 0))
        for kind in ("aos", "soa", "aosoa4")
        for dims, memory in (("1d", "global"), ("2d", "global"), ("1d", "texture"))
        for padding in (1, 3)
    ]
    packed = data("int32", rank=2, packed="j")
    made += [
        Layout(data=packed, axes=axes, packing=packing(name), vector=vector, padding=2)
        for axes in ((0, 1), (1, 0))
        for name in ("int32", "int8", "bits2", "planes2", "planes4")
        for vector in (1, 2)
    ]
    return [*made, Layout(data=plain, axes=(1, 0))]


@pytest.mark.parametrize("layout", _layouts(), ids=lambda layout: layout.cpp)
def test_layouts_are_applied_on_the_device_as_on_the_host(gpu: Any, layout: Layout) -> None:
    from pycuda import driver

    backend, layout_transform = gpu
    array = random_array(layout.data, (19, 77), 3 if layout.packing else None, seed=4)
    with backend.current():
        memory = driver.to_device(array)
        view = View(memory, int(memory), array.shape, array.strides, array.dtype)
        assert explain_refusal(layout, view) == ""
        placed = backend.place(layout.room(array.shape))
        backend.fill(placed, 0)
        launch = layout_transform.launch(layout, view, placed, placed.address, True, ("", ""))
        backend.launch(launch.module, launch.kernel, launch.geometry, launch.arguments)
        np.testing.assert_array_equal(backend.download(placed), layout.apply(array).buffer)
        placed.free()
        memory.free()


@pytest.fixture(scope="module")
def gpu() -> Any:
    from autotune.device.cuda.backend import CudaBackend

    with CudaBackend(0) as backend:
        yield backend, LayoutTransform(backend, Cache(default_root()))


PROGRAM = """
import numpy as np, sys, warnings
warnings.simplefilter("ignore")
first, closes = sys.argv[1], sys.argv[2] == "closes"
if first == "torch":
    import torch
    x = torch.ones(5, 7, dtype=torch.int32, device="cuda")
elif first == "cupy":
    import cupy
    x = cupy.ones((5, 7), cupy.int32)
else:
    x = np.ones((5, 7), np.int32)
import autotune
kernel = autotune.load("allpairs", device="cuda")
handle = kernel.prepare(x)
assert int(kernel(x).max()) == int(handle().max()) == 0
if closes:
    kernel.close()
import pycuda.driver as driver
assert driver.Context.get_current() is None
if first != "numpy":
    assert int((x + x).sum()) == 70
print("fine")
"""


@pytest.mark.parametrize("closes", ["closes", "does not"])
@pytest.mark.parametrize("first", ["numpy", "torch", "cupy"])
def test_no_context_is_left_and_nothing_aborts(first: str, closes: str) -> None:
    if first != "numpy":
        pytest.importorskip(first)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, first, closes], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "fine", "")

"""Stand-ins for cupy, cupyx, torch, numba and nvForest that compute with numpy, scipy and treelite on the host.

They have what the examples' compare.py call, and no more: what is missing is an AttributeError, which those show.
"""

import sys
import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import ndimage, sparse

Run = Callable[..., None]  # what stands for a kernel: takes its arguments, writes its results


class Event:
    """Where ``clock`` was, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock, self.at = clock, 0.0

    def record(self) -> None:
        self.at = self.clock()

    def synchronize(self) -> None:
        pass


class Tensor(np.ndarray):
    """numpy's array with the methods that torch's has besides."""

    def cuda(self) -> "Tensor":
        return self

    def cpu(self) -> "Tensor":
        return self

    def numpy(self) -> np.ndarray:
        return np.asarray(self)

    def to(self, kind: Any) -> "Tensor":
        return self.astype(kind)

    def unfold(self, axis: Any, size: Any, step: Any) -> "Tensor":
        assert step == 1
        return np.lib.stride_tricks.sliding_window_view(self, size, axis, subok=True)

    def int(self) -> "Tensor":
        return self.astype(np.int32)

    def long(self) -> "Tensor":
        return self.astype(np.int64)

    def float(self) -> "Tensor":
        return self.astype(np.float32)

    def floor(self) -> "Tensor":
        return tensor(np.floor(self))


def tensor(array: Any) -> Tensor:
    return np.asarray(array).view(Tensor)


def cupy_of(
    kernels: dict[str, Run], launched: list[Any], clock: Callable[[], float] = time.perf_counter
) -> Any:
    """cupy; ``kernels`` run in place of CUDA's by name, launches are noted as (name, grid, block)."""

    def raw_kernel(code: str, name: str, options: tuple[str, ...] = ()) -> Callable[..., None]:
        assert f" {name}(" in code

        def launch(grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
            launched.append((name, grid, block))
            kernels[name](*arguments)

        return launch

    def elementwise(ins: str, outs: str, operation: str, name: str) -> Callable[..., None]:
        assert ins and outs and operation

        def launch(*arguments: Any, size: int) -> None:
            kernels[name](*arguments)

        return launch

    properties = {"name": b"No GPU", "l2CacheSize": 4096}
    return SimpleNamespace(
        __version__="1.2.3", asarray=np.asarray, asnumpy=np.array, empty=np.empty, zeros=np.zeros,
        empty_like=np.empty_like, take=np.take, searchsorted=np.searchsorted, RawKernel=raw_kernel,
        ElementwiseKernel=elementwise,
        cuda=SimpleNamespace(
            Event=lambda: Event(clock),
            Stream=SimpleNamespace(null=SimpleNamespace(synchronize=lambda: None)),
            Device=lambda: SimpleNamespace(id=0),
            get_elapsed_time=lambda begin, end: (end.at - begin.at) * 1e3,
            runtime=SimpleNamespace(getDeviceProperties=lambda _: properties),
        ),
    )  # fmt: skip


def _spmv(matrix: Any, x: Any, y: Any) -> None:
    y[:] = matrix @ x


def _conv3d(field: Any, filters: Any, padding: int) -> Any:
    assert padding == 1  # zeros around, and torch's convolution does not turn its filters
    return tensor(ndimage.correlate(field[0, 0], filters[0, 0], mode="constant"))[None, None]


def _pad(images: Any, around: tuple[int, ...], mode: str) -> Any:
    left, right, above, below = around
    assert mode == "replicate"
    return tensor(np.pad(images, [(0, 0)] * (images.ndim - 2) + [(above, below), (left, right)], mode="edge"))


def _avg_pool2d(images: Any, side: int, stride: int) -> Any:
    assert stride == 1
    return np.lib.stride_tricks.sliding_window_view(images, (side, side), (-2, -1)).mean(axis=(-2, -1))


def torch_like() -> Any:
    return SimpleNamespace(
        __version__="4.5.6", from_numpy=tensor, empty_like=np.empty_like, compile=lambda function: function,
        matmul=np.matmul, add=lambda one, other, alpha, out: np.add(one, alpha * other, out=out), roll=np.roll,
        rsqrt=lambda array: 1 / np.sqrt(array), uint8=np.uint8, float16=np.float16, float32=np.float32,
        tensor=lambda values, device: tensor(values), stack=lambda parts, axis=0: tensor(np.stack(parts, axis)),
        where=lambda which, one, other: tensor(np.where(which, one, other)),
        searchsorted=lambda keys, queries, out_int32: np.searchsorted(keys, queries),
        index_select=lambda array, axis, places: np.take(array, places, axis),
        sparse_csr_tensor=lambda offsets, columns, values, size: Product(
            sparse.csr_array((values, columns, offsets), shape=size)
        ),
        backends=SimpleNamespace(cudnn=SimpleNamespace(allow_tf32=True)),
        nn=SimpleNamespace(functional=SimpleNamespace(conv3d=_conv3d, pad=_pad, avg_pool2d=_avg_pool2d)),
        profiler=SimpleNamespace(profile=Profile, ProfilerActivity=SimpleNamespace(CUDA="CUDA")),
        cuda=SimpleNamespace(synchronize=lambda: None),
    )  # fmt: skip


class Profile:
    """torch's profiler, which saw one kernel of 2 ms and one of 0.5."""

    def __init__(self, activities: list[str]) -> None:
        assert activities == ["CUDA"]

    def __enter__(self) -> "Profile":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def key_averages(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(self_device_time_total=us) for us in (2000.0, 500.0)]


class Product:
    """A sparse matrix whose products are torch's."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def __matmul__(self, x: Any) -> Tensor:
        return tensor(self.matrix @ np.asarray(x))


class Jitted:
    """A numba kernel: ``[grid, block]`` gives what runs it, thread after thread."""

    def __init__(self, function: Run, thread: list[int]) -> None:
        self.function, self.thread = function, thread

    def __getitem__(self, shape: tuple[int, int]) -> Run:
        def launch(*arguments: Any) -> None:
            for self.thread[0] in range(shape[0] * shape[1]):
                self.function(*arguments)

        return launch


class HostCopied(np.ndarray):
    def copy_to_host(self) -> np.ndarray:
        return np.array(self)


def numba_cuda() -> Any:
    thread = [0]
    return SimpleNamespace(
        to_device=np.array,
        device_array=lambda shape, dtype: np.empty(shape, dtype).view(HostCopied),
        jit=lambda **_: lambda function: Jitted(function, thread),
        grid=lambda _: thread[0],
    )


class Optimizable:
    """nvForest's model: treelite's own inference, and what was asked of `optimize`."""

    layout, default_chunk_size = "layered", 4

    def __init__(self, model: Any, device: str, precision: str) -> None:
        assert (device, precision) == ("gpu", "single")
        self.model = model

    def optimize(self, data: Any, timeout: float, predict_method: str) -> "Optimizable":
        assert callable(getattr(self, predict_method)) and timeout > 0 and data.dtype == np.float32
        return self

    def predict(self, rows: Any) -> Any:
        import treelite  # the GPU tests' machine need not have it

        return treelite.gtil.predict(self.model, rows)

    predict_proba = predict


def install(monkeypatch: pytest.MonkeyPatch, cupy: Any) -> None:
    """``cupy`` and the others are what an import finds until the test ends."""
    stand_ins = {
        "cupy": cupy,
        "cupyx.cusparse": SimpleNamespace(spmv=_spmv),
        "cupyx.scipy.sparse": sparse,
        "cupyx.scipy.ndimage": SimpleNamespace(convolve=ndimage.convolve),
        "torch": torch_like(),
        "numba": SimpleNamespace(__version__="7.8.9"),
        "nvforest": SimpleNamespace(__version__="10.11.12", load_from_treelite_model=Optimizable),
        "numba.cuda": numba_cuda(),
    }
    for name, found in stand_ins.items():
        module = ModuleType(name)
        module.__dict__.update(vars(found))
        module.__dict__["__spec__"] = SimpleNamespace(name=name)
        monkeypatch.setitem(sys.modules, name, module)

"""A GPU that is the cpu device, and a library which calls itself cupy and says that its arrays are there."""

import ctypes
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fakes import FAMILY, write_family

import autotune
from autotune.compile.toolchain import Compiled
from autotune.declaration import load_family
from autotune.device.backend import Beginning, Constant, Launch, LaunchError, Lender
from autotune.device.cpu.backend import CpuBackend, CpuModule, CpuPlaced
from autotune.device.cuda.calls import ConstantWindow
from autotune.dispatch import tuned_kernel
from autotune.dispatch.tuned_kernel import TunedKernel
from autotune.layout import Bytes, Stored, layouts_digest
from autotune.policy import Entry, PolicyFile, file_name
from autotune.policy.file import write

ADDER = """\
schema: 1
family: adder
source: adder.cu
options:
  sign: {values: [1, -1], default: 1}
data:
  table: {role: input, type: int32, shape: [n, m]}
  shift: {role: input, type: int32, shape: [m]}
  total: {role: output, type: int32, shape: [n, m]}
scalars:
  bias: {type: int32, default: 0}
kernels:
  adder: {arguments: [table, shift, total, bias], grid: ["ceil_div(n * m, 64)"], block: [64]}
policies:
  axes: {layout: axes, data: [table], values: [rows, columns], means: {rows: [n, m], columns: [m, n]}, default: columns}
"""
ADDER_SOURCE = """\
#include "autotune/array.cuh"
template <class Policy>
__global__ void adder(typename Policy::table table, typename Policy::shift shift, typename Policy::total total,
                      int bias) {
  const unsigned k = blockIdx.x * 64 + threadIdx.x, i = k / table.extent(1), j = k % table.extent(1);
  if (i < table.extent(0)) total.store(table.load(i, j) + Policy::sign * shift.load(j) + bias, i, j);
}
"""
FILTER = """\
schema: 1
family: filter
source: filter.cu
extents:
  two: {value: 2, doc: what is added and what is taken away}
data:
  x: {role: input, type: float32, shape: [n]}
  weights: {role: input, type: float32, shape: [two, taps], constant_bytes: 1024}
  y: {role: output, type: float32, shape: [n]}
scalars:
  scale: {type: float32, default: 1}
kernels:
  filter: {arguments: [x, weights, y, scale], grid: ["ceil_div(n, 64)"], block: [64]}
policies:
  x_memory: {layout: memory, data: [x], values: [global, texture], default: texture}
  weights_memory: {layout: memory, data: [weights], values: [global, constant], default: constant}
  weights_axes:
    layout: axes
    data: [weights]
    values: [rows, columns]
    means: {rows: [two, taps], columns: [taps, two]}
    default: rows
"""
FILTER_SOURCE = """\
#include "autotune/array.cuh"
template <class Policy>
__global__ void filter(typename Policy::x x, typename Policy::weights weights, typename Policy::y y, float scale) {
  const unsigned i = blockIdx.x * 64 + threadIdx.x, n = x.extent(0);
  if (i >= n) return;
  float sum = 0;
  for (unsigned k = 0; k < weights.extent(1); ++k)
    sum += (weights.load(0u, k) - weights.load(1u, k)) * x.load(i + k < n ? i + k : n - 1);
  y.store(scale * sum, i);
}
"""


class Array:
    """What cupy.ndarray shows of itself; the memory is numpy's."""

    __module__ = "cupy"

    def __init__(self, content: Any) -> None:
        given = np.asarray(content)
        room = np.empty(given.nbytes + 512, np.uint8)  # a GPU's memory begins at multiples of 512 bytes
        begin = -room.ctypes.data % 512
        self.memory = room[begin : begin + given.nbytes].view(given.dtype).reshape(given.shape)
        self.memory[...] = given
        self.device = SimpleNamespace(id=0)
        self.stream = 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.memory.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.memory.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        return self.memory.strides

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.memory.ctypes.data, device_id=0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "data": (self.memory.ctypes.data, False), "shape": self.shape, "strides": self.strides,
            "typestr": self.dtype.str, "version": 3, "stream": self.stream or 1,
        }  # fmt: skip

    def get(self) -> Any:
        return self.memory.copy()


@dataclass
class Placed(CpuPlaced):
    uploads: int = 0

    @property
    def address(self) -> int:
        return self.buffer.ctypes.data


class Call:
    def __init__(
        self, gpu: "Gpu", fills: Mapping[str, Any], launches: Sequence[Launch],
        constants: Sequence[Constant], moves: Sequence[Launch], beginnings: Sequence[Beginning] = (),
    ) -> None:  # fmt: skip
        self.beginnings = beginnings
        self.gpu, self.fills, self.launches, self.moves = gpu, dict(fills), launches, moves
        self.at: dict[str, bytes] = {}
        self.constants = constants
        stay = bool(constants) and all(constant.stays for constant in constants)
        self.key = tuple((self._target(c), c.resident) for c in constants) if stay else None

    def point(self, name: str, address: int) -> None:
        self.at[name] = address.to_bytes(8, "little")

    def __call__(self) -> None:
        for name, placed in self.fills.items():
            at = int.from_bytes(self.at.get(name, placed.argument[:8]), "little")
            self.gpu.fill(self.gpu.borrow(placed.stored, at), 0)
        self._launch(self.moves)
        for each in self.beginnings:
            assert isinstance(each.placed, Placed) and isinstance(each.source, Placed)
            target = int.from_bytes(self.at.get(each.name, each.placed.argument[:8]), "little")
            begin = int.from_bytes(self.at.get(each.source_name, each.source.argument[:8]), "little")
            room = self.gpu.borrow(each.placed.stored, target)
            self.gpu.copy(room, self.gpu.borrow(each.source.stored, begin))
        if not self.constants:
            self._launch(self.launches)
            return
        copies = []
        for c in self.constants:
            assert isinstance(c.resident, Placed)
            source = self.at.get(c.name, c.resident.address.to_bytes(8, "little"))
            copies.append((self._target(c), int.from_bytes(source, "little"), c.window.nbytes))
        window = self.gpu.window_of(self.constants[0].module)
        with window.lock:
            stream = SimpleNamespace(handle=self.gpu.stream_handle())
            if self.gpu.capture:
                window.record(copies, stream)
            else:
                window.hold(copies, self.key, stream)
            self._launch(self.launches)

    def _target(self, constant: Constant) -> int:
        module: Any = constant.module
        place: Any = module.variable(constant.symbol) if constant.symbol else module.window
        return int(place.ctypes.data) + (0 if constant.symbol else constant.window.constant_offset)

    def _launch(self, launches: Sequence[Launch]) -> None:
        for launch in launches:
            arguments = list(map(bytearray, launch.arguments))
            for name, number, byte in launch.addresses:
                if name in self.at:
                    arguments[number][byte : byte + 8] = self.at[name]
            self.gpu.launch(launch.module, launch.kernel, launch.geometry, list(map(bytes, arguments)))


class Gpu(CpuBackend):
    """The cpu device as one that lends. ``seen`` is what was asked of it."""

    def __init__(self) -> None:
        super().__init__(1)
        self.device = replace(self.device, kind="cuda", name="Host GPU", arch="sm_90")
        self.seen: list[Any] = []
        self.failing = ""
        self.capture = 0  # of every stream but the default one; what is captured runs at once here
        self._windows: dict[int, ConstantWindow] = {}
        self._local = threading.local()

    def place(self, stored: Stored, module: Any = None, guard: int = 0) -> Placed:
        self.seen.append("place")
        if stored.memory != "constant":
            made = super().place(stored, module, guard)
        else:
            with module.lock:
                self.window_of(module).claim(0)
                made = super().place(stored, module, guard)
        return Placed(made.stored, made.argument, made.buffer, made._texture, made.guards)

    def upload(self, placed: Any, stored: Stored) -> None:
        self.seen.append("upload")
        super().upload(placed, stored)
        placed.uploads += 1

    def fill_window(self, module: Any, resident: Any, begin: int, window: Stored) -> None:
        self.seen.append("fill window")
        with module.lock:
            self.window_of(module).claim(self.stream_handle())
            super().fill_window(module, resident, begin, window)

    def fill_symbol(self, module: Any, symbol: str, placed: Any) -> None:
        self.seen.append("fill symbol")
        with module.lock:
            self.window_of(module).claim(self.stream_handle())
            super().fill_symbol(module, symbol, placed)

    def window_of(self, module: Any) -> ConstantWindow:
        """The cuda device's own, on this memory."""
        address: int = module.window.ctypes.data
        window = self._windows.setdefault(address, ConstantWindow(self._driver, lambda: address))
        window.lock = module.lock
        return window

    @property
    def _driver(self) -> Any:
        def copy(target: int, source: int, nbytes: int, stream: Any) -> None:
            self.seen.append(("constant", stream.handle))
            ctypes.memmove(target, source, nbytes)

        def synchronize() -> None:
            self.seen.append("synchronize")

        return SimpleNamespace(memcpy_dtod_async=copy, Context=SimpleNamespace(synchronize=synchronize))

    def stream_handle(self) -> int:
        return getattr(self._local, "stream", 0)

    def load_separately(self, compiled: Compiled) -> CpuModule:
        """A copy of the library, which has a window of its own."""
        with TemporaryDirectory() as folder:
            return self.load(replace(compiled, image=Path(copy(compiled.image, folder))))

    def settle(self, placed: Any) -> None:
        """Nothing to do: an image here is linear memory."""

    def borrow(self, stored: Stored, address: int) -> Placed:
        raw = (ctypes.c_ubyte * stored.nbytes).from_address(address)
        memory: Bytes = np.frombuffer(raw, np.uint8)  # type: ignore[call-overload]  # of what ctypes made
        if stored.memory != "texture":
            return Placed(replace(stored, buffer=None), stored.argument(address), memory)
        self.seen.append("texture")
        made = self.view(stored, CpuPlaced(stored, b"", memory))
        return Placed(made.stored, made.argument, made.buffer, made._texture)

    def bind(
        self, fills: Mapping[str, Any], launches: Sequence[Launch],
        constants: Sequence[Constant] = (), moves: Sequence[Launch] = (), beginnings: Sequence[Beginning] = (),
    ) -> Call:  # fmt: skip
        self.seen.append("bound")
        return Call(self, fills, launches, constants, moves, beginnings)

    def launch(self, *arguments: Any) -> None:
        if self.failing:
            raise LaunchError(self.failing)
        super().launch(*arguments)

    @contextmanager
    def on(self, stream: int) -> Iterator[int]:
        self.seen.append(("on", stream))
        before, self._local.stream = self.stream_handle(), stream
        try:
            yield self.capture if stream else 0
        finally:
            self._local.stream = before

    @contextmanager
    def suspend_capture(self) -> Iterator[None]:
        self.seen.append("aside")
        yield
        self.seen.append("recorded from here")

    def wait_for(self, stream: int) -> None:
        self.seen.append(("wait for", stream))


_: type[Lender] = Gpu


@dataclass
class World:
    gpu: Gpu
    stream: int = 0
    opened: list[str] = field(default_factory=list)


def make_world(monkeypatch: pytest.MonkeyPatch, data: Path | None = None) -> World:
    """The GPU is the one that is opened, and the library is loaded. ``data`` is then the folder of the user's data."""
    made = World(Gpu())
    if data:
        monkeypatch.setenv("XDG_DATA_HOME", str(data))

    def open_backend(name: str = "auto") -> Any:
        made.opened.append(name)
        return CpuBackend(1) if name == "cpu" else made.gpu

    library: Any = ModuleType("cupy")
    library.empty = lambda shape, dtype: Array(np.full(shape, 77, dtype))
    library.cuda = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=made.stream))
    monkeypatch.setitem(sys.modules, "cupy", library)
    monkeypatch.setattr(tuned_kernel, "open_backend", open_backend)
    return made


def loaded(folder: Path, device: str | None = "cuda", **more: Any) -> TunedKernel:
    with pytest.warns(UserWarning, match="no usable policy file"):
        kernel: TunedKernel = autotune.load(folder, device=device, policies="/nowhere", **more)
    return kernel


def tuned(name: str) -> TunedKernel:
    """A family that ships, as the policy file that ships with it says; control where that is stale."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        kernel: TunedKernel = autotune.load(name, device="cuda", policies="/nowhere")
    return kernel


def doubler(tmp_path: Path, default: str = "global") -> Path:
    text = FAMILY.replace("texture], default: global", f"texture, constant], default: {default}")
    assert f"default: {default}" in text
    return write_family(tmp_path / "doubler", text)


def write_tuned_doubler(
    tmp_path: Path,
    world: World,
    winners: Mapping[int, str],
    *,
    ms_of_element: float = 0.001,
    spread: float = 0.01,
    places: Sequence[str] = ("policies",),
    **of_file: Any,
) -> Path:
    """A family with a policy file in each of ``places``, which has an entry for each size in ``winners``, with the
    memory of its winner; the default is that of the smallest size."""
    made = write_family(tmp_path / "doubler")
    family = load_family(made)
    entries = {
        f"n{size}": Entry(
            name=f"n{size}", workload=f"n{size}", features={"n": size}, options={},
            configuration={"memory": memory, "block_size": 64}, median_ms=size * ms_of_element,
            spread=spread, samples=9,
            source_digest=family.source_digest, layouts_digest=layouts_digest(), space_digest=family.space_digest,
        )
        for size, memory in winners.items()
    }  # fmt: skip
    default = entries[f"n{min(winners)}"].configuration
    for place in places:
        path = tmp_path / place / file_name("doubler", world.gpu.device.slug)
        path.parent.mkdir(parents=True)
        write(
            path,
            PolicyFile(
                family="doubler", device=world.gpu.device, entries=entries, default=default, **of_file
            ),
        )
    return made


def write_adder(folder: Path) -> Path:
    """table[i, j] + sign * shift[j] + bias, the table stored by columns."""
    folder.mkdir()
    (folder / "family.yaml").write_text(ADDER)
    (folder / "adder.cu").write_text(ADDER_SOURCE)
    return folder


def write_filter(folder: Path, axes: str = "rows") -> Path:
    """y[i] = scale * sum over k of (weights[0, k] - weights[1, k]) * x[i + k]; x by a texture, the weights in constant
    memory."""
    folder.mkdir()
    (folder / "family.yaml").write_text(FILTER.replace("default: rows", f"default: {axes}"))
    (folder / "filter.cu").write_text(FILTER_SOURCE)
    return folder


def weights(seed: int) -> Any:
    """Small whole numbers: every sum is exact."""
    return np.random.default_rng(seed).integers(-9, 9, (2, 5)).astype(np.float32)


def filtered(x: Any, by: Any, scale: float = 1) -> Any:
    wide = np.pad(x, (0, by.shape[1] - 1), mode="edge")
    sums = [w * wide[k : k + len(x)] for k, w in enumerate(by[0] - by[1])]
    return np.float32(scale) * np.sum(sums, axis=0)


def ramp(count: int, start: int = 0) -> Any:
    return np.arange(start, start + count, dtype=np.float32)

"""A GPU that is the cpu device, and a library which calls itself cupy and says that its arrays are there."""

import ctypes
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fakes import FAMILY, write_family

import autotune
from autotune import route
from autotune.backends import Launch, LaunchError
from autotune.backends.cpu import CpuBackend, CpuPlaced
from autotune.dispatch import Kernel
from autotune.layout import Stored

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


class Array:
    """What cupy.ndarray shows of itself; the memory is numpy's."""

    __module__ = "cupy"

    def __init__(self, content: Any) -> None:
        self.memory = np.array(content)
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
    @property
    def address(self) -> int:
        return self.buffer.ctypes.data


class Call:
    def __init__(self, gpu: "Gpu", fills: Mapping[str, Any], launches: Sequence[Launch]) -> None:
        self.gpu, self.fills, self.launches, self.at = gpu, dict(fills), launches, {}

    def point(self, name: str, address: int) -> None:
        self.at[name] = address.to_bytes(8, "little")

    def __call__(self) -> None:
        for name, placed in self.fills.items():
            at = int.from_bytes(self.at.get(name, placed.argument[:8]), "little")
            self.gpu.fill(self.gpu.borrow(placed.stored, at), 0)
        for launch in self.launches:
            named = zip(launch.arguments, launch.names, strict=True)
            arguments = [self.at.get(name, argument[:8]) + argument[8:] for argument, name in named]
            self.gpu.launch(launch.module, launch.kernel, launch.geometry, arguments)


class Gpu(CpuBackend):
    """The cpu device as one that lends. ``seen`` is what was asked of it."""

    def __init__(self) -> None:
        super().__init__(1)
        self.device = replace(self.device, kind="cuda", name="Host GPU", arch="sm_90")
        self.seen: list[Any] = []
        self.failing = ""

    def place(self, stored: Stored, module: Any = None) -> Placed:
        self.seen.append("place")
        made = super().place(stored, module)
        return Placed(made.stored, made.argument, made.buffer, made._texture)

    def upload(self, placed: Any, stored: Stored) -> None:
        self.seen.append("upload")
        super().upload(placed, stored)

    def borrow(self, stored: Stored, address: int) -> Placed:
        raw = (ctypes.c_ubyte * stored.nbytes).from_address(address)
        return Placed(replace(stored, buffer=None), stored.argument(address), np.frombuffer(raw, np.uint8))

    def bound(self, fills: Mapping[str, Any], launches: Sequence[Launch]) -> Call:
        self.seen.append("bound")
        return Call(self, fills, launches)

    def launch(self, *arguments: Any) -> None:
        if self.failing:
            raise LaunchError(self.failing)
        super().launch(*arguments)

    @contextmanager
    def on(self, stream: int) -> Iterator[None]:
        self.seen.append(("on", stream))
        yield

    def wait_for(self, stream: int) -> None:
        self.seen.append(("wait for", stream))


@dataclass
class World:
    gpu: Gpu
    stream: int = 0
    opened: list[str] = field(default_factory=list)


def make_world(monkeypatch: pytest.MonkeyPatch) -> World:
    """The GPU is the one that is opened, and the library is loaded."""
    made = World(Gpu())

    def open_backend(name: str = "auto") -> Any:
        made.opened.append(name)
        return CpuBackend(1) if name == "cpu" else made.gpu

    library: Any = ModuleType("cupy")
    library.empty = lambda shape, dtype: Array(np.full(shape, 77, dtype))
    library.cuda = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=made.stream))
    monkeypatch.setitem(sys.modules, "cupy", library)
    monkeypatch.setattr(route, "open_backend", open_backend)
    return made


def loaded(folder: Path, device: str | None = "cuda", **more: Any) -> Kernel:
    with pytest.warns(UserWarning, match="no usable policy file"):
        return autotune.load(folder, device=device, policies="/nowhere", **more)


def doubler(tmp_path: Path, default: str = "global") -> Path:
    text = FAMILY.replace("texture], default: global", f"texture, constant], default: {default}")
    assert f"default: {default}" in text
    return write_family(tmp_path / "doubler", text)


def write_adder(folder: Path) -> Path:
    """table[i, j] + sign * shift[j] + bias, the table stored by columns."""
    folder.mkdir()
    (folder / "family.yaml").write_text(ADDER)
    (folder / "adder.cu").write_text(ADDER_SOURCE)
    return folder


def ramp(count: int, start: int = 0) -> Any:
    return np.arange(start, start + count, dtype=np.float32)

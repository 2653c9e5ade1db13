"""A device that runs nothing: it drives the pipe in milliseconds.

Kernels are Python functions of the configuration: a cost in milliseconds, or a failure.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from autotune.compile.cache import Cache
from autotune.compile.toolchain import Batch, BuildError, Built, Compiled
from autotune.compile.variant import Geometry, Variant
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.device.backend import EXACTLY, WORDS, Backend, Copy, LaunchError, make_raw
from autotune.hardware import Device
from autotune.layout.stored import Stored
from autotune.measure.sampling import Protocol

if TYPE_CHECKING:
    from autotune.engine.sweep import Sweep

FAMILY = """\
schema: 1
family: doubler
title: y = 2 x
source: doubler.cu
default_workload: small
data:
  x: {role: input, type: float32, shape: [n]}
  y: {role: output, type: float32, shape: [n]}
kernels:
  doubler: {arguments: [x, y], grid: ["ceil_div(n, block_size)"], block: [block_size]}
policies:
  memory: {layout: memory, data: [x], values: [global, readonly, texture], default: global}
  block_size: {values: [32, 64, 128, 256], default: 128}
reference: control
"""
SOURCE = """\
#include "autotune/array.cuh"
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) doubler(typename Policy::x x, typename Policy::y y) {
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i < x.extent(0)) y.store(2 * x.load(i), i);
}
"""
WORKLOAD = """\
schema: 1
workload: small
family: doubler
arrays:
  x: {random: uniform, shape: [1000], seed: 1}
"""


def write_family(folder: Path, family: str = FAMILY, source: str = SOURCE) -> Path:
    """A family folder that needs no Python: plain arrays, and a configuration as reference."""
    (folder / "workloads").mkdir(parents=True, exist_ok=True)
    (folder / "family.yaml").write_text(family)
    (folder / "doubler.cu").write_text(source)
    (folder / "workloads" / "small.yaml").write_text(WORKLOAD)
    return folder


def cost(configuration: Mapping[str, Any]) -> float:
    """Milliseconds: readonly at 64 threads is best, control is 3 times slower."""
    base = {"global": 3.0, "readonly": 1.0, "texture": 2.0}[configuration["memory"]]
    return base * (1 + abs(int(configuration["block_size"]) - 64) / 64 * 0.5)


@dataclass(frozen=True)
class FakeToolchain:
    """Builds an image that names its variants. ``broken`` are parts of struct text that do not compile."""

    identity: str = "fake 1"
    suffix: str = ".fake"
    broken: tuple[str, ...] = ()

    def build(self, batch: Batch) -> Built:
        for variant in batch.variants:
            for part in self.broken:
                if part in variant.struct:
                    raise BuildError(f"error: {variant.name} is broken by {part}")
        figures = {
            v.key: {k: {"registers": 32, "static_shared_bytes": 0} for k in v.kernels} for v in batch.variants
        }
        image = "\n".join(v.key for v in batch.variants).encode()
        return Built(image, {v.key: {k: f"{k}_{v.name}" for k in v.kernels} for v in batch.variants}, figures)


@dataclass
class FakePlaced:
    stored: Stored
    argument: bytes
    buffer: NDArray[np.uint8]
    room: NDArray[np.uint8]  # with the guards

    @property
    def guards(self) -> "list[FakePlaced]":
        guard = (self.room.size - self.buffer.size) // 2
        around = (self.room[:guard], self.room[guard + self.buffer.size :]) if guard else ()
        return [FakePlaced(make_raw(guard), b"", one, one) for one in around]

    def free(self) -> None:
        pass


@dataclass
class FakeModule:
    compiled: Compiled
    window: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(1 << 16, np.uint8))
    lock: AbstractContextManager[Any] = field(default_factory=nullcontext)

    @property
    def numbers(self) -> Mapping[str, int]:
        return self.compiled.numbers

    def unload(self) -> None:
        pass


@dataclass
class FakeBackend:
    """``behave(struct symbol)`` is called at each launch with the configuration: it returns milliseconds, or raises
    LaunchError; ``wrong`` configurations write a wrong result."""

    costs: Callable[[Mapping[str, Any]], float] = cost
    wrong: Callable[[Mapping[str, Any]], bool] = lambda configuration: False
    tools: FakeToolchain = field(default_factory=FakeToolchain)
    noise: float = 0.0
    lost: bool = False  # whether a failing launch takes the context with it
    failed: bool = False
    configurations: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    launched: list[str] = field(default_factory=list)
    clock_ms: float = 0.0
    kernel_ms: dict[str, float] = field(default_factory=dict)
    device: Device = field(default_factory=lambda: Device(kind="cuda", name="Fake GPU", arch="sm_90"))

    def current(self) -> AbstractContextManager[None]:
        return nullcontext()

    def stream(self) -> AbstractContextManager[None]:
        return nullcontext()

    def shuffle(self, seed: int) -> AbstractContextManager[None]:
        return nullcontext()

    def toolchain(self, compiler: str = "") -> FakeToolchain:
        return self.tools

    def know(self, variants: Sequence[Any]) -> None:
        """Teach the device which configuration a compiled variant is."""
        self.configurations.update({v.source.key: v.configuration for v in variants})

    def load(self, compiled: Compiled) -> FakeModule:
        return FakeModule(compiled)

    def place(self, stored: Stored, module: Any = None, guard: int = 0) -> FakePlaced:
        if stored.memory == "constant":
            room = buffer = module.window[stored.constant_offset :][: stored.nbytes]
        else:
            room = np.zeros(stored.nbytes + 2 * guard, np.uint8)
            buffer = room[guard : guard + stored.nbytes]
        if stored.buffer is not None:
            buffer[:] = stored.buffer
        return self._known(FakePlaced(replace(stored, buffer=None), b"", buffer, room))

    def _known(self, placed: FakePlaced) -> FakePlaced:
        placed.argument = id(placed).to_bytes(8, "little")
        self._placed = {**getattr(self, "_placed", {}), placed.argument: placed}
        return placed

    def view(self, stored: Stored, of: Any) -> FakePlaced:
        buffer = of.buffer[: stored.nbytes]
        return self._known(FakePlaced(stored, b"", buffer, buffer))

    def fill(self, placed: Any, byte: int, begin: int = 0, nbytes: int | None = None) -> None:
        placed.buffer[begin : None if nbytes is None else begin + nbytes] = byte

    def copy(self, placed: Any, source: Any) -> None:
        placed.buffer[:] = source.buffer[: placed.buffer.size]

    def fill_symbol(self, module: Any, symbol: str, placed: Any) -> None:
        """There is nothing that would read it."""

    def fill_constants(self, module: Any, byte: int) -> None:
        module.window[:] = byte

    def fill_window(self, module: Any, resident: Any, begin: int, window: Stored) -> None:
        content = resident.buffer[begin : begin + window.nbytes]
        module.window[window.constant_offset :][: window.nbytes] = content

    def checksum(self, placed: Any) -> int:
        return zlib.crc32(placed.buffer.data)

    def upload(self, placed: Any, stored: Stored) -> None:
        placed.buffer[:] = stored.buffer

    def download(self, placed: Any, nbytes: int | None = None, into: Any = None) -> NDArray[np.uint8]:
        copied: NDArray[np.uint8] = placed.buffer[:nbytes].copy()
        if into is None:
            return copied
        into[:] = copied
        return into  # type: ignore[no-any-return]

    def count_mismatches(
        self, placed: Any, expected: Any, kind: np.dtype[Any] = WORDS, within: tuple[float, float] = EXACTLY,
        ignores_nan: bool = False,
    ) -> int:  # fmt: skip
        if kind.kind != "f" and placed.buffer.size % 4:
            kind = np.dtype(np.uint8)
        got, right = (one.buffer.view(kind) for one in (placed, expected))
        apart = ~np.isclose(got, right, *within, equal_nan=True)
        return int(np.count_nonzero(apart & ~np.isnan(right) if ignores_nan else apart))

    def launch(self, module: Any, kernel: str, geometry: Geometry, arguments: Sequence[bytes]) -> None:
        configuration = self.configurations[module.compiled.key]
        self.launched.append(",".join(f"{k}={v}" for k, v in configuration.items()))
        try:
            self._spend(kernel, self.costs(configuration))
        except LaunchError:
            self.failed = True
            raise
        x, y = (self._placed[a] for a in arguments)
        factor = 3 if self.wrong(configuration) else 2
        y.buffer[:] = (factor * x.buffer.view(np.float32)).view(np.uint8)

    def launch_cooperative(
        self, module: Any, kernel: str, geometry: Geometry, arguments: Sequence[bytes]
    ) -> None:
        self.launch(module, kernel, geometry, arguments)

    def _spend(self, name: str, ms: float) -> None:
        self.clock_ms += ms
        self.kernel_ms[name] = self.kernel_ms.get(name, 0.0) + ms

    def stage(self, name: str, work: Callable[[int], None]) -> None:
        work(0)
        self._spend(name, 0.0)

    def record(self, steps: Callable[[], None]) -> Callable[[], None]:
        return steps

    def synchronize(self) -> None:
        if self.lost and self.failed:
            raise LaunchError("context lost")

    def mark(self) -> float:
        return self.clock_ms

    def wait(self, mark: float) -> None:
        pass

    def queue_after(self, mark: float) -> AbstractContextManager[None]:
        return nullcontext()

    def fetch(self, copy: Copy) -> None:
        room = copy.placed.buffer[copy.begin :]  # type: ignore[attr-defined]
        for row in range(copy.rows):
            copy.target[row * copy.width :][: copy.width] = room[row * copy.pitch :][: copy.width]

    def pin(self, host: NDArray[np.uint8]) -> bool:
        return True

    def unpin(self, host: NDArray[np.uint8]) -> None:
        pass

    def between_ms(self, begin: float, end: float) -> float:
        return end - begin

    def has_reached(self, _mark: float) -> bool:
        return False

    def sample(self, plan: Callable[[], None], count: int, cold: bool) -> list[float]:
        times = []
        for i in range(count):
            before = self.clock_ms
            plan()
            times.append((self.clock_ms - before) * (1 + self.noise * ((i * 7) % 5 - 2)))
        return times

    def kernel_times(self, plan: Callable[[], None]) -> dict[str, float]:
        self.kernel_ms = {}
        plan()
        return dict(self.kernel_ms)

    def describe(self) -> dict[str, Any]:
        return {"clock_mhz": 1980}

    def close(self) -> None:
        pass


_: type[Backend] = FakeBackend  # mypy's word for it; tests/device/test_backend.py has the tests'

PROTOCOL = Protocol(least=3, most=5, seconds=1, finalists=3, rounds=2, round_samples=1)


def sweep(folder: Path, tmp_path: Path, backend: FakeBackend | None = None, **changes: Any) -> "Sweep":
    from local_worker import LocalWorker  # a measuring process does without

    from autotune.engine.request import SweepRequest
    from autotune.engine.sweep import Sweep
    from autotune.record.store import Store
    from autotune.search.strategy import Strategy

    family = families.load_family(folder)
    backend = backend or FakeBackend()
    backend.know([Variant(family, c) for c in family.space.configurations()])
    workload = workloads.load_workload(family)
    if "workers" not in changes:
        worker = LocalWorker(backend)
        worker.start()
        changes["workers"] = [worker]
    strategy = changes.pop("strategy", Strategy())
    chosen = tuple(changes.pop("configurations", family.space.configurations()))
    options = {name: changes.pop(name) for name in ("again", "retime", "joins") if name in changes}
    request = SweepRequest(
        family=family, chosen=chosen, processes=1, search=strategy.sampler, trials=strategy.trials,
        budget="" if strategy.seconds is None else f"{strategy.seconds:g}s", seed=strategy.seed, **options,
    )  # fmt: skip
    arguments: dict[str, Any] = {
        "request": request,
        "workload": workload,
        "inputs": workloads.prepare(family, workload, tmp_path),
        "store": Store(tmp_path / "out"),
        "cache": Cache(tmp_path / "cache"),
        "protocol": PROTOCOL,
    }
    return Sweep(**{**arguments, **changes})

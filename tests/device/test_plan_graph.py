"""Plans of many dependent launches: recorded graphs, cooperative launches, stages that are no kernel."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from fakes import FakeBackend, write_family

from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache, default_root
from autotune.compile.toolchain import Compiled
from autotune.compile.variant import Variant, batch
from autotune.declaration import family as families
from autotune.declaration.workload import Inputs, bind
from autotune.device.backend import Backend, LaunchError
from autotune.device.cpu.backend import CpuBackend
from autotune.device.execution import Execution
from autotune.device.resident import Resident
from autotune.measure.verify import Verifier

FAMILY = """\
schema: 1
family: chain
source: chain.cu
data:
  x: {role: input, type: int32, shape: [n]}
  y: {role: output, type: int32, shape: [n]}
  arrived: {role: scratch, type: uint32, shape: [one]}
  blocks: {role: output, type: int32, shape: [one]}
extents: {one: {value: 1}}
scalars:
  amount: {type: int32, default: 0}
kernels:
  step: {arguments: [x, y, amount], grid: ["ceil_div(n, 64)"], block: [64]}
  chain: {arguments: [x, y, arrived, blocks], grid: ["ceil_div(n, 64)"], block: [64]}
policies:
  launch: {values: [graph, cooperative, stage], default: graph}
"""
# y[i] = x[i], then five times y[i] += y[n - 1 - i] of the step before: each step needs all of the one before it.
SOURCE = """\
#include "autotune/array.cuh"
#include "autotune/grid_barrier.cuh"
enum class Launch { graph, cooperative, stage };
template <class Policy>
__global__ void step(typename Policy::x x, typename Policy::y y, int amount) {
  const unsigned i = blockIdx.x * 64 + threadIdx.x;
  if (i < x.extent(0)) y.store(amount ? y.load(i) + amount : x.load(i), i);
}
template <class Policy>
__global__ void chain(typename Policy::x x, typename Policy::y y, typename Policy::arrived arrived,
                      typename Policy::blocks blocks) {
  const unsigned n = x.extent(0), threads = gridDim.x * 64, first = blockIdx.x * 64 + threadIdx.x;
  for (unsigned i = first; i < n; i += threads) y.store(x.load(i), i);
  for (int round = 1; round < 5; ++round) {
    autotune::grid_barrier(arrived.memory.base);
    // An element of another block: right only when all blocks are as far as this one.
    const int far = y.load(n - 1) - x.load(n - 1);
    autotune::grid_barrier(arrived.memory.base);
    for (unsigned i = first; i < n; i += threads) y.store(x.load(i) + far + round, i);
  }
  if (first == 0) blocks.store(gridDim.x, 0);
}
"""
PYTHON = """\
def plan(execution):
    launch = execution.names["launch"]
    if launch == "cooperative":
        execution.zero("arrived")
        execution.launch_cooperative("chain")
        return

    def steps():
        for amount in range(5):
            execution.launch("step", amount=amount)

    if launch == "graph":
        execution.graph("steps", steps)
    else:
        execution.stage("all", lambda stream: steps())
"""
N = 500


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[families.Family, Inputs]:
    folder = tmp_path / "chain"
    folder.mkdir()
    (folder / "family.yaml").write_text(FAMILY)
    (folder / "chain.cu").write_text(SOURCE)
    (folder / "family.py").write_text(PYTHON)
    family = families.load_family(folder)
    return family, bind(family, {"x": np.arange(N)}, {}, {})


def executed(backend: Backend, family: families.Family, inputs: Inputs, launch: str) -> Execution:
    variant = Variant(family, family.space.configuration(f"launch={launch}"))
    (compiled,) = compile_batch(batch(family, (variant,)), backend.toolchain(), Cache(default_root()))
    assert isinstance(compiled, Compiled), compiled
    return Resident(backend, inputs).execution(variant, backend.load(compiled))


def check(backend: Backend, execution: Execution, launch: str, kernel: str) -> None:
    for _ in range(3):
        backend.fill(execution.placed["y"], 0xA5)
        execution.run()
        np.testing.assert_array_equal(execution.restore("y", (N,)), np.arange(N) + 10)
    assert execution.graphs == (launch == "graph")
    times = backend.kernel_times(execution.run)
    assert times[kernel] > 0
    np.testing.assert_array_equal(execution.restore("y", (N,)), np.arange(N) + 10)


LAUNCHES = [("graph", "step"), ("cooperative", "chain"), ("stage", "all")]


@pytest.mark.parametrize(("launch", "kernel"), LAUNCHES)
def test_on_the_cpu(launch: str, kernel: str, inputs: tuple[families.Family, Inputs]) -> None:
    with CpuBackend(2) as backend:
        execution = executed(backend, *inputs, launch)
        check(backend, execution, launch, kernel)
        if launch == "cooperative":
            assert execution.restore("blocks", (1,)).tolist() == [2]


@pytest.mark.gpu
@pytest.mark.parametrize(("launch", "kernel"), LAUNCHES)
def test_on_a_gpu(launch: str, kernel: str, inputs: tuple[families.Family, Inputs]) -> None:
    from autotune.device.cuda.backend import CudaBackend

    with CudaBackend(0) as backend:
        execution = executed(backend, *inputs, launch)
        check(backend, execution, launch, kernel)
        with backend.stream():
            execution.run()
        np.testing.assert_array_equal(execution.restore("y", (N,)), np.arange(N) + 10)
        if launch == "cooperative":
            assert execution.restore("blocks", (1,)).tolist() == [-(-N // 64)]


# ---- with fakes


@dataclass
class Recorder(FakeBackend):
    """Counts what is recorded and what is replayed."""

    recorded: int = 0
    replayed: int = 0
    stages: list[str] = field(default_factory=list)

    def record(self, steps: Callable[[], None]) -> Callable[[], None]:
        self.recorded += 1

        def replay() -> None:
            self.replayed += 1
            steps()

        return replay


def doubling(tmp_path: Path, backend: Recorder, steps: str) -> Execution:
    folder = write_family(tmp_path)
    (folder / "family.py").write_text(f"def plan(execution):\n    {steps}\n")
    family = families.load_family(folder)
    variant = Variant(family, family.space.control)
    backend.know([variant])
    (compiled,) = compile_batch(batch(family, (variant,)), backend.toolchain(), Cache(tmp_path / "cache"))
    assert isinstance(compiled, Compiled)
    inputs = bind(family, {"x": np.arange(4.0)}, {}, {})
    return Resident(backend, inputs).execution(variant, backend.load(compiled))


GRAPH = 'execution.graph("all", lambda: execution.launch("doubler"))'


def test_a_graph_is_recorded_once_and_what_is_verified_is_its_replay(tmp_path: Path) -> None:
    backend = Recorder()
    execution = doubling(tmp_path, backend, GRAPH)
    verifier = Verifier(backend, execution.variant.family, {"y": np.arange(4, dtype=np.float32) * 2})
    assert verifier.run(execution, cold=False)[0] == ""
    assert (backend.recorded, backend.replayed) == (1, 3)  # the first run's time is that of the recording
    assert verifier.run(execution, cold=False)[0] == ""
    assert (backend.recorded, backend.replayed) == (1, 6)


def test_a_run_that_only_recorded_graphs_does_not_condemn(tmp_path: Path) -> None:
    """Its time is not that of what is replayed, however long it took; the next one's is."""
    backend = Recorder()
    execution = doubling(tmp_path, backend, GRAPH)
    verifier = Verifier(backend, execution.variant.family, {"y": np.arange(4, dtype=np.float32) * 2})
    assert verifier.run(execution, cold=False, once_above_ms=0.0)[0] == ""
    assert backend.replayed == 3
    assert verifier.run(execution, cold=False, once_above_ms=0.0)[0] == ""
    assert backend.replayed == 4


def test_a_launch_is_worked_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Recorder()
    execution = doubling(tmp_path, backend, 'execution.launch("doubler")')
    execution.run()
    monkeypatch.setattr(Variant, "geometry", None)  # asked for again, this fails
    execution.run()
    assert len(backend.launched) == 2


def test_what_a_stage_raises_comes_out(tmp_path: Path) -> None:
    execution = doubling(tmp_path, Recorder(), 'execution.stage("sort", lambda stream: 1 // stream)')
    with pytest.raises(ZeroDivisionError):
        execution.run()


def test_a_plan_that_cannot_be_recorded_is_an_error_of_that_run(tmp_path: Path) -> None:
    class Refusing(Recorder):
        def record(self, steps: Callable[[], None]) -> Callable[[], None]:
            raise LaunchError("cuStreamEndCapture: invalidated")

    execution = doubling(tmp_path, Refusing(), GRAPH)
    with pytest.raises(LaunchError, match="invalidated"):
        execution.run()
    assert execution.graphs == 0

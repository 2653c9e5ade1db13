"""A family whose policy says what its kernel does wrong, for any device; and finalists that share constant memory."""

from pathlib import Path

from fakes import FAMILY, PROTOCOL, write_family

from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache, default_root
from autotune.compile.toolchain import Compiled
from autotune.compile.variant import Variant, batch
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.device.backend import Backend
from autotune.engine.measurer import Measurer
from autotune.engine.messages import Job

# What is said of each fault; 0 is right, and its reason empty.
SAID = {
    0: "",
    1: "y: 1000 of 1000 elements differ, the first at [0]: nan",  # added to what nothing cleared
    2: "writes outside of y: 4 bytes after its end, the nearest 0 and the furthest 3 bytes from it",
    3: "writes its input x: 1 of 1000 elements differ, the first at [3]: 7.0",
    4: "y: 1 of 1000 elements differ, the first at [999]: nan",  # x read past its end
    5: "y: 1000 of 1000 elements differ, the first at [0]: nan",  # scratch read before it is written
    6: "y: 1 of 1000 elements differ, the first at [999]: nan",  # one element never written
    7: "writes outside of kept: 64 bytes after its end",
    8: "y: 1 of 1000 elements differ, the first at [999]: nan",  # padding of an input read
}
_FAMILY = """\
schema: 1
family: doubler
source: doubler.cu
data:
  x: {role: input, type: float32, shape: [n], layout: {padding: 16}}
  y: {role: output, type: float32, shape: [n]}
  kept: {role: scratch, type: float32, shape: [n]}
kernels:
  doubler: {arguments: [x, y, kept], grid: ["ceil_div(n, 128)"], block: [128]}
policies:
  fault: {values: [0, 1, 2, 3, 4, 5, 6, 7, 8], default: 0}
reference: control
"""
_SOURCE = """\
#include "autotune/element.cuh"
template <class Policy>
__global__ void doubler(typename Policy::x x, typename Policy::y y, typename Policy::kept kept) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, n = x.extent(0);
  if (i >= n) return;
  float value = 2 * x.load(i);
  if (Policy::fault == 4 && i == n - 1) value += x.load(n + 8);
  if (Policy::fault == 8 && i == n - 1) value += x.load(n);
  if (Policy::fault == 5) value += kept.load(i);
  if (Policy::fault == 1)
    y.add(value, i);
  else if (Policy::fault != 6 || i < n - 1)
    y.store(value, i);
  if (Policy::fault == 2 && i == 0) y.store(1.0f, n);
  if (Policy::fault == 7 && i < 16) kept.store(1.0f, n + i);
  if (Policy::fault == 3 && i == 3) const_cast<float&>(autotune::element(x, i)) = 7.0f;
}
"""


def reasons(backend: Backend, folder: Path) -> dict[int, str]:
    """Why each fault's configuration is wrong, one after the other on the same data."""
    measurer, jobs = _bench(backend, folder, _FAMILY, _SOURCE)
    found = {}
    for job in jobs:
        tried = measurer.try_job(job).trial
        assert tried.state == ("wrong_result" if tried.reason else "measured")
        found[int(job.configuration["fault"])] = tried.reason
    measurer.close()
    return found


def wrong_finalists(backend: Backend, folder: Path) -> list[str]:
    """What is wrong with finalists of one binary whose one constant window holds an array in two orders."""
    family = FAMILY.replace("[global, readonly, texture], default: global", "[constant], default: constant")
    family = family.replace("[32, 64, 128, 256]", "[128]").replace(
        "  block_size:",
        "  turn: {layout: order, data: [n], values: [given, back], default: given}\n  block_size:",
    )
    write_family(folder / "doubler", family)
    (folder / "doubler" / "family.py").write_text(
        "import numpy as np\norders = {'back': lambda arrays: np.arange(1000)[::-1]}\n"
    )
    measurer, jobs = _bench(backend, folder)
    assert len(jobs) == 2
    assert jobs[0].compiled.image == jobs[1].compiled.image
    assert [measurer.try_job(job).trial.reason for job in jobs] == ["", ""]
    wrong = measurer.retime(jobs, frozenset(), 1.0).wrong
    measurer.close()
    return list(wrong.values())


def _bench(backend: Backend, folder: Path, family: str = "", source: str = "") -> tuple[Measurer, list[Job]]:
    if family:
        write_family(folder / "doubler", family, source)
    declared = families.load_family(folder / "doubler")
    variants = tuple(Variant(declared, c) for c in declared.space.configurations())
    jobs = []
    built = compile_batch(batch(declared, variants), backend.toolchain(), Cache(default_root()))
    for variant, binary in zip(variants, built, strict=True):
        assert isinstance(binary, Compiled), binary
        jobs.append(Job(variant.configuration, binary))
    workload = workloads.load_workload(declared)
    inputs = workloads.prepare(declared, workload, folder)
    expected = {"y": 2 * inputs.arrays["x"]}
    return Measurer(backend, declared, workload, inputs, expected, PROTOCOL), jobs

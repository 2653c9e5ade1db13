"""A family's own plan: several kernels, one of them launched many times, on the cpu device."""

from pathlib import Path

import numpy as np
import pytest

import autotune
from autotune.cli.commands import main
from autotune.record.store import Store

FAMILY = """\
schema: 1
family: steps
source: steps.cu
data:
  x: {role: input, type: int32, shape: [n]}
  y: {role: output, type: int32, shape: [n]}
scalars:
  amount: {type: int32, default: 1}
kernels:
  copy: {arguments: [x, y], grid: ["ceil_div(n, 64)"], block: [64]}
  add: {arguments: [y, amount], grid: ["ceil_div(n, 64)"], block: [64]}
policies:
  memory: {layout: memory, data: [x], values: [global, readonly], default: global}
"""
SOURCE = """\
#include "autotune/array.cuh"
template <class Policy>
__global__ void copy(typename Policy::x x, typename Policy::y y) {
  const unsigned i = blockIdx.x * 64 + threadIdx.x;
  if (i < x.extent(0)) y.store(x.load(i), i);
}
template <class Policy>
__global__ void add(typename Policy::y y, int amount) {
  const unsigned i = blockIdx.x * 64 + threadIdx.x;
  if (i < y.extent(0)) y.store(y.load(i) + amount, i);
}
"""
PYTHON = """\
def plan(execution):
    execution.launch("copy")
    for step in range(1, 5):
        execution.launch("add", amount=step)


def reference(arrays, options):
    return {"y": arrays["x"] + 10}
"""
WORKLOAD = """\
schema: 1
workload: small
family: steps
arrays:
  x: {random: integers, low: 0, high: 1000, shape: [500], seed: 3}
"""


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    made = tmp_path / "steps"
    (made / "workloads").mkdir(parents=True)
    (made / "family.yaml").write_text(FAMILY)
    (made / "steps.cu").write_text(SOURCE)
    (made / "family.py").write_text(PYTHON)
    (made / "workloads" / "small.yaml").write_text(WORKLOAD)
    return made


def test_a_plan_of_many_launches_is_swept_split_and_dispatched(steps: Path, tmp_path: Path) -> None:
    places = ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "policies")]
    assert main(["sweep", str(steps), "--device", "cpu", *places]) == 0
    (study,) = Store(tmp_path / "out").studies()
    assert study.states() == {"measured": 2}
    for trial in study.trials:
        assert trial.measurement is not None
        assert set(trial.measurement.kernel_ms) == {"copy", "add"}
        assert all(ms > 0 for ms in trial.measurement.kernel_ms.values())
    with autotune.load(steps, device="cpu", policies=tmp_path / "policies") as kernel:
        np.testing.assert_array_equal(kernel(np.arange(70)), np.arange(70) + 10)

"""Faults planted in kernels without a family folder: what a sweep says of them with and without an answer.

The first run shows each, so that none is missed where it looks hopeless on a busy machine.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune.errors import FamilyError
from autotune.kernel_tuner import tune_kernel

SIZE = 60000
A = np.random.default_rng(1).uniform(1, 2, SIZE).astype(np.float32)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compile_cache: str) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)
    monkeypatch.chdir(tmp_path)


KERNEL = """
extern "C" __global__ void k(float* c, const float* a, float* d, int n) {
  const int i = bug == 4 ? (int)(short)(blockIdx.x * block_size + threadIdx.x) : blockIdx.x * block_size + threadIdx.x;
  if (i >= 0 && i < n && !(bug == 1 && i == 7)) c[i] = 2 * a[i];
  if (i >= 0 && i < n && !(bug == 5 && i == 5)) d[i] *= bug == 6 && d[i] > 1.9f ? 3 : 2;
  if (bug == 2 && i == n - 1) ((float*)a)[0] = 0;
  if (bug == 3 && i == n - 1) c[n] = 1;
}
"""
CAUGHT = {
    1: "c: 1 of 60000",
    2: "writes its input a: 1 of 60000",
    4: "c: 27232 of 60000",
    5: "d_after: 1 of 60000",
    6: "d_after: ",
    3: "writes outside of c: 4 bytes after its end",
}


def test_faults_in_a_plain_kernel_are_caught() -> None:
    kernel = autotune.Kernel(
        KERNEL, "k",
        arguments={"c": "output float32[n]", "a": "input float32[n]", "d": "inout float32[n]", "n": "int32"},
        grid="ceil_div(n, block_size)", block="block_size",
        policies={"block_size": [64], "bug": [0, *CAUGHT]}, family="faults",
    )  # fmt: skip
    study = autotune.sweep(kernel, a=A, d=A, device="cpu", progress=False)
    said = {trial.configuration["bug"]: (trial.state, trial.reason) for trial in study.trials}
    assert said.pop(0) == ("measured", "")
    assert {state for state, _ in said.values()} == {"wrong_result"}
    for bug, reason in CAUGHT.items():
        assert reason in said[int(bug)][1]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "if (i < n && i % 3) c[i] = a[i];",
            "another result when its outputs hold other content before the run",
        ),
        ("if (i <= n) c[i] = a[i < n ? i : 0];", "writes outside of c: 4 bytes after its end"),
    ],
)
def test_a_control_that_is_no_reference_is_refused(body: str, said: str) -> None:
    head = 'extern "C" __global__ void k(float* c, const float* a, int n) { '
    kernel = autotune.Kernel(
        f"{head}const int i = blockIdx.x * block_size + threadIdx.x; {body} }}", "k",
        arguments={"c": "output float32[n]", "a": "input float32[n]", "n": "int32"},
        grid="ceil_div(n, block_size)", block="block_size", policies={"block_size": [64, 128]}, family="faulty",
    )  # fmt: skip
    with pytest.raises(FamilyError, match=said):
        autotune.sweep(kernel, a=A, device="cpu", progress=False)


NOTHING = """
extern "C" __global__ void v(float* c, float* a, float* b, int n) {
  const int i = blockIdx.x * block_size_x + threadIdx.x;
  if (i < n - (bug == 1)) c[i] = a[i] + b[i];
  if (i < n && bug == 2) b[i] = 0;
}
"""


def test_without_an_answer_what_writes_other_elements_than_the_control_is_wrong() -> None:
    arguments: list[Any] = [np.zeros_like(A), A, A, np.int32(SIZE)]
    given = {"block_size_x": [64], "bug": [0, 1, 2]}
    results, _ = tune_kernel(
        "v", NOTHING, SIZE, arguments, given, device="cpu", iterations=3
    )  # none is abandoned
    said = {one["bug"]: one.get("reason", "") for one in results}
    assert not said[0]
    assert said[1].startswith(
        "leaves 1 of 60000 elements of c as they were, the first at [59999], which the control"
    )
    assert said[2].startswith("writes b, which the control leaves as it was")

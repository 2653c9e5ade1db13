"""Exports of families whose kernels take pointers and sizes, and what is said of those that cannot be exported."""

import subprocess
from pathlib import Path

import pytest
from exports import exporting
from plain import vector_add, workload

from autotune.cli.commands import main
from autotune.compile.nvcc import find_nvcc

FAMILY = """\
schema: 1
family: scaled
source: scaled.cu
default_workload: small
extents: {n: {type: int64}}
data:
  x: {role: input, type: float32, shape: [n]}
  by: {role: input, type: float32, shape: [n], access: pointer}
  y: {role: output, type: float32, shape: [n], access: pointer}
kernels:
  scaled: {arguments: [y, x, by, n], grid: ["ceil_div(n, block_size)"], block: [block_size]}
policies:
  block_size: {values: [64, 128], default: 64}
  memory: {layout: memory, data: [x], values: [global, readonly], default: global}
reference: control
"""
SOURCE = """\
#include "autotune/array.cuh"
template <class Policy>
__global__ void scaled(float* y, typename Policy::x x, const float* by, long long n) {
  const long long i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i < n) y[i] = x.load(i) * by[i];
}
"""
POLICIES = """\
schema: 2
family: {family}
device: {{kind: cuda, name: NVIDIA H200, compute_capability: "9.0"}}
default: {default}
entries: {{}}
"""


def exported(folder: Path, place: Path, family: str, default: str, given: Path | None = None) -> int:
    policies = place / "policies" / family
    policies.mkdir(parents=True)
    (policies / "nvidia-h200.yaml").write_text(POLICIES.format(family=family, default=default))
    more = ["--workload", str(given)] if given else []
    return main(exporting(folder, place / "policies", place / "exported", *more, device="nvidia-h200"))


def test_pointers_and_sizes_are_arguments_of_an_export(tmp_path: Path) -> None:
    folder = tmp_path / "scaled"
    folder.mkdir()
    (folder / "family.yaml").write_text(FAMILY)
    (folder / "scaled.cu").write_text(SOURCE)
    given = workload(tmp_path, "scaled", x=(100,), by=(100,))
    assert exported(folder, tmp_path, "scaled", "{block_size: 128, memory: readonly}", given) == 0
    text = (tmp_path / "exported" / "scaled_launch.cu").read_text()
    for argument in ("reinterpret_cast<float*>(arrays[2]->handle())", "static_cast<long long>(v.n)"):
        assert argument in text
    command = [find_nvcc(), "-std=c++17", "-arch=sm_90", "-cubin", "-I.", "-Ikernels", "-o", "x.cubin"]
    done = subprocess.run(
        [*command, "scaled_launch.cu"], cwd=tmp_path / "exported", capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


def refusal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], family: str = FAMILY, source: str = SOURCE
) -> str:
    """What is said of a family that cannot be exported."""
    folder = tmp_path / "scaled"
    folder.mkdir()
    (folder / "family.yaml").write_text(family)
    (folder / "scaled.cu").write_text(source)
    default = "{block_size: 128, memory: readonly}"
    assert (
        exported(folder, tmp_path, "scaled", default, workload(tmp_path, "scaled", x=(100,), by=(100,))) != 0
    )
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("shape: [n], access: pointer}\n  y", "shape: [n], access: symbol}\n  y", "by is filled into a symbol"),
        ("y: {role: output, type: float32, shape: [n], access: pointer",
         "y: {role: output, type: float32, shape: [n], access: pointer, begins_as: by", "y begins as a copy"),
        ("block: [block_size]}", "block: [block_size], template: [Policy, 3]}", "names its own template arguments"),
        ("values: [64, 128], default: 64", "values: [64, 128], default: 64, compile_option: true, means: {64: -O2}",
         "policy block_size chooses compile options"),
    ],
)  # fmt: skip
def test_what_an_export_cannot_take_is_said(
    old: str, new: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FAMILY.replace("[y, x, by, n]", "[y, x, n]") if "symbol" in new else FAMILY
    assert old in text
    assert message in refusal(tmp_path, capsys, text.replace(old, new))


def test_macros_need_no_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = vector_add()
    given = workload(tmp_path, "vector_add", a=(10,), b=(10,))
    assert exported(kernel.folder, tmp_path, "vector_add", "{block_size: 64}", given) != 0
    assert "prints the #defines to put ahead of it" in " ".join(capsys.readouterr().err.split())

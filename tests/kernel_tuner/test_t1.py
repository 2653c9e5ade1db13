"""T1 files: read as families, swept as they are, and rejected where autotune has no counterpart."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.cli.commands import main
from autotune.declaration import load_family, load_workload, prepare
from autotune.errors import FamilyError
from autotune.record import read_record

SOURCE = """\
#include "eighth.h"
__constant__ float table[64];
extern "C" __global__ void scale(float* out, const float* in, const float* pointer, float factor, int n) {
  const int first = (blockIdx.x * block_size_x + threadIdx.x) * tile_size_x;
  #pragma unroll loop_unroll_factor_tile
  for (int t = 0; t < tile_size_x; t++) {
    const int i = first + t;
    if (i < n) out[i] = in[i] * factor + (use_table ? table[i % EIGHTH] : pointer[i % EIGHTH]);
  }
}
"""


def content() -> dict[str, Any]:
    def parameter(name: str, values: str, default: Any) -> dict[str, Any]:
        return {"Name": name, "Type": "int", "Values": values, "Default": default}

    def vector(name: str, size: Any, **more: Any) -> dict[str, Any]:
        return {"Name": name, "Type": "float", "MemoryType": "Vector", "AccessType": "ReadOnly", "Size": size,
                "FillType": "Random", "FillValue": 1.0, **more}  # fmt: skip

    def scalar(name: str, kind: str, value: float) -> dict[str, Any]:
        return {"Name": name, "Type": kind, "MemoryType": "Scalar", "FillValue": value}

    return {
        "General": {"BenchmarkName": "Scale-It"},
        "ConfigurationSpace": {
            "TuningParameters": [
                parameter("block_size_x", "[32] + [2**i for i in range(6, 7)]", 64),
                parameter("tile_size_x", "list(range(1, 3))", 1),
                parameter("use_table", "[0, 1]", [1]),
                parameter("loop_unroll_factor_tile", "[0, 2]", 2),
            ],
            "Conditions": [
                {"Expression": "loop_unroll_factor_tile == 0 or tile_size_x % loop_unroll_factor_tile == 0",
                 "Parameters": ["tile_size_x", "loop_unroll_factor_tile"]},
                {"Expression": "32 <= block_size_x * 2**tile_size_x <= 128",
                 "Parameters": ["block_size_x", "tile_size_x"]},
            ],
        },
        "KernelSpecification": {
            "Language": "CUDA", "CompilerOptions": ["-std=c++11"], "KernelName": "scale", "KernelFile": "sub/scale.cu",
            "GlobalSizeType": "CUDA", "GlobalSize": {"X": "nonsense"}, "LocalSize": {"X": "block_size_x", "Y": "1"},
            "GridDivX": ["block_size_x", "tile_size_x"], "ProblemSize": [1000], "SharedMemory": 0,
            "Arguments": [
                vector("out", "ProblemSize[0]", AccessType="WriteOnly", FillType="Constant", FillValue=0.0, Output=1),
                vector("in", "ProblemSize[0] + max(tile_size_x) - 2", RandomSeed=5),
                vector("table", 8, MemType="Constant"),
                scalar("factor", "float", 0.5),
                scalar("n", "int32", 1000),
            ],
        },
    }  # fmt: skip


def written(folder: Path, change: Callable[[dict[str, Any]], Any] = lambda _: None) -> Path:
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "scale.cu").write_text(SOURCE)
    (folder / "sub" / "eighth.h").write_text("#define EIGHTH 8\n")
    made = content()
    change(made)
    (folder / "scale.json").write_text(json.dumps(made))
    return folder / "scale.json"


def test_a_t1_file_is_a_family_with_one_workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path / "cache"))
    family = load_family(written(tmp_path / "hub"))
    assert family.name == "scale_it"
    assert family.space.control.id == "block_size_x=64,loop_unroll_factor_tile=0,tile_size_x=1,use_table=1"
    assert len(family.space.configurations()) == 8
    inputs = prepare(family, load_workload(family), tmp_path)
    assert {name: array.shape for name, array in inputs.arrays.items()} == {
        "in": (1000,), "table_argument": (8,), "table": (8,),
    }  # fmt: skip
    assert np.array_equal(inputs.arrays["table"], inputs.arrays["table_argument"])
    assert inputs.scalars == {"factor": 0.5, "n": 1000}
    assert inputs.sizes["out_size"] == 1000
    names = inputs.names(family.space.configuration("tile_size_x=2,block_size_x=32"))
    kernel = family.kernels["scale"]
    assert [size.integer(names) for size in (*kernel.grid, *kernel.block)] == [16, 1, 1, 32, 1, 1]


def test_the_command_sweeps_it_and_its_results_are_t4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compile_cache: str
) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path / "hub")
    chosen = ["--set", "block_size_x=64", "--set", "tile_size_x=1"]
    assert main(["sweep", str(file), "--device", "cpu", "--samples", "3", "--out", "out", *chosen]) == 0
    (study,) = read_record("out")
    assert study.states() == {"measured": 2}
    assert study.about.proof["against"] == "its own first run"
    assert main(["convert", "out", "--to", "t4", "-o", "t4"]) == 0
    (again,) = read_record(str(next(Path("t4").glob("*.json"))))
    assert [t.configuration for t in again.trials] == [t.configuration for t in study.trials]


def change(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def changed(made: dict[str, Any]) -> None:
        for step in path[:-1]:
            made = made[step]
        made[path[-1]] = to

    return changed


MANY = "range(1000000)"
SPEC, PARAMETERS = "KernelSpecification", ("ConfigurationSpace", "TuningParameters")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (change(SPEC, "Language", to="OpenCL"), "its Language is OpenCL, and only CUDA can be tuned"),
        (change(SPEC, "KernelFile", to="gone.cu"), "its KernelFile 'gone.cu' is not there"),
        (
            change(SPEC, "KernelFile", to="/etc/passwd"),
            "its KernelFile '/etc/passwd' is not below its folder",
        ),
        (change(SPEC, "KernelFile", to="../up.cu"), "its KernelFile '../up.cu' is not below its folder"),
        (
            change(*PARAMETERS, 0, "Values", to="list(range(20000))"),
            "its Values are no list of at most 10,000",
        ),
        (
            change(*PARAMETERS, 0, "Values", to=f"[sum([x for x in {MANY}]) for y in {MANY}]"),
            "is not allowed in",
        ),
        (change(SPEC, "LocalSize", "X", to="block_size_z"), r"LocalSize\.X: unknown name 'block_size_z'"),
        (
            change(SPEC, "Arguments", 1, "FillType", to="Script"),
            "argument in: FillType Script is not supported",
        ),
        (change(SPEC, "Arguments", 1, "Type", to="half4"), "argument in: Type half4 is not supported"),
        (change(SPEC, "Arguments", 1, "MemoryType", to="Local"), "MemoryType Local is not supported"),
        (
            change(SPEC, "Arguments", 1, "Size", to="Problem[0]"),
            r"argument in: 'Problem\[0\]' is not allowed",
        ),
        (
            change(*PARAMETERS, 0, "Values", to="open('x')"),
            "parameter block_size_x: its Values are no list of at most 10,000",
        ),
        (change(*PARAMETERS, 0, "Values", to="3"), "its Values are no list of at most 10,000: '3'"),
        (change(SPEC, to={}), "it has no 'Language'"),
        (change(SPEC, "Arguments", to=7), "is not of the T1 form"),
    ],
)
def test_what_has_no_counterpart_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: Any, reason: str
) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(FamilyError, match=reason):
        load_family(written(tmp_path / "hub", changed))


@pytest.mark.parametrize("text", ["{", "[]", '{"results": []}'])
def test_any_other_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(FamilyError, match=r"no T1 file|as JSON"):
        load_family(tmp_path / "x.json")


def test_threads_in_all_are_divided_by_those_of_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a problem size, by the schema: GlobalSize in threads where its type is OpenCL's."""
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path / "cache"))

    def changed(made: dict[str, Any]) -> None:
        spec = made[SPEC]
        del spec["ProblemSize"]
        spec |= {"GlobalSizeType": "OpenCL", "GlobalSize": {"X": "1000 // tile_size_x"}}
        spec["Arguments"][0]["Size"] = spec["Arguments"][1]["Size"] = 1000

    family = load_family(written(tmp_path / "hub", changed))
    inputs = prepare(family, load_workload(family), tmp_path)
    names = inputs.names(family.space.configuration("tile_size_x=2,block_size_x=32"))
    assert family.kernels["scale"].grid[0].integer(names) == 16

"""benchmarks/kernel_tuner_examples.py, hub_t1.py, drawn_sweep.py and what engine_peers.py does with a T1 file, on the
cpu, on checkouts of our own making."""

import json
from pathlib import Path
from typing import Any

import drawn_sweep
import engine_peers as peers
import hub_t1 as hub
import kernel_tuner_examples as examples
import kernel_tuner_run as peer_run
import numpy as np
import pytest
from result_files import read_rows

from autotune.declaration import load_family, load_workload, prepare
from autotune.record import read_record

SOURCE = """\
__constant__ float table[4];
__global__ void twice(float *out, float *in, float *more, int n) {
  int i = blockIdx.x * block_size_x + threadIdx.x;
  if (i < n) out[i] = 2 * in[i] + table[1];
}
"""
EXAMPLE = """\
import json
import numpy
import kernel_tuner
from kernel_tuner import tune_kernel, run_kernel
from kernel_tuner import util
from kernel_tuner.file_utils import store_output_file
source = '''%s'''
x = numpy.arange(100).astype(numpy.float32)
args = [numpy.zeros_like(x), x, x, numpy.int32(100)]
table = {"table": numpy.zeros(4, numpy.float32)}
params = {"block_size_x": [32, 64, 96]}
after = run_kernel("twice", source, 100, args, {"block_size_x": 32}, cmem_args=table)
assert (after[0] == 2 * x).all()
results, env = kernel_tuner.tune_kernel("twice", source, 100, args, params, cmem_args=table)
assert util.get_best_config(results, "time") in results
store_output_file("twice.json", results, params)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compile_cache: str) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)
    monkeypatch.chdir(tmp_path)


def rows(path: str) -> list[dict[str, str]]:
    return read_rows(Path(path))


def test_examples_run_with_their_imports_changed(tmp_path: Path) -> None:
    folder = tmp_path / "checkout" / "examples" / "cuda"
    folder.mkdir(parents=True)
    (folder / "twice.py").write_text(EXAMPLE % SOURCE)
    (folder / "watched.py").write_text("from kernel_tuner.nowhere import Observer\n")
    examples.main(["checkout", "--device", "cpu", "--trials", "1", "--out", "told", "--processes", "2"])
    runs, fails = rows("told.csv")
    assert (runs["example"], runs["state"], fails["state"]) == ("twice.py", "runs", "failed")
    assert runs["calls"].startswith("twice: 1 of 1, best ")
    assert fails["why"]
    assert (folder / "twice.py").read_text() == EXAMPLE % SOURCE


def t1(name: str) -> dict[str, Any]:
    def vector(name: str, access: str, **more: Any) -> dict[str, Any]:
        return {"Name": name, "Type": "float", "MemoryType": "Vector", "AccessType": access, "Size": 100,
                "FillType": "Random", "FillValue": 1.0, **more}  # fmt: skip

    return {
        "General": {"BenchmarkName": name},
        "ConfigurationSpace": {"TuningParameters": [
            {"Name": "block_size_x", "Type": "int", "Values": "[32, 64, 96]", "Default": 64}]},
        "KernelSpecification": {
            "Language": "CUDA", "KernelName": "twice", "KernelFile": "twice.cu", "GlobalSize": {"X": "1"},
            "LocalSize": {"X": "block_size_x"}, "ProblemSize": [100], "Arguments": [
                vector("out", "WriteOnly", FillType="Constant", FillValue=0.0), vector("in", "ReadOnly"),
                vector("table", "ReadOnly", Size=4, MemType="Constant"),
                {"Name": "n", "Type": "int32", "MemoryType": "Scalar", "FillValue": 100}]},
    }  # fmt: skip


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    folder = tmp_path / "hub" / "kernels"
    folder.mkdir(parents=True)
    (folder / "twice.cu").write_text(SOURCE)
    for name in ("right_milo", "wrong_milo"):
        made = t1(name)
        if name == "wrong_milo":
            made["KernelSpecification"]["Language"] = "OpenCL"
        (folder / f"{name}.json").write_text(json.dumps(made))
    return folder


def test_the_hubs_files_are_swept_as_they_are_and_corrected(
    kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(hub.CORRECTIONS, "wrong_milo", [(("Language",), "CUDA", "it is")])
    given = [
        "--only",
        "right_milo,wrong_milo",
        "--trials",
        "2",
        "--samples",
        "3",
        "--device",
        "cpu",
        "--out",
        "told",
    ]
    hub.main(["hub", *given])
    found = [
        (row["kernel"], row["file"], bool(row["wrong"]), "2 measured" in row["result"])
        for row in rows("told.csv")
    ]
    assert found == [
        ("right_milo", "as it is", False, True),
        ("wrong_milo", "as it is", True, False),
        ("wrong_milo", "corrected", False, True),
    ]
    assert (
        json.loads((kernels / "wrong_milo.json").read_text())["KernelSpecification"]["Language"] == "OpenCL"
    )


def test_drawn_configurations_are_swept_and_no_others(kernels: Path, tmp_path: Path) -> None:
    (tmp_path / "drawn.txt").write_text("block_size_x=32\nblock_size_x=64\n")
    drawn_sweep.main(
        [
            str(kernels / "right_milo.json"),
            "--drawn",
            "drawn.txt",
            "--samples",
            "3",
            "--device",
            "cpu",
            "--out",
            "out",
        ]
    )
    (study,) = read_record("out")
    assert {t.configuration.id for t in study.trials} == {"block_size_x=32", "block_size_x=64"}
    asked = peers.Asked(
        family=str(kernels / "right_milo.json"), workload="", preset="", narrowed=(), device="cpu", samples=3,
        drawn=tmp_path / "drawn.txt",
    )  # fmt: skip
    (tmp_path / "folder").mkdir()
    run = peers.ours(asked, tmp_path / "folder")
    assert set(run.times_ms) == {"block_size_x=32", "block_size_x=64"}


@pytest.mark.parametrize(("seconds", "number"), [("0", 3), ("2", 2)])
def test_all_tuners_are_given_the_same_drawn_configurations(
    kernels: Path, monkeypatch: pytest.MonkeyPatch, seconds: str, number: int
) -> None:
    """As many as are asked for, or as Kernel Tuner's first trial gives the seconds for."""
    asked_of: list[list[str]] = []

    def swept(asked: Any, *given: Any) -> Any:
        drawn = asked.drawn.read_text().splitlines()
        asked_of.append(drawn)
        name = f"autotune, race {asked.race:g}" if "nvcuda" not in given else peers_name
        return peers.Run(name, 10.0, 8.0, 1.0, 1.0, 1.0, 7, dict.fromkeys(drawn, 1.0), given=len(drawn))

    peers_name = "Kernel Tuner 1.5.0 nvcuda"
    monkeypatch.setattr(peers, "kernel_tuner", swept)
    monkeypatch.setattr(peers, "ours", swept)
    asked = [
        "--family",
        str(kernels / "right_milo.json"),
        "--workload",
        "",
        "--peers",
        "nvcuda",
        "--out",
        "told",
    ]
    peers.main([*asked, "--draw", "9", "--seconds", seconds, "--races", "0,1.02", "--gpus", "0,0"])
    found = rows("told.csv")
    assert [row["tuner"] for row in found] == [peers_name, "autotune, race 0", "autotune, race 1.02"]
    assert {(row["given"], row["wall_s_each"]) for row in found} == {
        (str(number), str(round(10 / number, 4)))
    }
    full = [drawn for drawn in asked_of if len(drawn) == number]
    assert all(drawn == full[0] for drawn in full) and len(full) >= 3


def test_kernel_tuner_is_given_a_plain_kernel_as_it_is(kernels: Path, tmp_path: Path) -> None:
    family = load_family(kernels / "right_milo.json")
    inputs = prepare(family, load_workload(family), tmp_path)
    (tmp_path / "drawn.txt").write_text("block_size_x=96\n")
    configurations = peer_run.drawn(family, tmp_path / "drawn.txt")
    given = peer_run.plain_arguments(family, inputs, configurations, 7)
    assert given["kernel_source"].endswith(SOURCE)
    out, read, more, n = given["arguments"]
    assert not out.any() and np.array_equal(read, inputs.arrays["in"]) and (n.dtype, n) == (np.int32, 100)
    assert np.array_equal(more, given["cmem_args"]["table"])
    assert given["tune_params"] == {"block_size_x": [96]}
    (is_wanted,) = given["restrictions"]
    assert [is_wanted({"block_size_x": size}) for size in (64, 96)] == [False, True]
    assert given["problem_size"]({"block_size_x": 96}) == (2, 1, 1)
    assert given["block_size_names"] == ["block_size_x", "block_size_y", "block_size_z"]

"""autotune.kernel_tuner: Kernel Tuner's arguments in, its results out, and a word for what has no counterpart."""

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import kernel_tuner
from autotune.errors import NothingMeasured, UsageError
from autotune.kernel_tuner import (
    get_best_config,
    get_config_string,
    run_kernel,
    store_output_file,
    tune_kernel,
)
from autotune.record import read_record

ADD = """
__global__ void add(float *c, float *a, const float *b, int n) {
  int i = blockIdx.x * block_size_x + threadIdx.x;
  if (i < n) c[i] = a[i] + FACTOR * b[i];
}
""".replace("FACTOR", "factor")
SIZE = 500
A, B = np.arange(SIZE, dtype=np.float32), np.ones(SIZE, np.float32)
ARGUMENTS = [np.zeros(SIZE, np.float32), A, B, np.int32(SIZE)]
PARAMETERS: dict[str, list[Any]] = {"block_size_x": [32, 64], "factor": [1]}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compile_cache: str) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)
    monkeypatch.chdir(tmp_path)


def tuned(*changed: Any, **more: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    source, parameters = changed or (ADD, PARAMETERS)
    given = {"iterations": 3, "device": "cpu", **more}
    return tune_kernel("add", source, SIZE, given.pop("arguments", ARGUMENTS), parameters, **given)


def test_results_are_kernel_tuners(tmp_path: Path) -> None:
    metrics = {
        "GB/s": f"({SIZE}*4*3/1e9) / (time/1000)",
        "twice": lambda p: 2 * p["GB/s"],
        "per": "twice / block_size_x",
    }
    results, env = tuned(answer=[A + B, None, None, None], metrics=metrics)
    assert [one["block_size_x"] for one in results] == [32, 64]
    for one in results:
        assert one["factor"] == 1
        assert len(one["times"]) == 3
        assert one["GB/s"] == pytest.approx(SIZE * 12 / 1e9 / (one["time"] / 1e3))
        assert one["per"] == pytest.approx(2 * one["GB/s"] / one["block_size_x"])
        assert "__error__" not in one
    assert env["best_config"] == min(results, key=lambda one: one["time"])
    assert env["best_config"] == get_best_config(results, "time")
    assert get_best_config(results, "GB/s", True) == env["best_config"]
    json.dumps([results, env])
    store_output_file("results", results, PARAMETERS)
    (study,) = read_record("results.json")
    assert study.states() == {"measured": 2}


def test_a_wrong_answer_and_what_verify_refuses_are_errors() -> None:
    parameters = {"block_size_x": [32], "factor": [1, 2]}
    results, _ = tuned(ADD, parameters, answer=[A + B, None, None, None])
    assert [one.get("__error__") for one in results] == [None, "RuntimeFailedConfig"]
    assert "expected" in results[1]["reason"]

    def verify(answer: Any, after: Any, atol: float) -> bool:
        assert atol == 1e-3
        return bool(np.isclose(after[0].sum(), answer[0], atol=atol))

    results, _ = tuned(
        ADD, parameters, answer=[(A + 2 * B).sum(), None, None, None], verify=verify, atol=1e-3
    )
    assert [one.get("reason") for one in results] == ["refused by verify", None]


def test_without_an_answer_each_is_held_against_itself() -> None:
    results, _ = tuned(ADD, {"block_size_x": [32], "factor": [1, 2]})
    assert all("time" in one for one in results)
    drifting = ADD.replace("c[i] = a[i]", "c[i] = c[i] + a[i]")
    once = np.full(SIZE, 1, np.float32)
    results, _ = tuned(
        drifting, {"block_size_x": [32], "factor": [0]}, arguments=[once, A, B, np.int32(SIZE)]
    )
    assert "time" in results[0]  # what it updates in place begins as it was given, each time


def test_run_kernel_gives_the_arguments_afterwards() -> None:
    after = run_kernel("add", ADD, SIZE, ARGUMENTS, {"block_size_x": 64, "factor": 3}, device="cpu")
    assert np.array_equal(after[0], A + 3 * B)
    assert after[1] is A
    assert after[3] == SIZE
    partly = run_kernel("add", ADD, 64, [np.full(SIZE, 7, np.float32), A, B, np.int32(10)],
                        {"block_size_x": 64, "factor": 0}, device="cpu")[0]  # fmt: skip
    assert np.array_equal(partly, np.concatenate([A[:10], np.full(SIZE - 10, 7, np.float32)]))


def test_a_source_may_be_a_file_or_a_function_of_the_parameters(tmp_path: Path) -> None:
    (tmp_path / "add.cu").write_text('#include "factor.h"\n' + ADD)
    (tmp_path / "factor.h").write_text("#define factor 4\n")
    answer = [A + 4 * B, None, None, None]
    assert "time" in tuned("add.cu", {"block_size_x": [64]}, answer=answer)[0][0]
    results, _ = tuned(
        lambda p: ADD.replace("factor", f"{p['bits'] * 2}.0f"), {"block_size_x": [32, 64], "bits": [1, 2]},
        answer=answer, restrictions=["block_size_x == 64"], lang="CUDA",
    )  # fmt: skip
    assert [one.get("__error__") for one in results] == ["RuntimeFailedConfig", None]


def test_values_of_other_kinds_templates_and_constant_memory() -> None:
    source = """
    __constant__ float table[9];
    template <typename T, int width>
    __global__ void add(T *c, const float *a, const float *b, int n) {
      int i = blockIdx.x * width + threadIdx.x;
      if (i < n) c[i] = a[i] + scale * b[i] * table[1];
    }"""
    results, _ = tune_kernel(
        "add<real, block_size_x>", source, SIZE, ARGUMENTS,
        {"block_size_x": [32, 64], "real": ["float"], "scale": [0.5, 1.5]},
        restrictions=lambda p: p["scale"] > 1 and p["real"] == "float", answer=[A + 3 * B, None, None, None],
        cmem_args={"table": np.array([1, 2], np.float32)}, device="cpu", iterations=3,
    )  # fmt: skip
    assert [(one["block_size_x"], one["scale"]) for one in results] == [(32, 1.5), (64, 1.5)]
    assert all("time" in one for one in results)


def test_a_pointer_that_is_handed_on_is_looked_at() -> None:
    source = """
    __device__ void put(float *p, float v) { *p = v; }
    __global__ void add(float *c, float *a, float *b, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) put(c + i, a[i] + b[i]);
    }"""
    results, _ = tuned(source, {"block_size_x": [32]}, answer=[A + B, None, None, None])
    assert "time" in results[0]
    results, _ = tuned(source, {"block_size_x": [32]})
    assert "time" in results[0]


def test_a_cache_is_gone_on_from_and_one_of_kernel_tuner_left_alone(tmp_path: Path) -> None:
    first, _ = tuned(ADD, {"block_size_x": [32], "factor": [1]}, cache="kept")
    (study,) = read_record("kept.json")
    assert study.family == "add"
    again, _ = tuned(ADD, {"block_size_x": [32], "factor": [1]}, cache="kept")
    assert again[0]["time"] == first[0]["time"]
    (tmp_path / "theirs.json").write_text("{}")
    with pytest.raises(UsageError, match="was written by Kernel Tuner"):
        tuned(cache="theirs.json")


def test_a_search_ends_after_its_evaluations() -> None:
    results, _ = tuned(
        ADD, {"block_size_x": [32, 64, 96, 128], "factor": [1]}, strategy="random_sample",
        strategy_options={"max_fevals": 2}, seed=3,
    )  # fmt: skip
    assert len(results) == 2


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"observers": [object()]}, "observers has no counterpart in autotune: power and clocks"),
        ({"texmem_args": {"tex": A}}, "texmem_args has no counterpart"),
        ({"simulation_mode": True}, "simulation_mode has no counterpart"),
        ({"compiler": "g++"}, "compiler has no counterpart"),
        ({"platform": 1}, "platform has no counterpart"),
        ({"log": 10}, "log has no counterpart"),
        ({"objectives": {"time": False}}, "objectives has no counterpart"),
        ({"lang": "C"}, "lang 'C' has no counterpart"),
        ({"strategy": "annealing"}, "strategy 'annealing' has no counterpart"),
        ({"strategy": object()}, "has no counterpart in autotune: brute_force"),
        ({"strategy_options": {"popsize": 3}}, "strategy option 'popsize' has no counterpart"),
        ({"objective": "power"}, "objective 'power': it is time, or one of metrics"),
        ({"objective": "m", "metrics": {"m": "time"}, "objective_higher_is_better": True, "strategy": "pso"},
         "a search goes by time"),
        ({"restrictions": [3]}, "restriction 3 has no counterpart"),
        ({"smem_args": {"config": 1}}, "smem_args: 'config' has no counterpart"),
        ({"answer": [A]}, "answer has 1 items, and there are 4 arguments"),
        ({"arguments": [A, 3]}, "argument 3 has no type: give numpy"),
        ({"arguments": [A, A]}, r"kernel add has 4 parameters \(c, a, b, n\), and 2 arguments are given"),
        ({"arguments": [A, "x"]}, "an argument is a str"),
        ({"defines": {"x": lambda p: 1}}, "defines: x is a function"),
        ({"compiler_options": ["--run"]}, "--run"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_refused(more: dict[str, Any], reason: str) -> None:
    with pytest.raises(Exception, match=reason) as found:
        tuned(**more)
    assert type(found.value).__module__ == "autotune.errors"


@pytest.mark.parametrize("name", ["time", "grid_size_x"])
def test_names_that_kernel_tuner_forbids_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="Kernel Tuner forbids"):
        tuned(ADD, {name: [1]})


def test_a_list_of_sources_is_host_code() -> None:
    with pytest.raises(UsageError, match="a list of sources is for host code"):
        tuned(["host.cu", "add.cu"], PARAMETERS)


def test_a_space_that_cannot_be_listed_needs_a_limit() -> None:
    vast = {**PARAMETERS, "other": list(range(2000)), "more": list(range(2000))}
    with pytest.raises(UsageError, match="the space is too large to try all of it: give strategy_options"):
        tuned(ADD, vast)
    results, _ = tuned(ADD, vast, strategy_options={"max_fevals": 1})
    assert len(results) >= 1


def test_where_nothing_could_be_measured_it_says_why() -> None:
    with pytest.raises(NothingMeasured, match="1 compile_failed"):
        tuned(ADD, {"block_size_x": [32]})  # no factor


def test_a_configuration_in_words() -> None:
    told = get_config_string({"a": 1, "time": 0.12345}, ["time"], {"time": "ms"})
    assert told == "time=0.123ms"
    with pytest.raises(UsageError, match="no configuration has a power"):
        get_best_config([{"time": 1.0}], "power")


@pytest.mark.kernel_tuner
@pytest.mark.parametrize("name", ["tune_kernel", "run_kernel"])
def test_the_arguments_are_those_of_kernel_tuner(name: str) -> None:
    program = f"import inspect, kernel_tuner; print(list(inspect.signature(kernel_tuner.{name}).parameters))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True
    )
    theirs = json.loads(done.stdout.replace("'", '"'))
    assert list(inspect.signature(getattr(kernel_tuner, name)).parameters) == theirs


@pytest.mark.kernel_tuner
def test_results_and_metadata_are_t4_by_its_schema(tmp_path: Path) -> None:
    results, _ = tuned(ADD, {"block_size_x": [32], "factor": [1, 2]}, answer=[A + B, None, None, None])
    store_output_file("results.json", results, ["block_size_x", "factor"])
    kernel_tuner.store_metadata_file("metadata.json")
    program = (
        "import json, jsonschema; from kernel_tuner.file_utils import output_file_schema as schema\n"
        "for name in ('results', 'metadata'): jsonschema.validate(json.load(open(f'{name}.json')), schema(name)[1])"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, cwd=tmp_path)

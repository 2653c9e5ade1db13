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
from autotune.errors import AutotuneError, FamilyError, NothingMeasured, StoreError, UsageError
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
    assert [one.get("reason") for one in results] == ["rejected by verify", None]


def test_without_an_answer_each_is_held_against_itself() -> None:
    results, _ = tuned(ADD, {"block_size_x": [32], "factor": [1, 2]}, answer=[None] * 4)
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


def test_a_pointer_whose_content_stays_may_be_written_all_the_same() -> None:
    source = """
    __global__ void add(float *sum, float *x) { atomicAdd(sum, x[threadIdx.x]); }"""
    nothing = [np.zeros(1, np.float32), np.zeros(32, np.float32)]
    results, _ = tune_kernel("add", source, 32, nothing, {"block_size_x": [32]}, iterations=3, device="cpu")
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
        ({"texmem_args": {"tex": A}}, "texmem_args has no counterpart"),
        ({"simulation_mode": True}, "simulation_mode reads times from a cache file: name it"),
        ({"lang": "C"}, "lang 'C' has no counterpart"),
        ({"strategy": "annealing"}, "strategy 'annealing' is not one of Kernel Tuner's that autotune supports"),
        ({"strategy_options": {"fraction": 2}}, "fraction is 2, and a share is above 0 and at most 1"),
        ({"restrictions": [3]}, "restriction 3 has no counterpart"),
        ({"restrictions": ["9**9**9 > block_size_x"]}, "a whole number beyond 2"),
        ({"smem_args": {"config": 1}}, "smem_args: 'config' has no counterpart"),
        ({"smem_args": {"size": 10**9}}, "1000000000 bytes of shared memory a block pass"),
        ({"smem_args": {"size": float("nan")}}, "shared memory: nan is neither a number nor a text"),
        ({"metrics": {"m": 3}}, "metric 'm' is neither a text nor a function"),
        ({"iterations": -1}, "iterations -1: 1 or more samples are taken"),
        ({"answer": [A]}, "answer has 1 items, and there are 4 arguments"),
        ({"answer": [A[:5], None, None, None]}, r"given for c has the shape \(5,\), and the argument has \(500,\)"),
        ({"answer": [np.float32(3), None, None, None]}, r"given for c has the shape \(\)"),
        ({"answer": [A + 5j, None, None, None]}, r"complex64 given, numbers \(float32\) needed"),
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


@pytest.mark.parametrize("size", [float("nan"), -5, 0, "1 +"])
def test_a_size_that_is_none_is_refused(size: Any) -> None:
    with pytest.raises(FamilyError, match="problem size"):
        tune_kernel("add", ADD, size, ARGUMENTS, PARAMETERS, device="cpu")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (1.9, "fractional or NaN values given, int32"),
        (2.0**32 + 1, "4294967297 is outside the range of int32"),
    ],
)
def test_an_answer_that_the_argument_cannot_hold_is_refused(answer: float, why: str) -> None:
    arguments = [np.zeros(SIZE, np.int32), A, B, np.int32(SIZE)]
    source = ADD.replace("float *c", "int *c")
    with pytest.raises(AutotuneError, match=f"the reference's c: .*{why}"):
        tuned(source, PARAMETERS, arguments=arguments, answer=[np.full(SIZE, answer), None, None, None])


def test_what_has_no_counterpart_is_left_out_with_a_warning() -> None:
    with pytest.warns(UserWarning) as told:
        results, env = tuned(
            observers=[kernel_tuner.NVMLObserver(["nvml_energy"])], compiler="g++", platform=1, log=10,
            objectives={"m": True, "time": False}, metrics={"m": "1 / time", "J": lambda p: p["nvml_energy"]},
            strategy_options={"method": "uniform", "fraction": 0.5}, strategy="random_sample",
        )  # fmt: skip
    said = "\n".join(str(one.message) for one in told)
    for what in (
        "NVMLObserver has no counterpart in autotune: power", "observers is left out", "compiler is left out",
        "platform is left out", "log is left out", "more than one of objectives", "method ignored",
        "metric 'J' has no value, and is left out: KeyError: 'nvml_energy'", "a search is led by time",
    ):  # fmt: skip
        assert said.count(what) == 1, said
    assert {Path(one.filename).name for one in told} == {"test_kernel_tuner.py"}
    assert len(results) == 1
    assert env["best_config"] == results[0]


def test_a_population_is_so_many_evaluations() -> None:
    with pytest.warns(UserWarning, match="strategy_options: popsize, maxiter ignored"):
        results, _ = tuned(
            ADD, {"block_size_x": [32, 64, 96, 128], "factor": [1]}, strategy="genetic_algorithm",
            strategy_options={"popsize": 2, "maxiter": 1},
        )  # fmt: skip
    assert len(results) == 2


def test_another_element_type_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"kernel add takes `float \*c`, and the argument c is an array of float64"
    ):
        run_kernel(
            "add",
            ADD,
            SIZE,
            [np.zeros(SIZE), A, B, np.int32(SIZE)],
            {"block_size_x": 64, "factor": 3},
            device="cpu",
        )


def test_functions_of_any_number_of_values(capsys: pytest.CaptureFixture[str]) -> None:
    parameters = {"block_size_x": [32 * (n + 1) for n in range(20)], "factor": [1]}
    source = ADD.replace("int i", "extern __shared__ float part[]; part[threadIdx.x] = 1; int i")
    results, env = tuned(
        source, parameters, smem_args={"size": lambda p: p["block_size_x"] * 4},
        restrictions=[lambda block_size_x: block_size_x > 64, (lambda x: x < 160, ["block_size_x"])],
    )  # fmt: skip
    assert [one["block_size_x"] for one in results] == [96, 128]
    told = capsys.readouterr().out
    assert told.count("block_size_x=96, factor=1, time=") >= 1
    assert "best configuration by time:" in told
    assert env["iterations"] == 3
    assert env["device_properties"]["kind"] == "cpu"
    tuned(quiet=True)
    assert capsys.readouterr().out == ""


CACHED = {
    "device_name": "G", "kernel_name": "add", "problem_size": 100, "tune_params_keys": ["block_size_x", "tile"],
    "tune_params": {"block_size_x": [32, 64, 128], "tile": [1, 2]},
    "cache": {
        f"{block},{tile}": {
            "block_size_x": block, "tile": tile, "time": 1000 / block + tile, "times": [1000 / block + tile],
            "compile_time": 100.0, "verification_time": 0, "benchmark_time": 10.0, "power": block,
        }
        for block in (32, 64, 128) for tile in (1, 2)
    },
}  # fmt: skip


def simulated(tmp_path: Path, **more: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    cache = json.loads(json.dumps(CACHED))
    cache["cache"]["64,2"] = {"block_size_x": 64, "tile": 2, "time": "CompilationFailedConfig"}
    (tmp_path / "cached.json").write_text(json.dumps(cache))
    params = more.pop("tune_params", CACHED["tune_params"])
    return tune_kernel("add", "", 100, [], params, cache="cached", simulation_mode=True, quiet=True, **more)


def test_a_simulation_takes_its_times_from_a_cache_file(tmp_path: Path) -> None:
    results, env = simulated(tmp_path, metrics={"rate": lambda p: 1 / p["time"]}, objective="power",
                             objective_higher_is_better=True)  # fmt: skip
    assert sorted((one["block_size_x"], one["tile"]) for one in results) == [
        (block, tile) for block in (32, 64, 128) for tile in (1, 2)
    ]
    (failed,) = [one for one in results if "__error__" in one]
    assert isinstance(failed["__error__"], kernel_tuner.util.CompilationFailedConfig)
    assert "time" not in failed
    assert env["best_config"]["block_size_x"] == 128
    assert env["simulation"]
    assert env["simulated_time"] == 5 * 110
    assert all(one["rate"] == 1 / one["time"] for one in results if one is not failed)
    totals = sum(value for key, value in env.items() if key.startswith("total_"))
    assert totals + env["overhead_time"] > env["simulated_time"]
    some, _ = simulated(tmp_path, strategy="random_sample", strategy_options={"fraction": 0.3}, seed=1)
    assert len(some) == 2
    some, _ = simulated(tmp_path, strategy_options={"time_limit": 0.3}, restrictions=["tile == 1"])
    assert len(some) == 3
    results, _ = kernel_tuner.tune_cache("cached", [lambda tile: tile == 1], quiet=True)
    assert len(results) == 3


def test_what_a_simulation_needs(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="1 configurations are not in cached.json: left out"):
        results, _ = simulated(tmp_path, tune_params={"block_size_x": [32, 48], "tile": [1]})
    assert len(results) == 1
    with pytest.raises(UsageError, match="has a time for none of the 1 configurations"):
        simulated(tmp_path, tune_params={"block_size_x": [64], "tile": [2]})
    for content in ("[]", json.dumps({**CACHED, "problem_size": None})):
        (tmp_path / "cached.json").write_text(content)
        with pytest.raises(StoreError, match="is no cache file of Kernel Tuner: it needs kernel_name"):
            kernel_tuner.tune_cache("cached")


def test_results_are_stored_for_each_device_and_size(tmp_path: Path) -> None:
    results = [{"block_size_x": n, "time": 1 + n / 1000} for n in (10, 20, 200)]
    for name in ("A 100", "B", "A 100"):
        kernel_tuner.store_results(
            tmp_path / "kept.json", "add", ADD, {"block_size_x": []}, (100, 2), results, {"device_name": name}
        )
    told = json.loads((tmp_path / "kept.json").read_text())
    size = {"problem_size": "100x2"}
    assert told["data"] == [
        {"device_name": device, **size, "tunable_parameters": {"block_size_x": n}, "time": 1 + n / 1000}
        for device in ("B", "A_100")
        for n in (10, 20)
    ]


def test_names_of_kernel_tuners_modules() -> None:
    program = """
import warnings
from autotune.kernel_tuner.observers.nvml import NVMLObserver
from autotune.kernel_tuner.nvml import NVMLObserver
from autotune.kernel_tuner.observers import BenchmarkObserver
from autotune.kernel_tuner.util import get_best_config
from autotune.kernel_tuner.file_utils import store_output_file
import autotune.kernel_tuner.integration as integration
assert integration.store_results
class Mine(BenchmarkObserver):
    pass
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    Mine()
assert "Mine has no counterpart" in str(told[0].message)
for name in ("TunablePrecision", "KernelBuilder"):
    try:
        exec(f"from autotune.kernel_tuner.accuracy import {name}")
    except ImportError as problem:
        assert "has no counterpart in autotune" in str(problem)
    else:
        raise AssertionError(name)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    with pytest.raises(AttributeError, match=r"autotune\.kernel_tuner has no 'tune'"):
        assert kernel_tuner.tune
    assert dir(kernel_tuner) == sorted(kernel_tuner.__all__)


def test_that_it_runs_on_the_cpu_is_told_once() -> None:
    program = """
import warnings
warnings.simplefilter("always")
import numpy as np
from autotune.kernel_tuner import run_kernel
for _ in range(2):
    run_kernel("k", "__global__ void k(float* c) { c[threadIdx.x] = 1; }", 4, [np.zeros(4, np.float32)],
               {"block_size_x": 4})
"""
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stderr
    assert told.count("running on the cpu") <= 1


@pytest.mark.parametrize("name", ["time", "grid_size_x"])
def test_names_that_kernel_tuner_forbids_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="Kernel Tuner forbids"):
        tuned(ADD, {name: [1]})


def test_a_list_of_sources_is_host_code() -> None:
    with pytest.raises(UsageError, match="a list of sources is for host code"):
        tuned(["host.cu", "add.cu"], PARAMETERS)


def test_a_space_that_cannot_be_listed_needs_a_limit() -> None:
    vast = {**PARAMETERS, "other": list(range(2000)), "more": list(range(2000))}
    text = f"constexpr int both = other + more;\n{ADD}"
    with pytest.raises(UsageError, match="the space is too large to try all of it: give strategy_options"):
        tuned(text, vast)
    results, _ = tuned(text, vast, strategy_options={"max_fevals": 1})
    assert len(results) >= 1


def test_where_nothing_could_be_measured_it_says_why() -> None:
    with pytest.raises(
        NothingMeasured, match="1 compile_failed; all reasons are in the record which cache='NAME' keeps"
    ):
        tuned(ADD, {"block_size_x": [32]})  # no factor
    with pytest.raises(NothingMeasured, match="verify rejected all 2 configurations that were measured"):
        tuned(verify=lambda answer, after, atol: False)


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

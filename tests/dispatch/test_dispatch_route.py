"""GPU or cpu: by the measured crossover, by what is expected, or because one is all there is."""

import importlib.util
import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from fakes import write_family
from lending import Array, World, make_world

import autotune
from autotune.declaration import family as families
from autotune.device.cpu.backend import CpuBackend
from autotune.dispatch.placement import faster_device, loss
from autotune.dispatch.tuned_kernel import TunedKernel
from autotune.errors import CompilerError, DeviceError
from autotune.layout.digest import layouts_digest

CPU = CpuBackend(1).device.slug


# -- the choice itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "below", "gpu_ms", "cpu_ms", "kind", "reason"),
    [
        (10, 11.0, 1.0, 9.0, "cpu", "10 operations are fewer than the measured crossover, 11"),
        (11, 11.0, 9.0, 1.0, "cuda", "11 operations are not below the measured crossover, 11"),
        (10, 0.0, 9.0, 1.0, "cuda", "not below"),
        (10, float("inf"), 1.0, 9.0, "cpu", "fewer"),
        (10, None, 2.0, 1.0, "cpu", "1 ms are expected there and 2 ms on the GPU"),
        (10, None, 1.0, 1.0, "cuda", "1 ms are expected there and 1 ms on the cpu"),
        (10, None, 2.0, 0.0, "cuda", "not measured"),
        (10, None, 0.0, 2.0, "cuda", "not measured"),
    ],
)
def test_where_a_call_runs(
    work: float, below: float | None, gpu_ms: float, cpu_ms: float, kind: str, reason: str
) -> None:
    choice = faster_device(work, below, gpu_ms, cpu_ms)
    assert choice.kind == kind
    assert reason in choice.reason


def test_a_loss_is_told_from_ten_times_on() -> None:
    gpus = [("Slow GPU", 2.0), ("Fast GPU", 1.0), ("Unknown GPU", 0.0)]
    assert loss(254.0, gpus) == (
        "the cpu is expected to be 254 times slower than Fast GPU for this input (254 ms instead of 1 ms)"
    )
    for cpu_ms, known in ((10.0, gpus), (0.0, gpus), (1e6, []), (1e6, gpus[2:])):
        assert loss(cpu_ms, known) == ""


# -- in a kernel ----------------------------------------------------------------------------------------------


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return make_world(monkeypatch)


@pytest.fixture
def family(tmp_path: Path) -> Path:
    return write_family(tmp_path / "doubler")


def policy_file(
    family: Path, policies: Path, kind: str, name: str, slug: str, ms: float, **more: Any
) -> None:
    """A policy file with one entry: 1000 operations in ``ms``."""
    known = families.load_family(family)
    configuration = {"memory": "readonly" if kind == "cuda" else "global", "block_size": 64}
    entry = {
        "features": {"n": 1000}, "options": {}, "configuration": configuration, "median_ms": ms, "spread": 0.0,
        "samples": 9, "operations": 1000.0, "source_digest": known.source_digest,
        "layouts_digest": layouts_digest(), "space_digest": known.space_digest,
    }  # fmt: skip
    content = {
        "schema": 2, "family": "doubler", "device": {"kind": kind, "name": name, "compute_capability": "9.0"},
        "default": dict(configuration), "entries": {"small": entry}, **more,
    }  # fmt: skip
    (policies / "doubler").mkdir(parents=True, exist_ok=True)
    (policies / "doubler" / f"{slug}.yaml").write_text(yaml.safe_dump(content))


def gpu_file(family: Path, policies: Path, ms: float, below: float | None = None) -> None:
    more = {} if below is None else {"crossovers": {CPU: {"below": below, "workloads": ["small"]}}}
    policy_file(family, policies, "cuda", "Host GPU", "host-gpu", ms, **more)


def cpu_file(family: Path, policies: Path, ms: float) -> None:
    policy_file(family, policies, "cpu", CpuBackend(1).device.name, CPU, ms)


def called(kernel: TunedKernel, count: int) -> str:
    """Where a call with ``count`` numbers of the host runs."""
    x = np.arange(count, dtype=np.float32)
    np.testing.assert_array_equal(kernel(x), 2 * x)
    return kernel.device_for(kernel.bind(x))


def test_below_the_crossover_it_is_the_cpu(
    world: World,
    family: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    gpu_file(family, tmp_path, 1.0, below=500.0)
    cpu_file(family, tmp_path, 100.0)
    cpu, gpu = CpuBackend(1).device.name, "Host GPU"
    with caplog.at_level(logging.INFO, "autotune"), autotune.load(family, policies=tmp_path) as kernel:
        assert world.opened == ["auto"]  # the cpu is opened when it is wanted
        assert [called(kernel, n) for n in (499, 500, 10)] == [cpu, gpu, cpu]
        assert world.opened == ["auto", "cpu"]
        assert kernel.device == gpu
        result = kernel(Array(np.ones(10, np.float32)))  # it is on the GPU already
        assert type(result) is Array
    assert "doubler runs on cpu: 499 operations are fewer than the measured crossover, 500" in caplog.text
    with autotune.load(family, device="cuda", policies=tmp_path) as kernel:
        assert called(kernel, 10) == gpu


def test_without_a_crossover_the_expected_times_decide(world: World, family: Path, tmp_path: Path) -> None:
    gpu_file(family, tmp_path, 1.0)
    cpu_file(family, tmp_path, 0.5)
    with autotune.load(family, policies=tmp_path) as kernel:
        assert called(kernel, 1000) == CpuBackend(1).device.name
        exact, _ = kernel.explain(kernel.bind(np.zeros(1000)))
        assert (exact.match, exact.expected_ms) == ("exact", 0.5)
    cpu_file(family, tmp_path, 2.0)
    with autotune.load(family, policies=tmp_path) as kernel:
        assert called(kernel, 1000) == "Host GPU"


def test_what_was_prepared_stays_on_the_gpu(world: World, family: Path, tmp_path: Path) -> None:
    gpu_file(family, tmp_path, 1.0, below=500.0)
    with (
        autotune.load(family, policies=tmp_path) as kernel,
        kernel.prepare(np.ones(10, np.float32)) as handle,
    ):
        np.testing.assert_array_equal(handle(), np.full(10, 2, np.float32))
        assert handle.variant.configuration["memory"] == "readonly"


def test_no_gpu_warns_of_what_is_lost(family: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu_file(family, tmp_path, 0.1)
    cpu_file(family, tmp_path, 30.0)
    monkeypatch.setitem(sys.modules, "pycuda", None)
    with pytest.warns(UserWarning, match="running on the cpu: "):
        kernel = autotune.load(family, policies=tmp_path)
    with kernel:
        with pytest.warns(UserWarning, match="300 times slower than Host GPU.*30 ms instead of 0.1 ms"):
            called(kernel, 1000)
        called(kernel, 1000)  # told once
    with pytest.raises(DeviceError, match="PyCUDA is not usable"):
        autotune.load(family, device="cuda", policies=tmp_path)
    with autotune.load(family, device="cpu", policies=tmp_path) as kernel:
        called(kernel, 1000)  # asked for: nothing to warn of


def test_a_cpu_without_a_compiler_leaves_the_call_to_the_gpu(
    world: World,
    family: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu_file(family, tmp_path, 1.0, below=500.0)
    cpu_file(family, tmp_path, 100.0)
    with autotune.load(family, policies=tmp_path) as kernel:
        called(kernel, 1000)  # compiled for the GPU

        def toolchain(self: Any, compiler: str = "") -> Any:
            raise CompilerError("no C++ compiler found")

        monkeypatch.setattr(CpuBackend, "toolchain", toolchain)
        with pytest.warns(UserWarning, match="failed, running on the GPU from now on: no C"):
            x = np.arange(1000, dtype=np.float32)[:10]
            np.testing.assert_array_equal(kernel(x), 2 * x)


def test_a_failing_gpu_warns_of_what_is_lost(world: World, family: Path, tmp_path: Path) -> None:
    gpu_file(family, tmp_path, 0.1)
    cpu_file(family, tmp_path, 5.0)
    with autotune.load(family, policies=tmp_path) as kernel:
        world.gpu.failing = "unspecified launch failure"
        with pytest.warns(UserWarning) as told:
            called(kernel, 1000)
    texts = [str(warning.message) for warning in told]
    assert texts[0].startswith("Host GPU failed, running on the cpu from now on: unspecified launch failure")
    assert "50 times slower than Host GPU" in texts[1]


def test_a_measured_crossover_is_written_and_used(world: World, family: Path, tmp_path: Path) -> None:
    gpu_file(family, tmp_path, 1.0, below=500.0)
    place = Path(__file__).parents[2] / "benchmarks" / "crossover.py"
    spec = importlib.util.spec_from_file_location("benchmarks_crossover", place)
    assert spec is not None and spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    sizes = {"a": (10.0, 1.0), "b": (1000.0, 2.0)}
    found = benchmark.crossover(
        benchmark.file_of("cpu", CPU, {"a": (10.0, 0.5), "b": (1000.0, 8.0)}),
        benchmark.file_of("cuda", "gpu", sizes),
    )
    benchmark.record(tmp_path / "doubler" / "host-gpu.yaml", found)
    assert 10 < found.below < 500
    with autotune.load(family, policies=tmp_path) as kernel:
        assert called(kernel, 499) == "Host GPU"
    assert benchmark.grid(["n=1,2", "m=3"]) == [{"n": 1, "m": 3}, {"n": 2, "m": 3}]

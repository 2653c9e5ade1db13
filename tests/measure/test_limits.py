"""``autotune limits``: what is counted, what is kept, what a report makes of it."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fakes import FakeModule, FakeToolchain
from report_pages import fake_study
from rich.console import Console

from autotune.cli import profile as command
from autotune.cli.commands import main
from autotune.compile.cache import Cache, default_root
from autotune.compile.toolchain import translation_unit
from autotune.compile.variant import Geometry
from autotune.errors import DeviceError
from autotune.hardware import Device, Limits
from autotune.measure import ceilings as limits
from autotune.record.readers import read_ceilings
from autotune.report.why import compute_ceiling_shares

KERNELS = {one.kernel for one in limits.CEILINGS.values()}


@dataclass
class Bench:
    """A device whose every launch takes a millisecond."""

    device: Device = field(
        default_factory=lambda: Device(
            kind="cuda", name="NVIDIA H200", arch="sm_90", multiprocessors=132, driver="580",
            limits=Limits(memory_bytes=3 << 30),
        )
    )  # fmt: skip
    launched: list[tuple[str, Geometry, list[int]]] = field(default_factory=list)
    taken: dict[int, int] = field(default_factory=dict)

    def toolchain(self, compiler: str = "") -> FakeToolchain:
        return FakeToolchain()

    def load(self, compiled: Any) -> FakeModule:
        assert set(compiled.symbols) >= KERNELS
        return FakeModule(compiled)

    def place(self, stored: Any, module: Any = None) -> Any:
        address = (1 + len(self.taken)) << 32
        self.taken[address] = stored.nbytes
        return SimpleNamespace(
            stored=stored, argument=address.to_bytes(8, "little"), free=lambda: self.taken.pop(address)
        )

    def fill(self, placed: Any, byte: int) -> None:
        assert byte == 0

    def launch(self, module: Any, kernel: str, geometry: Geometry, arguments: Sequence[bytes]) -> None:
        assert self.taken  # while the memory is there
        words = [int(w) for part in arguments for w in np.frombuffer(part, np.uint64)]
        self.launched.append((kernel, geometry, words))

    def sample(self, plan: Callable[[], None], count: int, cold: bool) -> list[float]:
        assert not cold
        times = []
        for _ in range(count):
            before = len(self.launched)
            plan()
            times.append(float(len(self.launched) - before))
        return times

    def describe(self) -> dict[str, Any]:
        return {"clock_mhz": 1980}

    def close(self) -> None:
        pass


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_every_ceiling_is_its_count_over_its_time(bench: Bench, tmp_path: Path) -> None:
    found = limits.measure_ceilings(bench, Cache(tmp_path))  # type: ignore[arg-type]
    threads = 132 * 2048
    nbytes = 1 << 28  # the power of two below an eighth of the memory
    assert found["ceilings"] == pytest.approx(
        {
            "bytes_per_s": 2 * nbytes * 1e3, "dram_bytes_per_s": 2 * nbytes * 1e3,
            "dram_read_bytes_per_s": nbytes * 1e3,
            "random_64_byte_fetches_per_s": threads / 4 * 64 * 1e3, "l2_read_bytes_per_s": threads * 512 * 16 * 1e3,
            "shared_read_bytes_per_s": threads * 256 * 16 * 16 * 1e3, "fp32_fma_per_s": threads * 512 * 128 * 1e3,
            "fp64_fma_per_s": threads * 64 * 128 * 1e3, "mufu_per_s": threads * 64 * 128 * 1e3,
            "popc_per_s": threads * 64 * 128 * 1e3, "integer_add_per_s": threads * 256 * 128 * 1e3,
            "launches_per_s": 1e3,
        }
    )  # fmt: skip
    assert not bench.taken
    for kernel, geometry, words in bench.launched:
        assert geometry.grid[0] * geometry.block[0] == (32 if kernel == "nothing" else threads)
        if kernel == "copy_memory":
            assert words == [1 << 32, 2 << 32, nbytes // 16]
        if kernel == "fetch_records":
            assert words[1] & (words[1] - 1) == 0  # the kernel takes places by a mask
            assert words[1] * 64 == nbytes
        if kernel == "read_l2":
            assert words[1] * 16 <= nbytes


def test_ceilings_are_kept_by_device_and_measured_again_on_demand(bench: Bench) -> None:
    cache = Cache(default_root())
    bench.device = replace(bench.device, name="GPU of its own test")
    folder = default_root() / "limits"
    kept, another = folder / "gpu-of-its-own-test.json", folder / "another-of-its-own-test.json"
    for path in (kept, another):  # of an earlier run
        path.unlink(missing_ok=True)
    first = command.device_ceilings(bench, cache)  # type: ignore[arg-type]
    count = len(bench.launched)
    assert command.device_ceilings(bench, cache) == first  # type: ignore[arg-type]
    assert len(bench.launched) == count
    command.device_ceilings(bench, cache, again=True)  # type: ignore[arg-type]
    assert len(bench.launched) == 2 * count
    kept.write_text("{")  # a file that cannot be read is measured again
    command.device_ceilings(bench, cache)  # type: ignore[arg-type]
    assert len(bench.launched) == 3 * count
    assert read_ceilings(kept)
    bench.device = replace(bench.device, name="another of its own test")
    command.device_ceilings(bench, cache)  # type: ignore[arg-type]
    assert len(bench.launched) == 4 * count
    assert read_ceilings(another)
    with pytest.raises(DeviceError, match="measured on a GPU"):
        command.device_ceilings(Bench(device=replace(bench.device, kind="cpu")), cache)  # type: ignore[arg-type]


def test_the_command_prints_them_and_the_report_finds_them(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autotune.cli.profile.open_backend", lambda name: bench)
    assert main(["limits", "--again", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "NVIDIA H200, 1980 MHz" in said
    assert all(name in said for name in limits.CEILINGS)
    found = read_ceilings(tmp_path / "limits.json")
    assert found
    study = fake_study()
    study = replace(study, about=study.about.update({"device_name": "NVIDIA H200"}))
    trial = next(t for t in study.trials if t.measurement)
    assert trial.measurement
    share = compute_ceiling_shares(study, trial, found)
    assert share == {
        "bytes": pytest.approx(4e6 / (trial.measurement.time_ms / 1e3) / found["ceilings"]["bytes_per_s"])
    }


def test_limits_of_an_older_form_are_printed_too() -> None:
    console = Console(record=True, width=160)
    command.print_ceilings(
        {"device_name": "X", "ceilings": {"bytes_per_s": 4.26e12, "steps_per_s": 1.0}}, console
    )
    assert "4.26 T" in console.export_text()


@pytest.mark.nvrtc
def test_the_kernels_do_what_is_counted(tmp_path: Path) -> None:
    """In the PTX that they compile to: one operation a chain and pass, none left out."""
    from cuda.bindings import nvrtc

    source = translation_unit(limits.batch())
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"limits.cu", 0, [], [])
    for kernel in KERNELS:
        nvrtc.nvrtcAddNameExpression(program, f"{kernel}<Ceilings>".encode())
    options = [b"--std=c++17", b"-arch=compute_90"]
    assert int(nvrtc.nvrtcCompileProgram(program, len(options), options)[0]) == 0
    text = bytearray(nvrtc.nvrtcGetPTXSize(program)[1])
    buffer = bytes(text)
    nvrtc.nvrtcGetPTX(program, buffer)
    entry = r"\.entry (?:_Z\d+)(\w+?)I8Ceilings\w*\(.*?\{(.*?)^\}"
    found = re.finditer(entry, buffer.decode(), re.DOTALL | re.MULTILINE)
    parts = {match[1]: match[2] for match in found}
    assert set(parts) == KERNELS
    pass_ = limits.CHAINS * limits.UNROLL
    for kernel, instruction in (
        ("fma_fp32", r"fma\.rn\.f32"), ("fma_fp64", r"fma\.rn\.f64"), ("rsqrt_mufu", r"rsqrt\.approx\.ftz\.f32"),
        ("count_bits", r"popc\.b32"),
    ):  # fmt: skip
        assert len(re.findall(instruction, parts[kernel])) == pass_, kernel
    assert pass_ <= len(re.findall(r"add\.s32", parts["add_integers"])) <= pass_ + limits.CHAINS
    assert len(re.findall(r"ld\.shared\.v4", parts["read_shared"])) == limits.UNROLL
    assert re.search(r"ld\.global\.cg\.v4", parts["read_l2"])
    assert re.search(r"ld\.global\.cg\.v4", parts["fetch_records"])


@pytest.mark.gpu
def test_this_gpu_has_every_ceiling(tmp_path: Path) -> None:
    from autotune.device.cuda.backend import CudaBackend

    with CudaBackend(0) as backend:
        found = limits.measure_ceilings(backend, Cache(default_root()))
    path = command.write_ceilings(found, tmp_path / "limits.json")
    read = read_ceilings(path)
    assert read == json.loads(json.dumps(found))
    assert read
    assert set(read["ceilings"]) == set(limits.CEILINGS)

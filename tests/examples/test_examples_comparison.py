"""What the examples' compare.py share, their own ways, and the tables made of what they write. No GPU: the libraries
are stand-ins that compute with numpy, the tuned kernel is the cpu's."""

import csv
import functools
import importlib.util
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import gpu_libraries
import numpy as np
import pytest
from import_path import import_path

from autotune.declaration import family as families

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def imported(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # as the scripts of its folder find it; dataclasses look it up
    spec.loader.exec_module(module)
    return module


comparison, tables = imported("comparison"), imported("tables")


# ---- the kernels as Python, and inputs that are small


def nbody(bodies: Any, out: Any, count: int, softening: float) -> None:
    module: Any = families.load_family(str(EXAMPLES / "nbody")).module
    records = np.rec.fromarrays(bodies.T, names="x,y,z,mass")
    out[:] = module.accelerations(records, softening)
    assert len(bodies) == count


def spmv(offsets: Any, columns: Any, values: Any, x: Any, out: Any, rows: int) -> None:
    for row in range(rows):
        mine = slice(offsets[row], offsets[row + 1])
        out[row] = values[mine] @ x[columns[mine]]


def lookup(keys: Any, values: Any, entries: int, queries: Any, found: Any, count: int) -> None:
    assert (keys.size, queries.size) == (entries, count)
    found[:] = np.append(values, np.uint32(0xFFFFFFFF))[np.searchsorted(keys, queries)]


def stencil(
    field: Any, result: Any, planes: int, rows: int, columns: int, centre: float, side: float
) -> None:
    module: Any = families.load_family(str(EXAMPLES / "stencil")).module
    assert field.shape == (planes, rows, columns)
    result[:] = module.reference({"field": field}, {"centre": centre, "side": side})["result"]


def lattice_boltzmann(before: Any, after: Any, rows: int, columns: int, omega: float) -> None:
    module: Any = families.load_family(str(EXAMPLES / "lattice_boltzmann")).module
    assert before.shape == (9, rows, columns)
    after[:] = module.step(before, omega)


def _smoothed(lines: Any, result: Any, axis: int, smooth: float, passes: int) -> None:
    module: Any = families.load_family(str(EXAMPLES / "recursive_filter")).module
    along = np.moveaxis(lines.astype(np.float64), axis, 0)
    result[:] = np.moveaxis(module.smoothed(along, float(smooth), int(passes)), 0, axis)


def smooth_columns(
    image: Any, down: Any, frames: int, rows: int, columns: int, smooth: float, passes: int
) -> None:
    assert image.shape == (frames, rows, columns)
    _smoothed(image, down, 1, smooth, passes)


def smooth_rows(
    down: Any, across: Any, _frames: int, _rows: int, _columns: int, smooth: float, passes: int
) -> None:
    _smoothed(down, across, 2, smooth, passes)


def sharpen(image: Any, smooth: Any, sharp: Any, rows: int, columns: int, amount: float, reach: int) -> None:
    module: Any = families.load_family(str(EXAMPLES / "recursive_filter")).module
    assert image.shape[1:] == (rows, columns)
    sharp[:] = image + amount * (image - module.averaged(smooth.astype(np.float64), int(reach)))


def forest(
    nodes: Any, roots: Any, trees: int, leaf_values: Any, base: Any, outputs: int, rows: Any, features: int,
    result: Any, count: int,
) -> None:  # fmt: skip
    family = families.load_family(str(EXAMPLES / "forest"))
    module: Any = family.module
    assert (trees, outputs, (count, features)) == (roots.size, base.size, rows.shape)
    arrays = {"nodes": nodes.view(family.data["nodes"].dtype).reshape(-1), "roots": roots, "rows": rows}
    result[:] = module.reference({**arrays, "leaf_values": leaf_values, "base": base}, {})["result"]


def bilateral(image: Any, space: Any, likeness: Any, smooth: Any, height: int, width: int) -> None:
    module: Any = families.load_family(str(EXAMPLES / "bilateral")).module
    assert image.shape == (height, width)
    smooth[:] = module.reference({"image": image, "space": space, "range": likeness}, {})["smooth"]


def hash_grid(
    points: Any, table: Any, scale: Any, resolution: Any, count: int, levels: int, entries: int, out: Any
) -> None:
    module: Any = families.load_family(str(EXAMPLES / "hash_grid")).module
    assert (points.shape, table.shape) == ((count, 3), (levels, entries, 2))
    arrays = {
        "points": points,
        "table": table.view(module.FEATURE)[..., 0],
        "scale": scale,
        "resolution": resolution,
    }
    out[:] = comparison.numbers(module.reference(arrays, {})["encoding"])


KERNELS = {
    "nbody": nbody, "spmv": spmv, "lookup": lookup, "stencil": stencil, "forest": forest, "hash_grid": hash_grid,
    "lattice_boltzmann": lattice_boltzmann,
    "elementwise": lambda before, rows, columns, omega, after: lattice_boltzmann(before, after, rows, columns, omega),
    "bilateral": bilateral,
    "smooth_columns": smooth_columns, "smooth_rows": smooth_rows, "sharpen": sharpen,
    "hold": lambda _nanoseconds: None,
}  # fmt: skip
SMALL = {
    "nbody": ("parameters: {bodies: 70, seed: 1}", (-(-70 // 256),), (256,)),
    "spmv": ("parameters: {matrix: stencil, side: 7, seed: 1}", (2,), (256,)),
    "lookup": ("parameters: {entries: 500, queries: 300, seed: 1}\ncache: warm", (2,), (256,)),
    "stencil": (
        "arrays:\n  field: {random: normal, shape: [5, 9, 33], seed: 3}\nscalars: {centre: 0.3, side: 0.2}",
        (2, 2, 5),
        (32, 8),
    ),
    "lattice_boltzmann": ("parameters: {rows: 6, columns: 150, seed: 1}", (2, 6), (128,)),
    "bilateral": ("parameters: {height: 9, width: 40, seed: 1}", (2, 2), (32, 8)),
    "recursive_filter": (
        "arrays:\n  image: {random: uniform, shape: [3, 9, 33], seed: 3}\nscalars: {smooth: 0.3, passes: 2, reach: 1}",
        (1,),
        (128,),
    ),
    "hash_grid": ("parameters: {points: 300, levels: 3, log2_entries: 13, seed: 1}", (2,), (256,)),
    "forest": (
        "parameters: {forest: wine-few, rows: 300, seed: 1}\ncache: warm", (2,), (256,),
    ),
}  # fmt: skip
WAYS = {
    "nbody": {"plain.cu", "torch.compile", "numba.cuda"},
    "spmv": {"plain.cu", "cusparseSpMV", "cupy A @ x", "torch A @ x"},
    "lookup": {"plain.cu", "cupy searchsorted, take", "torch searchsorted, index_select"},
    "lattice_boltzmann": {"plain.cu", "cupy ElementwiseKernel", "torch roll"},
    "stencil": {"plain.cu", "cupyx ndimage.convolve", "torch conv3d"},
    "hash_grid": {
        "autotune, error up to 0.001",
        "autotune, error up to 0.01",
        "plain.cu",
        "torch, float32",
        "torch, float16",
    },
    "bilateral": {"plain.cu", "torch", "torch.compile"},
    "recursive_filter": {"plain.cu", "torch matmul"},
    "forest": {
        "autotune, new inputs, waited for",
        "plain.cu",
        "nvForest optimize, waited for",
        "nvForest optimize, device alone",
    },
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # that nothing was tuned here
@pytest.mark.parametrize("name", SMALL)
def test_every_way_of_an_example_is_right_and_gets_its_row(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "forest":
        import treelite  # noqa: F401 - of the group heavy: its script leaves a way out without it
    text, grid, block = SMALL[name]
    (tmp_path / "small.yaml").write_text(f"schema: 1\nworkload: small\nfamily: {name}\n{text}\n")
    launched: list[Any] = []
    gpu_libraries.install(monkeypatch, gpu_libraries.cupy_of(KERNELS, launched))
    monkeypatch.setitem(sys.modules, "comparison", comparison)
    real = comparison.autotune.load
    monkeypatch.setattr(
        comparison.autotune, "load", lambda f, device, policies, **more: real(f, "cpu", policies, **more)
    )
    monkeypatch.setattr(sys, "path", [*sys.path])  # the script adds to it
    out = tmp_path / "found.csv"
    summary = tmp_path / "summary.csv"
    summary.write_text(f"family,workload,role,measured\n{name},large,winner,7\n{name},small,winner,42\n")
    asked = [
        "--workload",
        str(tmp_path / "small.yaml"),
        "--rounds",
        "3",
        "--summary",
        str(summary),
        "--out",
        str(out),
    ]
    monkeypatch.setattr(sys, "argv", ["compare.py", *asked])
    runpy.run_path(str(EXAMPLES / name / "compare.py"), run_name="__main__")
    assert "left out" not in capsys.readouterr().out
    with out.open(newline="") as file:
        found = {row["what"]: row for row in csv.DictReader(file)}
    assert found.keys() == {"autotune", "autotune, whole call"} | WAYS[name]
    assert ("smooth_columns" if name == "recursive_filter" else name, grid, block) in launched
    for what, row in found.items():
        assert tuple(row) == comparison.COLUMNS
        assert 0 < float(row["lowest_ms"]) <= float(row["median_ms"]) <= float(row["highest_ms"]), what
        allowed = {"lookup": 1e-12, "hash_grid": 2e-3 if what.endswith("float16") else 1e-5}
        assert float(row["difference"]) < allowed.get(name, 1e-5), what
        assert (row["example"], row["workload"], row["samples"], row["device"]) == (
            name,
            "small",
            "3",
            "No GPU",
        )
        assert row["cache"] == ("warm" if name in {"lookup", "forest"} else "cold")
        assert row["operation"] and float(row["operations_per_s"]) > 0
        assert bool(row["configuration"]) == what.startswith("autotune")
        assert row["measured"] == ("42" if what.startswith("autotune") else "")
        alike = "autotune, new inputs, waited for" if what == "nvForest optimize, waited for" else "autotune"
        ratio = float(row["median_ms"]) / float(found[alike]["median_ms"])
        assert float(row["times_the_tuned"]) == pytest.approx(ratio, rel=1e-3, abs=1e-3)


# ---- the shared module


def way(result: Any, cost: float = 0.0, spent: list[float] | None = None) -> Any:
    def call() -> None:
        if spent is not None:
            spent[0] += cost

    return comparison.Way(call, lambda: np.asarray(result))


def test_a_way_that_is_wrong_or_fails_is_left_out_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    def absent() -> Any:
        raise ModuleNotFoundError("No module named 'torch'")

    expected = np.array([1.0, -4.0], np.float32)
    makes = {
        "right": lambda: way([1, -4 + 3e-6]), "wrong": lambda: way([1, -4.1]), "nan": lambda: way([1, np.nan]),
        "one": lambda: way([1]), "absent": absent,
    }  # fmt: skip
    found = comparison.checked(makes, expected, 1e-5)
    assert found.keys() == {"right"} and found["right"][1] == pytest.approx(7.5e-7)
    told = capsys.readouterr().out
    for line in (
        "wrong is left out: its result differs by 0.025, allowed is 1e-05",
        "nan is left out: its result differs by nan",
        "one is left out: ValueError: its result has shape (1,), expected is (2,)",
        "absent is left out: ModuleNotFoundError: No module named 'torch'",
    ):
        assert line in told


def test_integers_differ_by_the_share_of_elements() -> None:
    expected = np.array([1, 2, 3, 4], np.uint32)
    assert comparison.difference(np.array([1, 2, 3, 9], np.uint32), expected) == 0.25
    assert comparison.difference(expected, expected) == 0


def test_samples_are_taken_in_turns_and_fast_ways_are_called_more_often() -> None:
    seen: list[tuple[str, int]] = []
    cost = {"slow": 7.0, "fast": 0.125, "faster": 1e-9}
    ways = {name: comparison.Way(name, lambda: np.zeros(1)) for name in cost}

    def sample(call: Any, calls: int) -> float:
        seen.append((call, calls))
        return cost[call]

    times = comparison.times_of(ways, sample, False, 2)
    assert times == {name: [ms, ms] for name, ms in cost.items()}
    turn = [("slow", 1), ("fast", 8), ("faster", 50)]
    assert seen == [(name, 1) for name in cost for _ in range(2)] + turn + turn
    seen.clear()
    comparison.times_of(ways, sample, True, 1)
    assert {calls for _, calls in seen} == {1}  # the cache is flushed before each call


def test_a_sample_is_what_lies_between_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    spent, held, launched, flushed = [0.0], [], [], []  # type: ignore[var-annotated]
    kernels = {
        "hold": lambda nanoseconds: (held.append(int(nanoseconds)), spent.__setitem__(0, spent[0] + 5))
    }
    cupy = gpu_libraries.cupy_of(kernels, launched, lambda: spent[0])
    filled = SimpleNamespace(fill=lambda byte: (flushed.append(byte), spent.__setitem__(0, spent[0] + 3)))
    cupy.empty = lambda size, dtype: filled
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    call = way(0, 0.25, spent).call
    assert comparison.sampler(False)(call, 4) == 250  # ms a call: neither the hold's seconds nor a flush's
    assert not flushed
    assert comparison.sampler(True)(call, 1) == 250
    assert flushed == [0] and len(held) == 2
    assert held == pytest.approx([900_000, 300_000], abs=1)  # before a call was ever queued
    assert launched == [("hold", (1,), (1,))] * 2


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    for name in WAYS:
        run = functools.partial(subprocess.run, capture_output=True, text=True, check=False, cwd=tmp_path)
        script = str(EXAMPLES / name / "compare.py")
        environment = os.environ | {"PYTHONPATH": import_path()}
        told = run([sys.executable, script, "--help"], env=environment)
        assert told.returncode == 0 and "Needs a GPU, PyCUDA and cupy" in told.stdout


@pytest.mark.nvrtc
def test_the_kernel_that_waits_compiles() -> None:
    from cuda.bindings import nvrtc

    error, program = nvrtc.nvrtcCreateProgram(comparison.HOLD.encode(), b"hold.cu", 0, [], [])
    assert not int(error)
    (error,) = nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=sm_90"])
    assert not int(error)


# ---- tables


def row(**changed: str) -> dict[str, str]:
    plain = {
        "example": "nbody", "workload": "small", "cache": "cold", "what": "autotune", "version": "0.1",
        "configuration": "records=soa", "measured": "216", "median_ms": "0.5", "samples": "31",
        "times_the_tuned": "1.000", "operations_per_s": "2.5e9", "operation": "interactions",
        "difference": "1e-7", "device": "GPU",
    }  # fmt: skip
    return plain | changed


ROWS = [
    row(),
    row(what="plain.cu", version="13", configuration="", median_ms="1.25", times_the_tuned="2.500"),
    row(what="torch", version="2.9", configuration="", median_ms="0.04", times_the_tuned="0.080"),
]


def test_tables_are_written_between_the_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = tmp_path / "nbody" / "README.md"
    readme.parent.mkdir()
    readme.write_text("before\n<!-- comparison -->\nold\n<!-- /comparison -->\nafter\n")
    files = []
    for number, found in enumerate((ROWS[:1], ROWS[1:])):
        files.append(tmp_path / f"{number}.csv")
        with files[-1].open("w", newline="") as file:
            writer = csv.DictWriter(file, list(ROWS[0]))
            writer.writeheader()
            writer.writerows(found)
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["tables.py", "--write", *map(str, files)])
    tables.main()
    expected = f"before\n<!-- comparison -->\n{tables.table(ROWS)}<!-- /comparison -->\nafter\n"
    assert readme.read_text() == expected
    tables.main()
    assert readme.read_text() == expected
    readme.write_text("nothing\n")
    with pytest.raises(SystemExit, match="0 places"):
        tables.main()


def test_a_file_that_is_no_comparison_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text("family,workload\nnbody,small\n")
    with pytest.raises(SystemExit, match="no comparison"):
        tables.read([tmp_path / "results.csv"])


@pytest.mark.parametrize("name", WAYS)
def test_a_readmes_figures_are_those_of_the_csv(name: str) -> None:
    kept = sorted((ROOT / "benchmarks" / "results").glob(f"{name}-*-peers.csv"))
    found = tables.MARKED.search((EXAMPLES / name / "README.md").read_text(encoding="utf-8"))
    assert found, "the README has no place for the table"
    assert found[0] == f"{found[1]}{tables.table(tables.read(kept))}{found[2]}"


# ---- tune.sh


def tune(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [shutil.which("bash") or "bash", str(EXAMPLES / "tune.sh"), *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_tune_sweeps_and_then_compares(tmp_path: Path) -> None:
    """PYTHON is a program that writes down how it was called."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$*" >> "$0.log"\n')
    python.chmod(0o755)
    out = str(tmp_path / "out")
    assert tune("spmv", out, "contacts", "--", "--budget", "20s", PYTHON=str(python)).returncode == 0
    imported_, sweep, compare = (tmp_path / "python.log").read_text().splitlines()
    assert imported_ == "-P -c import autotune"  # not what is in the current folder
    policies = f"--policies {out}/policies"
    start = f"-m autotune sweep {EXAMPLES / 'spmv'} --device cuda --workload=contacts --out {out}"
    assert sweep == f"{start} {policies} --budget 20s"
    script = EXAMPLES / "spmv" / "compare.py"
    kept = f"--summary {out}/summary.csv --out {out}/compare-spmv.csv"
    assert compare == f"{script} --workload=contacts {policies} {kept}"
    assert tune("stencil", out, PYTHON=str(python)).returncode == 0
    every = (tmp_path / "python.log").read_text().splitlines()[-1]
    assert "--workload=cube " in every and "--workload=odd --workload=ragged --policies" in every


@pytest.mark.parametrize("arguments", [(), ("nbody",), ("nbdy", "out")])
def test_tune_says_how_it_is_called(arguments: tuple[str, ...]) -> None:
    told = tune(*arguments)
    assert told.returncode == 2 and "examples/tune.sh EXAMPLE DIR" in told.stderr

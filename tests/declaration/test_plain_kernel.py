"""An unmodified kernel, declared from Python: the folder that it becomes, what is rejected, and its later use."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from plain import ADD, MATRIX, SAXPY, blur, floats, matrix, outputs, vector_add, workload

import autotune
from autotune.cli.commands import main
from autotune.declaration import Tolerance, bind, load_family
from autotune.declaration.plain_kernel import Kernel
from autotune.errors import FamilyError, StoreError, UnknownName, UsageError, WorkloadError

_ADDS: dict[str, Any] = {
    "arguments": {"c": "output float32[n]", "a": "input float32[n]", "b": "input float32[n]", "n": "int32"},
    "grid": "ceil_div(n, block_size)", "block": "block_size", "policies": {"block_size": [64, 128]},
}  # fmt: skip


def test_it_is_a_family_folder() -> None:
    kernel = vector_add(title="c = a + b")
    declared = yaml.safe_load((kernel.folder / "family.yaml").read_text())
    assert declared["choices"] == "macros"
    assert declared["data"]["a"] == {"role": "input", "type": "float32", "shape": ["n"]}
    assert declared["extents"] == {"n": {"type": "int32"}}
    assert declared["policies"] == {"block_size": {"values": [64, 128, 256], "default": 64}}
    assert (kernel.folder / "vector_add.cu").read_text() == ADD
    assert load_family(kernel).name == "vector_add"
    assert kernel.family.accesses == {"c": "pointer", "a": "pointer", "b": "pointer"}
    assert kernel.family.reference == "control"


def test_a_few_words_will_do() -> None:
    kernel = vector_add(
        constraints=["block_size > 64", ("block_size % 32 == 0", "whole warps")],
        policies={"block_size": np.array([128, 256])}, tolerance=0.01, extents={"four": 4},
    )  # fmt: skip
    family = kernel.family
    assert [constraint.reason for constraint in family.space.constraints] == [
        "block_size > 64",
        "whole warps",
    ]
    assert family.tolerances({})["c"] == Tolerance(0.01, declared="tolerance")
    assert family.compute_known_sizes({}) == {"four": 4}
    assert family.space.control["block_size"] == 128


def test_the_folder_is_of_the_content() -> None:
    kernel = vector_add()
    assert vector_add().folder == kernel.folder
    assert vector_add(title="another").folder != kernel.folder
    (kernel.folder / "vector_add.cu").write_text("torn")
    assert vector_add().folder == kernel.folder
    assert (kernel.folder / "vector_add.cu").read_text() == ADD


def test_a_path_brings_the_headers_that_it_includes(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "two.h").write_text("#define TWO 2\n")
    (tmp_path / "twice.cu").write_text(
        '#include "parts/two.h"\n'
        "__global__ void twice(int* y, const int* x) { y[threadIdx.x] = TWO * x[threadIdx.x]; }\n"
    )
    kernel = Kernel(
        tmp_path / "twice.cu", "twice", arguments={"y": "output int32[n]", "x": "input int32[n]"}, grid=1,
        block="n", policies={"unused": [1]},
    )  # fmt: skip
    assert (kernel.folder / "parts" / "two.h").is_file()
    got = outputs(kernel.family, kernel.family.space.control, {"x": [1, 2, 3]})
    assert got["y"].tolist() == [2, 4, 6]
    assert (kernel.save(tmp_path / "saved") / "parts" / "two.h").read_text() == "#define TWO 2\n"
    with pytest.raises(UsageError, match="is no file and no kernel's text"):
        Kernel(tmp_path / "none.cu", "twice", arguments={}, grid=1, block=1)
    (tmp_path / "parts" / "out.cu").write_text('#include "../twice.cu"\n')
    with pytest.raises(UsageError, match="which is outside of its folder"):
        Kernel(tmp_path / "parts" / "out.cu", "twice", arguments={}, grid=1, block=1)


def test_save_gives_a_folder_to_go_on_with(tmp_path: Path) -> None:
    folder = matrix().save(tmp_path / "mine")
    assert sorted(path.name for path in folder.iterdir()) == ["family.yaml", "times.cu"]
    assert load_family(folder).accesses == {"y": "pointer", "x": "pointer"}


def test_save_replaces_what_it_wrote_and_nothing_else(tmp_path: Path) -> None:
    folder = matrix().save(tmp_path / "mine")
    (folder / "workloads").mkdir()
    (folder / "workloads" / "small.yaml").write_text("mine\n")
    changed = matrix(block_size=[32])
    assert changed.folder != matrix().folder
    assert changed.save(folder) == folder
    assert (folder / "family.yaml").read_bytes() == (changed.folder / "family.yaml").read_bytes()
    assert (folder / "workloads" / "small.yaml").read_text() == "mine\n"
    (folder / "times.cu").write_text("// edited\n")
    with pytest.raises(StoreError, match="mine already has other files, or edited ones: delete it, or name"):
        matrix().save(folder)
    assert (folder / "times.cu").read_text() == "// edited\n"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with pytest.raises(StoreError, match="already has other files"):
        matrix().save(tmp_path / "other")


def test_a_cache_that_others_may_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path / "cache"))
    mask = os.umask(0o002)  # as where every user has a group of their own
    try:
        folder = vector_add().folder
    finally:
        os.umask(mask)
    assert vector_add().folder == folder
    folder.chmod(0o777)
    with pytest.raises(StoreError, match="can be written by other users"):
        vector_add()
    monkeypatch.setenv("AUTOTUNE_CACHE_SHARED", "1")
    assert vector_add().folder == folder


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arguments": {"c": "writes float32[n]"}}, "cannot read 'writes float32"),
        ({"arguments": {"c": "output float32"}}, "cannot read 'output float32'"),
        ({"arguments": {"c": "output float32[n]", "f": 2.0}}, "argument f: 2.0 is neither an array"),
        ({"arguments": {"c": "output float32[n]", "f": "single"}}, "argument f: 'single' is neither"),
        ({"policies": {"block_size": []}}, "has no values"),
        ({"policies": {}}, "nothing to choose"),
        ({"policies": {"block_size": 64}}, "64 is no list of values"),
        ({"policies": {"block_size": "abc"}}, "'abc' is no list of values"),
        (
            {"policies": {"block_size": [64], "fast": [True, False]}},
            "True is neither a whole number nor a word",
        ),
        ({"policies": {"block_size": [64], "factor": [0.5]}}, "0.5 is neither a whole number nor a word"),
        ({"polices": {}}, "knows no 'polices'"),
        ({"symbols": {"w": "float32"}}, "an array is needed"),
        ({"arguments": {"c": "float32[n]", "a": "input float32[n]"}}, "no argument is written to"),
    ],
)
def test_what_cannot_be_read_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        vector_add(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policies": {"block_size": [64], "while": [1]}}, "while cannot be a macro"),
        ({"policies": {"block_size": [1], "x": [1]}}, "x cannot be a macro"),
        ({"policies": {"memory": {"layout": "memory", "data": ["a"], "values": ["global", "readonly"]}}},
         "which the kernel finds as a pointer: give a access: accessor, write `Policy::a a`"),
        ({"constraints": "block > 64"}, "unknown name 'block' in 'block > 64'; did you mean 'block_size'"),
        ({"grid": "ceil_div(n / block_size)"}, r"ceil_div takes 2 numbers, 1 given in 'ceil_div\(n / block_size\)'"),
        ({"arguments": {**_ADDS["arguments"], "c": "output float[n]"}},
         "'float' is not one of .* float and double is int32, float32 and"),
        ({"arguments": {**_ADDS["arguments"], "c": "output Four[n]"}},
         r"several numbers together, as float4 holds.* \[n, 4\]"),
        ({"template": ["block"]}, "unknown template argument 'block'.*block_size"),
        ({"symbols": {"w": {"role": "output", "type": "int32", "shape": ["n"]}}}, "only an input can have access"),
        ({"policies": {"block_size": [64], "fast": {"compile_option": True, "values": [0, 1]}}}, "needs means"),
        ({"policies": {"block_size": [64], "fast": {"compile_option": True, "values": [0, 1], "means": {1: "-o /x"}}}},
         "'-o /x' is not allowed"),
        ({"policies": {"block_size": [64], "fast": {"compile_option": True, "values": [1, 2], "means": {2: "2"},
                                                    "layout": "padding", "data": ["a"]}}},
         "it either chooses a layout or a compile option"),
        ({"arguments": {"c": {"role": "output", "type": "float32", "shape": ["n"], "begins_as": "a"},
                        "a": "input float64[n]", "b": "input float32[n]", "n": "int32"}}, "a has another type"),
        ({"arguments": {"c": {"role": "output", "type": "float32", "shape": ["n"], "windowed": "n"},
                        "a": "input float32[n]", "b": "input float32[n]", "n": "int32"}},
         "windowed needs access: accessor"),
    ],
)  # fmt: skip
def test_a_declaration_that_cannot_be_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((FamilyError, UnknownName), match=message):
        vector_add(**changes)


def test_a_size_that_its_type_cannot_hold_is_refused() -> None:
    kernel = Kernel(
        ADD.replace("int n", "signed char n"), "vector_add",
        arguments={"c": "output float32[n]", "a": "input float32[n]", "b": "input float32[n]", "n": "int8"},
        grid=1, block="block_size", policies={"block_size": [64]},
    )  # fmt: skip
    with pytest.raises(
        WorkloadError, match=r"extent n is 128, and kernel vector_add takes it as int8.*type: int64"
    ):
        bind(kernel.family, {"a": floats(128), "b": floats(128)}, {}, {})


# -- from then on it is a family like any other -----------------------------------------------------------------------


def test_it_is_swept_and_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = vector_add()
    monkeypatch.chdir(tmp_path)
    given = workload(tmp_path, "vector_add", a=(1000,), b=(1000,))
    words = [str(kernel.folder), "-w", str(given), "--device", "cpu", "--samples", "3"]
    assert main(["sweep", *words]) == 0
    policy = next((tmp_path / "policies" / "vector_add").glob("*.yaml")).read_text()
    assert "against: control" in policy
    a, b = floats(500), floats(500, 1)
    with autotune.load(kernel, device="cpu") as add:
        np.testing.assert_array_equal(add(a, b), a + b)
        assert "small" in add.explain(bind(kernel.family, {"a": a, "b": b}, {}, {}))[0].origin


def test_a_static_pass_needs_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = blur()
    monkeypatch.chdir(tmp_path)
    given = workload(tmp_path, "blur", **{"in": (1000,), "weights": (3,)})
    assert (
        main(["sweep", str(kernel.folder), "--static", "--arch", "sm_90", "-w", str(given), "--out", "out"])
        == 0
    )
    frame = pd.read_csv(tmp_path / "out" / "static.csv")
    assert len(frame) == 4
    assert set(frame.dynamic_shared_bytes) == {4 * (size + 2) for size in (32, 64, 128)}


def test_an_array_that_is_updated_in_place_begins_as_what_is_given() -> None:
    kernel = Kernel(
        SAXPY, "saxpy",
        arguments={"y": "inout float32[n]", "x": "input float32[n]", "a": np.float32(2), "n": "int64"},
        grid="ceil_div(n, bs)", block="bs", policies={"bs": [32, 64]},
    )  # fmt: skip
    assert kernel.family.beginnings == {"y_after": "y"}
    x, y = floats(100), floats(100, 1)
    before = y.copy()
    with (
        pytest.warns(UserWarning, match="no usable policy file"),
        autotune.load(kernel, device="cpu") as saxpy,
    ):
        for factor in (2, 3):
            np.testing.assert_allclose(saxpy(y, x, a=factor), factor * x + y, rtol=1e-6)
    np.testing.assert_array_equal(y, before)


ROWS = """
__global__ void rows(float4* out, const int* ends, const float* x, const float* y, int nodes) {
  const int i = blockIdx.x * BS + threadIdx.x;
  if (i >= nodes) return;
  float sum = y[i];
  for (int e = ends[i]; e < ends[i + 1]; ++e) sum += x[e];
  out[i] = make_float4(sum, 1, 2, 3);
}
"""


def test_a_size_without_a_name_is_an_extent() -> None:
    kernel = Kernel(
        ROWS, "rows",
        arguments={
            "out": "output float32[nodes, 4]", "ends": "input int32[nodes + 1]", "x": "input float32[max(edges, 1)]",
            "y": "input float32[nodes]", "nodes": "int32",
        },
        extents={"edges": {"value": "2 * nodes"}},
        grid="ceil_div(nodes, BS)", block="BS", policies={"BS": [32, 64]},
    )  # fmt: skip
    family = kernel.family
    shapes = {name: data.shape for name, data in family.data.items()}
    assert shapes["out"] == ("nodes", "extent_4") and family.compute_known_sizes({}) == {"extent_4": 4}
    assert shapes["ends"] == ("nodes_plus_1",) and shapes["x"] == ("max_edges_1",)
    ends, x, y = np.array([0, 2, 5, 6], np.int32), floats(6), floats(3)
    with pytest.warns(UserWarning, match="no usable policy"), autotune.load(kernel, device="cpu") as rows:
        sums = y + np.add.reduceat(x, ends[:-1])
        np.testing.assert_allclose(rows(ends, x, y), [[each, 1, 2, 3] for each in sums], rtol=1e-6)
        with pytest.raises(
            WorkloadError, match=r"ends: nodes_plus_1 is 3, and must be nodes \+ 1, which is 4"
        ):
            rows(ends[:-1], x, y)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("float* c, const float* a", None),
        (
            "double* c, const float* a",
            "kernel add takes `double\\* c`, and the argument c is an array of float32",
        ),
        ("float* c, const int* __restrict__ a", "make it float\\* there"),
        ("float c, const float* a", "takes `float c`"),
        ("Real* c, const float* a", None),  # what that is, its macro says
    ],
)
def test_a_kernel_with_another_type_for_an_argument_is_refused(text: str, said: str | None) -> None:
    def declare() -> Kernel:
        return Kernel(
            f"__global__ void add({text}, unsigned n) {{}}", "add",
            arguments={"c": "output float32[n]", "a": "input float32[n]", "n": "int32"}, grid=1, block="bs",
            policies={"bs": [32, 64]},
        )  # fmt: skip

    if said is None:
        declare()
    else:
        with pytest.raises(UsageError, match=said):
            declare()


def test_tune_kernel_has_the_same_rule() -> None:
    tune_kernel = pytest.importorskip("autotune.kernel_tuner").tune_kernel
    n, given = 64, np.zeros(64)
    with pytest.raises(
        UsageError, match=r"takes `float\* c`, and the argument c is an array of float64.* double\*"
    ):
        tune_kernel(
            "vector_add", ADD, n, [given, given, given, np.int32(n)], {"block_size": [32, 64]},
            block_size_names=["block_size"], device="cpu",
        )  # fmt: skip


def test_a_result_that_a_choice_changes_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(
        "__global__ void fill(int* y, const int* x) { y[threadIdx.x] = x[threadIdx.x] + WRONG; }", "fill",
        arguments={"y": "output int32[n]", "x": "input int32[n]"}, grid=1, block="n", policies={"WRONG": [0, 1]},
    )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    given = tmp_path / "small.yaml"
    given.write_text(
        "schema: 1\nworkload: small\nfamily: fill\narrays: {x: {random: integers, high: 9, shape: [32]}}\n"
    )
    assert main(["sweep", str(kernel.folder), "-w", str(given), "--device", "cpu", "--samples", "3"]) == 0
    results = (tmp_path / "autotune-results" / "fill" / "results.csv").read_text()
    assert "wrong_result" in results


def test_importing_autotune_and_naming_a_kernel_loads_nothing_heavy() -> None:
    program = """
import sys
import autotune
assert "numpy" not in sys.modules
autotune.Kernel
heavy = {"pandas", "optuna", "plotly", "jinja2", "rich", "click", "jsonschema", "pycuda"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert "Kernel" in autotune.__all__
    assert "Policy::matrix" in MATRIX


def test_several_kernels_are_a_family_folder() -> None:
    with pytest.raises(
        UsageError, match=r"autotune\.Kernel is of one kernel; several that run in turn are a family"
    ):
        Kernel("__global__ void a() {}\n", ["a", "b"], arguments={}, grid=1, block=1)  # type: ignore[arg-type]

"""What the text of a plain kernel does with its choices and arguments, in lint, Kernel and sweep."""

from pathlib import Path
from typing import Any

import plain
import pytest
import yaml
from plain import ADD, floats, vector_add

import autotune
from autotune.authoring import lint
from autotune.declaration import kernel_text, load_family
from autotune.declaration.plain_kernel import Kernel
from autotune.engine import SweepRequest
from autotune.errors import FamilyError, UsageError

_ROWS = {"block_size": [64, 128], "rows": [1, 2]}
_ADDS: dict[str, Any] = {
    "arguments": {"c": "output float32[n]", "a": "input float32[n]", "b": "input float32[n]", "n": "int32"},
    "grid": "ceil_div(n, block_size)", "block": "block_size", "policies": {"block_size": [64, 128]},
}  # fmt: skip


_DEFINED = "#define block_size 256 // threads\n"


@pytest.mark.parametrize(
    ("ahead", "line"),
    [
        (f"// of one row\n{_DEFINED}", 2),
        ("#ifdef FAST\n#define ROWS 2\n#endif\n\n  # define  block_size\t256\n", 5),
        (f"#undef block_size\n{_DEFINED}", 2),
        (f"#ifndef block_size\n{_DEFINED}#endif\n", 0),
        (f"#if !defined(block_size)\n{_DEFINED}#endif\n", 0),
        (f"#ifdef DEBUG\n#if 1\n#endif\n{_DEFINED}#endif\n", 0),
        (f"#ifdef block_size\n#else\n{_DEFINED}#endif\n", 0),
        (f"/*\n{_DEFINED}*/\n", 0),
        ("#define block_size_2 256\n", 0),
        ("#define twice (2 * block_size)\n", 0),
    ],
)
def test_a_definition_that_replaces_a_choice_is_refused(tmp_path: Path, ahead: str, line: int) -> None:
    folder = vector_add().save(tmp_path / "mine")
    (folder / "vector_add.cu").write_text(ahead + ADD)
    request = SweepRequest(family=load_family(folder), device="cpu", out=tmp_path / "out")
    found = [(each.path, each.line) for each in lint(str(folder)) if each.rule == "redefined-policy"]
    if not line:
        assert not found
        request.check()
        Kernel(folder / "vector_add.cu", "vector_add", **_ADDS)
        return
    assert found == [(folder / "vector_add.cu", line)]
    said = (
        rf"vector_add\.cu:{line}: #define block_size 256 replaces the value of policy block_size in every "
        r"configuration: delete it, or put it into #ifndef block_size \.\.\. #endif"
    )
    with pytest.raises(FamilyError, match=said):
        request.check()
    with pytest.raises(FamilyError, match=said):
        Kernel(folder / "vector_add.cu", "vector_add", **_ADDS)


def test_a_header_may_replace_a_choice_too(tmp_path: Path) -> None:
    folder = vector_add().save(tmp_path / "mine")
    (folder / "sizes.h").write_text(f"#pragma once\n{_DEFINED}")
    source = folder / "vector_add.cu"
    source.write_text(f'#ifndef block_size\n#include "sizes.h"\n#endif\n{ADD}')
    assert "redefined-policy" not in {each.rule for each in lint(str(folder))}
    source.write_text(f'#include "sizes.h"\n{ADD}')
    with pytest.raises(FamilyError, match=r"^sizes\.h:2: #define block_size 256 replaces"):
        Kernel(source, "vector_add", **_ADDS)


def test_a_template_argument_is_no_macro() -> None:
    text = ADD.replace("extern", "template <int rows>\nextern").replace('"C" ', "")
    Kernel(f"#define one 1\n{text}", "vector_add", **{**_ADDS, "template": ["rows"], "policies": _ROWS})


def test_a_choice_that_nothing_reads_is_a_warning_and_a_note_of_the_sweep(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = (
        "no kernel reads policy 'unroll': unroll is not in vector_add.cu, and no grid, block or shared_bytes"
    )
    with pytest.warns(UserWarning, match=said) as warned:
        kernel = vector_add(policies={"block_size": [64], "unroll": [1, 4], "single": [1]})
    assert len(warned) == 1  # a choice of one value tunes nothing
    assert warned[0].filename == plain.__file__
    a = floats(64)
    autotune.sweep(kernel, a=a, b=a, device="cpu", out=tmp_path, samples=3, progress=False)
    assert f"vector_add: {said}" in caplog.text
    caplog.clear()
    autotune.sweep(vector_add(), a=a, b=a, device="cpu", out=tmp_path, samples=3, progress=False)
    assert "no kernel reads" not in caplog.text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "add"}, r"add\.cu has no kernel add; it has vector_add"),
        ({"name": "math::add<1>"}, r"\.cu has no kernel math::add<1>; it has vector_add"),
        ({"less": ["n"]}, r"kernel vector_add has 4 parameters in .*\.cu and 3 arguments here: n is missing"),
        ({"less": ["a", "n"]}, "4 parameters in .* and 2 arguments here: a, n are missing"),
        ({"more": {"m": "int32"}}, "4 parameters in .* and 5 arguments here: delete m"),
        ({"less": ["a", "n"], "more": {"m": "int32"}}, "3 arguments here: list each parameter in its order"),
    ],
)
def test_a_kernel_that_is_not_there_or_takes_other_arguments_is_refused(
    changes: dict[str, Any], said: str
) -> None:
    arguments = {**_ADDS["arguments"], **changes.get("more", {})}
    kept = {name: each for name, each in arguments.items() if name not in changes.get("less", ())}
    with pytest.raises(UsageError, match=said):
        Kernel(ADD, changes.get("name", "vector_add"), **{**_ADDS, "arguments": kept})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("vector_add", "KERNEL(vector_add)"),  # what that is called, its macro says
        ("const float* a, const float* b", "INPUTS(a, b)"),
        (", int n", "\n#ifdef SIZES\n, int m\n#endif\n, int n"),
        ("void vector_add", "void __launch_bounds__(max(64, block_size)) vector_add"),
        ("extern", "__global__ void vector_add(float* c);\nextern"),
    ],
)
def test_a_signature_that_its_text_does_not_show_is_accepted(old: str, new: str) -> None:
    assert Kernel(ADD.replace(old, new), "vector_add", **_ADDS).name == "vector_add"


def test_the_kernels_of_a_text() -> None:
    text = """
__global__ void __launch_bounds__(max(64, 32), 2) first(int (*rows)[4]);
template <typename T> __global__ static void second(T* y) { second_part(y); }
"""
    assert kernel_text.list_kernels(text) == ["first", "second"]


ROW_SUMS = """
__global__ void row_sums(float* out, const float* in, int rows, int cols) {
  const int row = blockIdx.x * BLOCK + threadIdx.x;
  if (row >= rows) return;
  out[row] = 0;
  for (int col = 0; col < cols; ++col) out[row] += in[row * cols + col];
}
"""


def sum_rows(order: list[str], **changes: str) -> Kernel:
    every = {
        "out": "output float32[rows]",
        "in": "input float32[rows, cols]",
        "rows": "int32",
        "cols": "int32",
    }
    arguments = {name: {**every, **changes}[name] for name in order}
    policies = {"BLOCK": [32, 64]}
    return Kernel(
        ROW_SUMS,
        "row_sums",
        arguments=arguments,
        grid="ceil_div(rows, BLOCK)",
        block="BLOCK",
        policies=policies,
    )


def test_arguments_in_another_order_are_a_warning(tmp_path: Path) -> None:
    with pytest.warns(UserWarning) as warned:
        kernel = sum_rows(["out", "in", "cols", "rows"])
    said = "parameter 3 of kernel row_sums is named rows, the declaration passes cols"
    assert [said in str(each.message) for each in warned] == [True, False]
    found = [each for each in lint(str(kernel.folder)) if each.rule == "argument-order"]
    assert [(each.line, each.severity) for each in found] == [(2, "warning"), (2, "warning")]
    right = sum_rows(["out", "in", "rows", "cols"], out="inout float32[rows]")
    assert "argument-order" not in {each.rule for each in lint(str(right.folder))}


def test_an_output_that_the_kernel_cannot_write_is_refused(tmp_path: Path) -> None:
    said = r"parameter 2 of kernel row_sums is `const float\* in`, and the declaration passes the output out"
    with pytest.raises(FamilyError, match=said):
        sum_rows(["in", "out", "rows", "cols"])
    folder = sum_rows(["out", "in", "rows", "cols"]).save(tmp_path / "mine")
    declared = folder / "family.yaml"
    content = yaml.safe_load(declared.read_text())
    content["kernels"]["row_sums"]["arguments"] = ["in", "out", "rows", "cols"]
    declared.write_text(yaml.safe_dump(content, sort_keys=False))
    assert ("argument-order", "error") in {(each.rule, each.severity) for each in lint(str(folder))}


def test_an_input_that_the_kernel_writes_is_a_warning() -> None:
    text = "__global__ void copy(float* to, float* from) { to[BS * blockIdx.x] = from[BS * blockIdx.x]; }"
    said = r"parameter 1 of kernel copy is written \(`float\* to`\), and the declaration passes the input x"
    with pytest.warns(UserWarning, match=said):
        Kernel(
            text, "copy", arguments={"x": "input float32[n]", "y": "output float32[n]"}, grid=1, block="BS",
            policies={"BS": [32, 64]},
        )  # fmt: skip

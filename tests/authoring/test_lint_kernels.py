"""``autotune lint`` on kernels that are declared in Python, and on what a source reads."""

from pathlib import Path
from typing import Any

import pytest
from lens import SOURCE, lens
from plain import ADD, blur, matrix, vector_add

from autotune.authoring import lint


@pytest.mark.parametrize("kernel", [vector_add, blur, matrix])
def test_lint_finds_nothing_but_that_there_is_no_reference_and_no_workload(kernel: Any) -> None:
    assert {finding.rule for finding in lint(str(kernel().folder))} == {"no-workload", "reference-is-kernel"}


@pytest.mark.parametrize(
    ("old", "new", "rule", "said"),
    [
        ("int n)", "long long n)", "argument-type", "takes `long long n` where family.yaml passes int32"),
        ("const float* a", "const double* a", "argument-type", "passes an array of float32: make it float*"),
        ("const float* a", "Policy::a a", "argument-order", "finds a by a pointer"),
        ("const float* b, int n", "int n", "argument-order", "has 3 parameters"),
    ],
)
def test_lint_holds_a_signature_against_the_declaration(
    tmp_path: Path, old: str, new: str, rule: str, said: str
) -> None:
    folder = vector_add().save(tmp_path / "mine")
    source = folder / "vector_add.cu"
    source.write_text(ADD.replace(old, new))
    found = {finding.rule: finding.message for finding in lint(str(folder))}
    assert said in found[rule]


def test_a_choice_that_no_source_and_no_launch_reads_is_told(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="no kernel reads policy 'unroll'"):
        folder = vector_add(policies={"block_size": [64], "unroll": [1, 2]}).save(tmp_path / "mine")
    (found,) = (finding for finding in lint(str(folder)) if finding.rule == "unread-policy")
    assert "no kernel reads policy 'unroll': unroll is not in vector_add.cu" in found.message


def test_lint_knows_that_a_constant_layout_policy_is_to_be_read(tmp_path: Path) -> None:
    lens(tmp_path, "float32")

    def rules() -> set[str]:
        return {found.rule for found in lint(str(tmp_path))}

    before = rules()
    (tmp_path / "lens.cu").write_text(SOURCE.replace("Policy::memory != Memory::texture", "true"))
    assert rules() - before == {"unread-policy"}

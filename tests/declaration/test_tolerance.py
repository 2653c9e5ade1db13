"""How far an output may be off: which tolerance is whose, and what is rejected."""

from pathlib import Path
from typing import Any

import pytest
from fakes import FAMILY, write_family

from autotune.declaration import Tolerance, load_family
from autotune.errors import AutotuneError

OUTPUTS = """\
  y: {role: output, type: float32, shape: [n]}
  smooth: {role: output, type: uint8, shape: [n]}
  hits: {role: output, record: Hit, shape: [n], fields: {score: float32, place: int32}}
  pairs: {role: output, record: Pair, shape: [n], fields: {a: int32, b: int32}}
"""
MEMBERS = ["y", "smooth", "hits.score", "hits.place", "pairs.a", "pairs.b"]


def tolerances(folder: Path, declared: str, **names: Any) -> dict[str, Tolerance]:
    text = FAMILY.replace("  y: {role: output, type: float32, shape: [n]}\n", OUTPUTS)
    family = load_family(write_family(folder, f"{text}tolerance: {declared}\n"))
    return family.tolerances({**family.space.control, "n": 100, **names})


def test_what_is_for_all_outputs_is_for_their_floating_point(tmp_path: Path) -> None:
    found = tolerances(tmp_path, "{relative: 0.5, absolute: 0.01 * n}")
    assert list(found) == MEMBERS
    for member in ("y", "hits.score"):
        assert found[member] == Tolerance(0.5, 1.0, declared="tolerance")
    for member in ("smooth", "hits.place", "pairs.a"):
        assert found[member] == Tolerance(declared="tolerance")


def test_an_output_has_its_own_and_nothing_else(tmp_path: Path) -> None:
    found = tolerances(
        tmp_path,
        "{relative: 0.5, smooth: {absolute: 1, share: 0.001}, hits: {nan: ignore}, hits.place: {absolute: 2}}",
    )
    assert found["y"] == Tolerance(0.5, declared="tolerance")
    assert found["smooth"] == Tolerance(absolute=1, share=0.001, declared="tolerance.smooth")
    assert found["hits.score"] == Tolerance(nan="ignore", declared="tolerance.hits")
    assert found["hits.place"] == Tolerance(absolute=2, declared="tolerance.hits.place")
    assert found["pairs.a"] == Tolerance(declared="tolerance")


def test_without_any_everything_is_exact(tmp_path: Path) -> None:
    assert set(tolerances(tmp_path, "{}").values()) == {Tolerance()}


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("{smoth: {absolute: 1}}", r"unknown output 'smoth'.*did you mean 'smooth'"),
        ("{x: {absolute: 1}}", "unknown output 'x'"),
        ("{hits.scores: {absolute: 1}}", r"unknown output 'hits.scores'.*did you mean 'hits.score'"),
        ("{relativ: 0.1}", r"is not of type 'object'; relative and absolute are for every"),
        ("{smooth: {absolut: 1}}", r"unknown key 'absolut'; did you mean 'absolute'"),
        ("{smooth: {}}", r"tolerance\.smooth"),
        ("{smooth: {nan: ignore}}", "smooth: nan is for floating point, and this is uint8; delete it"),
        ("{y: {nan: never}}", "'never' is not one of"),
        ("{pairs: {absolute: 1}}", r"record of whole numbers.*write pairs\.a, pairs\.b"),
        ("{smooth: {share: 1}}", r"the share of smooth that may be wrong is 1\.0 here; it has to be below 1"),
        ("{smooth: {absolute: 0 - n}}", r"the absolute tolerance of smooth is -100\.0 here; it has to be finite"),
        ("{smooth: {absolute: m}}", "m"),
    ],
)  # fmt: skip
def test_what_is_no_tolerance_is_refused(tmp_path: Path, declared: str, said: str) -> None:
    with pytest.raises(AutotuneError, match=said):
        tolerances(tmp_path, declared)

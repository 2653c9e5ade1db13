"""What the comparisons with rivals of coulomb_map and eri compute themselves: the split of 1 / r, and the run of
JoltQC's generator within its time."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from coulomb_map_peers import OURS, Problem, Split, asked, fastest, through
from eri_matrices import generated


@pytest.mark.parametrize("share", [1e-4, 1e-6])
def test_the_polynomial_of_a_split_and_the_rest_make_one_over_r(share: float) -> None:
    split = Split(0.5, share)
    r = np.linspace(0.01, split.reach, 500)
    near = 1 / r - np.polynomial.polynomial.polyval(2 * (r / split.reach) ** 2 - 1, split.terms())
    exact = np.array([math.erfc(x / (split.smooth * math.sqrt(2))) for x in r]) / r
    assert np.abs(near - exact).max() <= 2 * share / split.reach
    assert math.erfc(split.reach / (split.smooth * math.sqrt(2))) <= share
    assert math.exp(-((math.pi * split.smooth / split.step) ** 2) / 2) == pytest.approx(share)
    assert split.width * split.step / 2 >= split.sigma * math.sqrt(2 * math.log(1 / share))


def test_a_row_says_how_exact_a_program_is() -> None:
    problem = Problem(
        np.zeros((3, 4), np.float32), (9, 5, 5), 0.5, np.array([[4, 4, 0], [8, 0, 4]]), np.array([1.0, -2.0]),
        np.array([10.0, 10.0]), 1e-3, 1e-2,
    )  # fmt: skip
    assert problem.every(4)[0] == (3, 2, 2)
    assert problem.every(4)[2].tolist() == [[1, 1, 0], [2, 0, 1]]
    found = [problem.row("it", "", 4, 0.0, 2.0, [1.0 + off, -2.0]) for off in (0.009, 0.09, 0.2)]
    assert [row["reaches"] for row in found] == ["ours", "accuracy", "neither"]
    assert [float(row["error_of_sum"]) for row in found] == pytest.approx([9e-4, 9e-3, 2e-2])
    assert found[0]["points"] == 12
    assert float(found[0]["points_per_s"]) == 6000


def test_orders_end_where_one_is_exact_and_finer_lattices_where_one_fails() -> None:
    asked: list[tuple[int, int]] = []

    def run(order: int, theta: float, stride: int, settings: str) -> dict[str, str]:
        asked.append((order, stride))
        if stride == 2:
            raise MemoryError("no more")
        return {"reaches": "ours" if order >= 7 else "neither"}

    rows = list(through([1, 2, 4], [(5, 0.5), (7, 0.5), (9, 0.5)], "it", run))
    assert asked == [(5, 4), (7, 4), (7, 2)]
    assert rows[-1]["problem"] == "MemoryError: no more"


def test_ours_keeps_the_accuracy_that_its_configuration_begins_with() -> None:
    assert asked("accuracy=1e-4,order=12", 1e-6) == (1e-4, "method=expansions,order=12")
    assert asked("accuracy=1e-4,method=direct", 1e-6) == (1e-4, "method=direct")
    assert asked("method=direct", 1e-6) == (1e-6, "method=direct")
    assert len({asked(text, 1e-6) for text in OURS}) == len(OURS)


def test_a_mesh_is_compared_with_the_fastest_of_ours_that_is_no_less_exact() -> None:
    rows = [
        {"points": "8", "ms": ms, "error_of_sum": error}
        for ms, error in (("9", "1e-9"), ("10", "1e-10"), ("2", "1e-7"))
    ]
    assert [fastest(rows, 8, error) for error in (1e-6, 1e-8, 1e-9, 1e-11)] == [
        rows[2],
        rows[0],
        rows[0],
        None,
    ]
    assert fastest(rows, 27, 1e-6) is None


GENERATOR = """
import json, pathlib, sys
assert pathlib.Path("gly30.xyz").exists()
path = pathlib.Path("optimal_scheme_some GPU_fp64.json")
known = json.loads(path.read_text()) if path.exists() else {}
if sys.argv[1:5] == ["1", "1", "0", "0"]:
    sys.exit("no tasks")
known[str(int("".join(sys.argv[1:5])))] = [-1]
path.write_text(json.dumps(known))
"""


def test_joltqcs_generator_is_run_for_each_class_within_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "jqc" / "backend" / "data"
    data.mkdir(parents=True)
    (tmp_path / "jqc" / "__init__.py").write_text("")
    (data / "gly30.xyz").write_text("")
    (data / "generate_fragment.py").write_text(GENERATOR)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "jqc", raising=False)
    found, classes = generated(1, 100)
    assert classes == 7
    assert set(found) == {"0", "1000", "1010", "1011", "1110", "1111"}  # one failed, and is said
    assert generated(0, 100) == ({"0": [-1]}, 1)
    assert generated(1, 0) == ({}, 7)

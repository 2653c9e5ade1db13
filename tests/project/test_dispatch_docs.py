"""docs/run-time.md: its programs run, on the cpu where they name no device, and its figures were measured."""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "run-time.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS, ids=["calls", "data that stay"])
def test_a_program_of_the_page_runs(program: str) -> None:
    names: dict[str, Any] = {}
    here = program.replace('load("allpairs")', 'load("allpairs", device="cpu", policies="no-such-folder")')
    assert here != program
    with pytest.warns(UserWarning, match="no usable policy file"):
        exec(here, names)
    genotypes = names["genotypes"]
    np.testing.assert_array_equal(names["D"], (genotypes[:, None] != genotypes[None]).sum(-1))


def test_the_figures_are_the_recorded_ones() -> None:
    with (ROOT / "benchmarks" / "results" / "dispatch-overhead-h200.csv").open() as file:
        measured = {row["what"]: row for row in csv.DictReader(file)}
    table = PAGE.partition("<!-- dispatch-overhead -->")[2].partition("<!-- /dispatch-overhead -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()[2:]]
    assert len(rows) > 5
    for name, microseconds, over in rows:
        assert float(microseconds) == round(float(measured[name]["median"]), 1)
        assert over == "" or float(over) == round(float(measured[name]["over_bare"]), 1)
    for name in ("load", "first call"):
        assert f"{float(measured[name]['median']):.0f} ms" in PAGE


def test_at_the_primers_size_the_faster_device_was_chosen() -> None:
    with (ROOT / "benchmarks" / "results" / "allpairs-h200-crossover.csv").open() as file:
        measured = {row["parameters"]: row for row in csv.DictReader(file)}
    row = measured["instances=112 attributes=512"]
    faster = min(("cuda", "cpu"), key=lambda kind: float(row[f"{kind}_ms"]))
    assert row["chosen"] == row["faster"] == faster
    for size in ("14", "112", "448"):
        for kind in ("cuda", "cpu"):
            assert f"{float(measured[f'instances={size} attributes=512'][f'{kind}_ms']):.2f}" in PAGE

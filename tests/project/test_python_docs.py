"""docs/guides/python.md: its program runs, on the cpu, and what it lists is there."""

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "python.md").read_text(encoding="utf-8")
PROGRAM = "".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
ARGUMENTS = inspect.signature(autotune.sweep).parameters


def test_the_program_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(PROGRAM.replace('preset="ladder"', 'preset="ladder", device="cpu", samples=3'), names)
    genotypes = names["genotypes"]
    np.testing.assert_array_equal(names["D"], (genotypes[:, None] != genotypes[None]).sum(-1))
    assert f"`{names['study'].workload}`" in PAGE
    assert names["best"].speedup > 1
    assert names["file"].is_relative_to("policies") and names["file"].is_file()
    assert names["page"] == Path("autotune-results/allpairs/report.html")
    assert len(names["table"]) == 6
    assert names["same"].record.identity == names["checked"].record.identity != names["study"].record.identity


def test_every_argument_is_told() -> None:
    told = set(re.findall(r"\b(\w+)(?:=|`)", PAGE))
    assert {name for name in ARGUMENTS if name not in ("family", "named")} <= told


def test_what_a_study_is_said_to_have_it_has() -> None:
    table = PAGE.partition("| of a `SweepResult` |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\|([^|]+)\|", table, re.MULTILINE)
    told = {name for row in rows[1:] for name in re.findall(r"`(\w+)", row)}
    has = {name for name in dir(autotune.SweepResult) if not name.startswith("_")} | {"record"}
    assert {"best", "to_pandas", "report", "save_policy"} <= told <= has

"""docs/reference/records.md: its commands run, and what it lists is all there is."""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from autotune.cli.commands import main


def test_the_commands_in_the_document_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that need no GPU, in a folder that has what they name."""
    root = Path(__file__).parents[2]
    text = (root / "docs" / "reference" / "records.md").read_text(encoding="utf-8")
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    monkeypatch.chdir(tmp_path)
    for name in ("benchmarks", "policies"):
        (tmp_path / name).symlink_to(root / name)
    ran = []
    for line in lines:
        program, command, *words = shlex.split(line)
        assert program == "autotune"
        if command in ("compare", "convert", "import", "report"):
            assert main([command, *words]) == 0, line
            ran.append(command)
    assert ran == ["compare", "compare", "convert", "convert", "import", "report"]
    assert (tmp_path / "imported-report" / "report.html").is_file()
    described = re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE)
    columns = {name for cell in described for name in re.findall(r"`(\w+)`", cell)}
    assert set(pd.read_csv(tmp_path / "moved.csv").columns) <= columns


def test_ncu_and_ceilings_in_the_document_are_all_there_are() -> None:
    from autotune.measure.ceilings import CEILINGS
    from autotune.measure.ncu import COUNTERS

    text = (Path(__file__).parents[2] / "docs" / "reference" / "records.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z]\w+)`", text))
    assert set(CEILINGS) <= named
    assert {name for name in COUNTERS if not name.startswith("stall_")} <= named

"""docs/guides/from-kernel-tuner.md: its programs run, on the cpu; its tables name every argument and strategy."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from test_docs import fences, section

from autotune import kernel_tuner
from autotune.kernel_tuner import tuning

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "from-kernel-tuner.md").read_text(encoding="utf-8")


def named(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text))


@pytest.mark.filterwarnings("ignore:running on the cpu")
def test_both_programs_find_a_winner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compile_cache: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE", compile_cache)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for program in [content for language, content in fences(PAGE) if language == "python"]:
        exec(program, names)
    assert names["best"] == names["env"]["best_config"]
    assert {one["block_size_x"] for one in names["results"]} == {64, 128, 256}
    assert names["best"]["GB/s"] == pytest.approx(12 * names["size"] / 1e6 / names["best"]["time"])
    assert names["study"].best.configuration["block_size_x"] in (64, 128, 256)
    assert str(names["study"].best.ms) in capsys.readouterr().out


def test_every_argument_and_every_strategy_is_in_a_table() -> None:
    arguments = section(PAGE, "## Arguments")
    told = named(" ".join(line.split("|")[1] for line in arguments.splitlines() if line.startswith("| `")))
    assert told >= set(inspect.signature(kernel_tuner.tune_kernel).parameters)
    assert told >= set(tuning._NO_COUNTERPART)
    rows = [line.split("|") for line in arguments.splitlines() if line.startswith("| `") and "|" in line]
    for name, search in tuning._SEARCHES.items():
        assert any(name in named(row[1]) and search in named(row[2]) for row in rows), name

"""What a shell completes."""

from types import SimpleNamespace
from typing import Any

import pytest

from autotune.cli.commands import app
from autotune.cli.options import policy_values


def completed(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What bash is given for the last word of ``line``."""
    monkeypatch.setenv("_AUTOTUNE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    with pytest.raises(SystemExit):
        app.main(prog_name="autotune")
    return [line.removeprefix("plain,") for line in capsys.readouterr().out.split()]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("autotune sh", ["show"]),
        ("autotune sweep allp", ["allpairs"]),
        ("autotune sweep allpairs -w wi", ["wide"]),
        ("autotune sweep allpairs --preset lad", ["ladder"]),
        ("autotune list allpairs --set mem", ["memory="]),
        ("autotune list allpairs --set memory=t", ["memory=texture"]),
        ("autotune list allpairs --set memory=texture,g", ["memory=texture,global"]),
        ("autotune list allpairs --set memory=texture,t", []),
        ("autotune sweep nowhere --preset l", []),
    ],
)
def test_names_are_completed(
    line: str, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed(line, monkeypatch, capsys) == words


def test_without_a_family_there_is_nothing_to_say() -> None:
    nothing: Any = SimpleNamespace(params={}, args=[])
    assert policy_values(nothing, nothing, "x") == []

"""autotune.cli.plain_run: what it reads is what the command line reads, and the rest is left to that."""

import inspect
import typing
from pathlib import Path
from typing import Any

import pytest

from autotune.cli import commands, plain_run
from autotune.cli import run as running

pytestmark = pytest.mark.filterwarnings("ignore:no usable policy file")

Asked = plain_run.Asked


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["f"], Asked(family="f")),
        (
            ["f", "-i", "a=1", "--input", "b=x y", "--input=c=3"],
            Asked(family="f", given=("a=1", "b=x y", "c=3")),
        ),
        (["-o", "x.npy", "f"], Asked(family="f", output=Path("x.npy"))),
        (["f", "--out=x", "--explain"], Asked(family="f", output=Path("x"), explain=True)),
        (["f", "--device", "cuda:1", "-w", "lambda"], Asked(family="f", device="cuda:1", workload="lambda")),
        (
            ["f", "--policies", "p", "--data", "d"],
            Asked(family="f", policies=Path("p"), data=Path("d")),
        ),
        ([], None),
        (["f", "g"], None),
        (["f", "--help"], None),
        (["f", "-i"], None),
        (["f", "-i", "--explain"], None),
        (["f", "-ia=1"], None),
        (["f", "--explain=yes"], None),
        (["f", "--allocation", "dynamic"], None),
        (["f", "--", "x"], None),
        (["f", "--devic", "cpu"], None),
    ],
)
def test_words(words: list[str], expected: Any) -> None:
    assert plain_run.asked(words) == expected


def test_only_run_is_read() -> None:
    assert plain_run.plain_run([]) is None
    assert plain_run.plain_run(["sweep", "f"]) is None
    assert plain_run.plain_run(["run", "--help"]) is None


def test_options_are_those_of_the_command() -> None:
    """By their names, and what each stands for."""
    declared = {}
    for name, parameter in inspect.signature(commands.run_command, eval_str=True).parameters.items():
        for option in typing.get_args(parameter.annotation)[1:]:
            # What stands first in an annotation typer takes for a default, until it reads it.
            words = [
                word for word in (option.default, *(option.param_decls or ())) if str(word).startswith("-")
            ]
            declared |= dict.fromkeys(words, "given" if name == "input_" else name)
    read = {**plain_run._VALUES, "--explain": "explain"}
    assert {word: declared.get(word) for word in read} == read
    assert set(declared) - set(read) == {"--allocation", "--mpi"}
    of_run = inspect.signature(running.run).parameters
    assert {*plain_run.Asked.__dataclass_fields__, "note", "allocation", "mpi"} == set(of_run)


def test_it_runs_and_answers_as_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "reference").write_text(">r\nACGTACGTTTGACCA\n")
    words = [
        "run", "mummergpu", "--device", "cpu", "-i", f"reference={tmp_path / 'reference'}",
        "-i", f"queries={tmp_path / 'reference'}", "-i", "min_match_length=4", "-o",
    ]  # fmt: skip
    told = {}
    for name, main in (("plain", plain_run.plain_run), ("whole", None)):
        output = tmp_path / name
        arguments = [*words, str(output)]
        command = main(arguments) if main else None
        code = commands.main(arguments) if command is None else command()
        told[name] = code, output.read_text(), len(capsys.readouterr().out.splitlines())
    assert told["plain"] == told["whole"] and told["plain"][0] == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [(["no-such-family"], 2), (["mummergpu", "-i", "reference"], 2), (["mummergpu", "-w", "x"], 2)],
)
def test_it_refuses_as_the_command_line(
    words: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    command = plain_run.plain_run(["run", *words, "--device", "cpu"])
    assert command is not None and command() == code
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert commands.main(["run", *words, "--device", "cpu"]) == code
    assert capsys.readouterr().err.split() == said.split()

"""autotune check --ranks: do all ranks have the same policy files, code and choices?"""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from fakes import sweep
from mpi_program import launcher
from ranks import run_ranks
from rich.console import Console

from autotune.cli.commands import main
from autotune.errors import AutotuneError, PolicyFileError
from autotune.policy.file import read_policy_file, write
from autotune.policy.merge import update
from autotune.spread.agreement import Agreement, compare_ranks, digests_of

Gather = Callable[[Any], Sequence[Any]]


@pytest.fixture
def written(folder: Path, tmp_path: Path) -> Path:
    return update(tmp_path / "policies", [sweep(folder, tmp_path).run()])


@pytest.fixture
def other(written: Path, tmp_path: Path) -> Path:
    """The same file, but for a winner."""
    path = tmp_path / "other" / written.name
    path.parent.mkdir()
    file = read_policy_file(written)
    entries = {name: replace(item, configuration={**item.configuration, "memory": "texture"})
               for name, item in file.entries.items()}  # fmt: skip
    write(path, replace(file, entries=entries))
    return path


def test_what_differs_is_named_on_the_first_rank_and_fails_on_all(
    folder: Path, written: Path, other: Path
) -> None:
    texts = [StringIO() for _ in range(3)]

    def body(files: Sequence[Path]) -> Callable[[int, Gather], Any]:
        def run(rank: int, gather: Gather) -> None:
            out = Console(file=texts[rank], width=200)
            compare_ranks(Agreement(gather), lambda: digests_of([files[rank]], [str(folder)]), out)

        return run

    assert run_ranks(3, body([written] * 3)) == [None] * 3
    lines = texts[0].getvalue().splitlines()
    assert len(lines) == 6
    assert all(line.startswith("equal     doubler") for line in lines)
    for problem in run_ranks(3, body([written, written, other])):
        assert isinstance(problem, PolicyFileError)
        assert "2 of 6 digests differ over 3 ranks" in str(problem)
    text = texts[0].getvalue()
    name = f"doubler/{written.name}"
    assert f"differs   {name}: " in text
    assert f"differs   {name}, choices: " in text
    assert " on rank 0, 1; " in text
    assert [one.getvalue() for one in texts[1:]] == ["", ""]


def test_an_error_of_one_rank_is_raised_on_all(folder: Path, written: Path, tmp_path: Path) -> None:
    def body(rank: int, gather: Gather) -> None:
        path = tmp_path / "nothing.yaml" if rank == 1 else written
        compare_ranks(Agreement(gather), lambda: digests_of([path], [str(folder)]), Console(file=StringIO()))

    for problem in run_ranks(2, body):
        assert isinstance(problem, AutotuneError)
        assert str(problem).startswith("rank 1: ")
        assert "nothing.yaml" in str(problem)


def test_torchrun_s_ranks_talk_by_torch(
    folder: Path, written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []

    def gather(found: list[Any], value: Any) -> None:
        found[:] = [value, value]

    distributed = SimpleNamespace(
        init_process_group=seen.append, destroy_process_group=lambda: seen.append("destroyed"),
        is_available=lambda: True, is_initialized=lambda: bool(seen), get_world_size=lambda: 2,
        all_gather_object=gather,
    )  # fmt: skip
    torch = ModuleType("torch")
    torch.distributed = distributed  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    assert main(["check", str(written), "--family", str(folder), "--ranks"]) == 0
    assert seen == ["gloo", "destroyed"]
    assert capsys.readouterr().out.count("equal ") == 6


def test_what_ranks_cannot_be_asked_for(
    folder: Path, written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["check", str(written), "--family", str(folder), "--ranks"]
    assert main([*asked, "--measure"]) == 2
    assert "--ranks compares digests over ranks: leave --measure out" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    assert main(asked) == 5
    assert "several ranks need mpi4py" in capsys.readouterr().err


@pytest.mark.mpi
def test_ranks_of_mpiexec_are_compared(
    folder: Path, written: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, library = launcher() or ("", "")
    monkeypatch.setenv("MPI4PY_LIBMPI", library)

    def run(*files: Path) -> subprocess.CompletedProcess[str]:
        words: list[str] = []
        for file in files:
            words += [":"] * bool(words) + ["-n", "1", sys.executable, "-m", "autotune", "check", str(file)]
            words += ["--family", str(folder), "--ranks"]
        return subprocess.run([program, *words], check=False, capture_output=True, text=True, timeout=300)

    equal = run(written, written)
    assert (equal.returncode, equal.stdout.count("equal ")) == (0, 6), equal.stderr
    differing = run(written, other)
    assert differing.returncode == PolicyFileError.exit_code
    assert differing.stdout.count("differs ") == 2
    assert "2 of 6 digests differ over 2 ranks" in differing.stderr


@pytest.mark.torch
def test_ranks_of_torchrun_are_compared(folder: Path, written: Path, other: Path) -> None:
    script = "import sys; from autotune.cli.commands import main; sys.exit(main(sys.argv[1:]))"
    for second, code in ((written, 0), (other, PolicyFileError.exit_code)):
        running = []
        for rank, file in enumerate((written, second)):
            environment = {
                **os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank),
                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(29541 + bool(code)), "TORCHELASTIC_RUN_ID": "test",
            }  # fmt: skip
            words = [sys.executable, "-c", script, "check", str(file), "--family", str(folder), "--ranks"]
            running.append(subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True))
        texts = [one.communicate(timeout=300)[0] for one in running]
        assert [one.returncode for one in running] == [code, code]
        assert texts[0].count("equal ") == (4 if code else 6)
        assert texts[1] == ""

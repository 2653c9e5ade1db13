"""Processes of one's own: what became of them, what they say, and that nothing of them is left."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from children import children
from import_path import import_path
from waiting import PATIENCE_S, is_gone, wait_for

from autotune import processes
from autotune.device import LaunchError
from autotune.errors import AutotuneError, DeviceError, UnknownName, UsageError
from autotune.processes import (
    Answer,
    Child,
    Failure,
    Warned,
    death,
    program,
    report_problems,
)

pytestmark = pytest.mark.usefixtures("fresh_children")


def child(target: object, *arguments: object, folder: Path) -> Child:
    assert callable(target)
    return Child(target, arguments, folder=str(folder), what="a test's process", error=DeviceError)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (3, "ended with exit code 3"),
        (None, "ended with exit code None"),
        (-signal.SIGSEGV, "was ended by SIGSEGV (Segmentation fault)"),
        (-signal.SIGKILL, "was ended by SIGKILL (Killed; perhaps the machine ran out of memory)"),
    ],
)
def test_what_became_of_a_process(code: int | None, text: str) -> None:
    assert death(code) == text


def echo(pipe: Connection) -> None:
    while (message := pipe.recv()) is not None:
        if message == "die":
            os._exit(7)
        pipe.send(Answer((message, os.getpid(), os.getpgid(0), os.environ["TMPDIR"])))


def test_a_child_answers_ends_when_asked_and_says_what_it_died_of(tmp_path: Path) -> None:
    one = child(echo, folder=tmp_path)
    one.send("a word")
    assert one.poll(time.monotonic() + PATIENCE_S)
    pid = one.process.pid
    assert one.pipe.recv() == Answer(("a word", pid, pid, str(tmp_path)))
    assert not one.poll(time.monotonic())
    one.close(at_once=False)
    assert one.process.returncode == 0
    one.close()
    one.send("nobody hears it")

    other = child(echo, folder=tmp_path)
    other.send("die")
    with pytest.raises(EOFError):
        other.pipe.recv()
    assert other.death() == "ended with exit code 7"
    other.close()


def runs_a_program(pipe: Connection) -> None:
    with subprocess.Popen(["sleep", "600"]) as running:
        pipe.send(running.pid)


def test_a_child_is_killed_with_what_it_runs(tmp_path: Path) -> None:
    one = child(runs_a_program, folder=tmp_path)
    pid = one.pipe.recv()
    one.kill()
    one.kill()
    assert one.death().startswith("was ended by SIGKILL")
    wait_for(lambda: is_gone(pid))
    one.close()


def fails(pipe: Connection, kind: str) -> None:
    with report_problems(pipe):
        import warnings

        warnings.warn("mind the gap", stacklevel=2)
        raise {
            "unknown": UnknownName("policy", "memroy", ["memory"]),
            "launch": LaunchError("refused"),
            "own": Unshared("told"),
        }[kind]


class Unshared(UsageError):
    """A class that the parent may not know."""


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        ("unknown", UsageError, r"unknown policy 'memroy'; did you mean 'memory'\? \(allowed: memory\)"),
        ("launch", LaunchError, "refused"),
        ("own", UsageError, "told"),
    ],
)
def test_errors_and_warnings_of_a_child_are_its_parents(
    tmp_path: Path, kind: str, error: type[AutotuneError], text: str
) -> None:
    one = child(fails, kind, folder=tmp_path)
    assert one.pipe.recv() == Warned("mind the gap")
    failure = one.pipe.recv()
    assert isinstance(failure, Failure) and failure.kind is error
    with pytest.raises(error, match=text):
        raise failure.error()
    one.close()


def test_a_child_imports_nothing_of_the_program_that_starts_it(tmp_path: Path) -> None:
    """Neither a script without a guard nor the module that ``python -m`` runs."""
    script = tmp_path / "unguarded.py"
    script.write_text(
        "import sys\n"
        "from autotune.errors import DeviceError\n"
        "from autotune.processes import Child\n"
        "print('once')\n"
        "from test_processes import echo\n"
        f"one = Child(echo, (), folder={str(tmp_path)!r}, what='a process', error=DeviceError)\n"
        "one.send('a word')\n"
        "assert one.pipe.recv().content[0] == 'a word'\n"
        "one.close()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), import_path()])}
    for started in ([str(script)], ["-m", "unguarded"]):
        done = subprocess.run(
            [sys.executable, *started], env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "once\n", "")


def test_what_cannot_be_sent_leaves_no_process(tmp_path: Path) -> None:
    with pytest.raises((AttributeError, TypeError), match="pickle"):
        child(echo, lambda: None, folder=tmp_path)
    assert not children()


def test_a_program_ends_with_its_call_and_what_it_started_too() -> None:
    text = "import subprocess, sys\nprint('out')\nsys.exit(3)"
    done = program([sys.executable, "-c", text])
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "")
    with pytest.raises(FileNotFoundError, match="not an executable one"):
        program(["no-such-program"])


def test_a_program_that_takes_too_long_is_killed_with_what_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    text = (
        "import pathlib, subprocess\n"
        "with subprocess.Popen(['sleep', '600']) as started:\n"
        f"    pathlib.Path({str(pids)!r}).write_text(str(started.pid))\n"
    )
    with pytest.raises(subprocess.TimeoutExpired):
        program([sys.executable, "-c", text], seconds=1.5)
    wait_for(lambda: is_gone(int(pids.read_text())))


def test_a_python_imports_from_where_this_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PYTHONPATH, and from another folder."""
    (tmp_path / "by_a_module_system.py").write_text("def main(a, b):\n    print(a + b)\n    return 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    done = program(processes.python("by_a_module_system", "left ", "right"), folder="/")
    assert (done.returncode, done.stdout) == (3, "left right\n"), done.stderr


_called: list[int] = []


def be_called() -> None:
    _called.append(os.getpid())


def say_called(pipe: Connection) -> None:
    pipe.send((_called, os.environ.get("SET_LATER"), sys.path[0]))


@pytest.fixture
def spares(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[], tuple[object, ...]]]:
    """Two processes in advance, and what the next child says."""
    processes.keep_spares(2, "test_processes:be_called")
    monkeypatch.setenv("SET_LATER", "yes")
    monkeypatch.syspath_prepend("later")

    def ask() -> tuple[object, ...]:
        one = child(say_called, folder=tmp_path)
        try:
            return (one.process.pid, *one.pipe.recv())
        finally:
            one.close()

    yield ask
    processes.end_spares()


def test_the_next_children_are_those_started_in_advance_and_one_is_there_from_then_on(
    spares: Callable[[], tuple[object, ...]],
) -> None:
    """With the environment and the path of when they are needed."""
    first = [one[0].pid for one in processes._spares]
    others = {*children()} - {*map(str, first)}  # of tests before this one
    for _ in range(3):
        pid, called, later, path = spares()
        assert (called, later, path) == ([pid], "yes", "later")
        first = [one for one in first if one != pid]
    assert not first and len(processes._spares) == 1
    (left,) = (str(one[0].pid) for one in processes._spares)
    wait_for(lambda: {*children()} <= {*others, left})
    processes.end_spares()
    assert left not in children()
    assert spares()[1] == []


def test_a_spare_process_that_ended_or_is_in_another_folder_is_not_taken(
    spares: Callable[[], tuple[object, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in processes._spares:
        os.killpg(one[0].pid, signal.SIGKILL)
    wait_for(lambda: all(one[0].poll() is not None for one in processes._spares))
    assert spares()[1] == []
    monkeypatch.chdir(tmp_path)
    assert spares()[1] == []


@pytest.mark.parametrize("ending", ["", "os.kill(os.getpid(), signal.SIGKILL)", "os._exit(3)", "1 / 0"])
def test_a_program_that_needs_no_spare_process_ends_without_a_word_of_one(
    ending: str, tmp_path: Path
) -> None:
    """However it ends, and while they still begin."""
    (tmp_path / "slow.py").write_text("import time\ndef begin():\n    time.sleep(600)\n")
    script = (
        "import os, signal\nfrom autotune import processes\nprocesses.keep_spares(2, 'slow:begin')\n"
        f"print(*[one[0].pid for one in processes._spares], flush=True)\n{ending}\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), import_path()])}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert "ZeroDivisionError" in done.stderr if "0" in ending else not done.stderr
    pids = done.stdout.split()
    assert len(pids) == 2
    wait_for(lambda: all(is_gone(int(pid)) for pid in pids))


def test_nothing_else_starts_or_kills_a_process() -> None:
    starts = re.compile(
        r"subprocess\.(run|Popen|call|check_)|get_context|\bProcess\(|ProcessPool|os\.(fork|system|spawn|killpg|kill)\b"
    )
    package = Path(processes.__file__).parent
    found = [path.name for path in package.rglob("*.py") if starts.search(path.read_text(encoding="utf-8"))]
    assert found == ["processes.py"]

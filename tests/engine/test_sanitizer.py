"""``sweep --sanitize``: compute-sanitizer found and called, what it prints read, a study that it has seen."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fakes import sweep
from rich.console import Console
from tasks import task

from autotune.cli.commands import main
from autotune.compile import nvcc
from autotune.declaration.space import Configuration
from autotune.engine import sanitizer
from autotune.engine.sanitizer import TOOLS, build_command, find_sanitizer, findings, first_finding, sanitize
from autotune.engine.session import Session, SweepRequest
from autotune.errors import DeviceError
from autotune.measure.profiled_process import WatchedTask
from autotune.policy.file import content, parse
from autotune.policy.merge import merge_winners
from autotune.processes import python
from autotune.record.store import Store

MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Program hit CUDA_ERROR_NOT_FOUND (error 500) due to "named symbol not found" on CUDA API call to cuModuleGet
=========     Saved host backtrace up to driver entry point at error
========= Invalid __global__ write of size 4 bytes
=========     at void doubler<Policy_1>(T1::x, T1::y)+0x70
=========     by thread (31,0,0) in block (3,0,0)
=========     Address 0x7f5a00001000 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f5a00000000 of size 4,096 bytes
=========
========= Invalid __global__ write of size 4 bytes
=========     at void other<Policy_1>(T1::x, T1::y)+0x80
=========
========= ERROR SUMMARY: 2 errors
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
========= Warning: Race reported between Read access at void quiet()+0x10
=========     and Write access at void quiet()+0x20 [4 hazards]
=========
========= Error: Race reported between Write access at void tiles<Policy_2>()+0x90
=========     and Read access at void tiles<Policy_2>()+0xe0 [1016 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""
INITCHECK = """\
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at void doubler<Policy_1>(T1::x, T1::y)+0x50
=========     by thread (0,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 1 error
"""


@pytest.mark.parametrize(
    ("log", "finding"),
    [
        (
            MEMCHECK,
            ("Invalid __global__ write of size 4 bytes at void doubler<Policy_1>(T1::x, T1::y)+0x70 by thread "
            "(31,0,0) in block (3,0,0)"),
        ),
        (
            RACECHECK,
            ("Error: Race reported between Write access at void tiles<Policy_2>()+0x90 and Read access at void "
            "tiles<Policy_2>()+0xe0 [1016 hazards]"),
        ),
        (
            INITCHECK,
            ("Uninitialized __global__ memory read of size 4 bytes at void doubler<Policy_1>(T1::x, T1::y)+0x50 by "
            "thread (0,0,0) in block (0,0,0)"),
        ),
        ("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", ""),
        ("========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n", ""),
        (RACECHECK.replace("1 error", "0 errors").replace("Error:", "Warning:"), ""),
        ("========= Error: process didn't terminate successfully\n========= Target application returned error\n", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_the_first_finding(log: str, finding: str) -> None:
    assert first_finding(log) == finding


def test_the_command_line() -> None:
    words = build_command("compute-sanitizer", "racecheck", Path("log"), Path("task"))
    options = dict(pairwise(words))
    assert options["--tool"] == "racecheck"
    assert options["--report-api-errors"] == "no"
    assert words[-4:] == python("autotune.measure.profiled_process", "task")


SANITIZER = """#!{python}
import json, subprocess, sys, time
words = sys.argv[1:]
options = dict(zip(words, words[1:]))
tool = options["--tool"]
program = words[words.index(sys.executable):]
task = json.load(open(program[-1]))
with open({calls!r}, "a") as calls:
    calls.write(tool + " " + str(len(task["configurations"])) + "\\n")
{begin}
code = subprocess.run(program).returncode
with open(options["--log-file"], "w") as log:
    found = [part for part in {found!r}.get(tool, []) if any(part in one for one in task["configurations"])]
    log.write("========= COMPUTE-SANITIZER\\n")
    for part in found:
        log.write(f"========= Invalid __global__ read of size 4 bytes\\n=========     at {{part}}+0x10\\n=========\\n")
    log.write(f"========= ERROR SUMMARY: {{len(found)}} errors\\n")
sys.exit(code)
"""


def program(tmp_path: Path, found: Mapping[str, Sequence[str]], begin: str = "") -> str:
    """A program that does what compute-sanitizer does, but for the watching. ``found``: by tool, parts of the ids
    in which it finds something."""
    path = tmp_path / "compute-sanitizer"
    calls = str(tmp_path / "calls")
    path.write_text(SANITIZER.format(python=sys.executable, calls=calls, begin=begin, found=dict(found)))
    path.chmod(0o755)
    return str(path)


def test_what_is_found_is_told_by_configuration(folder: Path, tmp_path: Path) -> None:
    """The program in between is a stand-in; the process that it watches is the real one, on the cpu. Only where
    something is found the configurations run one by one, and those that are wrong already are not run again."""
    asked = task(folder, "control", "memory=readonly", "memory=readonly,block_size=64")
    faults = {"racecheck": ["memory=readonly"], "initcheck": ["block_size=64"]}
    one = findings(asked, program(tmp_path, {"racecheck": ["block_size=64"]}))
    assert one == {
        asked.configurations[2]: "racecheck: Invalid __global__ read of size 4 bytes at block_size=64+0x10"
    }
    calls = (tmp_path / "calls").read_text().split("\n")
    assert calls == ["memcheck 3", "racecheck 3", *3 * ["racecheck 1"], "initcheck 2", ""]
    both = findings(asked, program(tmp_path, faults))
    assert {named: said.partition(":")[0] for named, said in both.items()} == dict.fromkeys(
        asked.configurations[1:], "racecheck"
    )


@pytest.mark.parametrize(
    ("begin", "message"),
    [
        ("sys.exit('==== no such device')", "memcheck could not watch the process to its end: exit code 1.*no such"),
        ("time.sleep(3600)", "memcheck did not end within 1 s: take a smaller workload"),
    ],
)  # fmt: skip
def test_a_program_that_fails_is_said(begin: str, message: str, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=message):
        findings(task(folder, "control"), program(tmp_path, {}, begin), seconds=1)


def test_a_configuration_that_does_not_run_there_is_said(folder: Path, tmp_path: Path) -> None:
    source = folder / "doubler.cu"
    source.write_text(source.read_text().replace("const unsigned i", "__trap(); const unsigned i"))
    with pytest.raises(
        DeviceError, match=r"could not watch block_size=128,memory=global to its end.*trapped"
    ):
        findings(task(folder, "control"), program(tmp_path, {}))


def test_where_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATH", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr(nvcc, "_TOOLKIT", str(tmp_path))
    (tmp_path / "bin").mkdir()
    made = program(tmp_path / "bin", {})
    assert find_sanitizer() == made
    Path(made).unlink()
    with pytest.raises(DeviceError, match=r"compute-sanitizer was not found.*CUDA toolkit"):
        find_sanitizer()


# ---- the sweep


@pytest.fixture
def swept(folder: Path, tmp_path: Path) -> Any:
    return sweep(folder, tmp_path).run()


def test_what_is_found_makes_a_configuration_wrong(swept: Any, tmp_path: Path) -> None:
    store, asked = Store(tmp_path / "out"), []

    def check(configurations: Sequence[Configuration]) -> dict[str, str]:
        asked.append([c.id for c in configurations])
        return {configurations[0].id: "memcheck: bad"}

    study = sanitize(swept, store, check)
    (ids,) = asked
    assert len(ids) == len(set(ids)) > 2
    assert swept.decision.winner.configuration.id in ids
    (kept,) = Store(tmp_path / "out").studies()
    for of in (study, kept):
        (wrong,) = (t for t in of.trials if t.configuration.id == ids[0])
        assert (wrong.state, wrong.measurement) == ("wrong_result", None)
        assert wrong.reason == "right results, but compute-sanitizer memcheck: bad"
        assert of.about.sanitized == {
            "by": "memcheck+racecheck+initcheck",
            "configurations": sorted(ids[1:]),
        }
    assert sanitize(kept, store, lambda configurations: {}).trials == kept.trials


def session(made: Any, err: Console) -> Any:
    """The command's part of a sweep whose finalists are to be watched."""
    request = SweepRequest(family=made.family, device="cuda")
    return Session(
        request,
        (),
        made.workers,
        None,
        made.store,
        "compute-sanitizer",
        lambda *_: None,
        partial(err.print, markup=False),
    )


def test_what_wins_then_is_timed_and_watched_too(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until nothing is found in a finalist."""
    made = sweep(folder, tmp_path)
    study = made.run()
    before = study.decision.winner.configuration
    assert before["memory"] == "readonly"
    asked: list[str] = []

    def found(given: WatchedTask, program: str) -> dict[str, str]:
        asked.extend(given.configurations)
        return {one: "memcheck: bad" for one in given.configurations if "readonly" in one}

    monkeypatch.setattr(sanitizer, "findings", found)
    err = Console(record=True, width=200)
    study = session(made, err).sanitize(made, study)
    winner = study.decision.winner
    assert winner.configuration["memory"] != "readonly"
    assert winner.measurement.retimed_ms, "it was no finalist before"
    assert winner.configuration.id in study.about.sanitized["configurations"]
    assert len(asked) == len(set(asked)), "what passed once has passed"
    assert study.about.searched["of"] == len(made.configurations)
    (kept,) = made.store.studies()
    assert kept.decision == study.decision
    assert kept.about.sanitized == study.about.sanitized
    assert "configurations under compute-sanitizer (memcheck, racecheck, initcheck)" in err.export_text()


def test_a_sanitizer_that_fails_loses_nothing(
    swept: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(given: WatchedTask, program: str) -> dict[str, str]:
        raise DeviceError("memcheck did not end")

    monkeypatch.setattr(sanitizer, "findings", found)
    made = sweep(folder, tmp_path)
    study = session(made, Console(quiet=True)).sanitize(made, swept)
    assert study.trials == swept.trials
    assert study.about.lost == "measured and recorded, but not sanitized: memcheck did not end"


def test_a_policy_file_says_who_looked(swept: Any, tmp_path: Path) -> None:
    def entry(study: Any) -> Any:
        plain = content(merge_winners(None, [study]))
        read = parse(json.loads(json.dumps(plain)), tmp_path / "x.yaml").entries["small"]
        assert ("sanitizer" in plain["entries"]["small"]) == bool(read.sanitizer)
        return read

    assert entry(swept).sanitizer == ""
    study = sanitize(swept, Store(tmp_path / "out"), lambda configurations: {})
    assert entry(study).sanitizer == "+".join(TOOLS)
    others = replace(
        study, about=study.about.update({"sanitized": {"by": "memcheck", "configurations": ["x=1"]}})
    )
    assert entry(others).sanitizer == ""


def test_where_there_is_nothing_to_watch_it_is_refused_first(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("autotune.engine.session.launch_workers", None)  # no process is started
    places = ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "policies")]
    assert main(["sweep", str(folder), "--device", "cpu", "--sanitize", *places]) == 5
    assert "this is the cpu" in capsys.readouterr().err

    def nowhere() -> str:
        raise DeviceError("compute-sanitizer is not here")

    monkeypatch.setattr(sanitizer, "find_sanitizer", nowhere)
    assert main(["sweep", str(folder), "--device", "cuda", "--sanitize", *places]) == 5
    assert "compute-sanitizer is not here" in capsys.readouterr().err
    assert main(["sweep", str(folder), "--static", "--sanitize", *places]) == 2


@pytest.mark.gpu
@pytest.mark.sanitizer
@pytest.mark.usefixtures("importable")
def test_a_read_past_the_end_is_found_on_this_gpu(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In every configuration but those of 128 threads. It is next to the array, where nothing faults, and its value is
    not used: nothing else sees it."""
    source = folder / "doubler.cu"
    past = "if (Policy::block_size != 128 && i == 0) *(const volatile unsigned*)(x.memory.base + x.extent(0) + 3);"
    source.write_text(source.read_text().replace("if (i < x.extent(0))", f"{past}\n  if (i < x.extent(0))"))
    places = ["--out", str(tmp_path / "out"), "--policies", str(tmp_path / "policies")]
    arguments = ["sweep", str(folder), "--device", "cuda", "--sanitize", "--set", "memory=global", *places]
    assert main(arguments) == 0, capsys.readouterr().err
    (study,) = Store(tmp_path / "out").studies()
    assert study.decision.winner.configuration["block_size"] == 128
    assert study.decision.winner.configuration.id in study.about.sanitized["configurations"]
    wrong = {t.configuration["block_size"]: t.reason for t in study.trials if t.state == "wrong_result"}
    assert wrong, "none of the others was a finalist?"
    assert all(
        "compute-sanitizer memcheck: Invalid __global__ read of size 4" in reason for reason in wrong.values()
    )
    assert (
        "sanitizer: memcheck+racecheck+initcheck" in next((tmp_path / "policies").rglob("*.yaml")).read_text()
    )

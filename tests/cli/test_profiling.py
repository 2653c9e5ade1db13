"""``autotune profile``: Nsight Compute's output read, its program called, counters kept with their study."""

import shutil
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fakes import FakeBackend, sweep
from tasks import task

from autotune.cli import profile as profiling
from autotune.cli.commands import main
from autotune.cli.profile import choose, find_recorded, keep
from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration import space
from autotune.errors import DeviceError, StoreError, UnknownName, UsageError
from autotune.measure.ncu import COUNTERS, METRICS, MORE_METRICS, build_command, find_ncu, profile
from autotune.measure.profiled_process import WatchedResult, WatchedTask, run
from autotune.processes import python
from autotune.record.results_csv import results_frame
from autotune.record.store import Store

# ---- the program


def test_the_command_line_leaves_clocks_alone() -> None:
    for cold, caches in ((True, "all"), (False, "none")):
        words = build_command("ncu", METRICS, ("match", "print"), Path("log"), Path("task"), cold=cold)
        options = dict(pairwise(words))
        assert options["--clock-control"] == "none"
        assert options["--cache-control"] == caches
        assert options["--kernel-name"] == "regex:match|print"
        assert options["--metrics"].split(",") == list(METRICS)
        assert words[-4:] == python("autotune.measure.profiled_process", "task")


NCU = """#!{python}
import json, subprocess, sys
words = sys.argv[1:]
options = dict(zip(words, words[1:]))
{begin}
program = words[words.index(sys.executable):]
code = subprocess.run(program).returncode
result = json.load(open(json.load(open(program[-1]))["result"])) if code == 0 else {{"runs": []}}
with open(options["--log-file"], "w") as log:
    log.write('"ID","Kernel Name","gpu__time_duration.sum","dram__bytes_read.sum","dram__bytes_write.sum"\\n')
    log.write('"","","ns","byte","byte"\\n')
    for i, (_, struct, _) in enumerate(result["runs"]):
        log.write(f'"{{i}}","void doubler<{{struct}}>(x, y)","1,000","{{i}},024","512"\\n')
sys.exit(code)
"""


def ncu(tmp_path: Path, begin: str = "") -> str:
    """A program that does what ncu does, but for the counting."""
    path = tmp_path / "ncu"
    path.write_text(NCU.format(python=sys.executable, begin=begin))
    path.chmod(0o755)
    return str(path)


def test_a_profiled_run_from_end_to_end(folder: Path, tmp_path: Path) -> None:
    """The program in between is a stand-in; the process that it watches is the real one, on the cpu. Metrics that it
    does not know are left out the second time."""
    more = f"if {MORE_METRICS[0]!r} in options['--metrics']: sys.exit('==ERROR== Failed to find metric x')"
    asked = task(folder, "control", "memory=readonly")
    found, result = profile(asked, ("doubler",), ncu(tmp_path, more), cold=True)
    assert not result.failed
    assert [one for one, *_ in result.runs] == list(found) == list(asked.configurations)
    assert [of["doubler"]["dram_bytes"] for of in found.values()] == [512 + 24, 512 + 1024]
    family = families.load_family(folder)
    assert result.source_digest == family.source_digest


def test_metrics_that_ncu_names_as_unknown_are_left_out_alone(folder: Path, tmp_path: Path) -> None:
    """The others are asked for once more, and what was printed is kept."""
    unknown = MORE_METRICS[1]
    base = unknown.partition(".")[0]
    begin = (
        f"asked = options['--metrics'].split(',')\n"
        f"open({str(tmp_path / 'asked')!r}, 'a').write(str(len(asked)) + ' ')\n"
        f"if {unknown!r} in asked: sys.exit('==ERROR== Failed to find metric {base}')"
    )
    raw = tmp_path / "raw.csv"
    profile(task(folder, "control"), ("doubler",), ncu(tmp_path, begin), cold=True, raw=raw)
    every = len(METRICS) + len(MORE_METRICS)
    left = [name for name in MORE_METRICS if not name.startswith(base)]
    assert (tmp_path / "asked").read_text().split() == [str(every), str(len(METRICS) + len(left))]
    assert '"Kernel Name"' in raw.read_text()


@pytest.mark.parametrize(
    ("begin", "message"),
    [
        ("sys.exit('==ERROR== ERR_NVGPUCTRPERM - The user does not have permission')", "NVreg_RestrictProfiling"),
        ("sys.exit('==ERROR== The application returned an error code')", "exit code 1.*returned an error code"),
        ("import time; time.sleep(3600)", "did not end within 1 s"),
    ],
)  # fmt: skip
def test_what_ncu_refuses_is_said(begin: str, message: str, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=message):
        profile(task(folder, "control"), ("doubler",), ncu(tmp_path, begin), cold=True, seconds=1)


def test_a_family_that_cannot_be_read_there_is_said(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(DeviceError, match=r"exit code 3\): error: nowhere holds no family"):
        profile(replace(task(folder, "control"), family="./nowhere"), ("doubler",), ncu(tmp_path), cold=True)


def test_no_ncu_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path="": None)
    with pytest.raises(DeviceError, match=r"ncu.*CUDA toolkit"):
        find_ncu()


def test_configurations_that_fail_there_are_named(folder: Path, tmp_path: Path) -> None:
    """In this process, on a device that runs nothing."""
    from autotune.device.backend import LaunchError

    def costs(configuration: Any) -> float:
        if configuration["memory"] == "texture":
            raise LaunchError("no texture today")
        return 1.0

    backend = FakeBackend(costs=costs)
    family = families.load_family(folder)
    backend.know([Variant(family, c) for c in family.space.configurations()])
    result = run(task(folder, "control", "memory=texture"), backend)
    (failed,) = result.failed
    assert result.failed == {failed: "no texture today"}
    assert "memory=texture" in failed
    assert [(one, launched) for one, _, launched in result.runs] == [
        (family.space.control.id, ["doubler"]), (failed, []),
    ]  # fmt: skip


# ---- the record


@pytest.fixture
def swept(folder: Path, tmp_path: Path) -> Any:
    return sweep(folder, tmp_path).run()


def ran(study: Any, **changes: str) -> WatchedResult:
    digests = {
        name: getattr(study.about, name) for name in ("source_digest", "space_digest", "workload_digest")
    }
    return WatchedResult(**{"device": study.device, **digests, "runs": [], "failed": {}, **changes})


def test_ncu_stay_in_the_record_and_become_columns(folder: Path, tmp_path: Path, swept: Any) -> None:
    family, store = families.load_family(folder), Store(tmp_path / "out")
    study = find_recorded(store, family, "", "out")
    one, two = choose(study, family, (), 1)
    assert study.decision
    assert (two, one) == (study.control, study.decision.winner.configuration)
    keep(store, study, {one.id: {"doubler": {"dram_bytes": 1024.0}}}, ran(study))
    keep(store, study, {two.id: {"doubler": {"dram_bytes": 2048.0, "launches": 1.0}}}, ran(study))
    (kept,) = Store(tmp_path / "out").studies()
    frame = results_frame([kept]).set_index("configuration")
    column = frame["counter_dram_bytes_doubler"]
    assert (column[one.id], column[two.id]) == (1024.0, 2048.0)
    assert column.notna().sum() == 2
    again = sweep(folder, tmp_path).run()  # the next sweep of it keeps them
    assert again.about.counters == kept.about.counters


def test_ncu_of_something_else_are_refused(folder: Path, tmp_path: Path, swept: Any) -> None:
    store = Store(tmp_path / "out")
    study = find_recorded(store, families.load_family(folder), "small", "out")
    for changes, message in (
        ({"source_digest": "x"}, "source of doubler has changed"),
        ({"workload_digest": "x"}, "workload of doubler has changed"),
        ({"device": "rtx"}, "record is of fake-gpu, and this is rtx"),
    ):
        with pytest.raises(StoreError, match=message):
            keep(store, study, {}, ran(study, **changes))
    with pytest.raises(StoreError, match="no study of doubler on other"):
        find_recorded(store, families.load_family(folder), "other", "out")


def test_which_configurations(folder: Path, swept: Any) -> None:
    family = families.load_family(folder)
    assert [c["memory"] for c in choose(swept, family, ("control", "memory=texture", "control"), None)] == [
        "global", "texture",
    ]  # fmt: skip
    assert len(choose(swept, family, (), 3)) == 4
    assert choose(swept, family, (), None)[1:] == [swept.control]
    with pytest.raises(UsageError, match="not both"):
        choose(swept, family, ("control",), 3)
    with pytest.raises(UnknownName, match="memory"):
        choose(swept, family, ("memory=shared",), None)
    with pytest.raises(UsageError, match="no measured"):
        choose(replace(swept, trials=()), family, (), 2)


def test_the_command(
    folder: Path,
    tmp_path: Path,
    swept: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[WatchedTask] = []

    def profiled(given: WatchedTask, kernels: Any, ncu: str, *, cold: bool, raw: Path | None) -> Any:
        asked.append(given)
        of = {"l2_hit_share": 0.25, "stall_wait_warps": 1.5}
        return {one: {"doubler": of} for one in given.configurations}, ran(swept)

    monkeypatch.setattr(profiling.ncu, "profile", profiled)
    monkeypatch.setattr(profiling.ncu, "find_ncu", lambda: "ncu")
    out = tmp_path / "out"
    assert main(["profile", str(folder), "--top", "2", "--record", str(out)]) == 0
    said = capsys.readouterr().out
    assert "l2_hit_share" in said
    assert COUNTERS["stall_wait_warps"][1] in said
    assert asked[0].workload == "small"
    frame = pd.read_csv(out / "results.csv")
    assert frame["counter_l2_hit_share_doubler"].notna().sum() == 3
    assert "Hardware counters" in (out / "report.html").read_text(encoding="utf-8")
    assert main(["profile", str(folder), "--record", str(tmp_path / "none")]) == 7
    assert main(["profile", str(folder), "--device", "cpu"]) == 5
    assert space.Configuration(swept.control).id in said


@pytest.mark.gpu
@pytest.mark.ncu
@pytest.mark.usefixtures("importable")
def test_ncu_of_this_gpu(tmp_path: Path) -> None:
    out = tmp_path / "out"
    places = ["--out", str(out), "--policies", str(tmp_path / "policies")]
    assert main(["sweep", "allpairs", "--device", "cuda", "--preset", "control", *places]) == 0
    assert main(["profile", "allpairs", "control", "--record", str(out)]) == 0
    (study,) = Store(out).studies()
    ((_, of),) = study.about.counters.items()
    counted = of["allpairs"]
    assert counted["dram_bytes"] > 0
    assert 0 < counted["achieved_occupancy"] <= 1
    assert 0 < counted["warp_execution_efficiency"] <= 1
    assert 0 <= counted["l2_hit_share"] <= 1

"""Measuring processes: what may happen to them, and what the sweep makes of it. Real processes, a fake device."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fake_device import FakeDevice, process
from fakes import sweep
from import_path import import_path
from waiting import eventually, is_gone, wait_for

from autotune.engine.messages import Died, Sign, Tried
from autotune.engine.process_worker import ProcessWorker
from autotune.engine.sweep import SweepInterrupted
from autotune.errors import DeviceError, FamilyError
from autotune.processes import Warned, own_folder
from autotune.record.trial import Trial


@pytest.fixture
def started() -> Iterator[ExitStack]:
    """Workers that are entered here are ended with the test."""
    with ExitStack() as stack:
        yield stack


def start(stack: ExitStack, worker: ProcessWorker) -> ProcessWorker:
    stack.callback(worker.close, at_once=True)
    worker.start()
    return worker


def gone(pid: int) -> bool:
    return eventually(lambda: is_gone(pid))


class Watched(ProcessWorker):
    """The limit of a trial is passed when what never ends has begun, and not before."""

    endless, log = "", Path()

    def _handle_message(self, message: object, answers: list[Tried | Died]) -> None:
        super()._handle_message(message, answers)
        if message is Sign.PLACED and self._jobs[0].configuration.id == self.endless:
            wait_for(lambda: self.log.exists() and self.endless in self.log.read_text())
            self.deadline = time.monotonic()


def test_a_process_measures_as_this_one_does(folder: Path, tmp_path: Path, started: ExitStack) -> None:
    here = sweep(folder, tmp_path / "here").run()
    worker = start(started, process(FakeDevice(folder)))
    there = sweep(folder, tmp_path / "there", workers=[worker]).run()
    assert there.identity == here.identity
    assert {t.configuration: t.measurement and t.measurement.time_ms for t in there.trials} == {
        t.configuration: t.measurement and t.measurement.time_ms for t in here.trials
    }
    assert there.decision is not None and here.decision is not None
    assert there.decision.winner.configuration == here.decision.winner.configuration
    assert there.about.clock_mhz == 1980


def test_whatever_a_kernel_does_to_its_process_costs_one_trial(
    folder: Path, tmp_path: Path, started: ExitStack
) -> None:
    log = tmp_path / "launched"
    faults = {
        "block_size=32,memory=global": "SIGSEGV",
        "block_size=64,memory=global": "SIGABRT",
        "block_size=128,memory=global": "endless",
        "block_size=256,memory=global": "SIGKILL",
        "block_size=32,memory=texture": "exit",
        "block_size=64,memory=texture": "refused",
        "block_size=128,memory=texture": "raise",
    }
    watched = Watched("cuda:0", FakeDevice(folder, faults, log), trial_seconds=3600)
    watched.endless, watched.log = "block_size=128,memory=global", log
    worker = start(started, watched)
    study = sweep(folder, tmp_path, workers=[worker]).run()
    assert study.states() == {"measured": 5, "crashed": 4, "timed_out": 1, "launch_failed": 2}
    reasons = {t.configuration.id: t.reason for t in study.trials}
    assert "ended by SIGSEGV" in reasons["block_size=32,memory=global"]
    assert "ended by SIGABRT" in reasons["block_size=64,memory=global"]
    assert "no end within 3600 s" in reasons["block_size=128,memory=global"]
    assert "perhaps the machine ran out of memory" in reasons["block_size=256,memory=global"]
    assert "exit code 3" in reasons["block_size=32,memory=texture"]
    assert reasons["block_size=64,memory=texture"] == "the device says refused"
    assert reasons["block_size=128,memory=texture"] == "ValueError: no such thing"
    launched = log.read_text().split()
    assert all(launched.count(named) == 1 for named in faults)
    assert study.decision is not None
    assert study.decision.winner.configuration.id == "block_size=64,memory=readonly"
    assert study.decision.winner.measurement and study.decision.winner.measurement.retimed_ms
    # None of it is tried again but what may have been the machine's fault.
    log.write_text("")
    again = sweep(folder, tmp_path, workers=[worker]).run()
    assert again.states() == study.states()
    assert {line for line in log.read_text().split() if line in faults} == {
        "block_size=64,memory=texture",
        "block_size=128,memory=texture",
    }


def test_a_lost_context_is_made_anew(folder: Path, tmp_path: Path, started: ExitStack) -> None:
    device = FakeDevice(folder, {"block_size=256": "lost"}, tmp_path / "launched")
    worker = start(started, process(device))
    study = sweep(folder, tmp_path, workers=[worker]).run()
    assert study.states() == {"measured": 9, "crashed": 3}
    assert {t.reason for t in study.trials if t.state == "crashed"} == {"the device says lost"}
    assert len((tmp_path / "starts").read_text().split()) == 4
    assert not study.about.lost


def test_a_process_killed_from_outside_is_replaced(folder: Path, tmp_path: Path, started: ExitStack) -> None:
    log = tmp_path / "launched"
    worker = start(started, process(FakeDevice(folder, {}, log, ms=3)))

    def kill(trial: Trial, done: int, total: int) -> None:
        if done in (3, 7):
            os.kill(int((tmp_path / "starts").read_text().split()[-1]), signal.SIGKILL)

    study = sweep(folder, tmp_path, workers=[worker], watch=kill).run()
    states = study.states()
    assert len(study.trials) == 12
    # What it had in hand is not tried again; between two trials it had nothing in hand.
    assert states["measured"] + states.get("crashed", 0) == 12
    assert states.get("crashed", 0) <= 2
    assert len((tmp_path / "starts").read_text().split()) == 3


def test_a_device_that_does_not_start_is_refused_in_its_own_words(folder: Path) -> None:
    worker = process(FakeDevice(folder, start="no device"))
    with pytest.raises(DeviceError, match="fell off the bus"):
        worker.start()
    worker.close()


def test_a_process_that_cannot_start_is_not_started_for_ever(folder: Path, tmp_path: Path) -> None:
    worker = process(FakeDevice(folder, log=tmp_path / "launched", start="SIGSEGV"))
    with pytest.raises(DeviceError, match=r"cuda:0 ended 3 times in a row before its first trial.*SIGSEGV"):
        worker.start()
    worker.close()
    assert len((tmp_path / "starts").read_text().split()) == 3


def test_a_device_that_goes_away_ends_the_sweep_and_what_was_measured_stays(
    folder: Path, tmp_path: Path, started: ExitStack
) -> None:
    flag = tmp_path / "gone"
    worker = start(started, ProcessWorker("cuda:0", Vanishing(folder, flag)))
    study = sweep(folder, tmp_path, workers=[worker]).run()
    assert "fell off the bus" in study.about.lost
    assert "3 times in a row" in study.about.lost
    states = study.states()
    assert states["crashed"] == 1 and states["measured"] >= 1
    flag.unlink()
    healthy = start(started, process(FakeDevice(folder)))
    assert sweep(folder, tmp_path, workers=[healthy]).run().states() == {"measured": 11, "crashed": 1}


class Vanishing:
    """A device that is not there any more once a kernel has crashed on it."""

    def __init__(self, folder: Path, flag: Path) -> None:
        self.folder, self.flag = folder, flag

    def __call__(self) -> object:
        if self.flag.exists():
            raise DeviceError("it fell off the bus")
        backend = FakeDevice(self.folder)()
        plain = backend.costs

        def costs(configuration: object) -> float:
            if "32" in str(configuration):
                self.flag.touch()
                os.kill(os.getpid(), signal.SIGSEGV)
            return plain(configuration)  # type: ignore[arg-type]

        backend.costs = costs
        return backend


def test_several_processes_share_the_work(folder: Path, tmp_path: Path, started: ExitStack) -> None:
    workers = []
    for n in range(2):
        (tmp_path / str(n)).mkdir()
        faults = {"block_size=64,memory=texture": "SIGSEGV"}
        workers.append(
            start(started, process(FakeDevice(folder, faults, tmp_path / str(n) / "launched", ms=5)))
        )
    study = sweep(folder, tmp_path, workers=workers).run()
    assert study.states() == {"measured": 11, "crashed": 1}
    launched = [set((tmp_path / str(n) / "launched").read_text().split()) for n in range(2)]
    assert all(len(ids) >= 3 for ids in launched)
    assert len(launched[0] | launched[1]) == 12
    assert study.decision is not None
    assert study.decision.winner.configuration.id == "block_size=64,memory=readonly"


def test_when_one_of_several_is_given_up_the_others_go_on(
    folder: Path, tmp_path: Path, started: ExitStack
) -> None:
    flag = tmp_path / "gone"
    workers = [
        start(started, ProcessWorker("cuda:0", Vanishing(folder, flag))),
        start(started, process(FakeDevice(folder, ms=5))),
    ]
    with pytest.warns(UserWarning, match="goes on without it"):
        study = sweep(folder, tmp_path, workers=workers).run()
    states = study.states()
    assert states["measured"] + states.get("crashed", 0) == 12
    assert not study.about.lost


def test_ctrl_c_ends_what_is_under_way(folder: Path, tmp_path: Path, started: ExitStack) -> None:
    device = FakeDevice(folder, {"block_size=256,memory=texture": "endless"}, tmp_path / "launched")
    worker = start(started, process(device))

    def stop(trial: Trial, done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(SweepInterrupted) as caught:
        sweep(folder, tmp_path, workers=[worker], watch=stop).run()
    assert len(caught.value.study.trials) == 5
    assert gone(int((tmp_path / "starts").read_text()))


def test_a_warning_of_a_process_is_given_where_autotune_was_called(folder: Path, tmp_path: Path) -> None:
    worker = process(FakeDevice(folder, {}, tmp_path / "launched"))
    with pytest.warns(UserWarning, match="^mind the gap$") as caught:
        worker._handle_message(Warned("mind the gap"), [])
        worker._handle_message(Warned("mind the gap"), [])
    worker.close()
    (one,) = caught
    assert one.filename == __file__


def test_no_process_outlives_a_sweep_that_is_killed(folder: Path, tmp_path: Path) -> None:
    program = f"""
        from pathlib import Path
        from fake_device import FakeDevice, process
        from fakes import sweep
        if __name__ == "__main__":
            folder, out = Path({str(folder)!r}), Path({str(tmp_path)!r})
            worker = process(FakeDevice(folder, {{"memory=global": "endless"}}, out / "launched"))
            worker.start()
            sweep(folder, out, workers=[worker]).run()
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(program))
    environment = {
        **os.environ,
        "PYTHONPATH": import_path(),
        "TMPDIR": str(tmp_path),
    }
    running = subprocess.Popen([sys.executable, str(script)], env=environment)
    while not (tmp_path / "launched").exists():
        assert running.poll() is None
        time.sleep(0.02)
    pid = int((tmp_path / "starts").read_text())
    assert Path(f"/proc/{pid}").exists()
    running.kill()
    running.wait()
    assert gone(pid)
    assert len(list(tmp_path.glob("autotune-sweep-*"))) == 2  # it had no time to clean up
    cleaning = "from autotune.engine.shared_inputs import share_arrays\nwith share_arrays({}): pass\n"
    subprocess.run([sys.executable, "-c", cleaning], env=environment, check=True)
    assert not list(tmp_path.glob("autotune-sweep-*"))


def test_folders_in_use_are_left_alone_whoever_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In another container, or on another host with the same folder for temporary files, no number of a process says
    whether it lives."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    elsewhere = tmp_path / "autotune-sweep-00000000-4194304-abc"  # of another host, or another container
    elsewhere.mkdir()
    holding = """
import sys
from autotune.processes import Warned, own_folder
with own_folder() as name:
    print(name, flush=True)
    sys.stdin.read()
"""
    command = [sys.executable, "-c", holding]
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path),
        "PYTHONPATH": import_path(),
    }
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout
        theirs = Path(other.stdout.readline().strip())
        with own_folder() as mine:
            assert theirs.is_dir() and Path(mine).is_dir()
        assert theirs.is_dir() and not Path(mine).exists()
        other.kill()
    assert theirs.is_dir()  # it had no time to clean up
    with own_folder() as mine:
        assert not theirs.exists() and Path(mine).is_dir()
    assert elsewhere.is_dir()


def test_a_warning_of_processes_that_are_made_anew_is_told_once(
    folder: Path, tmp_path: Path, started: ExitStack
) -> None:
    faults = {"block_size=32": "SIGSEGV"}
    device = FakeDevice(folder, faults, tmp_path / "launched", start="warn")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        worker = start(started, process(device))
        sweep(folder, tmp_path, workers=[worker]).run()
    assert len((tmp_path / "starts").read_text().split()) > 2
    assert [str(one.message) for one in told] == ["running on the cpu: no GPU found"]


def test_a_reference_that_crashes_is_an_error_that_says_so(
    folder: Path, tmp_path: Path, started: ExitStack
) -> None:
    (folder / "family.py").write_text("import os\ndef reference(arrays, options):\n    os.abort()\n")
    worker = start(started, process(FakeDevice(folder)))
    with pytest.raises(FamilyError, match=r"the reference of family doubler gave nothing.*SIGABRT"):
        sweep(folder, tmp_path, workers=[worker]).run()

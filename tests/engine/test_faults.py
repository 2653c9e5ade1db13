"""What goes wrong around a sweep: it is killed, its disk is full, its files are edited, another sweep runs."""

import os
import random
import resource
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest
from fake_device import start_sweep
from fakes import FakeBackend, FakeToolchain, sweep
from import_path import import_path

from autotune.engine.process_worker import IN_HAND
from autotune.record.store import Store


def recorded(out: Path) -> set[str]:
    """The ids of the configurations in the record."""
    if not (out / "out" / "store.journal").exists():
        return set()
    return {t.configuration.id for study in Store(out / "out").studies() for t in study.trials}


def launched(log: Path) -> Counter[str]:
    return Counter(log.read_text().split()) if log.exists() else Counter()


def widened(folder: Path, count: int) -> int:
    """More block sizes: how many configurations there are now."""
    sizes = ", ".join(str(8 * n) for n in range(1, count + 1))
    path = folder / "family.yaml"
    path.write_text(path.read_text().replace("[32, 64, 128, 256]", f"[{sizes}]"))
    return 3 * count


@pytest.mark.filterwarnings("ignore:.*its last line was torn")
@pytest.mark.parametrize(("seed", "isolated"), [(1, False), (2, True)])
def test_a_sweep_that_is_killed_goes_on_where_it_was(
    folder: Path, tmp_path: Path, seed: int, isolated: bool
) -> None:
    total = widened(folder, 40)
    moments = random.Random(seed)
    for number in range(3):
        before = recorded(tmp_path)
        log = tmp_path / f"launched{number}"
        running = start_sweep(folder, tmp_path, log, 0.2, isolated)
        while not log.exists() and running.poll() is None:
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.3))
        running.kill()
        running.wait()
        after = recorded(tmp_path)
        tried = set(launched(log))
        assert before <= after  # nothing is lost
        if len(before) < total:
            assert not tried & before or len(after) == total  # nothing is tried again, but the finalists
            assert len(tried - after) <= (IN_HAND if isolated else 1)
    backend = FakeBackend()
    study = sweep(folder, tmp_path, backend).run()
    assert study.states() == {"measured": total}
    assert study.decision is not None
    assert study.decision.winner.configuration.id == "block_size=64,memory=readonly"


def test_two_sweeps_into_one_record_share_the_work(folder: Path, tmp_path: Path) -> None:
    total = widened(folder, 30)
    logs = [tmp_path / "first", tmp_path / "second"]
    running = [
        start_sweep(folder, tmp_path, log, 4, isolated=True, beside=other)
        for log, other in zip(logs, reversed(logs), strict=True)
    ]
    assert [process.wait(600) for process in running] == [0, 0]
    found = [launched(log) for log in logs]
    assert len(found[0]) >= 10 and len(found[1]) >= 10
    assert set(found[0]) | set(found[1]) == recorded(tmp_path)
    assert len(recorded(tmp_path)) == total
    # The few that both have launched are finalists.
    assert len(set(found[0]) & set(found[1])) <= 16
    states = {t.state for t in Store(tmp_path / "out").studies()[0].trials}
    assert states == {"measured"}


def test_what_a_killed_sweep_had_in_hand_is_tried_by_the_other(folder: Path, tmp_path: Path) -> None:
    total = widened(folder, 30)
    logs = [tmp_path / "first", tmp_path / "second"]
    running = [
        start_sweep(folder, tmp_path, log, 4, isolated=True, beside=other)
        for log, other in zip(logs, reversed(logs), strict=True)
    ]
    while not all(log.exists() and len(launched(log)) >= 5 for log in logs):
        assert all(process.poll() is None for process in running)
        time.sleep(0.01)
    running[0].kill()
    running[0].wait()
    assert running[1].wait(600) == 0
    assert len(recorded(tmp_path)) == total


def test_a_full_disk_is_an_error_that_keeps_what_was_recorded(folder: Path, tmp_path: Path) -> None:
    total = widened(folder, 30)
    log = tmp_path / "launched"
    program = textwrap.dedent("""
        import fake_device, sys
        from autotune.errors import StoreError
        try:
            fake_device.sweep_here(*sys.argv[1:4], 0.0, False)
        except StoreError as problem:
            print(problem)
            sys.exit(7)
    """)
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), str(tmp_path), str(log)],
        env={**os.environ, "PYTHONPATH": import_path()},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000)),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 7, done.stderr
    assert "cannot write to the store" in done.stdout
    kept = recorded(tmp_path)
    assert 5 <= len(kept) < total
    backend = FakeBackend()
    study = sweep(folder, tmp_path, backend).run()
    assert study.states() == {"measured": total}
    first = list(dict.fromkeys(backend.launched))[: total - len(kept)]
    assert not set(first) & kept


@pytest.mark.parametrize(
    "edited", ["doubler.cu", "extra.cuh", "family.yaml", "workloads/small.yaml", "compiler"]
)
def test_a_sweep_after_an_edit_measures_all_anew_and_undoing_it_nothing(
    folder: Path, tmp_path: Path, edited: str
) -> None:
    (folder / "extra.cuh").write_text("// a header\n")
    first = sweep(folder, tmp_path).run()
    tools = FakeToolchain("fake 2") if edited == "compiler" else FakeToolchain()
    path, kept = folder / edited, ""
    if edited != "compiler":
        kept = path.read_text()
        path.write_text(
            kept.replace("seed: 1", "seed: 2")
            if "workloads" in edited
            else kept.replace("ceil_div(n, block_size)", "2 * ceil_div(n, block_size)")
            if "family" in edited
            else f"{kept}// edited\n"
        )
    backend = FakeBackend(tools=tools)
    second = sweep(folder, tmp_path, backend).run()
    assert len(set(backend.launched)) == 12
    assert second.identity != first.identity
    if edited != "compiler":
        path.write_text(kept)
    backend = FakeBackend()
    third = sweep(folder, tmp_path, backend).run()
    assert not backend.launched
    assert third.identity == first.identity
    assert len(Store(tmp_path / "out").studies()) == 2

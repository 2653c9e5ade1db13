"""The record survives what can happen to it, and sweeps share a store: in every place that one may be kept in."""

import json
import os
import random
import re
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest
from grpc_server import served
from store_process import POLICIES, Starter, configurations, opened, study, trial
from waiting import wait_for

from autotune.errors import StoreError
from autotune.record.claims import BEATS, Claims, has_ended, process_name, study_of
from autotune.record.journal import JournalFile, line_of
from autotune.record.store import Store, _trials
from autotune.record.trial import STATES, Trial

GRPC = pytest.param("grpc", marks=pytest.mark.grpc)
POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.postgresql)


@pytest.fixture(params=["journal", GRPC, POSTGRESQL])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param in ("grpc", "postgresql"):
        return str(request.getfixturevalue(request.param))
    return str(tmp_path / "out")


@pytest.fixture
def grpc() -> Iterator[str]:
    """The address of Optuna's proxy before an empty database, which is in memory: a disk is not what is tested."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield from served(Path(folder) / "optuna.db")


@pytest.fixture(scope="module")
def started() -> Iterator[Starter]:
    starter = Starter()
    yield starter
    starter.close()


# Many processes behind gRPC are long in starting; four of them are in test_after_a_kill_and_a_pause.
OF_PROCESSES = pytest.mark.parametrize("where", ["journal", POSTGRESQL], indirect=True)


def told(log: Path, word: str) -> list[int]:
    lines = log.read_text().splitlines() if log.exists() else []
    return [int(line.split()[1]) for line in lines if line.startswith(word)]


def rows(where: str) -> Counter[int]:
    """How often each configuration is in the storage, whatever the store makes of it."""
    store = Store(where)
    studies = store.storage.get_all_studies()
    found = [t for s in studies for t in store.storage.get_all_trials(s._study_id)]
    recorded = [t.user_attrs["trial"] for t in found if "trial" in t.user_attrs]  # others are claims
    return Counter(trial["configuration"]["number"] for trial in recorded)


# -- who tries what ---------------------------------------------------------------------------------------


def test_a_configuration_is_one_stores_at_a_time(where: str) -> None:
    first, second = opened(where), opened(where)
    a, b, c = configurations(3)
    assert first.claim(a)
    assert not first.claim(a)
    assert not second.claim(a)
    assert second.claim(b)
    first.release(a)
    assert second.claim(a)
    second.record(trial(a))
    assert not first.claim(a)
    assert not second.claim(a)
    assert first.get_known() == {a: trial(a)}
    second.record(trial(c))
    first.refresh()
    assert set(first.get_known()) == {a, c}
    assert not second.claim(c)


def test_a_store_that_is_gone_has_no_claims(where: str) -> None:
    first, second = opened(where), opened(where)
    (a,) = configurations(1)
    assert first.claim(a)
    assert not second.claim(a)
    del first
    assert second.claim(a)


def test_what_failed_before_may_be_tried_once_more(where: str) -> None:
    (a,) = configurations(1)
    opened(where).record(trial(a, "compile_failed"))
    first, second = opened(where), opened(where)
    assert not first.claim(a)
    assert first.claim(a, again=True)
    first.record(trial(a, "compile_failed"))
    assert not first.claim(a, again=True)
    assert not second.claim(a, again=True)


def test_a_trial_recorded_again_replaces_the_earlier(where: str) -> None:
    store = opened(where)
    (a,) = configurations(1)
    store.record(trial(a))
    again = replace(trial(a), notes=("timed again",))
    store.record(again)
    assert store.get_known() == opened(where).get_known() == {a: again}
    (read,) = Store(where).studies()
    assert read.trials == (again,)


def test_studies_of_one_store_are_apart(where: str) -> None:
    store = Store(where)
    first, second = (store.open(study(identity=digit * 64), POLICIES) for digit in "01")
    a, b = configurations(2)
    assert first.claim(a)
    assert second.claim(a)
    first.record(trial(a))
    second.record(trial(a, "compile_failed"))
    second.record(trial(b))
    assert first.get_known() == {a: trial(a)}
    assert second.get_known() == {a: trial(a, "compile_failed"), b: trial(b)}
    assert {s.identity[0]: len(s.trials) for s in Store(where).studies()} == {"0": 1, "1": 2}


def test_all_that_was_recorded_is_there_when_it_is_opened_again(where: str) -> None:
    """Every state, with its texts, in the order in which it came; and it goes on from there."""
    store, made = opened(where), []
    for configuration, state in zip(configurations(99), STATES, strict=False):
        made.append(replace(trial(configuration, state), notes=(f"{state}: ± µ \\ ' \" \n %s {{}}",)))
        store.record(made[-1])
    del store
    for _ in range(2):
        again = opened(where)
        assert list(again.get_known().values()) == made
        (read,) = Store(where).studies()
        assert read.trials == tuple(made)
        made.append(trial(configurations(99)[-1 - len(made)]))
        assert again.claim(made[-1].configuration)
        again.record(made[-1])


@OF_PROCESSES
def test_eight_processes_never_try_the_same(where: str, tmp_path: Path, started: Starter) -> None:
    count, of = (16, 4) if "://" in where else (60, 8)  # a server is slow in opening
    logs = [tmp_path / f"{number}.log" for number in range(of)]
    processes = [started(where, count, 0.002, log, begin=tmp_path / "begin") for log in logs]
    wait_for(lambda: all(log.exists() and "ready" in log.read_text() for log in logs))
    (tmp_path / "begin").touch()
    assert [process.wait() for process in processes] == [0] * of
    tried = Counter(number for log in logs for number in told(log, "trying"))
    assert tried == dict.fromkeys(range(count), 1)
    assert rows(where) == tried
    assert sum(bool(told(log, "trying")) for log in logs) > 1  # they did share it


@pytest.mark.parametrize("where", ["journal"], indirect=True)
def test_a_killed_process_gives_back_what_it_was_trying(where: str, tmp_path: Path, started: Starter) -> None:
    count = 30
    logs = [tmp_path / f"{number}.log" for number in range(3)]
    killed = started(where, count, 60, logs[0])
    wait_for(lambda: told(logs[0], "trying"))
    others = [started(where, count, 0.002, log) for log in logs[1:]]
    store = opened(where)
    wait_for(lambda: (store.refresh(), len(store.get_known()) == count - 1)[1])  # all but the one
    wait_for(lambda: all(log.read_text().count("waiting") > 2 for log in logs[1:]))
    assert [process.poll() for process in others] == [None, None]  # and they wait for it
    killed.kill()
    killed.wait()
    assert [process.wait() for process in others] == [0, 0]
    assert rows(where) == dict.fromkeys(range(count), 1)
    tried = Counter(number for log in logs for number in told(log, "trying"))
    assert tried == dict.fromkeys(range(count), 1) | {told(logs[0], "trying")[0]: 2}


@pytest.mark.filterwarnings("ignore:.*its last line was torn")  # where the kill hits a write
@OF_PROCESSES
def test_killed_at_any_moment_it_loses_the_trial_in_flight_at_most(
    where: str, tmp_path: Path, started: Starter
) -> None:
    chance, log = random.Random(5), tmp_path / "log"
    count, kills = (12, 3) if "://" in where else (60, 20)
    for _ in range(kills):
        before = log.read_text().count("ready") if log.exists() else 0
        process = started(where, count, 0.001, log)
        wait_for(lambda before=before: log.exists() and log.read_text().count("ready") > before)
        time.sleep(chance.uniform(0, 0.02))
        process.kill()
        process.wait()
        assert set(told(log, "recorded")) <= {c["number"] for c in opened(where).get_known()}
    assert started(where, count, 0, log).wait() == 0
    assert rows(where) == dict.fromkeys(range(count), 1)
    tried = Counter(told(log, "trying"))
    assert set(tried) == set(range(count))
    assert sum(tried.values()) <= count + kills  # one in flight for each kill


@pytest.fixture(params=["journal", GRPC])
def twice(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Two addresses of one record: of a folder, two paths."""
    if request.param == "grpc":
        address = str(request.getfixturevalue("grpc"))
        return address, address
    (tmp_path / "disk").mkdir()
    (tmp_path / "mounted").symlink_to("disk")
    return str(tmp_path / "disk"), str(tmp_path / "mounted")


def test_after_a_kill_and_a_pause_all_is_recorded_once(
    twice: tuple[str, str], tmp_path: Path, started: Starter
) -> None:
    """Two hosts with two processes each. One is killed; one stands still, within a trial, until another has taken that
    over, and then goes on; both were alone when they began it."""
    count, where, end = 12, twice[0], tmp_path / "end"
    logs = [tmp_path / f"{number}.log" for number in range(4)]
    stopped = [started(twice[n], count, 0, logs[n], end=end, silent_s=3) for n in range(2)]
    wait_for(lambda: all(told(log, "trying") for log in logs[:2]))
    held = {told(log, "trying")[-1] for log in logs[:2]}
    stopped[0].kill()
    os.kill(stopped[1].pid, signal.SIGSTOP)
    others = [started(twice[n - 2], count, 0.01, logs[n], silent_s=3) for n in (2, 3)]
    assert [process.wait() for process in others] == [0, 0]
    end.touch()
    os.kill(stopped[1].pid, signal.SIGCONT)
    assert stopped[1].wait() == 0
    assert rows(where) == dict.fromkeys(range(count), 1)
    assert sorted(number for log in logs[2:] for number in told(log, "recorded")) == list(range(count))
    assert told(logs[1], "lost") == told(logs[1], "trying")
    tried = Counter(number for log in logs for number in told(log, "trying"))
    assert {number for number, times in tried.items() if times > 1} == held


def test_a_process_that_stood_still_declares_nobody_dead(where: str) -> None:
    """Silence is counted in this process's own signs, and no clock is asked: neither a pause nor clocks that are apart
    end a claim."""
    here, there = (Store(where, silent_s=3600) for _ in range(2))
    a, b = (store.open(study(), POLICIES) for store in (here, there))
    (one,) = configurations(1)
    assert a.claim(one)
    assert not b.claim(one)
    for moment in (3600.0, -3600.0, 1e9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "time", lambda moment=moment: moment)
            patch.setattr(time, "monotonic", lambda moment=moment: moment)
            assert not b.claim(one)
    for _ in range(BEATS + 1):  # as if it had shown itself so often meanwhile
        assert not b.claim(one)
        there.claims.beats += 1
    assert b.claim(one)
    assert not a.record(trial(one))
    assert b.record(trial(one))
    a.refresh()
    assert a.get_known() == {one: trial(one)}


def test_a_heartbeat_keeps_claims_and_silence_ends_them(where: str) -> None:
    stores = [Store(where, silent_s=0.5) for _ in range(3)]
    alive, silent, other = (store.claims for store in stores)
    assert alive.take("study", "a")
    assert silent.take("study", "b")
    silent._closed.set()  # as a stopped process, or a host that is gone
    wait_for(lambda: other.take("study", "b"))
    assert not other.take("study", "a")
    assert silent.take("study", "c")  # it comes back, and learns what it lost
    assert not silent.take("study", "b")
    assert silent.is_lost("study", "b")


class Stepwise:
    """A storage; before the n-th thing that is asked of it, ``between`` happens."""

    def __init__(self, storage: optuna.storages.BaseStorage) -> None:
        self._storage, self.left, self.between = storage, 0, lambda: None

    def __getattr__(self, name: str) -> Any:
        self.left -= 1
        if self.left == 0:
            self.between()
        return getattr(self._storage, name)


def test_of_two_that_take_over_at_once_one_has_it() -> None:
    """All that one does between every two steps of the other."""
    for step in range(1, 12):
        storage = optuna.storages.InMemoryStorage()
        stepwise: Any = Stepwise(storage)
        dead, second = Claims(lambda storage=storage: storage), Claims(lambda storage=storage: storage)
        first = Claims(lambda stepwise=stepwise: stepwise)
        assert dead.take("study", "a")
        for one in (first, second):
            assert not one.take("study", "a")
            one.beats += BEATS + 1
        taken: list[bool] = []
        stepwise.between = lambda second=second, taken=taken: taken.append(second.take("study", "a"))
        stepwise.left = step
        taken.append(first.take("study", "a"))
        taken += [second.take("study", "a")] if len(taken) < 2 else []
        holders = [
            ("study", "a") in one._held and not one.is_lost("study", "a") for one in (dead, first, second)
        ]
        assert not holders[0]
        assert sum(holders) == sum(taken) <= 1
        for one in (dead, first, second):
            one.close()


def test_a_process_of_this_host_that_has_ended_is_known(started: Starter, tmp_path: Path) -> None:
    own = process_name()
    assert not has_ended(own)
    ended = started(str(tmp_path), 0, 0, tmp_path / "log")
    ended.wait()
    host, pid = own.rsplit(" ", 2)[0], str(ended.pid)
    assert has_ended(f"{host} {pid} 01234567")
    assert not has_ended(f"another {host} {pid} 01234567")
    for forged in ("", "x", f"{host} x y", f"{host} {10**30} y", f"{host} 0 y", f"{host} -1 y"):
        assert not has_ended(forged)


# -- the shared folder ------------------------------------------------------------------------------------


def test_who_only_reads_leaves_nothing_behind(tmp_path: Path) -> None:
    opened(tmp_path).record(trial(configurations(1)[0]))
    before = sorted(path.name for path in tmp_path.iterdir())
    (read,) = Store(tmp_path).studies()
    assert len(read.trials) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_line_that_is_on_its_way_is_waited_for_and_a_damaged_one_left_out(tmp_path: Path) -> None:
    a, b, c = configurations(3)
    writer = opened(tmp_path)
    reader = opened(tmp_path)
    journal = tmp_path / "store.journal"
    writer.record(trial(a))
    whole = journal.read_bytes()
    writer.record(trial(b))
    line = journal.read_bytes().removeprefix(whole)
    for part in (line[:50], b"\0" * 20 + line[20:]):  # not all of it, and a hole in its middle
        journal.write_bytes(whole + part)
        reader.refresh()
        assert set(reader.get_known()) == {a}
    journal.write_bytes(whole + line)
    reader.refresh()
    assert set(reader.get_known()) == {a, b}
    writer.record(trial(c))
    damaged = journal.read_bytes().replace(line, b"\0" * (len(line) - 1) + b"\n")
    journal.write_bytes(damaged)
    with pytest.warns(UserWarning, match="line 5 is damaged and is left out"):
        assert set(opened(tmp_path).get_known()) == {a, c}


@pytest.mark.parametrize("moment", ["is_held", "_cut_torn_line"])
def test_a_process_that_was_stopped_while_it_wrote_damages_nothing(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others take its lock meanwhile, one writes, and one of another host has it when the process goes on."""
    path, operation = tmp_path / "store.journal", {"op_code": 0, "worker_id": "x"}
    link = tmp_path / "store.journal.lock"
    stopped, other = (JournalFile(path, grace_s=0.2) for _ in range(2))
    where = stopped._lock if moment == "is_held" else stopped
    step, stops = getattr(where, moment), iter([True])

    def stop(*given: Any) -> Any:
        if next(stops, False):
            other.append_logs([operation])
            link.symlink_to("another host 1 01234567")
        return step(*given)

    monkeypatch.setattr(where, moment, stop)
    stopped.append_logs([operation])
    assert link.is_symlink() == (moment == "_cut_torn_line")  # it was not its own to give back
    other.append_logs([operation])
    assert len(list(other.read_logs(0))) == 3
    assert not link.is_symlink()


def test_optunas_lock_is_released_by_a_process_that_has_lost_it(tmp_path: Path) -> None:
    """Which is why there is one of our own."""
    locks = [
        optuna.storages.journal.JournalFileOpenLock(str(tmp_path / "x"), grace_period=3) for _ in range(2)
    ]
    locks[0].acquire()
    (tmp_path / "x.lock").unlink()  # as when the grace is over
    locks[1].acquire()
    locks[0].release()
    assert not (tmp_path / "x.lock").exists()


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        StoreError, match="name a folder you may write with --out, on a file system with symb"
    ):
        Store(tmp_path / "file")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_journal_is_not_waited_for(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "store.journal")
    with pytest.raises(StoreError, match=r"store.journal is no file"):
        Store(tmp_path)


# -- the journal ------------------------------------------------------------------------------------------


def test_a_line_torn_by_another_process_is_cut_off_before_the_next_is_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = opened(tmp_path), opened(tmp_path)
    a, b, c = configurations(3)
    first.record(trial(a))
    for torn in (b'{"op_code": 4, "stu', b"x" * 200_000):
        with (tmp_path / "store.journal").open("ab") as file:
            file.write(torn)  # and killed
        second.refresh()
        second.record(trial(b))
        assert "its last line was torn" in caplog.text
    second.record(trial(c))
    first.refresh()
    assert set(first.get_known()) == set(opened(tmp_path).get_known()) == {a, b, c}
    for line in (tmp_path / "store.journal").read_text().splitlines():
        json.loads(line)


def test_a_full_disk_is_an_error_that_keeps_what_was_recorded(tmp_path: Path, started: Starter) -> None:
    out, log, count = tmp_path / "out", tmp_path / "log", 40
    process = started(
        str(out), count, 0, log, most_bytes=20000
    )  # the kernel writes as much as fits, then refuses
    assert process.wait() == StoreError.exit_code
    recorded = told(log, "recorded")
    assert 2 < len(recorded) < count
    assert "File too large; what was measured before is kept, free space" in log.read_text()
    assert (out / "store.journal").read_bytes().endswith(b"\n")
    assert {c["number"] for c in opened(out).get_known()} == set(recorded)
    assert started(str(out), count, 0, log).wait() == 0
    assert rows(str(out)) == dict.fromkeys(range(count), 1)
    assert Counter(told(log, "trying")) == dict.fromkeys(range(count), 1) | {len(recorded): 2}


def test_each_line_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    for configuration in configurations(50):
        store.record(trial(configuration))
    read: list[bytes] = []
    loads = json.loads

    def counted(text: str | bytes) -> Any:
        if isinstance(text, bytes):  # a line of the journal; Optuna reads texts of its own
            read.append(text)
        return loads(text)

    monkeypatch.setattr(json, "loads", counted)
    store = opened(tmp_path)
    for configuration in configurations(100)[50:]:
        assert store.claim(configuration)
        store.record(trial(configuration))
    store.refresh()
    journals = [tmp_path / "store.journal", tmp_path / "store.claims"]
    assert len(read) == sum(len(path.read_bytes().splitlines()) for path in journals)


def test_a_journal_taken_away_is_an_error(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for journal in tmp_path.glob("*.journal"):
        journal.unlink()
    with pytest.raises(
        StoreError, match=r"No such file or directory; its journal in .* is gone, and what was meas"
    ):
        store.record(trial(configurations(1)[0]))


@pytest.mark.parametrize(
    "rubbish", [b"rubbish\n", b"5\n", b"{}\n", b"\n", b"[" * 100_000 + b"\n", b"\0" * 4096 + b"\n"]
)
def test_a_line_that_is_no_record_is_left_out_and_named(tmp_path: Path, rubbish: bytes) -> None:
    a, b = configurations(2)
    opened(tmp_path).record(trial(a))
    with (tmp_path / "store.journal").open("ab") as file:
        file.write(rubbish)
    lines = len((tmp_path / "store.journal").read_bytes().splitlines())
    with pytest.warns(UserWarning, match=f"line {lines} is damaged and is left out") as told:
        store = opened(tmp_path)
    store.record(trial(b))
    assert set(store.get_known()) == {a, b}
    assert len(told) == 1


def journal_of_studies(folder: Path, count: int = 2) -> list[bytes]:
    """Return the lines of a journal with ``count`` studies, each of three trials."""
    store = Store(folder)
    for number in range(count):
        one = store.open(study(identity=str(number) * 64), POLICIES)
        for configuration in configurations(3):
            one.record(replace(trial(configuration), notes=(f"of study {number}",)))
    return (folder / "store.journal").read_bytes().splitlines(keepends=True)


def table(folder: Path) -> dict[tuple[str, str], Trial]:
    """Every trial that a journal holds, by study and configuration."""
    return {(s.identity, t.configuration.id): t for s in Store(folder).studies() for t in s.trials}


def test_one_flipped_bit_costs_a_line_and_is_named(tmp_path: Path) -> None:
    lines = journal_of_studies(tmp_path / "whole")
    whole, expected = b"".join(lines), table(tmp_path / "whole")
    chance = random.Random(9)
    # Every line's first bytes and its end, where its structure is, and any others at random.
    ends = [sum(map(len, lines[:i])) for i in range(len(lines) + 1)]
    places = {p for end in ends for p in range(end - 12, end + 20) if 0 <= p < len(whole)}
    places |= {chance.randrange(len(whole)) for _ in range(300)}
    (tmp_path / "bits").mkdir()
    refused = lost = 0
    for place in sorted(places):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << chance.randrange(8)
        (tmp_path / "bits" / "store.journal").write_bytes(damaged)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                found = table(tmp_path / "bits")
            except StoreError as problem:
                assert "line" in str(problem)
                refused += 1
                continue
        assert all(expected.get(key) == value for key, value in found.items())
        assert found == expected or any("damaged" in str(t.message) or "torn" in str(t.message) for t in told)
        lost += found != expected
    assert refused
    assert lost


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (b'"median_ms":1.0', b'"medeap_ms":1.0', "a recorded trial is damaged"),
        (b'"state":"measured"', b'"state":"meqsured"', "a recorded trial is damaged"),
        (b'"op_code":4', b'"op_code":94', "line 4 is damaged"),
        (b'"study_id":0', b'"study_id":[]', "line 2 is of a study that no line begins"),
        (b'"schema":1', b'"schemb":1', "the description of study .* is damaged"),
        (b'"directions":[1]', b'"directions":[7]', "line 1 is damaged, and it begins a study"),
        (b'"directions":[1]', b'"direction":[1]', "line 1 is damaged, and it begins a study"),
    ],
)
def test_what_a_line_with_the_right_checksum_says_is_checked(
    tmp_path: Path, before: bytes, after: bytes, said: str
) -> None:
    bare = b"".join(re.sub(rb',"crc32":"[0-9a-f]{8}"}', b"}", line) for line in journal_of_studies(tmp_path))
    assert before in bare
    forged = [line_of(json.loads(line)) for line in bare.replace(before, after, 1).splitlines()]
    (tmp_path / "store.journal").write_bytes(b"".join(forged))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            table(tmp_path)
            messages = [str(t.message) for t in told]
        except StoreError as problem:
            messages = [str(problem)]
    assert re.search(said, " ".join(messages))


def test_trials_never_move_to_another_study(tmp_path: Path) -> None:
    """The line that begins the first study is lost in a hole of zeros, so that what follows is counted one too low."""
    lines = journal_of_studies(tmp_path, 3)
    (tmp_path / "store.journal").write_bytes(b"".join([b"\0" * (len(lines[0]) - 1) + b"\n", *lines[1:]]))
    with pytest.raises(StoreError, match="line 2 is of a study that no line begins"):
        Store(tmp_path)


def test_other_storages_are_refused() -> None:
    with pytest.raises(
        StoreError, match=r"mysql://…; allowed are postgresql://…, grpc://host:port and a folder"
    ):
        Store("mysql://someone@somewhere/something")


# -- what others who may write there can write --------------------------------------------------------------------

BAD = [  # (where in a recorded trial, what is written there)
    (("measurement", "median_ms"), "x"),
    (("measurement", "median_ms"), -1.0),
    (("measurement", "median_ms"), 1e400),
    (("measurement", "kernel_ms"), {"sum": "x"}),
    (("measurement", "samples"), [3]),
    (("measurement", "figures"), {"footprint_bytes": {"value": 10**30}}),
    (("measurement",), [1]),
    (("reason",), 1),
    (("notes",), "x"),
    (("phases_ms",), {"verify": "x"}),
    (("begun_s",), 10**400),
    (("profiles",), [{"kernel": 1}]),
    (("configuration",), {"other": 1}),
    (("configuration",), {"number": 1.5}),
    (("errors",), "x"),
    (("state",), []),
]


@pytest.mark.parametrize(("place", "value"), BAD)
def test_a_forged_trial_is_left_out(place: tuple[str, ...], value: Any) -> None:
    plain = trial(configurations(2)[1]).to_dict()
    inside = plain
    for name in place[:-1]:
        inside = inside[name]
    inside[place[-1]] = value
    good = trial(configurations(1)[0]).to_dict()
    rows = [
        optuna.trial.create_trial(value=0.0, user_attrs=json.loads(json.dumps({"trial": one})))
        for one in (plain, good)
    ]
    with pytest.warns(UserWarning, match="a recorded trial is damaged"):
        kept = list(_trials(rows, POLICIES))
    assert [one.configuration for one in kept] == configurations(1)


def test_a_forged_claim_holds_nobody_up(where: str) -> None:
    store, (one,) = opened(where), configurations(1)
    claims = study_of(store._store.claims._begin(), f"autotune claims of {store.name}")
    for forged in (3, [one.id], [one.id, 5], {"claim": one.id}, None):
        claim = optuna.trial.create_trial(state=optuna.trial.TrialState.RUNNING, user_attrs={"claim": forged})
        store._store.claims._begin().create_new_trial(claims, claim)
    assert store.claim(one)

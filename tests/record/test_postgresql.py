"""What is PostgreSQL's own: a server that goes away, and transactions that stand still. What it has in common with a
journal is in test_store.py."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy
from postgres_cluster import Cluster
from store_process import configurations, opened, trial
from waiting import PATIENCE_S

from autotune.errors import StoreError
from autotune.record.store import Store

pytestmark = pytest.mark.postgresql


def test_a_server_started_again_is_waited_for(
    cluster: Cluster, postgresql: str, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = opened(postgresql), opened(postgresql)
    a, b, c = configurations(3)
    first.record(trial(a))
    assert first.claim(b)
    cluster.stop()
    cluster.start()
    assert first.claim(c)
    assert not second.claim(b)
    first.record(trial(b))
    first.record(trial(c))
    second.refresh()
    assert set(second.get_known()) == {a, b, c}


def test_a_server_that_stays_away_is_an_error(
    cluster: Cluster, postgresql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(postgresql)
    monkeypatch.setattr(store._store, "patience_s", 1.0)
    store.record(trial(configurations(1)[0]))
    cluster.stop()
    try:
        with pytest.raises(StoreError, match=r"cannot write to the store.*what was measured before is kept"):
            store.claim(configurations(2)[1])
    finally:
        cluster.start()
    assert set(opened(postgresql).get_known()) == set(configurations(1))


STOPPED_IN_A_TRANSACTION = """
import os, signal, sys
import sqlalchemy
from autotune.record import postgresql
postgresql._BEAT_S = float(sys.argv[2])
from store_process import configurations, opened, trial
store = opened(sys.argv[1])
def stop(connection, cursor, statement, *more):
    if statement.startswith("INSERT INTO trials"):
        sqlalchemy.event.remove(engine, "before_cursor_execute", stop)
        os.kill(os.getpid(), signal.SIGSTOP)
engine = store._store.storage._backend.engine
sqlalchemy.event.listen(engine, "before_cursor_execute", stop)
wanted = configurations(2)[1]
assert store.claim(wanted)
store.record(trial(wanted))
"""


def test_a_process_that_stands_still_in_a_transaction_holds_nobody(postgresql: str) -> None:
    """It has the row of the study, which every trial of another one needs, when it is frozen. Its heartbeat alone is
    short: one that opens a database may take seconds on a busy machine, and this one makes the tables."""
    a, b, c = configurations(3)
    store = opened(postgresql)
    arguments = [sys.executable, "-c", STOPPED_IN_A_TRANSACTION, postgresql, "5"]
    frozen = subprocess.Popen(arguments, cwd=Path(__file__).parents[1] / "support")
    try:
        _, status = os.waitpid(frozen.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert store.claim(a)
        store.record(trial(a))  # would wait for ever
        store.record(trial(c))
        assert set(opened(postgresql).get_known()) == {a, c}
    finally:
        frozen.send_signal(signal.SIGCONT)
        returned = frozen.wait(PATIENCE_S)
    assert returned == 0  # its session had been ended; it went on in another one
    assert set(opened(postgresql).get_known()) == {a, b, c}


def test_options_in_the_address_are_kept(postgresql: str) -> None:
    store = Store(f"{postgresql}&options=-c%20work_mem%3D2MB")
    with store.storage._backend.engine.connect() as session:  # type: ignore[attr-defined]
        asked = [
            session.execute(sqlalchemy.text(f"SHOW {name}")).scalar()
            for name in ("work_mem", "lock_timeout", "idle_in_transaction_session_timeout")
        ]
    assert asked == ["2MB", "48s", "24s"]


def test_not_a_number_can_be_recorded(postgresql: str) -> None:
    """Optuna keeps JSON as Python writes it, which PostgreSQL's own JSON is not."""
    store = opened(postgresql)
    (a,) = configurations(1)
    found = trial(a)
    object.__setattr__(found.measurement, "spread", float("inf"))
    store.record(found)
    assert opened(postgresql).get_known() == {a: found}


def test_what_cannot_be_opened_says_why_and_shows_no_password(postgresql: str) -> None:
    assert "autotune:***@" in Store(postgresql.replace("autotune@", "autotune:secret@")).where
    with pytest.raises(StoreError, match=r"autotune:\*\*\*@.*does not exist") as refused:
        Store(postgresql.replace("autotune@", "autotune:secret@").replace("/test", "/nothing"))
    assert "secret" not in str(refused.value)
    for where in ("user=autotune&password=s3cret", "password=s3cret", "sslpassword=s3cret"):
        address = postgresql.replace("autotune@", "").replace("/test", "/nothing") + f"&{where}"
        with pytest.raises(StoreError, match=r"password=\*\*\*") as refused:
            Store(address)
        assert "s3cret" not in str(refused.value)
    assert "s3cret" not in Store(f"{postgresql}&password=s3cret").where
    with pytest.raises(StoreError, match="looks like postgresql://user:password@host:5432/database"):
        Store("postgresql://me@host:port/database")


def test_without_the_driver_the_extra_is_named(postgresql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"pip install .*\[postgresql\]'"):
        Store(postgresql)

"""A record that many hosts share: Optuna's storage in a PostgreSQL database, and claims that the server gives back
when their process dies or falls silent.

Optuna's own heartbeats belong to its optimize loop. With its ask and tell nothing sends them, a trial whose process
died before the first one is never given up, and there are none for a journal.
"""

import contextlib
import hashlib
import json
import os
import threading
from typing import Any

import optuna
import sqlalchemy
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from autotune.errors import StoreError
from autotune.files import pip_install
from autotune.record.optuna_place import OptunaPlace

_OPENING = 7_236_451_009  # the key under which tables are made, by one process at a time
_ALIVE = sqlalchemy.text("SELECT 1")
_TAKE = sqlalchemy.text("SELECT pg_try_advisory_lock(:key)")

_ROWS = sqlalchemy.text(
    "SELECT json_object_agg(trial_id, value_json ORDER BY trial_id)"
    " FROM trials JOIN trial_user_attributes USING (trial_id)"
    " WHERE study_id = :study AND trial_id > :behind AND key = 'trial'"
)

_SILENT_S = 120  # after which the server gives back what a process has claimed
_BEATS = 5  # heartbeats in that time


def open_storage(address: str) -> tuple[optuna.storages.RDBStorage, str]:
    """The storage behind ``postgresql://user@host/database``, its tables made when they are not there, and the address
    without its password. Raises StoreError."""
    try:
        url = sqlalchemy.make_url(address).set(drivername="postgresql+psycopg")
    except (SQLAlchemyError, ValueError):
        raise StoreError(
            "cannot read --store as an address; it looks like postgresql://user:password@host:5432/database"
        ) from None
    shown = _shown(url)
    try:
        # Several processes that find an empty database must not all make its tables.
        with _session(url, _SILENT_S / 3) as session:
            session.execute(sqlalchemy.text("SELECT pg_advisory_lock(:key)"), {"key": _OPENING})
            storage = optuna.storages.RDBStorage(
                url.render_as_string(hide_password=False).replace("{", "{{").replace("}", "}}"),
                engine_kwargs={
                    "pool_pre_ping": True,  # a server that was started again is not an error
                    "connect_args": _settings(url),
                },
            )
    except ImportError:
        raise StoreError(
            f"cannot open the store {shown}: the driver is not installed; {pip_install('postgresql')}"
        ) from None
    except (SQLAlchemyError, optuna.exceptions.OptunaError, RuntimeError, ValueError) as problem:
        raise StoreError(f"cannot open the store {shown}: {_first_line(problem)}") from None
    return storage, shown


def postgresql_place(address: str) -> OptunaPlace:
    """The record in that database; see ``open_storage``. Raises StoreError."""
    database, shown = open_storage(address)
    session = PostgresClaims(database.engine.url)
    return OptunaPlace(
        shown,
        optuna.storages.get_storage(database),
        session,
        rows=session.rows,
        closes=database.engine.dispose,
    )


class PostgresClaims:
    """What this process is trying: advisory locks of one session with the server. They end with the session, and the
    session ends when the process dies, however it dies, or when the server has not heard from it for ``silent_s``
    seconds (its host is gone): a thread sends a heartbeat five times as often. No clocks are compared."""

    def __init__(self, url: URL, silent_s: float = _SILENT_S) -> None:
        self._url, self._silent_s = url, silent_s
        self._connection: sqlalchemy.Connection | None = None
        self._held: dict[str, int] = {}
        self._turn = threading.RLock()
        self._closed = threading.Event()
        self._heart: threading.Thread | None = None

    def take(self, name: str) -> bool:
        """Whether the name was free and is now this process's. Raises StorageInternalError."""
        with self._turn:
            if name in self._held:
                return False
            key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
            if not self._ask(_TAKE, key=key):
                return False
            self._held[name] = key
            if self._heart is None:
                self._heart = threading.Thread(target=self._beat, name="autotune-heartbeat", daemon=True)
                self._heart.start()
            return True

    def holds(self, name: str) -> bool:
        """Whether this process has it, still: not where its session ended, and another took it. Raises
        StorageInternalError."""
        with self._turn:
            if name in self._held:
                self._ask(_ALIVE)  # a session that has ended shows
            return name in self._held

    def drop(self, name: str) -> None:
        """Give the name back, if this process has it. Raises StorageInternalError."""
        with self._turn:
            if name in self._held:
                self._ask(sqlalchemy.text("SELECT pg_advisory_unlock(:key)"), key=self._held.pop(name))

    def rows(self, study: int, behind: int) -> tuple[list[dict[str, Any]], int]:
        """The trials recorded in a study behind the row of that id, and the last row's id. In one query of Optuna's
        tables: through its storage it is seven, and most of what a claim may cost. Raises StorageInternalError."""
        with self._turn:
            found = self._ask(_ROWS, study=study, behind=behind) or {}
        ids = [int(row) for row in found]
        return [json.loads(text) for text in found.values()], max(ids, default=behind)

    def close(self) -> None:
        """Give everything back, by the time this returns: the server ends a session some time after its connection."""
        self._closed.set()
        with self._turn:
            if self._held and self._connection is not None:
                with contextlib.suppress(SQLAlchemyError):  # a session that is gone has given back everything
                    self._connection.execute(sqlalchemy.text("SELECT pg_advisory_unlock_all()"))
            self._held.clear()
            self._hang_up()

    def _beat(self) -> None:
        while not self._closed.wait(self._silent_s / _BEATS):
            with (
                self._turn,
                contextlib.suppress(optuna.exceptions.StorageInternalError),
            ):  # the next claim meets it and says so
                if self._held:
                    self._ask(_ALIVE)

    def _ask(self, statement: sqlalchemy.TextClause, **values: Any) -> Any:
        """The answer's only value. A session that has ended is begun anew, with the claims that nobody took over."""
        try:
            try:
                return self._begun().execute(statement, values).scalar()
            except DBAPIError as problem:
                if not problem.connection_invalidated:
                    raise
            self._hang_up()
            self._held = {
                name: key
                for name, key in self._held.items()
                if self._begun().execute(_TAKE, {"key": key}).scalar()
            }
            return self._begun().execute(statement, values).scalar()
        except SQLAlchemyError as problem:
            self._hang_up()
            raise optuna.exceptions.StorageInternalError(str(problem)) from problem

    def _begun(self) -> sqlalchemy.Connection:
        if self._connection is None:
            self._connection = _session(self._url, self._silent_s)
        return self._connection

    def _hang_up(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                self._connection.close()
            self._connection = None


def _session(url: URL, silent_s: float) -> sqlalchemy.Connection:
    """A connection of its own, each statement a transaction, that the server ends after so long a silence."""
    engine = sqlalchemy.create_engine(
        url,
        poolclass=sqlalchemy.NullPool,
        isolation_level="AUTOCOMMIT",
        connect_args=_settings(url),
    )
    session = engine.connect()
    session.execute(sqlalchemy.text(f"SET idle_session_timeout = {int(silent_s * 1000)}"))  # PostgreSQL 14
    return session


def _settings(url: URL) -> dict[str, Any]:
    """What every connection asks of the server, so that a process that is stopped within a transaction (a frozen
    virtual machine, a host that lost its network) holds nobody longer than a heartbeat: its transaction is ended, with
    its session. A lock is waited for twice as long, and a silent network is noticed on either side."""
    beat = int(_SILENT_S * 1000 / _BEATS)
    seconds = max(1, beat // 4000)
    settings = {
        "idle_in_transaction_session_timeout": beat,
        "lock_timeout": 2 * beat,
        "tcp_keepalives_idle": seconds,
        "tcp_keepalives_interval": seconds,
        "tcp_keepalives_count": 3,
    }
    given = url.query.get("options") or os.environ.get("PGOPTIONS", "")  # which ours would otherwise replace
    options = [given] if isinstance(given, str) else list(given)
    options += [f"-c {name}={value}" for name, value in settings.items()]
    return {
        "options": " ".join(filter(None, options)),
        "keepalives_idle": seconds,
        "keepalives_interval": seconds,
        "keepalives_count": 3,
        "tcp_user_timeout": 2 * beat,
    }


def _shown(url: URL) -> str:
    """The address without its passwords, in their usual place or among the parameters."""
    hidden = {name: "***" for name in url.query if "password" in name.lower()}
    shown = url.set(drivername="postgresql").update_query_dict(hidden)
    return shown.render_as_string(hide_password=True).replace("=%2A%2A%2A", "=***")


def _first_line(problem: BaseException) -> str:
    cause = problem.__cause__ or problem
    return str(getattr(cause, "orig", cause)).strip().splitlines()[0]

"""Optuna's storage in a PostgreSQL database, with connections that hold nobody up where their process is stopped."""

import os
from typing import Any

import optuna
import sqlalchemy
from sqlalchemy.engine import URL
from sqlalchemy.exc import IntegrityError, ProgrammingError, SQLAlchemyError

from autotune.errors import StoreError
from autotune.files import pip_install
from autotune.record.claims import BEATS, SILENT_S, first_line

_BEAT_S = SILENT_S / BEATS
_ATTEMPTS = 10  # to open an empty database, whose tables other processes make at the same time


def open_database(address: str) -> tuple[optuna.storages.RDBStorage, str]:
    """The storage behind ``postgresql://user@host/database``, its tables made when they are not there, and the address
    without its password. Raises StoreError."""
    try:
        url = sqlalchemy.make_url(address).set(drivername="postgresql+psycopg")
    except (SQLAlchemyError, ValueError):
        raise StoreError(
            "cannot read --store as an address; it looks like postgresql://user:password@host:5432/database"
        ) from None
    shown = _hide_passwords(url)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _storage(url), shown
        except ImportError:
            raise StoreError(
                f"cannot open the store {shown}: the driver is not installed; {pip_install('postgresql')}"
            ) from None
        except (SQLAlchemyError, optuna.exceptions.OptunaError, RuntimeError, ValueError) as problem:
            if attempt == _ATTEMPTS or not isinstance(problem, IntegrityError | ProgrammingError):
                raise StoreError(f"cannot open the store {shown}: {first_line(problem)}") from None
    raise AssertionError


def _storage(url: URL) -> optuna.storages.RDBStorage:
    text = url.render_as_string(hide_password=False).replace("{", "{{").replace("}", "}}")
    return optuna.storages.RDBStorage(
        text,
        engine_kwargs={
            "pool_pre_ping": True,  # a server that was started again is not an error
            "connect_args": _settings(url),
        },
    )


def _settings(url: URL) -> dict[str, Any]:
    """What every connection asks of the server, so that a process that is stopped within a transaction (a frozen
    virtual machine, a host that lost its network) holds nobody longer than a heartbeat: its transaction is ended, with
    its session. A lock is waited for twice as long, and a silent network is noticed on either side."""
    beat = int(_BEAT_S * 1000)
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


def _hide_passwords(url: URL) -> str:
    """The address without its passwords, in their usual place or among the parameters."""
    hidden = {name: "***" for name in url.query if "password" in name.lower()}
    shown = url.set(drivername="postgresql").update_query_dict(hidden)
    return shown.render_as_string(hide_password=True).replace("=%2A%2A%2A", "=***")

"""Where a record is kept: Optuna's storages, by their address.

FOLDER            a journal, store.journal; hosts share it on a network file system
grpc://HOST:PORT  Optuna's proxy of a storage
postgresql://…    a database
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from autotune.errors import StoreError
from autotune.files import pip_install

if TYPE_CHECKING:  # Optuna takes half a second to import
    from optuna.storages import BaseStorage

_JOURNAL = "store.journal"
PATIENCE_S = 60.0  # how long a server may be away; a folder is on a disk, which does not come back
_ALLOWED = "postgresql://…, grpc://host:port and a folder"
_OPENING_S = 20.0  # for the proxy to answer


@dataclass(frozen=True)
class Location:
    """A storage, and ``claims``, which opens the one that claims are kept in. ``where`` is how messages call it. It may
    be away for ``patience_s``; then it raises one of ``away``."""

    where: str
    storage: "BaseStorage"
    claims: Callable[[], "BaseStorage"]
    away: tuple[type[Exception], ...] = ()
    patience_s: float = 0.0
    close: Callable[[], None] = lambda: None


def locate(address: str) -> Location:
    """What is at that address, made where it is not there. Raises StoreError."""
    kind, separator, _ = address.partition("://")
    if not separator:
        return _folder(Path(address).expanduser())
    if kind == "grpc":
        return _grpc(address)
    if kind not in ("postgresql", "postgresql+psycopg"):
        raise StoreError(f"cannot keep a record in {kind}://…; allowed are {_ALLOWED}")
    import optuna

    from autotune.record.postgresql import open_database

    storage, shown = open_database(address)
    away = (optuna.exceptions.StorageInternalError,)
    cached = optuna.storages.get_storage(storage)
    return Location(shown, cached, lambda: cached, away, PATIENCE_S, storage.engine.dispose)


def holds_store(record: str | Path) -> bool:
    """Whether ``record`` is the address of a database, or a folder that a sweep has kept its store in."""
    return "://" in str(record) or (Path(record) / _JOURNAL).is_file()


def _folder(folder: Path) -> Location:
    from autotune.record.journal import CheckedStorage, JournalFile

    journal = folder / _JOURNAL
    try:
        folder.mkdir(parents=True, exist_ok=True)
        storage = CheckedStorage(JournalFile(journal))
    except OSError as problem:
        raise StoreError(
            f"cannot write to {folder}: {problem.strerror or problem}; name a folder you may write with --out, on a "
            "file system with symbolic links (NFS, Lustre and GPFS have them)"
        ) from None
    claims = journal.with_suffix(".claims")
    return Location(str(folder), storage, lambda: CheckedStorage(JournalFile(claims, is_lasting=False)))


def _grpc(address: str) -> Location:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise StoreError(f"cannot read --store {address}: it looks like grpc://host:13000")
    try:
        import grpc
    except ImportError:
        raise StoreError(
            f"cannot open the store {address}: grpcio is not installed; {pip_install('grpc')}"
        ) from None
    import optuna

    away = (grpc.RpcError, optuna.exceptions.StorageInternalError)
    try:
        with warnings.catch_warnings(action="ignore", category=optuna.exceptions.ExperimentalWarning):
            storage = optuna.storages.GrpcStorageProxy(host=host, port=port)
        storage.wait_server_ready(_OPENING_S)
    except ImportError as problem:
        raise StoreError(f"cannot open the store {address}: {problem}; {pip_install('grpc')}") from None
    except (ConnectionError, *away) as problem:
        raise StoreError(
            f"cannot open the store {address}: no answer within {_OPENING_S:g} s ({problem}); is Optuna's server "
            "(optuna.storages.run_grpc_proxy_server) running there?"
        ) from None
    return Location(address, storage, lambda: storage, away, PATIENCE_S, storage.close)

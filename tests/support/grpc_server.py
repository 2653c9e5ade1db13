"""Optuna's gRPC proxy before an SQLite file, in threads of this process."""

import socket
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import optuna


def served(path: Path) -> Iterator[str]:
    """Its address, while the generator is not ended."""
    from optuna.storages._grpc.server import make_server

    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    storage = optuna.storages.get_storage(f"sqlite:///{path}")
    with warnings.catch_warnings(action="ignore"):
        server = make_server(storage, "localhost", port, ThreadPoolExecutor(1))  # SQLite has one writer
    server.start()
    yield f"grpc://localhost:{port}"
    server.stop(None)
    storage._backend.engine.dispose()

"""A registry with one policy file in it, a server that serves it over HTTPS as well or as badly as a test likes, and a
machine whose device is a fake one."""

import hashlib
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes import FakeBackend, sweep, write_family
from local_worker import LocalWorker

from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.policy.merge import update
from autotune.registry import pulling
from autotune.registry.pushing import push

__all__ = ["BY", "Registry", "Server", "certificate", "git", "publish", "serve", "stand_in"]

BY = "A. Tuner"
Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass(frozen=True)
class Registry:
    """``root`` is its folder, ``family`` that of the family whose policy file it has."""

    root: Path
    family: Path

    @property
    def index(self) -> Path:
        return self.root / self.family.name / "index.yaml"

    @property
    def file(self) -> Path:
        (found,) = self.index.parent.glob("files/*.yaml")
        return found

    def edit_index(self, change: Callable[[dict[str, Any]], Any]) -> None:
        """As its owner could."""
        content = yaml.safe_load(self.index.read_text())
        change(content)
        self.index.write_text(yaml.safe_dump(content, sort_keys=False))

    def edit_file(self, change: Callable[[dict[str, Any]], Any]) -> None:
        """As its owner could: with the digest, and the name, that the other content has."""
        content = yaml.safe_load(self.file.read_text())
        change(content)
        self.replace_file(yaml.safe_dump(content, sort_keys=False).encode())
        self.edit_index(lambda index: index["listings"][0].update(entries=[*(content.get("entries") or ())]))

    def replace_file(self, content: bytes) -> None:
        digest = hashlib.sha256(content).hexdigest()
        old = self.file
        old.rename(old.with_name(f"fake-gpu-{digest[:16]}.yaml"))
        self.file.write_bytes(content)
        self.edit_index(lambda index: index["listings"][0].update(sha256=digest, bytes=len(content)))


def publish(place: Path) -> None:
    """What a sweep of the doubler on a fake GPU found, in ``place``: the family, ``measured`` and ``registry``."""
    family = write_family(place / "doubler")
    (family / "family.py").write_text("def reference(arrays, options):\n    return {'y': 2 * arrays['x']}\n")
    (place / "registry").mkdir()
    update(place / "measured", [sweep(family, place).run()])
    push(family, place / "registry", policies=place / "measured", by=BY)


def stand_in(
    monkeypatch: pytest.MonkeyPatch, family: Path, made: Callable[[], FakeBackend] = FakeBackend
) -> list[FakeBackend]:
    """A machine whose device is what ``made`` makes; those that were opened."""
    loaded, backends = families.load_family(family), []

    @contextmanager
    def launch_workers(_names: Sequence[str], *_: Any) -> Iterator[list[LocalWorker]]:
        backend = made()
        backend.know([Variant(loaded, c) for c in loaded.space.configurations()])
        backends.append(backend)
        worker = LocalWorker(backend)
        worker.start()
        yield [worker]
        worker.close()

    monkeypatch.setattr(pulling, "launch_workers", launch_workers)
    monkeypatch.setattr(pulling, "open_devices", lambda *_: None)
    return backends


# -- over HTTPS --------------------------------------------------------------------------------------------------


def certificate(folder: Path) -> Path:
    """A self-signed one for this machine, its key in the same file."""
    path = folder / "localhost.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-days", "2",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(folder / "key.pem"),
            "-out", str(path),
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_text(path.read_text() + (folder / "key.pem").read_text())
    return path


@dataclass
class Server:
    """Serves ``root`` but for the paths that ``answers`` has; ``asked`` are the paths that were asked for."""

    root: Path
    address: str = ""
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        if answer := self.answers.get(request.path):
            answer(request)
            return
        path = self.root / request.path.lstrip("/")
        content = path.read_bytes() if path.is_file() else b""
        send(request, content, 200 if path.is_file() else 404)


def send(
    request: BaseHTTPRequestHandler, content: bytes, code: int = 200, headers: Mapping[str, str] | None = None
) -> None:
    """``headers`` in place of the length's."""
    request.send_response(code)
    for name, value in ({"Content-Length": str(len(content))} if headers is None else headers).items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(content)


@contextmanager
def serve(root: Path, certificate: Path) -> Iterator[Server]:
    """The server, for as long as the block lasts."""
    made = Server(root)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.handle(self)
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """A client that hangs up is what some tests are about."""

    listening = Quiet(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    listening.socket = context.wrap_socket(listening.socket, server_side=True)
    made.address = f"https://localhost:{listening.server_address[1]}"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


# -- git ---------------------------------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> str:
    """As somebody who may commit."""
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()

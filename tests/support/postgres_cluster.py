"""A throw-away PostgreSQL: its own folder, its own socket, no network, no service, no root."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote


def binaries() -> Path | None:
    """The folder of initdb and pg_ctl, the newest where there are several."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


class Cluster:
    """A server that runs between ``start`` and ``close``."""

    def __init__(self) -> None:
        place = binaries()
        assert place is not None
        self._bin = place
        self.folder = Path(tempfile.mkdtemp(prefix="autotune-pg-"))
        self._as: dict[str, Any] = {"cwd": self.folder, "env": {"LC_ALL": "C", "PATH": os.environ["PATH"]}}
        if os.getuid() == 0:  # which PostgreSQL refuses to run as
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._as |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self._call("initdb", "-D", "data", "-U", "autotune", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        self.start()

    def start(self) -> None:
        # A server that is killed loses nothing by these; only a machine that stops would.
        quick = "-c fsync=off -c full_page_writes=off -c autovacuum=off -c jit=off"
        options = f"-k {self.folder} -c listen_addresses='' {quick}"
        self._call("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", options, "start")

    def stop(self) -> None:
        self._call("pg_ctl", "-D", "data", "-w", "-m", "immediate", "stop")

    def database(self, name: str) -> str:
        """The address of a new database."""
        self._call("createdb", "-h", str(self.folder), "-U", "autotune", name)
        return f"postgresql://autotune@/{name}?host={quote(str(self.folder), safe='')}"

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def _call(self, program: str, *arguments: str) -> None:
        # To a file: a server that was started keeps its output open, and a pipe would be waited for.
        with tempfile.TemporaryFile() as said:
            done = subprocess.run(
                [self._bin / program, *arguments], stdout=said, stderr=said, check=False, **self._as
            )
            said.seek(0)
            assert done.returncode == 0, said.read().decode()

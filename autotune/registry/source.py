"""Where a registry is read from: a folder, a folder served over HTTPS, or a git repository. Nothing in it is run."""

import http.client
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.parse import urlsplit

from autotune.errors import StoreError, UsageError
from autotune.files import plain_file
from autotune.processes import exchange, own_folder
from autotune.registry.git import git

_SILENCE_S = 30.0  # that a server may keep
_WHOLE_S = 120.0  # for one file
_CLONE_S = 600.0
_CHUNK = 1 << 16
_REDIRECTIONS = 5
_GIT = re.compile(r"git\+(https|ssh|file)://[^\s]+")
_FILE = {"100644", "100755"}  # git's modes of plain files
_ALLOWED = (
    "write a folder, https://HOST/PATH, or a git repository as git+https://…, git+ssh://… or git+file://…"
)


class NotThere(StoreError):
    """The registry has no such file."""


class Source(Protocol):
    """A registry to read. ``name`` is what marks and messages call it."""

    @property
    def name(self) -> str: ...

    def read(self, path: str, most: int) -> bytes:
        """The content of a file of at most ``most`` bytes. Raises NotThere, StoreError."""


@contextmanager
def open_source(address: str) -> Iterator[Source]:
    """Open the registry at ``address``; a git repository is fetched once, and one commit of it is read.

    Raises:
        UsageError: ``address`` is none of the forms that there are, or holds a password.
        StoreError: The registry cannot be reached.
    """
    if "://" not in address:
        yield FolderSource(Path(address))
        return
    parts = urlsplit(address.removeprefix("git+"))
    has_secret = parts.password is not None or (parts.username and parts.scheme != "ssh")
    if has_secret or parts.query or parts.fragment:
        raise UsageError("the registry's address has a password, a user, ? or #, which would be written to files: "
                         f"leave that out; {_ALLOWED}")  # fmt: skip
    if parts.scheme == "https" and parts.hostname and not address.startswith("git+"):
        yield HttpsSource(address.rstrip("/"))
    elif _GIT.fullmatch(address):
        with own_folder() as folder:
            yield clone(address, Path(folder))
    else:
        raise UsageError(f"cannot read a registry at {address!r}: {_ALLOWED}")


@dataclass(frozen=True)
class FolderSource:
    """A folder of this machine. Links in it are not followed."""

    folder: Path

    @property
    def name(self) -> str:
        return str(self.folder.absolute())

    def read(self, path: str, most: int) -> bytes:
        place = self.folder
        try:
            for part in path.split("/"):
                place /= part
                if place.is_symlink():
                    raise StoreError(
                        f"{place} is a link, which a registry may not hold: put the file there itself"
                    )
            with plain_file(place).open("rb") as file:
                return _bound(file.read(most + 1), most, str(place))
        except FileNotFoundError:
            raise NotThere(f"{place} is not there") from None
        except OSError as problem:
            raise StoreError(f"cannot read {place}: {problem.strerror or problem}") from None


@dataclass(frozen=True)
class HttpsSource:
    """A folder on a server. Certificates are checked against those of the system, or of SSL_CERT_FILE."""

    name: str

    def read(self, path: str, most: int) -> bytes:
        address = f"{self.name}/{path}"
        try:
            with _opener().open(address, timeout=_SILENCE_S) as answer:
                return self._content(answer, most, address)
        except urllib.error.HTTPError as problem:
            problem.close()
            said = f"{address}: the server says {problem.code} {problem.reason}"
            raise (NotThere if problem.code in (404, 410) else StoreError)(said) from None
        except (OSError, http.client.HTTPException, ValueError) as problem:
            why = getattr(problem, "reason", problem)
            hint = ""
            if isinstance(why, ssl.SSLCertVerificationError):
                hint = "; name the file with your authority's certificate in SSL_CERT_FILE"
            raise StoreError(f"cannot read {address}: {why or type(problem).__name__}{hint}") from None

    def _content(self, answer: http.client.HTTPResponse, most: int, address: str) -> bytes:
        promised, until, content = answer.length, time.monotonic() + _WHOLE_S, b""
        while len(content) <= most and (chunk := answer.read1(_CHUNK)):
            content += chunk
            if time.monotonic() > until:
                raise StoreError(
                    f"{address} was not sent in {_WHOLE_S:g} s: try again, or take another registry"
                )
        _bound(content, most, address)
        if promised is not None and len(content) < promised:
            raise StoreError(
                f"{address} was cut off: {len(content):,} of {promised:,} bytes came; run the same command again"
            )
        return content


def _opener() -> urllib.request.OpenerDirector:
    """For https, and for nothing else that urllib knows."""
    opener = urllib.request.OpenerDirector()
    request = urllib.request
    for handler in (
        request.ProxyHandler(), request.HTTPSHandler(context=ssl.create_default_context()),
        request.HTTPErrorProcessor(), request.HTTPDefaultErrorHandler(), request.UnknownHandler(), _Redirections(),
    ):  # fmt: skip
        opener.add_handler(handler)
    return opener


class _Redirections(urllib.request.HTTPRedirectHandler):
    """A few, to https alone."""

    max_redirections = _REDIRECTIONS

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(newurl).scheme != "https":
            fp.close()
            raise StoreError(
                f"{req.full_url} leads to {newurl}, which is not https: nothing was read from there; name the place "
                "itself if it is right"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


@dataclass(frozen=True)
class GitSource:
    """One commit of a repository in the folder ``clone``, of which no file was checked out."""

    name: str
    clone: Path
    commit: str

    def read(self, path: str, most: int) -> bytes:
        where = f"{self.name}: {path}"
        listed = git("--git-dir", str(self.clone), "ls-tree", "-l", "--full-tree", self.commit, "--", path)
        if not listed.strip():
            raise NotThere(f"{where} is not there")
        mode, _, digest, size = listed.partition("\t")[0].split()
        if mode not in _FILE:
            raise StoreError(
                f"{where} is no plain file but a link or a folder, which a registry may not hold"
            )
        if int(size) > most:
            raise _too_large(where, most)
        found = exchange(["git", "--git-dir", str(self.clone), "cat-file", "blob", digest])
        if found.returncode:
            raise StoreError(f"cannot read {where}: {found.stderr.decode(errors='replace').strip()}")
        return found.stdout


def clone(address: str, folder: Path) -> GitSource:
    """Fetch the last commit of a repository into ``folder``, and check out none of its files. Raises StoreError."""
    url = address.removeprefix("git+")
    place = folder / "registry.git"
    git(
        "clone", "--quiet", "--bare", "--depth", "1", "--no-tags", f"--filter=blob:limit={4 << 20}", "--", url,
        str(place), seconds=_CLONE_S,
    )  # fmt: skip
    commit = git("--git-dir", str(place), "rev-parse", "--verify", "HEAD^{commit}").strip()
    return GitSource(f"{address} at {commit[:12]}", place, commit)


def _bound(content: bytes, most: int, where: str) -> bytes:
    if len(content) > most:
        raise _too_large(where, most)
    return content


def _too_large(where: str, most: int) -> StoreError:
    return StoreError(f"{where} is larger than {most:,} bytes: nothing of it was taken")

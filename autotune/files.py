"""Where files lie, what ships with the package and what a user owns, and how one is written whole."""

import errno
import gzip
import json
import lzma
import os
import re
import secrets
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.errors import StoreError, explained

if TYPE_CHECKING:
    import pandas as pd


_PACKAGE = Path(__file__).resolve().parent
_DISTRIBUTION = "autotune-layouts"
_MOST_BYTES = 1 << 30  # that a packed file may hold


def find_bundled(kind: str) -> Path:
    """Return the folder of that kind (kernels, workloads, policies) that ships with autotune: inside an installed
    package, or next to it in a checkout."""
    inside = _PACKAGE / "_bundled" / kind
    return inside if inside.is_dir() else _PACKAGE.parent / kind


def include_dir() -> Path:
    """The C++ layout library's include folder."""
    return find_bundled("kernels") / "include"


def pip_install(extra: str = "") -> str:
    """The command that installs an extra of autotune, or what it needs anyway: from the checkout that runs, else from
    where it was installed from, else by its name on the package index, where ``autotune`` is another project."""
    from importlib.metadata import PackageNotFoundError, distribution

    named = f"[{extra}]" if extra else ""
    if (_PACKAGE.parent / "pyproject.toml").is_file():
        return f"pip install -e '{_PACKAGE.parent}{named}'"
    with suppress(PackageNotFoundError, TypeError):  # TypeError: no such file, so it came from the index
        named += f" @ {json.loads(distribution(_DISTRIBUTION).read_text('direct_url.json') or 'null')['url']}"
    return f"pip install '{_DISTRIBUTION}{named}'"


def data_root(named: str | Path | None = None) -> Path:
    """Where workload files find their data: ``named``, else AUTOTUNE_DATA, else what ships with the package."""
    return Path(named or os.environ.get("AUTOTUNE_DATA") or find_bundled("workloads") / "data")


def plain_file(path: Path) -> Path:
    """``path`` itself. Raises OSError for a pipe or a device, which a reader would wait for."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no file")
    return path


def read_packed(path: Path) -> str:
    """The text of a file, which may be packed: ``.gz``, ``.xz``. Raises OSError for what cannot be read, or is a pipe;
    ValueError for what is no text, or holds more than a GiB."""
    opened: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, Path.open)
    try:
        with opened(plain_file(path), "rb") as file:
            content: bytes = file.read(_MOST_BYTES + 1)
    except (EOFError, zlib.error, lzma.LZMAError) as problem:
        raise ValueError(str(problem)) from None
    if len(content) > _MOST_BYTES:
        raise ValueError(f"it holds more than {_MOST_BYTES:,} bytes")
    return content.decode("utf-8")


def user_cache() -> Path:
    """The folder in AUTOTUNE_CACHE, else the user's cache folder."""
    if chosen := os.environ.get("AUTOTUNE_CACHE"):
        return Path(chosen)
    import platformdirs  # only here: the run time is often given a root

    return Path(platformdirs.user_cache_dir("autotune"))


def is_shared_cache() -> bool:
    """Whether users who share a cache asked for it: each then runs what any of them puts there."""
    return os.environ.get("AUTOTUNE_CACHE_SHARED", "") not in ("", "0")


def others_may_write(*places: Path) -> Path | None:
    """The first of ``places`` that not only this user and root can write to. Raises OSError where one is not there."""
    for place in places:
        status = place.stat()
        if status.st_uid not in (os.geteuid(), 0) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return place
    return None


def policy_folders(named: str | Path | None = None, family: Path | None = None) -> list[Path]:
    """Return the folders to search for policy files, in order: ``named``, AUTOTUNE_POLICIES, ./policies, ``policies``
    next to the folder ``family``, the user's data folder, those shipped."""
    first = [Path(p) for p in (named, os.environ.get("AUTOTUNE_POLICIES")) if p]
    beside = [family.parent / "policies"] if family and family.parent != find_bundled("kernels") else []
    return [*first, Path("policies"), *beside, own_policies(), find_bundled("policies")]


def policy_folder(named: Path | None = None) -> Path:
    """Where a sweep writes policy files: ``named``, else AUTOTUNE_POLICIES, else ./policies."""
    return named or Path(os.environ.get("AUTOTUNE_POLICIES") or "policies")


def own_policies() -> Path:
    """The user's own folder of policy files."""
    import platformdirs  # only here: who names a policy file needs none of it

    return Path(platformdirs.user_data_dir("autotune")) / "policies"


def writable(folder: Path) -> None:
    """Raise StoreError unless files can be made in ``folder`` (made when it is not there)."""
    advice = "; name another folder (--out for results, --policies for policy files)"
    with explained(StoreError, f"cannot write to {folder}:", advice):
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()


# A line feed survives CSV inside quotes. Other control characters do not (a lone carriage return ends a row
# for pandas, a NUL ends the field), so they are written as escapes.
_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), 127) if code not in (9, 10)}


def clean(text: str) -> str:
    """``text`` with line ends as line feeds, and as escapes what cannot be written: other control characters,
    and lone surrogates (from undecodable compiler output)."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_ESCAPES)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def csv_text(frame: "pd.DataFrame") -> str:
    """``frame`` as CSV whose texts no spreadsheet takes for formulas (see ``cell``); numbers stay as they are."""
    from pandas.api.types import is_string_dtype

    kept = {
        column: [cell(value) if isinstance(value, str) else value for value in frame[column]]
        for column in frame.columns
        if frame[column].dtype == object or is_string_dtype(frame[column].dtype)
    }
    safe = frame.assign(**kept) if kept else frame
    return safe.rename(columns=cell).to_csv(index=False, lineterminator="\n")


_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def cell(text: str) -> str:
    """``text`` as a cell: an apostrophe before what a spreadsheet would run, which makes it a text there."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def cell_text(cell: str) -> str:
    """The text that ``cell`` made a cell of."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell[1:]) else cell


@contextmanager
def replace_file(path: Path, mode: int = 0o666, ending: str = ".tmp") -> Iterator[Path]:
    """A file to write, empty and there, that takes the place of ``path`` when the block ends well and vanishes
    otherwise, so that ``path`` never holds half of it. Whatever ``path`` is, a link too, is replaced and not written
    through. ``mode`` is narrowed by the process's umask; a caller to whom a file's name matters asks for an ``ending``.
    Raises OSError."""
    with _make_temporary(path, mode, ending) as temporary:
        yield temporary
        temporary.replace(path)


@contextmanager
def write_file(path: Path, ending: str = ".tmp") -> Iterator[Path]:
    """``replace_file`` for a file that a user has named: links are followed, and only what ``is_plain`` is replaced.
    All else is opened at once and gets what was written when the block ends well. Raises OSError."""
    if is_plain(path):
        with replace_file(Path(os.path.realpath(path)), ending=ending) as temporary:
            yield temporary
        return
    # A copy of the descriptor writes where that one stands in its file, and not at the beginning.
    target = os.dup(1) if is_stdout(path) else os.open(path, os.O_WRONLY)
    place = Path(tempfile.gettempdir(), path.name)
    with os.fdopen(target, "wb") as stream, _make_temporary(place, 0o600, ending) as temporary:
        yield temporary
        with temporary.open("rb") as content:
            shutil.copyfileobj(content, stream)


def is_plain(path: Path) -> bool:
    """Whether ``path`` leads to a plain file, or to nothing yet: not to a pipe, a device or what this process prints
    to (/dev/stdout). Raises OSError."""
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        return True
    return (stat.S_ISREG(kind) or stat.S_ISDIR(kind)) and not is_stdout(path)


def is_stdout(path: Path) -> bool:
    """Whether ``path`` leads to what this process prints to."""
    with suppress(OSError):
        return os.path.samestat(path.stat(), os.fstat(1))
    return False


@contextmanager
def _make_temporary(path: Path, mode: int, ending: str) -> Iterator[Path]:
    """A new file of another name that is gone behind the block."""
    # A name that nobody can foresee, and made there and then: a link that somebody planted is not followed.
    temporary = path.with_name(f".{path.name[:50]}.{secrets.token_hex(8)}{ending}")
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    try:
        yield temporary
    finally:
        with suppress(OSError):  # what went wrong before counts
            temporary.unlink()


def write_text(
    path: str | Path, text: str, place: Callable[[Path], AbstractContextManager[Path]] = replace_file
) -> Path:
    """Write ``text`` so that ``path`` never holds half of it: ``replace_file``, or ``write_file`` where a user has
    named the file. Raises StoreError."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with place(path) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "free space there" if is_full else "name a folder you may write to"
        raise StoreError(f"cannot write {path}: {error.strerror or error}; {advice}") from error
    return path

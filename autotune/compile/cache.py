"""Compiled variants on disk: images by the hash of their bytes, entries by variant and toolchain.

Any number of processes may share one cache. Files are replaced whole, and an entry whose image is not exactly
the one it was written for is a miss, so a crash or a damaged file costs a compilation and nothing else.

What is there is run, so it is taken only from this user or root, and only from where nobody else may write. Several
users share a cache when they ask for it with AUTOTUNE_CACHE_SHARED: each then runs what any of them puts there.
"""

import atexit
import hashlib
import json
import os
import shutil
import tempfile
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from autotune.compile.toolchain import Batch, Built, Compiled, Toolchain
from autotune.errors import CompilerError
from autotune.files import is_shared_cache, others_may_write, replace_file, user_cache

_SCHEMA = 3


_warned: set[Path] = set()  # the roots of which this process has said that they are not trusted


@dataclass(frozen=True)
class Cache:
    """An image is ``<root>/<2 hex>/<sha256 of its bytes><suffix>``; a variant's entry, which names its image,
    is ``<root>/<2 hex>/<sha256 of its key and the toolchain's identity>.json``."""

    root: Path

    def get(self, key: str, toolchain: Toolchain) -> Compiled | None:
        """The variant as compiled by this toolchain, or None. A torn or missing file is a miss, and so is, with a
        warning the first time, one that another user could have written."""
        private = [_private_root()] if _has_private_root() else []
        for root in (self.root, *private):
            # KeyError, TypeError, AttributeError: an entry of another shape. ValueError: no JSON, or no text.
            with suppress(OSError, KeyError, TypeError, AttributeError, ValueError, RecursionError):
                if found := _read(root, key, toolchain):
                    return found
        return None

    def put(self, built: Built, batch: Batch, toolchain: Toolchain) -> list[Compiled]:
        """Write the image and an entry per variant of the batch. When the root cannot be written they go to a
        private folder that lasts as long as this process, with a warning the first time. Raises CompilerError when
        that cannot be written either."""
        try:
            return _write(self.root, built, batch, toolchain)
        except OSError as error:
            first = not _has_private_root()
            try:
                compiled = _write(_private_root(), built, batch, toolchain)
            except OSError as second:
                raise CompilerError(
                    f"a compiled binary can be kept neither in the cache {self.root} ({error}) nor in "
                    f"{tempfile.gettempdir()} ({second}); free some space, or name other folders with "
                    "AUTOTUNE_CACHE and TMPDIR. What was recorded is kept"
                ) from second
            if first and not isinstance(error, _NotTrusted):  # which was said already
                message = (
                    f"the compile cache {self.root} cannot be written ({error}); this process keeps its "
                    f"binaries in {_private_root()} until it ends. AUTOTUNE_CACHE names another folder to use."
                )
                warnings.warn(message, stacklevel=2)
            return compiled


def default_root() -> Path:
    """The folder in AUTOTUNE_CACHE, else the user's cache folder."""
    return user_cache()


class _NotTrusted(OSError):
    """Another user could have written what is in the cache."""


def is_trusted(path: Path, *folders: Path) -> bool:
    """Return whether only this user and root can have written ``path`` and the ``folders`` that contain it, the
    cache's root first. Warns once for each root if not. Raises OSError if one of them does not exist."""
    if is_shared_cache() or (place := others_may_write(*folders, path)) is None:
        return True
    root = folders[0] if folders else path
    if root not in _warned:
        _warned.add(root)
        warnings.warn(_distrust(root, place), stacklevel=2)
    return False


def put_file(path: Path, content: bytes, *folders: Path) -> None:
    """Write a file of the cache whole, readable by this user alone unless the cache is shared. ``folders`` hold it, the
    cache's root first; they are made. Raises OSError."""
    for folder in folders or (path.parent,):
        _make(folder)
    if not is_trusted(path.parent, *folders):
        raise _NotTrusted(f"{path.parent} can be written by other users")
    with replace_file(path, 0o644 if is_shared_cache() else 0o600) as temporary:
        temporary.write_bytes(content)


def _distrust(root: Path, place: Path) -> str:
    owner = place.stat().st_uid
    mine = owner in (os.geteuid(), 0)
    why = "may be written by others" if mine else f"belongs to another user (number {owner})"
    remedy = f"`chmod -R go-w {root}` if no other user has written there"
    remedy = remedy if mine else "name a folder of your own in AUTOTUNE_CACHE"
    return (
        f"the compile cache {root} is not used: {place} {why}, and binaries stored there would run as you; {remedy}, "
        "or set "
        "AUTOTUNE_CACHE_SHARED=1 to run binaries that any of its users stores there"
    )


def _make(folder: Path) -> None:
    """Make a folder of the cache: this user's alone, unless the cache is shared."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o777 if is_shared_cache() else 0o700, exist_ok=True)


def _read(root: Path, key: str, toolchain: Toolchain) -> Compiled | None:
    """Raises OSError, KeyError, TypeError, AttributeError or ValueError for what is not a whole entry of this cache."""
    path = _entry_path(root, key, toolchain)
    if not path.is_file() or not is_trusted(path, root, path.parent):
        return None
    entry: Any = json.loads(path.read_text(encoding="utf-8"))
    if entry.pop("checksum") != _checksum(entry):
        return None
    if (entry["schema"], entry["key"], entry["toolchain"]) != (_SCHEMA, key, toolchain.identity):
        return None
    image = _folder(root, entry["image"]) / entry["image"]
    if not is_trusted(image, root, image.parent):
        return None
    status = image.stat()
    if _sha256(image, status.st_mtime_ns, status.st_size) + toolchain.suffix != entry["image"]:
        return None
    symbols, figures, numbers = (dict(entry[name]) for name in ("symbols", "figures", "numbers"))
    return Compiled(key, image, symbols, figures, numbers, cached=True)


def _write(root: Path, built: Built, batch: Batch, toolchain: Toolchain) -> list[Compiled]:
    name = hashlib.sha256(built.image).hexdigest() + toolchain.suffix
    image = _folder(root, name) / name
    put_file(image, built.image, root, image.parent)
    compiled = []
    for variant in batch.variants:
        symbols, figures = built.symbols[variant.key], built.figures.get(variant.key, {})
        numbers = variant.numbers_in(built.image)
        entry = {
            "schema": _SCHEMA,
            "key": variant.key,
            "toolchain": toolchain.identity,
            "image": name,
            "symbols": dict(symbols),
            "figures": {kernel: dict(values) for kernel, values in figures.items()},
            "numbers": numbers,
        }
        content = json.dumps({**entry, "checksum": _checksum(entry)}, sort_keys=True)
        # After the image, so that an entry never names a file that is not there yet.
        path = _entry_path(root, variant.key, toolchain)
        put_file(path, content.encode(), root, path.parent)
        compiled.append(Compiled(variant.key, image, symbols, figures, numbers))
    return compiled


def _checksum(entry: Any) -> str:
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()


def _entry_path(root: Path, key: str, toolchain: Toolchain) -> Path:
    name = hashlib.sha256(f"{key}\n{toolchain.identity}".encode()).hexdigest() + ".json"
    return _folder(root, name) / name


def _folder(root: Path, name: str) -> Path:
    return root / name[:2]


@lru_cache(maxsize=4096)
def _sha256(path: Path, modified_ns: int, size: int) -> str:  # noqa: ARG001 - part of the memory's key
    """Of the file's bytes; time and size only tell whether it was hashed before."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def _private_root() -> Path:
    """The folder of this process, made once a cache could not be written."""
    folder = Path(tempfile.mkdtemp(prefix="autotune-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _has_private_root() -> bool:
    return _private_root.cache_info().currsize > 0

"""Compiled variants on disk: images by the hash of their bytes, entries by variant and toolchain.

Any number of processes may share one cache. Files are replaced whole, and an entry whose image is not exactly
the one it was written for is a miss, so a crash or a foreign file costs a compilation and nothing else.
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
from functools import lru_cache
from pathlib import Path
from typing import Any

from autotune.errors import CompilerError
from autotune.toolchain import Batch, Built, Compiled, Toolchain

__all__ = ["Cache", "default_root"]

_SCHEMA = 1

# The private folder of this process, once a cache could not be written.
_private: list[Path] = []


@dataclass(frozen=True)
class Cache:
    """An image is ``<root>/<2 hex>/<sha256 of its bytes><suffix>``; a variant's entry, which names its image,
    is ``<root>/<2 hex>/<sha256 of its key and the toolchain's identity>.json``."""

    root: Path

    def get(self, key: str, toolchain: Toolchain) -> Compiled | None:
        """The variant as compiled by this toolchain, or None. A torn, foreign or missing file is a miss."""
        for root in (self.root, *_private):
            # KeyError, TypeError: an entry of another shape. ValueError: no JSON, or no text.
            with suppress(OSError, KeyError, TypeError, ValueError):
                return _read(root, key, toolchain)
        return None

    def put(self, built: Built, batch: Batch, toolchain: Toolchain) -> list[Compiled]:
        """Write the image and an entry per variant of the batch. When the root cannot be written they go to a
        private folder that lasts as long as this process, with a warning the first time. Raises CompilerError when
        that cannot be written either."""
        try:
            return _write(self.root, built, batch, toolchain)
        except OSError as error:
            first = not _private
            try:
                compiled = _write(_private_root(), built, batch, toolchain)
            except OSError as second:
                raise CompilerError(
                    f"a compiled binary can be kept neither in the cache {self.root} ({error}) nor in "
                    f"{tempfile.gettempdir()} ({second}); free some space, or name other folders with "
                    "AUTOTUNE_CACHE and TMPDIR. What was recorded is kept"
                ) from second
            if first:
                message = (
                    f"the compile cache {self.root} cannot be written ({error}); this process keeps its "
                    f"binaries in {_private[0]} until it ends. AUTOTUNE_CACHE names another folder to use."
                )
                warnings.warn(message, stacklevel=2)
            return compiled


def default_root() -> Path:
    """The folder in AUTOTUNE_CACHE, else the user's cache folder."""
    if chosen := os.environ.get("AUTOTUNE_CACHE"):
        return Path(chosen)
    import platformdirs  # only here: the run time is often given a root

    return Path(platformdirs.user_cache_dir("autotune"))


def _read(root: Path, key: str, toolchain: Toolchain) -> Compiled | None:
    """Raises OSError, KeyError, TypeError or ValueError for what is not a whole entry of this cache."""
    entry: Any = json.loads(_entry_path(root, key, toolchain).read_text(encoding="utf-8"))
    if (entry["schema"], entry["key"], entry["toolchain"]) != (_SCHEMA, key, toolchain.identity):
        return None
    image = _folder(root, entry["image"]) / entry["image"]
    status = image.stat()
    if _sha256(image, status.st_mtime_ns, status.st_size) + toolchain.suffix != entry["image"]:
        return None
    return Compiled(key, image, dict(entry["symbols"]), dict(entry["figures"]), cached=True)


def _write(root: Path, built: Built, batch: Batch, toolchain: Toolchain) -> list[Compiled]:
    name = hashlib.sha256(built.image).hexdigest() + toolchain.suffix
    image = _folder(root, name) / name
    _replace(image, built.image)
    compiled = []
    for variant in batch.variants:
        symbols, figures = built.symbols[variant.key], built.figures.get(variant.key, {})
        entry = {
            "schema": _SCHEMA,
            "key": variant.key,
            "toolchain": toolchain.identity,
            "image": name,
            "symbols": dict(symbols),
            "figures": {kernel: dict(values) for kernel, values in figures.items()},
        }
        # After the image, so that an entry never names a file that is not there yet.
        _replace(_entry_path(root, variant.key, toolchain), json.dumps(entry, sort_keys=True).encode())
        compiled.append(Compiled(variant.key, image, symbols, figures))
    return compiled


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


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


def _private_root() -> Path:
    if not _private:
        folder = Path(tempfile.mkdtemp(prefix="autotune-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _private.append(folder)
    return _private[0]

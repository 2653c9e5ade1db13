"""What a run that was killed has left of its output, and how it is told from that of a run that goes on."""

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["alone"]

_RANDOM = re.compile(r"(?<=\.)([0-9a-f]{16})(?=\.partial)")  # files._made_beside
_YOUNGEST_S = 60.0  # a younger one may be of a run that is about to lock it


@contextmanager
def alone(unfinished: Path) -> Iterator[None]:
    """For as long as the block lasts ``unfinished`` is known to be somebody's. What killed runs have left of the same
    output is removed; on a file system without locks it stays."""
    file = os.open(unfinished, os.O_RDWR)
    try:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for left in _alike(unfinished):
                with suppress(OSError):  # another run's, or gone
                    _remove(left)
        yield
    finally:
        os.close(file)


def _alike(own: Path) -> list[Path]:
    """Files named as ``own`` is, with other random letters."""
    before, _, behind = _RANDOM.split(own.name, maxsplit=1)
    alike = re.compile(re.escape(before) + _RANDOM.pattern + re.escape(behind))
    names = (path.name for path in own.parent.iterdir())
    return [own.with_name(name) for name in names if name != own.name and alike.fullmatch(name)]


def _remove(left: Path) -> None:
    """Unless somebody is writing it. Raises OSError."""
    file = os.open(left, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if time.time() - os.fstat(file).st_mtime > _YOUNGEST_S:
            left.unlink()
    finally:
        os.close(file)

"""What a compiler said of its version, kept for as long as its program stays the file that it is: asking takes a
process, 30 ms of every command that finds all else in the cache."""

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from autotune.compile.cache import default_root
from autotune.files import replaced

__all__ = ["is_compiler", "told_version"]

# A compiler itself, which has its version in it. What starts another one (ccache, a script) may do so with a newer.
_COMPILER = re.compile(r"([\w.]+-)*(c\+\+|g\+\+|clang|clang\+\+)(-[\d.]+)?")
_PROGRAM = b"\x7fELF"
_LONGEST = 400  # characters of a line


def is_compiler(name: str) -> bool:
    """Whether it is the usual name of a compiler, without a folder or options."""
    return name in ("nvrtc", "nvcc") or _COMPILER.fullmatch(name) is not None


def told_version(command: Sequence[str], ask: Callable[[], str]) -> str:
    """The line that ``ask`` gives for ``command``, which it gave before where that is known."""
    kept = _kept_in(command)
    if kept is None:
        return ask()
    with suppress(OSError, UnicodeDecodeError):
        line = kept.read_text(encoding="utf-8")
        if line and len(line) <= _LONGEST and line.isprintable():
            return line
    line = ask()
    with suppress(OSError):  # a cache that cannot be written
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replaced(kept, 0o644) as temporary:
            temporary.write_text(line, encoding="utf-8")
    return line


def _kept_in(command: Sequence[str]) -> Path | None:
    """The file for the answer of ``command``; None for one that is no compiler itself."""
    if len(command) != 1:
        return None
    try:
        program = Path(shutil.which(command[0]) or command[0]).resolve(strict=True)
        with program.open("rb") as file:
            is_compiler = _COMPILER.fullmatch(program.name) and file.read(len(_PROGRAM)) == _PROGRAM
            state = os.fstat(file.fileno())
    except OSError:
        return None
    if not is_compiler:
        return None
    told = repr((str(program), state.st_ino, state.st_size, state.st_mtime_ns))
    return default_root() / "compilers" / f"{hashlib.sha256(told.encode()).hexdigest()}.txt"

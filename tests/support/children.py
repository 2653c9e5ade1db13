"""The processes that autotune started for a process, as the system knows them."""

import os
from pathlib import Path

__all__ = ["children"]


def children(pid: int | None = None) -> list[str]:
    """Numbers of the children (``processes.Child``) of a process, by default of this one, that have not ended."""
    parent = pid or os.getpid()
    found = []
    for listed in Path(f"/proc/{parent}/task").glob("*/children"):
        for child in listed.read_text().split():
            try:
                command = Path(f"/proc/{child}/cmdline").read_bytes()
            except OSError:
                continue
            if b"autotune.processes import live" in command:
                found.append(child)
    return found

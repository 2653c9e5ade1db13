"""Waiting for what other processes and threads do, for as long as a busy machine may take."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE_S = 300.0


def eventually(condition: Callable[[], Any]) -> bool:
    """Whether the condition comes true."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def wait_for(happened: Callable[[], Any]) -> None:
    assert eventually(happened), f"not within {PATIENCE_S:g} s"


def is_gone(pid: int) -> bool:
    """Whether a process has ended (its parent may not have noticed)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True

"""What Optuna logs of its own accord: only errors while this project calls it, and as the program has it otherwise."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import optuna

_lock = threading.Lock()
_level: list[int] = []  # the program's, for each block that goes on in any thread


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Optuna logs errors alone while such a block goes on, and then again what it logged before."""
    with _lock:
        _level.append(_level[0] if _level else optuna.logging.get_verbosity())
        optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        with _lock:
            before = _level.pop()
            if not _level:
                optuna.logging.set_verbosity(before)

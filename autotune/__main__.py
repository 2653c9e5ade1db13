"""``python -m autotune``, and the command ``autotune``."""

import os
import signal
import sys
from types import FrameType

__all__ = ["entry_point"]


_INTERRUPTED = 130  # as ``errors.Interrupted`` has it, which is not imported yet


def entry_point() -> None:
    # Ctrl-C while modules are imported would be a traceback through them, whoever is imported just then.
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, _leave)
    from autotune.cli import main  # half a second, with the answer to Ctrl-C in place

    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = main()
    except KeyboardInterrupt:  # a second one, while the first was answered
        code = _INTERRUPTED
    if is_ours and code == _INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end is near
    sys.exit(code)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    """Nothing has begun, so nothing is left behind."""
    sys.stderr.write("interrupted\n")
    sys.stderr.flush()
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    entry_point()

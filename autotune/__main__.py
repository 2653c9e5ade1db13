"""``python -m autotune``, and the command ``autotune``."""

import os
import re
import signal
import sys
from types import FrameType
from typing import Any, TextIO

__all__ = ["entry_point"]

_INTERRUPTED = 130  # as ``errors.Interrupted`` has it, which is not imported yet
_COMMAND = re.compile(r"((?:^|(?<=[\r\n]))\s*:)(?=:)|(##)(?=\[)")  # both forms of a GitHub runner's commands


def entry_point() -> None:
    # Ctrl-C while modules are imported would be a traceback through whichever is imported just then.
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, _leave)
    from autotune.cli import main  # half a second, with the answer to Ctrl-C in place

    if os.environ.get("GITHUB_ACTIONS"):
        sys.stdout, sys.stderr = Inert(sys.stdout), Inert(sys.stderr)
    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    terminated = _Terminated() if sys.argv[1:2] == ["run"] else None
    try:
        code = main()
    except KeyboardInterrupt:  # a second one, while the first was answered
        code = _INTERRUPTED
    if is_ours and code == _INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end is near
    if terminated is not None:
        terminated.end()
    sys.exit(code)


class Inert:
    """``stream``, on which nothing is a command of a GitHub job, which takes lines of its log for commands, whatever
    wrote them: a space parts the characters that begin one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(_COMMAND.sub(lambda found: f"{found[0]} ", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Terminated:
    """What asks a process to end (SIGTERM) is answered as Ctrl-C is, which leaves no half of a file behind; then the
    process ends by it. Where it is ignored it stays so."""

    def __init__(self) -> None:
        self._came = False
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._answer)

    def _answer(self, _signal: int, _frame: FrameType | None) -> None:
        self._came = True
        raise KeyboardInterrupt

    def end(self) -> None:
        """By the signal, if it came."""
        if self._came:
            sys.stderr.flush()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    """Nothing has begun, so nothing is left behind."""
    sys.stderr.write("interrupted\n")
    sys.stderr.flush()
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    entry_point()

"""``python -m autotune``, and the command ``autotune``."""

import atexit
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

from autotune.family import command_begins
from autotune.hardware import EarlyContext, is_driver_left

__all__ = ["entry_point"]


_INTERRUPTED = 130  # as ``errors.Interrupted`` has it, which is not imported yet


def entry_point() -> None:
    command_begins()
    # Ctrl-C while modules are imported would be a traceback through them, whoever is imported just then.
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, _leave)
    if sys.argv[1:2] == ["run"]:
        _settle()
    gpu = _awaken(sys.argv[1:])
    from autotune.cli.plain_run import plain_run

    command = plain_run(sys.argv[1:])
    if command is None:
        from autotune.cli import main  # half a second, with the answer to Ctrl-C in place

        command = main
        if os.environ.get("GITHUB_ACTIONS"):
            from autotune.cli.runner_log import Inert

            sys.stdout, sys.stderr = Inert(sys.stdout), Inert(sys.stderr)
    gc.freeze()
    gc.enable()
    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    terminated = _Terminated() if sys.argv[1:2] == ["run"] else None
    try:
        code = command()
    except KeyboardInterrupt:  # a second one, while the first was answered
        code = _INTERRUPTED
    if is_ours and code == _INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end is near
    if gpu is not None:
        gpu.finish()  # a driver that is not ready yet would not survive the end
    if terminated is not None:
        terminated.end()
    if (code == 0 and sys.argv[1:2] == ["run"]) or is_driver_left():
        _end_at_once(code)
    sys.exit(code)


def _settle() -> None:
    """What suits a process that makes one call of kernels and ends."""
    # Numpy's library of linear algebra begins with a thread on every core, which no kernel here needs.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # One thread imports while another reads files, which would wait 5 ms for each of its many short steps.
    sys.setswitchinterval(0.0002)
    gc.disable()  # while modules are imported, of which nothing is garbage


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


def _awaken(arguments: Sequence[str]) -> EarlyContext | None:
    """The context of the GPU that ``run`` will open, begun before the imports. What goes wrong is told there. None for
    a command that needs no GPU, or several."""
    if arguments[:1] != ["run"]:
        return None
    named = "auto"
    for option, value in zip(arguments, [*arguments[1:], ""], strict=True):
        if option == "--device":
            named = value
        elif option.startswith("--device="):
            named = option.partition("=")[2]
    kind, _, number = named.partition(":")
    if kind not in ("auto", "cuda") or not (number or "0").isdigit():
        return None
    if "--mpi" not in arguments:
        # The driver makes 8 queues to a GPU else, and takes 80 ms longer to make and to remove them.
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "2")
    return EarlyContext(int(number or 0))


def _end_at_once(code: int) -> None:
    """All is done and written: what the interpreter would still take apart goes with the process."""
    atexit._run_exitfuncs()  # noqa: SLF001 - the only way to do without the rest
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    """Nothing has begun, so nothing is left behind."""
    sys.stderr.write("interrupted\n")
    sys.stderr.flush()
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    entry_point()

"""``python -m autotune``, and the command ``autotune``."""

import atexit
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

from autotune.family import command_begins

__all__ = ["entry_point"]


_INTERRUPTED = 130  # as ``errors.Interrupted`` has it, which is not imported yet


def entry_point() -> None:
    command_begins()
    # Ctrl-C while modules are imported would be a traceback through them, whoever is imported just then.
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, _leave)
    if sys.argv[1:2] == ["run"]:
        # Numpy's library of linear algebra begins with a thread on every core, which no kernel here needs.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gpu = _awakened(sys.argv[1:])
    from autotune.cli import main  # half a second, with the answer to Ctrl-C in place

    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = main()
    except KeyboardInterrupt:  # a second one, while the first was answered
        code = _INTERRUPTED
    if is_ours and code == _INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end is near
    if gpu is not None:
        gpu.join()  # a driver that is not ready yet would not survive the end
    if code == 0 and sys.argv[1:2] == ["run"]:
        _end_at_once()
    sys.exit(code)


def _awakened(arguments: Sequence[str]) -> threading.Thread | None:
    """What ``run`` would wait for longest, begun before the imports: the driver and the GPU's primary context, which
    whoever opens the GPU shares. What goes wrong is told there. None for a command that needs no GPU, or several."""
    if not arguments or arguments[0] != "run":
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
    thread = threading.Thread(target=_awaken, args=(int(number or 0),), daemon=True)
    thread.start()
    return thread


def _awaken(ordinal: int) -> None:
    with suppress(OSError, AttributeError):  # no driver, or another one
        driver = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), ordinal) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)


def _end_at_once() -> None:
    """All is done and written: what the interpreter would still take apart goes with the process."""
    atexit._run_exitfuncs()  # noqa: SLF001 - the only way to do without the rest
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    """Nothing has begun, so nothing is left behind."""
    sys.stderr.write("interrupted\n")
    sys.stderr.flush()
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    entry_point()

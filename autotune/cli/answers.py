"""How a command ends: with its exit code, and one message for what went wrong."""

import errno
from collections.abc import Callable

from autotune.errors import AutotuneError, Interrupted, UsageError

__all__ = ["answered"]


def answered(command: Callable[[], int], tell: Callable[[str], None]) -> int:
    """The exit code of ``command``; what it raises becomes a line for ``tell`` and that error's code."""
    try:
        return command()
    except Interrupted as told:
        tell(str(told))
        return told.exit_code
    except AutotuneError as problem:
        tell(f"error: {problem}")
        return problem.exit_code
    except OSError as problem:
        if problem.errno != errno.ENAMETOOLONG:
            raise
        tell(f"error: a name that is too long for a file: {str(problem.filename)[:60]}…")
        return UsageError.exit_code
    except KeyboardInterrupt:
        tell("interrupted")
        return Interrupted.exit_code

"""Every error a user can meet. Each says what, which value, what is allowed and what to do next.

    AutotuneError
    ├── UsageError          2   a command line that cannot be carried out
    │   └── UnknownName         a family, policy, value, workload … that does not exist
    ├── FamilyError         3   a family folder that cannot be used as declared
    ├── WorkloadError       4   input data that is missing, malformed or outside its range
    ├── DeviceError         5   a device that is not there or cannot do what was asked
    │   └── LaunchError         a launch or a copy that failed on it (``device``)
    ├── CompilerError       6   no compiler, one that failed as a whole, or that compiles no configuration
    ├── StoreError          7   a folder or record that cannot be read or written
    ├── PolicyFileError     8   a policy file that cannot be used
    ├── NothingMeasured     9   a sweep in which no configuration could be measured
    ├── Regression          10  a comparison that found what its options make an error
    ├── FailedTrials        11  a sweep with failed trials, where its options make them an error
    └── Interrupted         130 Ctrl-C, where there is more to say than that

The numbers are the command line's exit codes; 1 is an unexpected failure.
"""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class AutotuneError(Exception):
    """The root of the tree above; ``exit_code`` is what the command line returns."""

    exit_code = 1


class UsageError(AutotuneError):
    exit_code = 2


class FamilyError(AutotuneError):
    exit_code = 3


class WorkloadError(AutotuneError):
    exit_code = 4


class LayoutRefusal(WorkloadError):
    """An array's content does not allow a layout; another configuration may still be right for it."""


class DeviceError(AutotuneError):
    exit_code = 5


class CompilerError(AutotuneError):
    exit_code = 6


class StoreError(AutotuneError):
    exit_code = 7


class PolicyFileError(AutotuneError):
    exit_code = 8


class NothingMeasured(AutotuneError):
    exit_code = 9


class Regression(AutotuneError):
    exit_code = 10


class FailedTrials(AutotuneError):
    exit_code = 11


class Interrupted(AutotuneError):
    exit_code = 130


class UnknownName(UsageError):
    """``kind`` (family, policy, value …) has no member ``name``; ``allowed`` are the ones it has."""

    def __init__(self, kind: str, name: object, allowed: Iterable[object], where: str = "") -> None:
        names = [str(item) for item in allowed]
        listed = ", ".join(names) if names else "none"
        place = f" in {where}" if where else ""
        super().__init__(
            f"unknown {kind} {str(name)!r}{place}{suggestion(str(name), names)} (allowed: {listed})"
        )


def cause(problem: Exception) -> str:
    """What ``problem`` says; with its type where it is none of autotune's own, whose text says everything."""
    return str(problem) if isinstance(problem, AutotuneError) else f"{type(problem).__name__}: {problem}"


@contextmanager
def explained(error: type[AutotuneError], what: str, advice: str = "") -> Iterator[None]:
    """Raise ``error`` in place of an OSError of the block. The message is ``what`` failed (``cannot read x:``), the
    reason and the ``advice``."""
    try:
        yield
    except OSError as problem:
        raise error(f"{what} {problem.strerror or problem}{advice}") from None


def suggestion(name: str, allowed: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` when one of ``allowed`` is close to ``name``, else the empty string."""
    close = difflib.get_close_matches(name, list(allowed), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""

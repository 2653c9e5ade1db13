"""``@autotune.tuned``: a function that tunes itself at the first call of a kind, and costs microseconds afterwards."""

import functools
import hashlib
import inspect
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from autotune.callables import functions
from autotune.callables.choices import Choices, Condition, Space
from autotune.callables.tuning import Check, Problem, tuned_problem
from autotune.callables.winners import Found, found_for, near
from autotune.errors import NothingMeasured, UsageError

_NEAR = 8  # configurations that a call of new sizes tries where policy files foretell its time
Others = Literal["wait", "fallback"]


def tuned(
    *,
    space: Space,
    key: Sequence[str] = (),
    where: Condition | None = None,
    check: Check = None,
    outputs: Sequence[str] = (),
    name: str = "",
    tolerance: Mapping[str, float] | float | None = None,
    frozen: bool | None = None,
    refine: bool = True,
    others: Others = "wait",
    policies: str | Path | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], "TunedFunction"]:
    """Decorate a function so that its first call of a kind tunes it, and later calls run the winner.

    Args:
        space, key, where, check, outputs, name, tolerance, options: as ``autotune.tune`` has them. Calls are of one
            kind where the arguments in ``key`` are equal (of arrays their shapes), by default all arguments, and where
            all arrays have the same elements.
        frozen: never tune; a call that no policy file knows runs what comes nearest, with a warning that says what is
            missing, and raises where there is nothing at all. By default what AUTOTUNE_FROZEN says (1: frozen).
        refine: where policy files foretell a time for new sizes, try the best few of those alone.
        others: what a process does while another one tunes the same call: ``wait`` for its winner, or run the
            ``fallback``, the default configuration.
        policies: the folder of policy files; by default AUTOTUNE_POLICIES, else ./policies, for what is written.

    Returns:
        What makes a function a ``TunedFunction``.

    Raises:
        UsageError: for a space that has nothing to choose.
    """
    if others not in ("wait", "fallback"):
        raise UsageError(f"others={others!r}: wait for the process that tunes, or run the fallback meanwhile")
    choices = Choices.of(space, where)
    given = {"outputs": outputs, "name": name, "tolerance": tolerance}

    def decorated(function: Callable[..., Any]) -> TunedFunction:
        return TunedFunction(
            function, choices, tuple(key), given=given, check=check, frozen=frozen, refine=refine, others=others,
            policies=policies, options=options,
        )  # fmt: skip

    return decorated


class TunedFunction:
    """A function whose other arguments are chosen. ``chosen`` tells what a call would run."""

    def __init__(
        self, function: Callable[..., Any], choices: Choices, key: tuple[str, ...], *, given: Mapping[str, Any],
        check: Check, frozen: bool | None, refine: bool, others: Others, policies: str | Path | None,
        options: Mapping[str, Any],
    ) -> None:  # fmt: skip
        functools.update_wrapper(self, function)
        self.function, self.choices, self.key = function, choices, key
        self._given, self._check, self._options = dict(given), check, dict(options)
        self._frozen, self._refine, self._others, self._policies = frozen, refine, others, policies
        self._names = _arguments(function, choices, key)
        self._decisive = frozenset(key or self._names)
        self._marks = tuple(name in self._decisive for name in self._names)
        self._known: dict[Any, dict[str, Any]] = {}
        self._turn = threading.RLock()

    def __call__(self, *args: Any, **arguments: Any) -> Any:
        """The function with the winner's values for such arguments. Raises AutotuneError at the first call of a
        kind."""
        kind = self._kind(args, arguments)
        chosen = self._known.get(kind)
        if chosen is None:
            chosen = self._first(kind, args, arguments)
        return self.function(*args, **arguments, **chosen)

    def chosen(self, *args: Any, **arguments: Any) -> dict[str, Any]:
        """The values that a call with such arguments runs with; tunes as the call does."""
        kind = self._kind(args, arguments)
        return dict(self._known.get(kind) or self._first(kind, args, arguments))

    @property
    def is_frozen(self) -> bool:
        return (
            os.environ.get("AUTOTUNE_FROZEN", "") not in ("", "0") if self._frozen is None else self._frozen
        )

    def _kind(self, args: tuple[Any, ...], arguments: Mapping[str, Any]) -> Any:
        if arguments:
            values: Any = [args[i] if i < len(args) else arguments.get(n) for i, n in enumerate(self._names)]
        else:
            values = args
        kind = []
        for value, is_decisive in zip(values, self._marks, strict=False):
            elements = getattr(value, "dtype", None)
            if elements is not None:
                kind.append((value.shape, elements) if is_decisive else elements)
            elif is_decisive:
                kind.append(value)
        return tuple(kind)

    # -- the first call of a kind ---------------------------------------------------------------------------

    def _first(self, kind: Any, args: tuple[Any, ...], arguments: Mapping[str, Any]) -> dict[str, Any]:
        functions.refuse_while_loading(f"a call of {_called(self.function)}")
        with self._turn:
            if kind in self._known:  # another thread was faster
                return self._known[kind]
            inputs = inspect.signature(self.function).bind_partial(*args, **arguments).arguments
            for name, part in list(inputs.items()):
                if inspect.signature(self.function).parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                    inputs.pop(name)
                    inputs.update(part)
            problem = Problem.of(self.function, self.choices, inputs, key=self.key, **self._given)
            values = self._decided(problem, inputs)
            if values is None:  # another process is at it
                return self.choices.default
            self._known[kind] = values
            return values

    def _decided(self, problem: Problem, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
        found = found_for(problem, self._policies)
        if found.is_exact:
            return self._values(found)
        if self.is_frozen or functions.is_measuring():
            return self._nearest(found)
        with self._alone(problem) as is_mine:
            if not is_mine:
                return None
            found = found_for(problem, self._policies)
            if found.is_exact:  # the other process has tuned it
                return self._values(found)
            chosen: Sequence[Any] = ()
            if self._refine and found.best is not None and found.best.match in ("predicted", "nearest"):
                chosen = near(found, _NEAR, self.choices.configuration(self.choices.default))
            result = tuned_problem(problem, self._check, inputs, chosen=chosen, **self._options)
            result.save_policy(self._policies)
            return dict(result.configuration)

    def _values(self, found: Found) -> dict[str, Any]:
        assert found.best is not None and found.best.configuration is not None
        return self.choices.given(found.best.configuration)

    def _nearest(self, found: Found) -> dict[str, Any]:
        """What comes nearest where nothing may be tuned. Raises NothingMeasured."""
        if found.best is not None:
            warnings.warn(f"{found.lacks}: it runs {found.best.origin} ({found.best.match})", stacklevel=5)
            return self._values(found)
        if functions.is_measuring():
            return self.choices.default
        raise NothingMeasured(
            f"{found.lacks}; it is frozen: call it once where it is not (frozen=False, AUTOTUNE_FROZEN=0), and ship "
            "that folder"
        )

    @contextmanager
    def _alone(self, problem: Problem) -> Iterator[bool]:
        """Whether this process may tune now: no other one tunes the same call, or no longer does. It ends with the
        process, however that ends."""
        import filelock

        told = repr((problem.declared.name, problem.declared.digest, sorted(problem.declared.numbers.items()),
                     [(name, one.shape) for name, one in sorted(problem.declared.arrays.items())]))  # fmt: skip
        folder = Path(self._options.get("out") or Path("autotune-results") / problem.declared.name)
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / f"{hashlib.sha256(told.encode()).hexdigest()[:16]}.lock")
        try:
            lock.acquire(timeout=-1 if self._others == "wait" else 0)
        except filelock.Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()


def _arguments(function: Callable[..., Any], choices: Choices, key: Sequence[str]) -> tuple[str, ...]:
    """The arguments that a caller gives, in order. Raises UsageError where one that is chosen is none."""
    parameters = inspect.signature(function).parameters
    open_ended = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    name = _called(function)
    for chosen in choices.values:
        if chosen not in parameters and not open_ended:
            raise UsageError(
                f"{name} has no argument {chosen!r}, which space= chooses; it has {', '.join(parameters)}"
            )
    given = tuple(each for each in parameters if each not in choices.values)
    if unknown := [each for each in key if each not in given]:
        raise UsageError(
            f"{name} has no argument {unknown[0]!r}, which key= names; it has {', '.join(given)}"
        )
    return given


def _called(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))

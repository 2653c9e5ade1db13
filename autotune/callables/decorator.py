"""``@autotune.tuned``: a function that tunes itself at the first call of a kind, and costs microseconds afterwards."""

import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune.callables import functions
from autotune.callables.choices import Alternatives, Condition, Space
from autotune.callables.deciding import Decider, Others
from autotune.callables.tuning import CallProblem, Check, Within
from autotune.errors import UsageError
from autotune.policy import Frozen


def tuned(
    *, space: Space, key: Sequence[str] = (), where: Condition | None = None, check: Check = None,
    outputs: Sequence[str] = (), name: str = "", tolerance: Within = None, frozen: Frozen | None = None,
    agreement: Any = None, refine: bool = True, others: Others = "wait", policies: str | Path | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], "TunedFunction"]:  # fmt: skip
    """Decorate a function so that its first call of a kind tunes it, and later calls run the winner.

    Args:
        space, key, where, check, outputs, name, tolerance, options: as ``autotune.tune`` has them. Calls are of one
            kind where the arguments in ``key`` are equal (of arrays their shapes), by default all arguments, and where
            all arrays have the same elements.
        frozen: never tune; a call that no policy file knows runs what comes nearest, with a warning that says what is
            missing, and raises where there is nothing at all, or with ``"exact"`` in place of every guess. By default
            what AUTOTUNE_FROZEN says (1, exact, or 0), then the policy file (``frozen: true``).
        agreement: of ranks (``autotune.Agreement``): the first call of a kind is one that all of them make; the first
            rank decides, and tunes where needed.
        refine: where policy files predict a time for new sizes, try the best few of those alone.
        others: what a process does while another one tunes the same call: ``wait`` for its winner, or run the
            ``fallback``, the default configuration.
        policies: the folder of policy files; by default AUTOTUNE_POLICIES, else ./policies, for what is written.

    Returns:
        What makes a function a ``TunedFunction``.

    Raises:
        UsageError: for a space that has nothing to choose.
    """
    decider = Decider(
        choices=Alternatives.read(space, where), check=check, frozen=frozen, agreement=agreement, refine=refine,
        others=others, policies=policies, options=options,
    )  # fmt: skip
    given = {"outputs": outputs, "name": name, "tolerance": tolerance}

    def decorate(function: Callable[..., Any]) -> TunedFunction:
        return TunedFunction(function, decider, tuple(key), given)

    return decorate


class TunedFunction:
    """A function some of whose arguments are chosen by tuning. ``chosen`` returns what a call would run."""

    def __init__(
        self, function: Callable[..., Any], decider: Decider, key: tuple[str, ...], given: Mapping[str, Any]
    ) -> None:
        functools.update_wrapper(self, function)
        self.function, self.decider, self.key = function, decider, key
        self._given = dict(given)
        self._names = _arguments(function, decider.choices, key)
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
            chosen = self._decide_first(kind, args, arguments)
        return self.function(*args, **arguments, **chosen)

    def chosen(self, *args: Any, **arguments: Any) -> dict[str, Any]:
        """Return the values that a call with such arguments runs with; tunes if the call would."""
        kind = self._kind(args, arguments)
        return dict(self._known.get(kind) or self._decide_first(kind, args, arguments))

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

    def _decide_first(self, kind: Any, args: tuple[Any, ...], arguments: Mapping[str, Any]) -> dict[str, Any]:
        functions.refuse_while_loading(f"a call of {functions.name_of(self.function)}")
        with self._turn:
            if kind in self._known:  # another thread was faster
                return self._known[kind]
            signature = inspect.signature(self.function)
            inputs = dict(signature.bind_partial(*args, **arguments).arguments)
            for name in [n for n in inputs if signature.parameters[n].kind is inspect.Parameter.VAR_KEYWORD]:
                inputs |= inputs.pop(name)
            problem = CallProblem.make(
                self.function, self.decider.choices, inputs, key=self.key, **self._given
            )
            values = self.decider.decide(problem, inputs)
            if values is None:  # another process is at it
                return self.decider.choices.default
            self._known[kind] = values
            return values


def _arguments(function: Callable[..., Any], choices: Alternatives, key: Sequence[str]) -> tuple[str, ...]:
    """The arguments that a caller gives, in order. Raises UsageError where one that is chosen is none."""
    parameters = inspect.signature(function).parameters
    open_ended = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    name = functions.name_of(function)
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

"""One device that a kernel may run on: its policy files, its choice for each input, its compiled modules."""

import logging
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from autotune.compile import Cache, Variant, batch, compile_batch, default_root
from autotune.declaration import Configuration, Family, Inputs
from autotune.device import (
    Backend,
    LaunchError,
    LayoutTransform,
    Lender,
    Module,
    View,
    compile_module,
    content_refusal,
    make_raw,
)
from autotune.dispatch.monitor import Monitor, Watching
from autotune.dispatch.refinement import TRIED, Refinement
from autotune.dispatch.turns import Chosen, Timer, Turn
from autotune.errors import AutotuneError, CompilerError, NothingMeasured, UsageError
from autotune.measure import find_objective
from autotune.policy import (
    Candidate,
    Frozen,
    Policies,
    PolicyFile,
    admit,
    candidates,
    choose,
    explain_untuned,
    find,
    find_beyond_proved,
    keep_refined,
    rank_challengers,
    resolve_frozen,
)

_log = logging.getLogger("autotune")


_KEPT = 256  # choices that are remembered
_PROVED = ("predicted", "nearest")  # what candidates of these rules name was proved in a sweep


@dataclass(frozen=True, kw_only=True)
class Choosing:
    """How a caller's configurations are chosen: from policy files in ``folders``, compiled into ``cache``. ``accuracy``
    names another accuracy class than the family's own, or is the largest error that is allowed; ``objective`` is what
    to minimize. ``own`` is a policy file that comes before those in folders. ``refine`` is how many calls may try other
    configurations on inputs that nobody measured; None leaves it to the policy file. ``frozen`` is as in
    ``policy.frozen``; ``reproducible`` admits only configurations known to give the same bits each time. With an
    ``agreement`` (``autotune.Agreement``) all ranks of a program use the first one's choices; with ``monitor`` calls
    are timed. Raises UnknownName for an unknown objective, UsageError for a contradiction."""

    folders: Sequence[Path]
    cache: Cache = field(default_factory=lambda: Cache(default_root()))
    accuracy: Mapping[str, Any] | float | None = None
    objective: str = "kernel"
    own: PolicyFile | None = None
    refine: int | None = None
    frozen: Frozen | None = None
    reproducible: bool = False
    agreement: Any = None
    monitor: Monitor | None = None

    def __post_init__(self) -> None:
        find_objective(self.objective)
        resolve_frozen(self.frozen)
        if self.refine and (self.frozen or self.agreement):
            told = f"frozen={self.frozen!r} forbids it" if self.frozen else "ranks would find other winners"
            raise UsageError(f"refine= tries configurations in calls: {told}. Leave one of the two out")


class Target:
    """One device, with what ``family``'s policy files say of it; a warning where they say nothing. For any number of
    threads."""

    def __init__(self, family: Family, backend: Backend, choosing: Choosing) -> None:
        self.family, self.backend, self.choosing = family, backend, choosing
        self.policies, self.passed = self._find()
        self.layout_transform = LayoutTransform(backend, choosing.cache)
        if self.policies is None:  # said at the line that calls autotune.load
            told = explain_untuned(family, backend.device, choosing.folders, self.passed)
            if resolve_frozen(choosing.frozen):
                raise NothingMeasured(f"{family.name} is frozen: {told}")
            warnings.warn(told, stacklevel=5)
        if isinstance(choosing.accuracy, float | int):  # that it admits nothing is said before the first call
            admit(family, self.policies, choosing.accuracy)
        asked = self.policies.own.refine if self.policies and self.policies.own else 0
        is_fixed = choosing.agreement or (self.policies and self.policies.frozen)
        self._refine = 0 if is_fixed else asked if choosing.refine is None else choosing.refine
        self._lock = threading.RLock()
        self._modules: dict[tuple[Configuration, tuple[tuple[str, str | int], ...]], Module] = {}
        self._chosen: dict[object, Chosen] = {}
        self._logged: set[object] = set()

    def _find(self) -> tuple[Policies | None, list[Candidate]]:
        """The policy files of this process; of ranks those of the first. Raises UsageError."""
        family, device, choosing = self.family, self.backend.device, self.choosing
        search = partial(find, family, device, choosing.folders, choosing.own, choosing.frozen)
        found: tuple[Policies | None, list[Candidate]] = (
            choosing.agreement.find(family, device, search) if choosing.agreement else search()
        )
        return found

    @property
    def kind(self) -> str:
        """cpu or cuda."""
        return self.backend.device.kind

    @property
    def lender(self) -> Lender | None:
        """The backend, where it can work on other libraries' arrays."""
        backend: Any = self.backend
        return backend if self.kind == "cuda" else None

    def fetch(self, view: View) -> Any:
        """A copy of what is on a GPU in the host's memory. Raises WorkloadError where there is no way."""
        if self.lender is None or view.can_be_fetched or min(view.strides, default=0) < 0:
            return view.to_host()
        steps = sum((extent - 1) * stride for extent, stride in zip(view.shape, view.strides, strict=True))
        span = self.lender.borrow(make_raw(steps + view.dtype.itemsize), view.address)
        found = self.lender.download(span)
        return np.ascontiguousarray(np.ndarray(view.shape, view.dtype, found, strides=view.strides))

    def _candidates(self, inputs: Inputs) -> list[Candidate]:
        return candidates(
            self.family, self.policies, {**inputs.sizes, **inputs.scalars}, inputs.options, self.kind,
            accuracy=self.choosing.accuracy, objective=self.choosing.objective,
            reproducible=self.choosing.reproducible,
        )  # fmt: skip

    def explain(self, inputs: Inputs) -> tuple[Candidate, list[Candidate]]:
        """The candidate taken for ``inputs`` and those passed over, each with its reason."""
        listed = self._candidates(inputs)
        chosen, passed = choose(listed, lambda configuration: self._explain_exclusion(configuration, inputs))
        watched = [c.turns for c in [*self._chosen.values()] if c.candidate.entry is chosen.entry]
        drifts = [str(turns.drift) for turns in watched if isinstance(turns, Watching) and turns.drift]
        return replace(chosen, remark="; ".join(drifts)), [*self.passed, *passed]

    def _explain_exclusion(self, configuration: Configuration, inputs: Inputs) -> str:
        names = inputs.names(configuration)
        variant = Variant.make(self.family, configuration, inputs.options)
        return variant.explain_exclusion(names, self.backend.device.limits) or content_refusal(
            variant, inputs.arrays
        )

    def choose(self, inputs: Inputs) -> Chosen:
        """What runs for ``inputs``, compiled and loaded; remembered by sizes, options and scalars. Raises
        CompilerError, LaunchError."""
        key = tuple(inputs.sizes.items()), tuple(inputs.options.items()), tuple(inputs.scalars.items())
        chosen = self._chosen.get(key)
        if chosen is None:
            with self._lock:
                chosen = self._choose(inputs, key)
                self.remember(key, chosen)
        return chosen

    def choose_for(self, inputs: Inputs) -> Chosen:
        """What runs for the content of ``inputs``, which what was chosen for their sizes cannot store; not remembered.
        Raises DeviceError where nothing can."""
        return self.load(self.explain(inputs)[0], inputs)

    def _choose(self, inputs: Inputs, key: object) -> Chosen:
        taken, passed = self.explain(inputs)
        name = self.family.name
        for candidate in passed:
            told = name, candidate.match, candidate.origin, candidate.refusal
            _log.log(self._level(told[:3]), "%s passed over %s (%s): %s", *told)
        assert taken.configuration is not None
        runs = name, taken.configuration.id, taken.match, taken.origin
        _log.log(self._level(runs[:2]), "%s runs %s (%s, %s)", *runs)
        self._warn_beyond(taken.configuration, inputs)
        chosen = self.load(taken, inputs)
        if self._refine and taken.match in _PROVED and (others := self._find_others(taken, inputs)):
            return replace(chosen, turns=Refining(self, [taken, *others], inputs, key, self._refine))
        return self.watch(chosen)

    def watch(self, chosen: Chosen) -> Chosen:
        """``chosen``, watched where the program asks for it."""
        monitor = self.choosing.monitor
        return Watching(monitor, self.family.name, self.backend, chosen).best if monitor else chosen

    def _level(self, key: object) -> int:
        """INFO for the first of its kind, else DEBUG: a log that is read at INFO is not to grow with every call."""
        is_known = key in self._logged
        self._logged.add(key)
        return logging.DEBUG if is_known else logging.INFO

    def _warn_beyond(self, configuration: Configuration, inputs: Inputs) -> None:
        """Once for sizes of about that magnitude."""
        beyond = find_beyond_proved(self.policies, configuration, inputs.sizes)
        about = configuration.id, *(size.bit_length() for size in inputs.sizes.values())
        if beyond and self._level(about) == logging.INFO:
            _log.warning(
                "%s runs %s on %s: no sweep compared its results there; sweep a workload of that size",
                self.family.name, configuration.id, beyond,
            )  # fmt: skip

    def remember(self, key: object, chosen: Chosen) -> None:
        """``chosen`` runs from now on for inputs of that ``key``."""
        with self._lock:
            if len(self._chosen) >= _KEPT:
                self._chosen.clear()
            self._chosen[key] = chosen

    def load(self, candidate: Candidate, inputs: Inputs) -> Chosen:
        """The candidate, compiled and loaded. Raises CompilerError, LaunchError."""
        assert candidate.configuration is not None
        variant = Variant.make(self.family, candidate.configuration, inputs.options)
        key = candidate.configuration, variant.options
        with self._lock:
            if key not in self._modules:
                self._modules[key] = compile_module(self.backend, self.choosing.cache, variant)
            return Chosen(variant, self._modules[key], candidate)

    def get_separate_module(self, variant: Variant) -> Module | None:
        """The variant loaded once more for a CUDA graph, where it reads constant memory: nobody knows when the graph
        fills that. Raises LaunchError."""
        reads = self.family.symbols or any(layout.memory == "constant" for layout in variant.layouts.values())
        if self.lender is None or not reads:
            return None
        return compile_module(self.backend, self.choosing.cache, variant, self.lender.load_separately)

    def _find_others(self, taken: Candidate, inputs: Inputs) -> list[Candidate]:
        """What else a refinement tries."""
        ranked = rank_challengers(taken, self._candidates(inputs))
        fit = (c for c in ranked if c.configuration and not self._explain_exclusion(c.configuration, inputs))
        return list(islice(fit, TRIED - 1))

    def close(self) -> None:
        """Release modules and the device. Safe to call twice."""
        with self._lock:
            self._chosen.clear()
            modules = list(self._modules.values())
            self._modules.clear()
            for module in modules:
                module.unload()
            self.backend.close()


class Refining:
    """The first calls on inputs of one ``key``, in which those ``tried`` run in turn, ``calls`` of them timed; then the
    fastest stays on ``target``. All are compiled in a thread of its own, until when the first one runs. For any number
    of threads."""

    def __init__(
        self, target: Target, tried: Sequence[Candidate], inputs: Inputs, key: object, calls: int
    ) -> None:
        is_known = tried[0].match == "predicted"  # else the expected time is not of a configuration
        self._plan = Refinement([(c.expected_ms if is_known else 0.0, c.spread) for c in tried], calls)
        self._target, self._tried, self._key = target, tried, key
        self._inputs = replace(inputs, arrays={})
        self._lock = threading.Lock()
        self._timer = Timer(target.backend)
        self._is_over = False
        self._compiling = threading.Thread(target=self._compile, daemon=True)
        self._compiling.start()

    def _compile(self) -> None:
        family, target = self._target.family, self._target
        options = self._inputs.options
        variants = [Variant.make(family, c.configuration, options) for c in self._tried if c.configuration]
        with suppress(AutotuneError):  # what does not compile is left out when it is its turn
            compile_batch(batch(family, tuple(variants)), target.backend.toolchain(), target.choosing.cache)

    @property
    def best(self) -> Chosen:
        """The fastest so far."""
        return self._target.load(self._tried[self._plan.best], self._inputs)

    def turn(self) -> Turn:
        """What the next call runs."""
        while True:
            at, is_timed = self._take_turn()
            try:
                return Turn(self._target.load(self._tried[at], self._inputs), at, is_timed, self)
            except (LaunchError, CompilerError) as problem:
                if not self.mark_failed(at, problem):
                    raise

    def _take_turn(self) -> tuple[int, bool]:
        with self._lock:
            for at, took in self._timer.read():
                self._plan.forget(at) if took is None else self._plan.note(at, took)
            if self._plan.is_over and not self._is_over:
                self._is_over = True
                self._settle()
            if self._is_over or self._compiling.is_alive():
                return self._plan.best, False
            return self._plan.take()

    def time_turn(self, turn: Turn) -> AbstractContextManager[None]:
        """Time what is queued inside, where it is to be timed."""
        return self._timer.time(turn.at) if turn.is_timed else nullcontext()

    def mark_failed(self, at: int, problem: Exception) -> bool:
        """Leave out what could not run; False for the first choice, which has no other to stand in for it."""
        if at == 0:
            return False
        _log.info("a configuration could not run and is not tried again: %s", problem)
        with self._lock:
            self._plan.leave_out(at)
        return True

    def _settle(self) -> None:
        plan, target, chosen = self._plan, self._target, self.best
        target.remember(self._key, target.watch(chosen))
        name, calls = target.family.name, sum(map(len, plan.times))
        times = {c.configuration: took for c, took in zip(self._tried, plan.times, strict=True) if took}
        _log.info("%s stays with %s after %d calls", name, chosen.variant.configuration.id, calls)
        if times:
            compiler, backend = target.backend.toolchain().identity, target.backend
            found = target.family, backend.device, compiler, self._inputs, chosen.candidate, times
            threading.Thread(target=keep_refined, args=found).start()  # the process waits for it at its end

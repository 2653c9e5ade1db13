"""One device that a kernel may run on: its policy files, its choice for each input, its compiled modules."""

import logging
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from autotune.compile import Cache, Variant, batch, compile_batch
from autotune.declaration import Configuration, Family, Inputs
from autotune.device import (
    Backend,
    Lender,
    Module,
    Mover,
    View,
    compiled_module,
    content_refusal,
    raw,
)
from autotune.dispatch.refinement import Chosen, Refinement, Refining
from autotune.errors import AutotuneError
from autotune.measure import find_objective
from autotune.policy import (
    Candidate,
    MaxError,
    PolicyFile,
    Refined,
    admitted,
    beyond_proved,
    candidates,
    choose,
    find,
    untuned,
)

_log = logging.getLogger("autotune")


_KEPT = 256  # choices that are remembered
_TRIED = 5  # configurations in a refinement
_PROVED = ("predicted", "nearest")  # what candidates of these rules name was proved in a sweep


class Told:
    """What a log has had already: one that is read at INFO is not to grow with every size and call."""

    def __init__(self) -> None:
        self._keys: set[object] = set()

    def level(self, key: object) -> int:
        """INFO for the first one of its kind, DEBUG for those after it."""
        return logging.INFO if self.is_first(key) else logging.DEBUG

    def is_first(self, key: object) -> bool:
        """Whether nothing of its kind was logged before."""
        is_known = key in self._keys
        self._keys.add(key)
        return not is_known


@dataclass(frozen=True, kw_only=True)
class Choosing:
    """How a caller has a configuration chosen. ``accuracy`` asks for another accuracy class than the family's own, or
    for any whose error is small enough, ``objective`` for what counts beside the kernels' time.
    ``own`` is a policy file that comes before those in folders. ``refine`` is how many calls may try other
    configurations on inputs that nobody measured; None leaves it to the policy file. Raises UnknownName for an
    objective that there is not."""

    accuracy: Mapping[str, Any] | MaxError | None = None
    objective: str = "kernel"
    own: PolicyFile | None = None
    refine: int | None = None

    def __post_init__(self) -> None:
        find_objective(self.objective)


class Target:
    """One device, with what ``family``'s policy files in ``folders`` say of it; a warning where they say nothing. For
    any number of threads."""

    def __init__(
        self, family: Family, backend: Backend, folders: Sequence[Path], cache: Cache, choosing: Choosing
    ) -> None:
        self.family = family
        self.backend = backend
        self.cache = cache
        self.policies, self.passed = find(family, backend.device, folders, choosing.own)
        self.mover = Mover(backend, cache)
        self._choosing = choosing
        if self.policies is None:  # said at the line that calls autotune.load
            warnings.warn(untuned(family, backend.device, folders, self.passed), stacklevel=5)
        if isinstance(choosing.accuracy, MaxError):  # that it admits nothing is said before the first call
            admitted(family, self.policies, choosing.accuracy)
        asked = self.policies.own.refine if self.policies and self.policies.own else 0
        self._refine = asked if choosing.refine is None else choosing.refine
        self._lock = threading.RLock()
        self._modules: dict[tuple[Configuration, tuple[tuple[str, str | int], ...]], Module] = {}
        self._chosen: dict[object, Chosen] = {}
        self._told = Told()

    @property
    def kind(self) -> str:
        """cpu or cuda."""
        return self.backend.device.kind

    @property
    def lender(self) -> Lender | None:
        """The backend, where it can work on other libraries' arrays."""
        backend: Any = self.backend
        return backend if self.kind == "cuda" else None

    def fetched(self, view: View) -> Any:
        """A copy of what is on a GPU in the host's memory. Raises WorkloadError where there is no way."""
        if self.lender is None or view.can_be_fetched or min(view.strides, default=0) < 0:
            return view.to_host()
        steps = sum((extent - 1) * stride for extent, stride in zip(view.shape, view.strides, strict=True))
        span = self.lender.borrow(raw(steps + view.dtype.itemsize), view.address)
        found = self.lender.download(span)
        return np.ascontiguousarray(np.ndarray(view.shape, view.dtype, found, strides=view.strides))

    def _candidates(self, inputs: Inputs) -> list[Candidate]:
        return candidates(
            self.family, self.policies, inputs.sizes, inputs.options, self.kind, scalars=inputs.scalars,
            accuracy=self._choosing.accuracy, objective=self._choosing.objective,
        )  # fmt: skip

    def explain(self, inputs: Inputs) -> tuple[Candidate, list[Candidate]]:
        """The candidate taken for ``inputs`` and those passed over, each with its reason."""
        listed = self._candidates(inputs)
        chosen, passed = choose(listed, lambda configuration: self._exclusion(configuration, inputs))
        return chosen, [*self.passed, *passed]

    def _exclusion(self, configuration: Configuration, inputs: Inputs) -> str:
        names = inputs.names(configuration)
        variant = Variant.of(self.family, configuration, inputs.options)
        return variant.exclusion(names, self.backend.device.limits) or content_refusal(variant, inputs.arrays)

    def chosen(self, inputs: Inputs) -> Chosen:
        """What runs for ``inputs``, compiled and loaded; remembered by sizes, options and scalars. Raises
        CompilerError, LaunchError."""
        key = tuple(inputs.sizes.items()), tuple(inputs.options.items()), tuple(inputs.scalars.items())
        found = self._chosen.get(key)
        if found is None:
            with self._lock:
                found = self._choose(inputs, key)
                if len(self._chosen) >= _KEPT:
                    self._chosen.clear()
                self._chosen[key] = found
        return found

    def chosen_for(self, inputs: Inputs) -> Chosen:
        """What runs for the content of ``inputs``, which what was chosen for their sizes cannot store; not remembered.
        Raises DeviceError where nothing can."""
        return self._made(self.explain(inputs)[0], inputs)

    def _choose(self, inputs: Inputs, key: object) -> Chosen:
        taken, passed = self.explain(inputs)
        name = self.family.name
        for candidate in passed:
            told = name, candidate.match, candidate.origin, candidate.refusal
            _log.log(self._told.level(told[:3]), "%s passed over %s (%s): %s", *told)
        assert taken.configuration is not None
        runs = name, taken.configuration.id, taken.match, taken.origin
        _log.log(self._told.level(runs[:2]), "%s runs %s (%s, %s)", *runs)
        self._warn_beyond(taken.configuration, inputs)
        chosen = self._made(taken, inputs)
        if self._refine and taken.match in _PROVED and (others := self._others(taken, inputs)):
            return replace(chosen, refining=self._refining([taken, *others], inputs, key))
        return chosen

    def _warn_beyond(self, configuration: Configuration, inputs: Inputs) -> None:
        """Once for sizes of about that magnitude."""
        beyond = beyond_proved(self.policies, configuration, inputs.sizes)
        about = configuration.id, *(size.bit_length() for size in inputs.sizes.values())
        if beyond and self._told.is_first(about):
            _log.warning(
                "%s runs %s on %s: no sweep compared its results there; sweep a workload of that size",
                self.family.name, configuration.id, beyond,
            )  # fmt: skip

    def _made(self, candidate: Candidate, inputs: Inputs) -> Chosen:
        assert candidate.configuration is not None
        variant = Variant.of(self.family, candidate.configuration, inputs.options)
        key = candidate.configuration, variant.options
        with self._lock:
            if key not in self._modules:
                self._modules[key] = compiled_module(self.backend, self.cache, variant)
            return Chosen(variant, self._modules[key], candidate)

    def module_apart(self, variant: Variant) -> Module | None:
        """The variant loaded once more for a CUDA graph, where it reads constant memory: nobody knows when the graph
        fills that. Raises LaunchError."""
        reads = self.family.symbols or any(layout.memory == "constant" for layout in variant.layouts.values())
        if self.lender is None or not reads:
            return None
        return compiled_module(self.backend, self.cache, variant, self.lender.load_apart)

    # -- trying others -----------------------------------------------------------------------------------------

    def _others(self, taken: Candidate, inputs: Inputs) -> list[Candidate]:
        """The next best configurations by the rule that decided."""
        found = {taken.configuration: taken}
        for candidate in self._candidates(inputs):
            if len(found) == _TRIED:
                break
            configuration = candidate.configuration
            if candidate.match != taken.match or candidate.refusal or configuration in found:
                continue
            if configuration is not None and not self._exclusion(configuration, inputs):
                found[configuration] = candidate
        return list(found.values())[1:]

    def _refining(self, tried: Sequence[Candidate], inputs: Inputs, key: object) -> Refining:
        """All are compiled in a thread of its own; until that is done the first one runs."""
        is_known = tried[0].match == "predicted"  # else the expected time is not of a configuration
        expected = [(c.expected_ms if is_known else 0.0, c.spread) for c in tried]
        bare = replace(inputs, arrays={})
        variants = tuple(
            Variant.of(self.family, c.configuration, inputs.options) for c in tried if c.configuration
        )
        work = threading.Thread(target=self._compile, args=(variants,), daemon=True)
        work.start()
        return Refining(
            self.backend, Refinement(expected, self._refine), lambda at: self._made(tried[at], bare),
            lambda: not work.is_alive(), partial(self._settle, tried, bare, key),
        )  # fmt: skip

    def _compile(self, variants: tuple[Variant, ...]) -> None:
        with suppress(AutotuneError):  # what does not compile is left out when it is its turn
            compile_batch(batch(self.family, variants), self.backend.toolchain(), self.cache)

    def _settle(
        self, tried: Sequence[Candidate], inputs: Inputs, key: object, best: int, plan: Refinement
    ) -> None:  # fmt: skip
        chosen = self._made(tried[best], inputs)
        with self._lock:
            self._chosen[key] = chosen
        told = {
            c.configuration.id: plan.time(i) for i, c in enumerate(tried) if plan.times[i] and c.configuration
        }
        _log.info("%s stays with %s after %d calls: %s", self.family.name, chosen.variant.configuration.id,
                  sum(map(len, plan.times)), told)  # fmt: skip
        if told:
            found = Refined(
                self.family, self.backend.device, self.backend.toolchain().identity, inputs.sizes, inputs.options,
                inputs.scalars, tried[best], told, plan.times[best], sum(map(len, plan.times)),
            )  # fmt: skip
            threading.Thread(target=found.write).start()  # the process waits for it at its end

    def close(self) -> None:
        """Release modules and the device. Safe to call twice."""
        with self._lock:
            self._chosen.clear()
            modules = list(self._modules.values())
            self._modules.clear()
            for module in modules:
                module.unload()
            self.backend.close()

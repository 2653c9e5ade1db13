"""One device that a kernel may run on: its policy files, its choice for each input, its compiled modules."""

import logging
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from autotune.compile import Cache, Variant
from autotune.declaration import Configuration, Family, Inputs
from autotune.device import Backend, Lender, Module, Mover, View, compiled_module, raw
from autotune.policy import Candidate, PolicyFile, candidates, choose, find, operations

_log = logging.getLogger("autotune")


_KEPT = 256  # choices that are remembered


@dataclass(frozen=True)
class Chosen:
    """What runs for inputs of certain sizes, and why."""

    variant: Variant
    module: Module
    candidate: Candidate


class Target:
    """``accuracy`` asks for another accuracy class than the family's own, ``objective`` for what counts beside the
    kernels' time (``decision.cost_ms``). ``own`` is a policy file that comes before
    those in ``folders``. For any number of threads."""

    def __init__(
        self, family: Family, backend: Backend, folders: Iterable[Path], cache: Cache,
        accuracy: Mapping[str, Any] | None = None, objective: str = "kernel", own: PolicyFile | None = None,
    ) -> None:  # fmt: skip
        self.family = family
        self.backend = backend
        self.cache = cache
        self.policies, self.passed = find(family, backend.device, folders, own)
        self.mover = Mover(backend, cache)
        self.windows = threading.Lock()  # constant memory is one for all variants in a binary
        self._accuracy, self._objective = accuracy, objective
        self._lock = threading.RLock()
        self._modules: dict[tuple[Configuration, tuple[tuple[str, str | int], ...]], Module] = {}
        self._chosen: dict[object, Chosen] = {}

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

    def expected_ms(self, inputs: Inputs) -> float:
        """What a call that begins with host arrays takes, by the policy file; 0 when it says nothing."""
        return self.policies.expected_call_ms(self.work(inputs)) if self.policies else 0.0

    def work(self, inputs: Inputs) -> float:
        """The operations of a call."""
        return operations(self.family, inputs.sizes, inputs.options, inputs.scalars)

    def explain(self, inputs: Inputs) -> tuple[Candidate, list[Candidate]]:
        """The candidate taken for ``inputs`` and those passed over, each with its reason."""
        listed = candidates(
            self.family, self.policies, inputs.sizes, inputs.options, self.kind,
            scalars=inputs.scalars, accuracy=self._accuracy, objective=self._objective,
        )  # fmt: skip
        chosen, passed = choose(listed, lambda configuration: self._exclusion(configuration, inputs))
        return chosen, [*self.passed, *passed]

    def _exclusion(self, configuration: Configuration, inputs: Inputs) -> str:
        names = inputs.names(configuration)
        variant = Variant.of(self.family, configuration, inputs.options)
        return variant.exclusion(names, self.backend.device.limits)

    def chosen(self, inputs: Inputs) -> Chosen:
        """What runs for ``inputs``, compiled and loaded; remembered by sizes, options and scalars. Raises
        CompilerError, LaunchError."""
        key = tuple(inputs.sizes.items()), tuple(inputs.options.items()), tuple(inputs.scalars.items())
        found = self._chosen.get(key)
        if found is None:
            with self._lock:
                found = self._choose(inputs)
                if len(self._chosen) >= _KEPT:
                    self._chosen.clear()
                self._chosen[key] = found
        return found

    def _choose(self, inputs: Inputs) -> Chosen:
        taken, passed = self.explain(inputs)
        name = self.family.name
        for candidate in passed:
            _log.info(
                "%s passed over %s (%s): %s", name, candidate.match, candidate.origin, candidate.refusal
            )
        assert taken.configuration is not None
        _log.info("%s runs %s (%s, %s)", name, taken.configuration.id, taken.match, taken.origin)
        variant = Variant.of(self.family, taken.configuration, inputs.options)
        key = taken.configuration, variant.options
        if key not in self._modules:
            self._modules[key] = compiled_module(self.backend, self.cache, variant)
        return Chosen(variant, self._modules[key], taken)

    def close(self) -> None:
        """Release modules and the device. Safe to call twice."""
        with self._lock:
            self._chosen.clear()
            modules = list(self._modules.values())
            self._modules.clear()
            for module in modules:
                module.unload()
            self.backend.close()

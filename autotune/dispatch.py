"""The run time: the tuned kernel as a function of arrays.

``load`` picks the device and reads the policy file; a call picks the configuration for its input's sizes,
applies the layouts, launches and gives canonical arrays back. Every choice is logged and explained.
"""

import logging
import warnings
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from autotune.backends import Backend, Module
from autotune.cache import Cache, default_root
from autotune.compiler import CompileFailure, compile_batch
from autotune.data import canonical
from autotune.devices import open_backend
from autotune.errors import CompilerError, DeviceError, UsageError, WorkloadError
from autotune.execution import Execution
from autotune.family import Family
from autotune.family import load as load_family
from autotune.paths import policy_folders
from autotune.resident import Resident
from autotune.selection import Candidate, candidates, choose, find
from autotune.space import Configuration
from autotune.variant import Variant, batch
from autotune.workload import Inputs, bind

__all__ = ["Kernel", "Prepared", "load", "run_once"]

_log = logging.getLogger("autotune")


def load(
    family: str | Path,
    device: str | None = None,
    policies: str | Path | None = None,
    cache: str | Path | None = None,
) -> "Kernel":
    """The tuned kernel of a family (a name, or a folder with a family.yaml).

    ``device`` is cpu, cuda or cuda:N; None takes the first GPU, and with no GPU the cpu, with a warning that says so.
    ``policies`` names the folder of policy files to look in first. Raises UnknownName, FamilyError, DeviceError.
    """
    return Kernel(
        load_family(family, check=False), device, policies, Cache(Path(cache) if cache else default_root())
    )


class Kernel:
    """A family ready to be called on one device; a context manager. Not for use from several threads at once."""

    def __init__(self, family: Family, device: str | None, policies: str | Path | None, cache: Cache) -> None:
        self.family = family
        self._backend: Backend = open_backend(device or "auto")
        self._cache = cache
        self._closed = False
        self._modules: dict[tuple[Configuration, tuple[tuple[str, str | int], ...]], Module] = {}
        self.policies, self._passed = find(family, self._backend.device, policy_folders(policies))
        if self.policies is None:
            why = "".join(f"; {c.origin}: {c.refusal}" for c in self._passed)
            warnings.warn(
                f"no usable policy file for {family.name} on {self._backend.device.slug}: running an untuned "
                f"configuration; `autotune sweep {family.name}` makes one{why}",
                stacklevel=3,
            )

    @property
    def device(self) -> str:
        """The device's name."""
        return self._backend.device.name

    @property
    def kind(self) -> str:
        """cpu or cuda."""
        return self._backend.device.kind

    @property
    def memory_bytes(self) -> int:
        """The device's memory."""
        return self._backend.device.limits.memory_bytes

    def __enter__(self) -> "Kernel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release modules, memory and the device. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        with self._backend.current():
            self._modules.clear()
        self._backend.close()

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Inputs in declared order or by name, options and scalars by name -> the output, or a dict of them when the
        family has several. Canonical numpy arrays in and out. Raises WorkloadError for input outside the
        declaration."""
        outputs = self.run(self.bind(*arrays, **named))
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def bind(self, *arrays: Any, **named: Any) -> Inputs:
        """The arguments of a call, checked."""
        names = [data.name for data in self.family.inputs]
        if len(arrays) > len(names):
            raise UsageError(
                f"{self.family.name} takes {len(names)} arrays ({', '.join(names)}), {len(arrays)} given"
            )
        given = dict(zip(names, arrays, strict=False))
        options = {name: named.pop(name) for name in list(named) if name in self.family.options}
        if twice := given.keys() & named.keys():
            raise UsageError(f"{min(twice)!r} is given twice")
        return bind(self.family, {**given, **named}, options, {})

    def explain(self, inputs: Inputs) -> tuple[Candidate, list[Candidate]]:
        """The candidate taken for ``inputs`` and those passed over, each with its reason."""
        listed = candidates(
            self.family, self.policies, inputs.sizes, inputs.options, self._backend.device.kind
        )
        chosen, passed = choose(listed, lambda configuration: self._exclusion(configuration, inputs))
        return chosen, [*self._passed, *passed]

    def _exclusion(self, configuration: Configuration, inputs: Inputs) -> str:
        names = self.family.names(configuration, inputs.sizes, inputs.options, inputs.scalars)
        return self._variant(configuration, inputs).exclusion(names, self._backend.device.limits)

    def _variant(self, configuration: Configuration, inputs: Inputs) -> Variant:
        return Variant(self.family, configuration, tuple(inputs.options.items()))

    def run(self, inputs: Inputs) -> dict[str, NDArray[Any]]:
        """Choose, place, launch, fetch."""
        variant, module, _ = self._chosen(inputs)
        return _outputs(self._backend, variant, module, inputs)

    def prepare(self, inputs: Inputs) -> "Prepared":
        """Choose, and place ``inputs`` to stay. Close what is returned before this kernel."""
        variant, module, match = self._chosen(inputs)
        with self._backend.current():
            resident = Resident(self._backend, inputs)
            return Prepared(self._backend, variant, module, resident, match)

    def _chosen(self, inputs: Inputs) -> tuple[Variant, Module, str]:
        chosen, passed = self.explain(inputs)
        for candidate in passed:
            _log.info(
                "%s passed over %s (%s): %s",
                self.family.name,
                candidate.match,
                candidate.origin,
                candidate.refusal,
            )
        assert chosen.configuration is not None
        _log.info(
            "%s runs %s (%s, %s)", self.family.name, chosen.configuration.id, chosen.match, chosen.origin
        )
        variant = self._variant(chosen.configuration, inputs)
        key = chosen.configuration, variant.options
        if key not in self._modules:
            self._modules[key] = _module(self._backend, self._cache, variant)
        return variant, self._modules[key], chosen.match


class Prepared:
    """Inputs that stay on the device, under the configuration chosen for them; ``execution`` runs on them. One thread
    at a time; another has its own ``beside``."""

    def __init__(
        self, backend: Backend, variant: Variant, module: Module, resident: Resident, match: str
    ) -> None:
        self._backend = backend
        self._module = module
        self._resident = resident
        self.variant = variant
        self.match = match
        try:
            self.execution = resident.execution(variant, module)
        except BaseException:
            resident.close()
            raise

    def beside(self, inputs: Inputs) -> "Prepared":
        """The same configuration on ``inputs`` of the same sizes; arrays that are the same objects are shared. Close
        it before this one."""
        with self._backend.current():
            resident = Resident(self._backend, inputs, parent=self._resident)
            return Prepared(self._backend, self.variant, self._module, resident, self.match)

    def stream(self) -> AbstractContextManager[None]:
        """For a thread of its own: see Backend.stream."""
        return self._backend.stream()

    def refill(self, **arrays: Any) -> None:
        """New content for inputs, of the same shape. Raises WorkloadError."""
        given: dict[str, NDArray[Any]] = {}
        for name, array in arrays.items():
            given[name] = canonical(self.variant.family.data[name], array)
            held = self._resident.inputs.arrays[name].shape
            if given[name].shape != held:
                raise WorkloadError(f"{name}: shape {given[name].shape} given, prepared for {held}")
        self._resident.refill(self.variant, given)

    def close(self) -> None:
        """Free what is on the device. Safe to call twice."""
        with self._backend.current():
            self._resident.close()


def run_once(
    family: Family, configuration: Configuration, inputs: Inputs, backend: Backend, cache: Cache
) -> dict[str, NDArray[Any]]:
    """The outputs of one configuration, canonical. Raises CompilerError, LaunchError, DeviceError."""
    variant = Variant(family, configuration, tuple(inputs.options.items()))
    names = family.names(configuration, inputs.sizes, inputs.options, inputs.scalars)
    if reason := variant.exclusion(names, backend.device.limits):
        raise DeviceError(f"{configuration.id} cannot run here: {reason}")
    return _outputs(backend, variant, _module(backend, cache, variant), inputs)


def _module(backend: Backend, cache: Cache, variant: Variant) -> Module:
    (compiled,) = compile_batch(batch(variant.family, (variant,)), backend.toolchain(), cache)
    if isinstance(compiled, CompileFailure):
        raise CompilerError(f"{variant.configuration.id} does not compile:\n{compiled.message}")
    return backend.load(compiled)


def _outputs(backend: Backend, variant: Variant, module: Module, inputs: Inputs) -> dict[str, NDArray[Any]]:
    with backend.current():
        return _run(backend, variant, module, inputs)


def _run(backend: Backend, variant: Variant, module: Module, inputs: Inputs) -> dict[str, NDArray[Any]]:
    resident = Resident(backend, inputs)
    try:
        execution: Execution = resident.execution(variant, module)
        execution.run()
        fetched: dict[str, NDArray[Any]] = {}
        for data in variant.family.outputs:
            shape = tuple(inputs.sizes[extent] for extent in data.shape)
            fetched[data.name] = execution.restore(data.name, shape)
        return fetched
    finally:
        resident.close()


def explained(chosen: Candidate, passed: list[Candidate]) -> str:
    """The chain of candidates as text, one a line."""
    lines = [f"  passed over  {c.match:8} {c.origin}: {c.refusal}" for c in passed]
    assert chosen.configuration is not None
    lines.append(f"  taken        {chosen.match:8} {chosen.origin}: {chosen.configuration.id}")
    return "\n".join(lines)

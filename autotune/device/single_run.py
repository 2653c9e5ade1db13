"""One configuration run once on inputs, by whoever needs nothing kept."""

from typing import Any

from numpy.typing import NDArray

from autotune.compile import Cache, CompileFailure, Variant, batch, compile_batch
from autotune.declaration import Configuration, Family, Inputs
from autotune.device.backend import Backend, Module
from autotune.device.resident import Resident
from autotune.errors import CompilerError, DeviceError

__all__ = ["compiled_module", "run_once"]


def run_once(
    family: Family, configuration: Configuration, inputs: Inputs, backend: Backend, cache: Cache
) -> dict[str, NDArray[Any]]:
    """The outputs of one configuration, canonical. Raises CompilerError, LaunchError, DeviceError."""
    variant = Variant.of(family, configuration, inputs.options)
    names = inputs.names(configuration)
    if reason := variant.exclusion(names, backend.device.limits):
        raise DeviceError(f"{configuration.id} cannot run here: {reason}")
    module = compiled_module(backend, cache, variant)
    with backend.current():
        resident = Resident(backend, inputs)
        try:
            execution = resident.execution(variant, module)
            execution.run()
            return {
                data.name: execution.restore(data.name, tuple(inputs.sizes[e] for e in data.shape))
                for data in family.outputs
            }
        finally:
            resident.close()


def compiled_module(backend: Backend, cache: Cache, variant: Variant) -> Module:
    """The variant compiled (or from the cache) and loaded. Raises CompilerError, LaunchError."""
    (compiled,) = compile_batch(batch(variant.family, (variant,)), backend.toolchain(), cache)
    if isinstance(compiled, CompileFailure):
        raise CompilerError(f"{variant.configuration.id} does not compile:\n{compiled.message}")
    return backend.load(compiled)

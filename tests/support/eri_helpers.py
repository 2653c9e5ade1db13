"""The eri family in tests: configurations compiled for the cpu, molecules, libcint's word."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import eri_libcint as libcint  # noqa: F401  # PySCF's integrals
import numpy as np
from cpu_results import compiled, outputs

from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration.space import Configuration
from autotune.declaration.workload import Inputs, bind
from autotune.device.cpu.backend import CpuBackend
from autotune.device.resident import Resident

FAMILY = families.load_family("eri")
MODULE = FAMILY.module
assert MODULE is not None


def part(name: str) -> Any:
    """A module of the family's folder."""
    return __import__(f"{MODULE.__name__}.{name}", fromlist=["__name__"])  # type: ignore[union-attr]


def inputs(parameters: Mapping[str, Any], **options: str) -> Inputs:
    """As from a workload with these parameters."""
    given = MODULE.inputs(parameters, Path())  # type: ignore[union-attr]
    if parameters.get("output"):
        options["output"] = parameters["output"]
    return bind(FAMILY, given, options, {})


def of_shells(
    shells: Sequence[tuple[Sequence[float], Sequence[float], Sequence[float]]], **options: str
) -> Inputs:
    """Inputs of (centre in bohr, exponents, coefficients of normalised primitives)."""
    made = [(centre, part("basis").contracted(list(a), list(c), "test")) for centre, a, c in shells]
    return bind(FAMILY, part("arrays").arrays_of(made), options, {})


def results(
    backend: CpuBackend, configurations: Sequence[Configuration], given: Sequence[Inputs], optimize: str = ""
) -> Iterator[tuple[Configuration, int, dict[str, np.ndarray]]]:
    """(configuration, number of the inputs, canonical outputs) for all; two calls each, so that nothing may be left
    over from the one before. Inputs of one kind only: their options are equal."""
    variants = [Variant.make(FAMILY, c, given[0].options) for c in configurations]
    for variant, binary in compiled(backend, variants, 24, optimize):
        module = backend.load(binary)
        for number, one in enumerate(given):
            names = one.names(variant.configuration)
            if reason := variant.explain_exclusion(names, backend.device.limits):
                assert "constant memory" in reason, f"{variant.configuration.id}: {reason}"
                continue
            resident = Resident(backend, one)
            execution = resident.execution(variant, module)
            found = outputs(execution, one, calls=2)
            resident.close()
            yield variant.configuration, number, found

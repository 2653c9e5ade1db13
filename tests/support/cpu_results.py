"""Configurations compiled for the cpu device and run there, for the tests of families and examples."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from autotune.compile.batches import compile_many
from autotune.compile.cache import Cache, default_root
from autotune.compile.toolchain import Compiled
from autotune.compile.variant import Variant, batch
from autotune.declaration.space import Configuration
from autotune.declaration.workload import Inputs
from autotune.device.cpu.backend import CpuBackend
from autotune.device.execution import Execution
from autotune.device.resident import Resident
from autotune.measure.verify import PATTERNS, Verifier

Binary = tuple[Variant, Compiled]
Outputs = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def backend() -> Iterator[CpuBackend]:
    with CpuBackend() as opened:
        yield opened


def compiled(backend: Any, variants: Sequence[Variant], at_once: int = 8, optimize: str = "") -> list[Binary]:
    """All of them, in two processes; what one that does not compile says fails the test. ``optimize`` is for a whole
    space, where compiling takes longer than running: ``-Og`` instead of ``-O3`` makes it in a third of the time. The
    sources, layouts and addresses are the same."""
    toolchain = backend.toolchain()
    if optimize and backend.device.kind == "cpu":
        toolchain = replace(toolchain, last=(*toolchain.last, optimize))
    everything = batch(variants[0].family, tuple(variants))
    chunks = compile_many(everything, toolchain, Cache(default_root()), 2, at_once, early=False)
    made = []
    for variant, binary in zip(variants, (c for chunk in chunks for c in chunk), strict=True):
        assert isinstance(binary, Compiled), binary
        made.append((variant, binary))
    return made


def together(configuration: Configuration, count: int) -> list[tuple[Any, ...]]:
    """Its values, ``count`` policies at a time."""
    return list(combinations(sorted(configuration.items()), count))


def covering(configurations: Sequence[Configuration], count: int) -> list[Configuration]:
    """So few that values of any ``count`` policies that go together are so in one of them: the one with most that no
    other has yet, again and again."""
    numbers: dict[Any, int] = {}
    has = np.array(
        [[numbers.setdefault(t, len(numbers)) for t in together(c, count)] for c in configurations]
    )
    missing, chosen = np.ones(len(numbers), bool), []
    while missing.any():
        best = int(missing[has].sum(axis=1).argmax())
        missing[has[best]] = False
        chosen.append(configurations[best])
    return chosen


def executions(backend: Any, binaries: Sequence[Binary], inputs: Inputs) -> Iterator[Execution]:
    """Of each variant, ready to be run, on the same resident inputs."""
    resident = Resident(backend, inputs)
    for variant, binary in binaries:
        names = inputs.names(variant.configuration)
        assert not variant.explain_exclusion(names, backend.device.limits), variant.configuration.id
        yield resident.execution(variant, backend.load(binary))
    resident.close()


def outputs(execution: Execution, inputs: Inputs, poison: int = 0xA5, calls: int = 1) -> Outputs:
    """What the last of some calls gives, by name, when every array but the inputs was filled with ``poison`` before the
    first."""
    data = execution.variant.family.data
    for name in [name for name, declared in data.items() if declared.role != "input" and not declared.of]:
        execution.backend.fill(execution.placed[name], poison)
    for _ in range(calls):
        execution.run()
    shapes = {d.name: [inputs.sizes[e] for e in d.shape] for d in execution.variant.family.outputs}
    return {name: execution.restore(name, shape) for name, shape in shapes.items()}


def results(
    backend: Any, binaries: Sequence[Binary], inputs: Inputs, poison: int = 0xA5
) -> Iterator[tuple[Variant, Outputs]]:
    """The outputs of each variant (see ``outputs``)."""
    for execution in executions(backend, binaries, inputs):
        yield execution.variant, outputs(execution, inputs, poison)


def check_verified(
    backend: Any, binaries: Sequence[Binary], inputs: Inputs, expected: Any, patterns: Any = PATTERNS
) -> None:
    """Each as a sweep verifies it."""
    verifier = Verifier(backend, binaries[0][0].family, expected)
    for execution in executions(backend, binaries, inputs):
        reason, _ = verifier.run(execution, False, patterns)
        assert not reason, f"{execution.variant.configuration.id}: {reason}"
    verifier.close()

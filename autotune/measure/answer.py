"""What a program itself says is right, in place of the family's own reference: outputs for its inputs, or a function
that computes them."""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Family, Inputs
from autotune.device import foreign
from autotune.errors import FamilyError, WorkloadError
from autotune.measure.reference import checked, refuse_nothing

# Takes input arrays by name, then options and scalars by name; gives outputs by name, or the only one.
Function = Callable[[dict[str, NDArray[Any]], dict[str, Any]], Any]
Reference = Function | Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """Canonical outputs by name, and the milliseconds they took. ``function``, where there is one, says what is right
    for other inputs."""

    outputs: Mapping[str, NDArray[Any]]
    elapsed_ms: float = 0.0
    function: Function | None = None

    @cached_property
    def digest(self) -> str:
        """sha256 over names, dtypes, shapes and bytes."""
        digest = hashlib.sha256()
        for name, array in sorted(self.outputs.items()):
            digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()


def answered(family: Family, inputs: Inputs, reference: Reference) -> Answer:
    """What ``reference`` says of ``inputs``. Raises WorkloadError for what is not as the outputs are declared, and
    whatever a function raises."""
    began = time.perf_counter()
    function = None if isinstance(reference, Mapping) else reference
    made = reference if isinstance(reference, Mapping) else _called(family, inputs, reference)
    given = {name: foreign.fetched(array) for name, array in made.items()}
    names = [data.name for data in family.outputs]
    if unknown := [name for name in given if name not in names]:
        raise WorkloadError(
            f"the reference gives {unknown[0]!r}, which is no output of family {family.name} ({', '.join(names)})"
        )
    try:
        outputs = checked(family, inputs, given)
        refuse_nothing(family, outputs)
    except FamilyError as problem:
        raise WorkloadError(str(problem)) from None
    return Answer(outputs, (time.perf_counter() - began) * 1e3, function)


def _called(family: Family, inputs: Inputs, function: Function) -> Mapping[str, Any]:
    made = function(dict(inputs.arrays), {**inputs.options, **inputs.scalars})
    if isinstance(made, Mapping):
        return made
    if len(family.outputs) == 1:
        return {family.outputs[0].name: made}
    listed = ", ".join(data.name for data in family.outputs)
    raise WorkloadError(
        f"the reference gives a {type(made).__name__}, and family {family.name} has several outputs: give a dict of "
        f"them by name ({listed})"
    )

"""Inputs other than a workload's, for what the swept ones alone do not prove: sizes of 1, primes, one less and one
more than a step of a kernel's grid, other values at the swept sizes, sizes above them, other scalars and options.

A family whose ``family.py`` has ``ragged(parameters)`` says itself which parameters make them; else the workload's own
arrays are cut along their extents, or made longer, where that keeps their meaning. What is cut off is the beginning, so
that no element is where it was.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.compile import Variant
from autotune.declaration import Family, Inputs, Workload, bind
from autotune.engine.messages import OddSize, OddSizes, Setting
from autotune.engine.shared_inputs import write_arrays
from autotune.errors import AutotuneError, WorkloadError, cause
from autotune.layout import Data

_MOST = 8  # inputs of one workload that are smaller than it
_MOST_VALUES = 1 << 18  # in all arrays of one: a reference in Python then takes milliseconds
MOST_LARGE = 1 << 25  # in all arrays of one that is no smaller than the workload
LARGE_MS = 500.0  # of a reference that is computed for those, too
_LESS = 0.75  # of a scalar
_SMALL, _MIDDLE = (7, 5, 11, 13), (37, 131, 61, 29)  # primes, so that neighbouring extents differ


Sizes = dict[str, int]
Steps = Mapping[str, Sequence[int]]  # of grids by extent (``grid_steps``)

# What is right for inputs: outputs by name.
Expected = Callable[[Inputs], Mapping[str, NDArray[Any]]]
Proofs = list[tuple[Inputs, Mapping[str, NDArray[Any]]]]


def write_odd_sizes(
    setting: Setting, family: Family, inputs: Inputs, root: Path, steps: Steps, expected: Expected, up_to: int
) -> OddSizes:
    """The odd inputs and their expected outputs, as files for every measuring process."""
    sizes, proofs = compute_odd_proofs(family, setting.workload, inputs, root, steps, expected, up_to)
    for size, (made, outputs) in zip(sizes.sizes, proofs, strict=True):
        write_arrays(setting.arrays, f"ragged{size.number}-input", made.arrays)
        write_arrays(setting.arrays, f"ragged{size.number}-expected", outputs)
    return sizes


def compute_odd_proofs(
    family: Family, workload: Workload, inputs: Inputs, root: Path, steps: Steps, expected: Expected,
    up_to: int = MOST_LARGE,
) -> tuple[OddSizes, Proofs]:  # fmt: skip
    """The odd inputs with their expected outputs, of up to ``up_to`` values. A size for which the family's Python or
    reference has no answer is left out; never raises for one."""
    sizes: list[OddSize] = []
    proofs: Proofs = []
    why_not = ""
    try:
        for made in make_odd_inputs(family, workload, inputs, root, steps, up_to):
            size = _size(family, inputs, made, len(sizes))
            try:
                outputs = expected(made)
            except Exception as problem:  # noqa: BLE001 - whatever a reference raises for such a size
                why_not = f"the reference has no result for {size.text}: {cause(problem)}"
                continue
            sizes.append(size)
            proofs.append((made, outputs))
    except Exception as problem:  # noqa: BLE001 - whatever a family's Python raises
        why_not = cause(problem)
    why_not = "" if sizes else why_not or "the workload already has the smallest sizes"
    return OddSizes(tuple(sizes), why_not), proofs


def _size(family: Family, inputs: Inputs, made: Inputs, number: int) -> OddSize:
    """Of ``made`` in place of ``inputs``."""
    other: dict[str, Any] = {n: value for n, value in made.options.items() if value != inputs.options[n]}
    other |= {
        name: value
        for name, value in made.scalars.items()
        if family.scalars[name].value is None and value != inputs.scalars.get(name)
    }
    sizes = list_known_sizes(family, made)
    text = ", ".join(f"{name}={value}" for name, value in {**sizes, **other}.items())
    is_as_large = all(made.sizes[name] >= size for name, size in inputs.sizes.items())
    return OddSize(
        number, sizes, dict(made.sizes), dict(made.scalars), dict(made.options),
        text=text + (" and other values" if made.sizes == inputs.sizes else ""),
        is_of_winners=is_as_large or made.options != inputs.options,
    )  # fmt: skip


def list_known_sizes(family: Family, inputs: Inputs) -> Sizes:
    """The extents that a reader knows an input by: those that shapes give, and those that a scalar is."""
    given = {name for name, value in family.extents.items() if value is None or value.text in family.scalars}
    return {name: size for name, size in inputs.sizes.items() if name in given} or dict(inputs.sizes)


def make_odd_inputs(
    family: Family, workload: Workload, inputs: Inputs, root: Path, steps: Steps, up_to: int = MOST_LARGE
) -> Iterator[Inputs]:
    """Inputs other than the workload's, of up to ``up_to`` values. Raises WorkloadError where there can be none, and
    whatever ``ragged`` and ``inputs`` of a family raise."""
    chosen = getattr(family.module, "ragged", None)
    if chosen is not None and not workload.arrays:
        assert family.module is not None
        for parameters in islice(chosen(dict(workload.parameters)), _MOST):
            given = dict(family.module.inputs(parameters, root))
            yield bind(family, given, workload.options, dict(workload.scalars))
        return
    if reason := explain_refusal(family, workload):
        raise WorkloadError(reason)
    extents = _free(family, workload, inputs)
    own = {extent: inputs.sizes[extent] for extent in extents}
    middle = {extent: min(own[extent], prime) for extent, prime in zip(extents, cycle(_MIDDLE), strict=False)}
    options, scalars = _change_options(family, inputs), _change_scalars(family, inputs)
    wanted: list[tuple[Sizes, dict[str, Any], dict[str, float]]] = [
        *((sizes, {}, {}) for sizes in islice(_sizes(family, inputs, extents, steps), _MOST)),
        *([(middle, {}, scalars)] if scalars else []),
        *((sizes, {}, {}) for sizes in _list_large_sizes(family, inputs, own, steps, up_to)),
        *([(middle, options, {})] if options else []),
    ]
    for each in wanted:
        try:
            yield _take_inputs(family, workload, inputs, *each)
        except AutotuneError:  # an extent that follows from these becomes 0
            continue


def explain_refusal(family: Family, workload: Workload) -> str:
    """Why a workload's arrays cannot be cut without the family's help; empty when they may be."""
    linked = [data.name for data in family.inputs if any(f.link for f in data.fields)]
    how = "write ragged(parameters) in family.py"
    if linked:
        return f"{linked[0]} holds links, which cutting would break: {how}"
    return "" if workload.arrays else f"family.py makes the inputs: {how}"


def grid_steps(variant: Variant, inputs: Inputs, numbers: Mapping[str, int]) -> Sizes:
    """By extent, how far it may grow from 1 before a kernel gets one more block; ``numbers`` are the compiled ones."""
    family = variant.family
    names = {**inputs.names(variant.configuration), **numbers}
    growth: Sizes = {}
    for extent in {extent for data in family.inputs for extent in data.shape}:
        grows = [_find_growth(variant, kernel, names, extent) for kernel in family.kernels]
        if steps := [step for step in grows if step]:
            growth[extent] = max(steps)
    return growth


def _find_growth(variant: Variant, kernel: str, names: Mapping[str, Any], extent: str) -> int:
    """The largest size of ``extent`` with the grid that it has at 1; 0 where the grid never changes."""

    def blocks(size: int) -> int:
        try:
            return prod(variant.geometry(variant.family.kernels[kernel], {**names, extent: size}).grid)
        except AutotuneError:  # an expression that has no value there
            return 0

    own, first = int(names[extent]), blocks(1)
    if not first or blocks(own) <= first:
        return 0
    return bisect_right(range(1, own), first, key=blocks)


def _free(family: Family, workload: Workload, inputs: Inputs) -> list[str]:
    """The extents that may be cut: given by shapes alone, and no value says how long they are or numbers their places.
    Raises WorkloadError when there is none."""
    extents = dict.fromkeys(extent for data in family.inputs for extent in data.shape)
    kept: dict[str, str] = {}
    for extent in extents:
        size = inputs.sizes[extent]
        for name, value in workload.scalars.items():
            if "float" not in family.scalars[name].type and value == size > 1:
                kept[extent] = f"scalar {name} is its size, {size}"
        for data in family.inputs:
            if _may_number(data, inputs.arrays[data.name], size):
                kept[extent] = (
                    f"the values of {data.name} may number its places (declare them as link, or a range)"
                )
    free = [e for e in extents if family.extents.get(e) is None and inputs.sizes[e] > 1 and e not in kept]
    if not free:
        why = "; ".join(f"{extent}: {reason}" for extent, reason in kept.items())
        raise WorkloadError(f"no extent of the inputs can be cut{f' ({why})' if why else ''}")
    return free


def _may_number(data: Data, array: NDArray[Any], size: int) -> bool:
    """Whether whole numbers without a declared range end where an extent of ``size`` ends."""
    if data.low is not None:
        return False
    columns = [array[f.name] if data.record else array for f in data.fields if "float" not in f.type]
    return any(size > 1 and size // 2 <= int(column.max()) <= size for column in columns)


def _sizes(family: Family, inputs: Inputs, extents: Sequence[str], steps: Steps) -> Iterator[Sizes]:
    """Sizes for ``extents`` below the workload's: all 1, small and middle primes, one less than the workload's and then
    each extent in turn around the steps of its grid."""
    own = {extent: inputs.sizes[extent] for extent in extents}
    small, middle = (dict(zip(extents, cycle(primes), strict=False)) for primes in (_SMALL, _MIDDLE))
    wanted = [dict.fromkeys(extents, 1), small, middle]
    for extent in extents:
        around = sorted({step for step in steps.get(extent, ()) if 1 < step < own[extent]})
        for step in dict.fromkeys([*around[:1], *around[-1:]]):
            wanted += [{**small, extent: step - 1}, {**small, extent: step + 1}]
    wanted.append({extent: size - 1 for extent, size in own.items()})
    seen = [own]
    for sizes in wanted:
        clipped = {extent: min(size, own[extent]) for extent, size in sizes.items()}
        if clipped not in seen and _values(family, inputs, clipped) <= _MOST_VALUES:
            seen.append(clipped)
            yield clipped


def _list_large_sizes(
    family: Family, inputs: Inputs, own: Sizes, steps: Steps, up_to: int
) -> Iterator[Sizes]:
    """The workload's own, one more, and one more than a further block takes of each extent."""
    further = {extent: size + 1 + max(steps.get(extent, (size // 4,))) for extent, size in own.items()}
    for sizes in (own, {extent: size + 1 for extent, size in own.items()}, further):
        if _values(family, inputs, sizes) <= up_to:
            yield sizes


def _values(family: Family, inputs: Inputs, sizes: Sizes) -> int:
    """How many all arrays have. Raises FamilyError where an extent has no size then."""
    known = inputs.compute_sizes(family, sizes)
    return sum(prod(known[extent] for extent in data.shape) for data in family.data.values())


def _take_inputs(
    family: Family,
    workload: Workload,
    inputs: Inputs,
    sizes: Sizes,
    options: Sizes,
    scalars: Mapping[str, float],
) -> Inputs:
    """Arrays of these extents, with other ``options`` and ``scalars``: the end of each array, its last element as often
    as it has to be longer. Raises AutotuneError."""
    now = replace(inputs, options={**inputs.options, **options}, scalars={**inputs.scalars, **scalars})
    known = now.compute_sizes(family, sizes)
    moved = set(sizes)
    for extent, value in family.extents.items():
        if value is not None and (moved & value.names or known[extent] != inputs.sizes[extent]):
            moved.add(extent)

    def places(extent: str) -> NDArray[np.int64]:
        own, size = inputs.sizes[extent], known[extent]
        return np.minimum(np.arange(size) + max(1, own - size) * (extent in moved), own - 1)

    given = {
        data.name: np.ascontiguousarray(inputs.arrays[data.name][np.ix_(*map(places, data.shape))])
        for data in family.inputs
    }
    return bind(family, given, now.options, {**workload.scalars, **scalars})


def _change_scalars(family: Family, inputs: Inputs) -> dict[str, float]:
    """Of those that are given: three quarters of a fraction, and one less than a whole number above 1 that is no
    size."""
    scalars: dict[str, float] = {}
    for name, value in inputs.scalars.items():
        scalar = family.scalars[name]
        if scalar.value is not None:
            continue
        if "float" in scalar.type:
            scalars[name] = _LESS * value
        elif value > 1 and value not in inputs.sizes.values():
            scalars[name] = value - 1
    return {name: value for name, value in scalars.items() if value != inputs.scalars[name]}


def _change_options(family: Family, inputs: Inputs) -> dict[str, Any]:
    """The value behind each option's own."""
    options = {}
    for name, option in family.options.items():
        at = option.values.index(inputs.options[name])
        options[name] = option.values[(at + 1) % len(option.values)]
    return {name: value for name, value in options.items() if value != inputs.options[name]}

"""What can be told of a family's workloads without making their arrays."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from autotune.cli.lint.findings import Declared, Finding, lines_of
from autotune.declaration import (
    Family,
    Inputs,
    MalformedNpy,
    Workload,
    find_data,
    listed,
    workloads,
)
from autotune.declaration import (
    load_workload as load,
)
from autotune.errors import AutotuneError, UnknownName, suggestion
from autotune.files import data_root
from autotune.policy import feature_values

_MOST = 5000  # configurations that a workload's sizes are held against


def check_workloads(declared: Declared) -> Iterator[Finding]:
    family = declared.family
    known = workloads(family)
    if not known:
        yield declared.found(
            "no-workload",
            f"there is no workload: write {declared.folder / 'workloads'}/NAME.yaml with the arrays to tune on",
        )
    if family.default_workload and family.default_workload not in known:
        yield declared.found(
            "no-workload",
            f"default_workload {family.default_workload!r} is not there{suggestion(family.default_workload, known)} "
            f"(there are: {', '.join(known) or 'none'}); correct the name, or write it",
            "default_workload",
        )
    yield from _ragged(declared)
    for path in known.values():
        own = path.is_relative_to(
            family.folder
        )  # else it ships: told by the folder that was named, as family.yaml is
        shown = declared.folder / path.relative_to(family.folder) if own else path
        try:
            workload = load(family, path)
        except AutotuneError as problem:
            yield Finding("workload", shown, 1, str(problem).removeprefix(f"{path}: "))
            continue
        yield from _arrays(declared, workload, shown)


def _ragged(declared: Declared) -> Iterator[Finding]:
    """Whether finalists can be proved on other sizes than the swept ones."""
    made, helped = "inputs" in declared.defined, "ragged" in declared.defined
    linked = [data.name for data in declared.family.inputs if any(field.link for field in data.fields)]
    if helped or not (made or linked):
        return
    why = "inputs in family.py makes the arrays" if made else f"{linked[0]} holds links"
    how = "write ragged(parameters) in family.py, which yields the parameters of small odd inputs"
    yield declared.found(
        "not-ragged",
        f"winners are proved for the swept sizes only, since {why} and cutting them may break their meaning: "
        f"{how if made else f'make them with inputs(parameters, root) and {how}'}",
        *(() if made else ("data", linked[0])),
        is_error=False,
    )


def _arrays(declared: Declared, workload: Workload, path: Path) -> Iterator[Finding]:
    family, lines = declared.family, lines_of(path)
    makes = "inputs" in declared.defined
    if not workload.arrays and makes:
        return  # family.py makes them, and nothing of a family is run here
    if workload.parameters:
        what = (
            "arrays are given, too; it makes all arrays"
            if makes
            else "family.py has no inputs(parameters, root)"
        )
        message = f"parameters go to the family's inputs function, and {what}: keep one of them"
        yield Finding("workload", path, lines.get(("parameters",), 1), message)
        return
    inputs = {data.name: data for data in family.inputs}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, spec in workload.arrays.items():
        line = lines.get(("arrays", name), 1)
        try:
            if name not in inputs:
                raise UnknownName("input", name, inputs, f"family {family.name}")
            shapes[name] = _shape(spec, workload)
        except (AutotuneError, OSError, ValueError) as problem:
            yield Finding("workload", path, line, f"array {name}: {problem}")
            continue
        if len(shapes[name]) != len(inputs[name].shape):
            declared_shape = ", ".join(inputs[name].shape)
            message = f"array {name} has shape {shapes[name]}, and ({declared_shape}) is declared: give as many sizes"
            yield Finding("workload", path, line, message)
            return
    if shapes.keys() == workload.arrays.keys():
        yield from _sizes(family, workload, path, shapes)


def _shape(spec: Mapping[str, Any], workload: Workload) -> tuple[int, ...]:
    if "npy" in spec:
        file = find_data(spec["npy"], data_root(), workload.path)
        try:
            return tuple(np.load(file, mmap_mode="r", allow_pickle=False).shape)
        except MalformedNpy as problem:
            raise ValueError(f"{file} is not a .npy array: {problem or type(problem).__name__}") from None
    if "random" not in spec or "shape" not in spec:
        raise ValueError("give npy: FILE, or random: integers|uniform|normal with a shape")
    return tuple(spec["shape"])


def _sizes(
    family: Family, workload: Workload, path: Path, shapes: Mapping[str, tuple[int, ...]]
) -> Iterator[Finding]:
    """The sizes that the shapes give: whether they agree, what they leave of the space, whether features follow."""
    try:
        shaped = {name: SimpleNamespace(shape=shape) for name, shape in shapes.items()}
        inputs = Inputs.of(family, shaped, workload.options, workload.scalars)
        found = listed(family.space, _MOST) or ()
        excluded = [family.space.exclusion(inputs.names(one)) for one in found]
    except AutotuneError as problem:
        yield Finding("workload", path, lines_of(path).get(("arrays",), 1), str(problem))
        return
    if found and all(excluded):
        reasons = " | ".join(sorted(set(excluded)))
        message = (
            f"every configuration is excluded on it: {reasons}; take other sizes, or loosen a constraint"
        )
        yield Finding("excluded", path, 1, message)
    if not feature_values(family.features, {**inputs.sizes, **inputs.scalars}):
        yield Finding(
            "no-features",
            path,
            1,
            f"no feature has a value here (features: {', '.join(family.features) or 'none'}), so the dispatcher cannot "
            "tell this input from another: name features: over extents and scalars in family.yaml",
            is_error=False,
        )

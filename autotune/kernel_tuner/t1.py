"""T1 files of the autotuning community (schema 1.0.0, FAIR benchmark hub): a kernel with its parameters and arguments,
read as a family with one workload.

Beside what the schema names, the hub's files say ``ProblemSize``, ``GridDivX`` and the like, ``MemType`` and ``Output``
in the way of Kernel Tuner, which is followed.
"""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from autotune import Kernel
from autotune.errors import FamilyError
from autotune.kernel_tuner.formula import evaluated
from autotune.kernel_tuner.parameters import BLOCK_NAMES, Parameters
from autotune.kernel_tuner.source_text import headers, prologue

WORKLOAD = "t1"
TOLERANCE = {"relative": 1e-4, "absolute": 1e-4}  # between two runs of one configuration
_TYPES = {
    "bool": "uint8", "int8": "int8", "uint8": "uint8", "int16": "int16", "uint16": "uint16", "int32": "int32",
    "uint32": "uint32", "int64": "int64", "uint64": "uint64", "float": "float32", "double": "float64",
}  # fmt: skip
_AXES = "XYZ"
_MOST_VALUES = 10_000  # of a parameter


def kernel_of(path: Path) -> Kernel:
    """The kernel in the T1 file ``path``, with its arguments as a workload. Raises FamilyError for what it lacks, and
    for what autotune has no counterpart of."""
    where = str(path)
    content = _read(path)
    try:
        return _kernel(path, content, content["KernelSpecification"])
    except KeyError as problem:
        raise FamilyError(f"{where}: it has no {problem.args[0]!r}, which a T1 file needs") from None
    except (TypeError, AttributeError, ValueError) as problem:
        raise FamilyError(f"{where} is not of the T1 form: {type(problem).__name__}: {problem}") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise FamilyError(f"cannot read {path} as JSON: {problem}") from None
    if not isinstance(content, dict) or "KernelSpecification" not in content:
        raise FamilyError(
            f"{path} is no T1 file: an object with ConfigurationSpace and KernelSpecification is needed "
            "(for T4 results and Kernel Tuner's cache files: autotune import)"
        )
    return content


def _kernel(path: Path, content: Mapping[str, Any], spec: Mapping[str, Any]) -> Kernel:
    where = str(path)
    if (language := spec["Language"]) != "CUDA":
        raise FamilyError(
            f"{where}: its Language is {language}, and only CUDA can be tuned; where the kernel is CUDA C++ as well, "
            "correct Language and KernelFile"
        )
    file = _kernel_file(path, str(spec["KernelFile"]))
    text = file.read_text(encoding="utf-8")
    parameters = _parameters(content["ConfigurationSpace"], where)
    names = {**{name: list(some) for name, some in parameters.values.items()}}
    problem = spec.get("ProblemSize")
    names["ProblemSize"] = problem if isinstance(problem, list) else [problem]
    grid, block = _launch(spec, parameters, where)
    arguments, symbols, arrays, sizes = _arguments(spec.get("Arguments", ()), names, where)
    general = content.get("General", {})
    name = str(spec["KernelName"])
    defined = {"kernel_tuner": "1", **dict.fromkeys(BLOCK_NAMES, "1")}
    ahead = prologue(text, defined, grid, list(parameters.values))
    workload = {"schema": 1, "workload": WORKLOAD, "family": _family(general, spec), "arrays": arrays}
    return Kernel(
        ahead + text,
        name,
        family=_family(general, spec),
        title=f"{general.get('BenchmarkName', name)}, from {path.name}",
        arguments=arguments,
        symbols=symbols,
        grid=grid,
        block=block,
        shared_bytes=int(spec.get("SharedMemory") or 0),
        policies=parameters.policies,
        constraints=[{"require": c.require.text, "reason": c.reason} for c in parameters.constraints],
        extents=sizes,
        compile_options=_options(spec.get("CompilerOptions", ())),
        tolerance=TOLERANCE,
        reference="itself",
        default_workload=WORKLOAD,
        headers={
            **headers(text, [file.parent]),
            f"workloads/{WORKLOAD}.yaml": yaml.safe_dump(workload, sort_keys=False),
        },
    )


def _family(general: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    name = str(general.get("BenchmarkName") or spec["KernelName"]).lower()
    made = "".join(c if c.isascii() and c.isalnum() else "_" for c in name).strip("_")
    return made if made[:1].isalpha() else f"kernel_{made}".rstrip("_")


def _kernel_file(path: Path, named: str) -> Path:
    """Below the file's folder. Raises FamilyError for any other: what is read becomes a part of the family."""
    place = path.parent / named
    if not place.resolve().is_relative_to(path.parent.resolve()):
        raise FamilyError(f"{path}: its KernelFile {named!r} is not below its folder: put it there")
    if not place.is_file():
        raise FamilyError(f"{path}: its KernelFile {named!r} is not there (looked for {place})")
    return place


def _parameters(space: Mapping[str, Any], where: str) -> Parameters:
    values: dict[str, Sequence[Any]] = {}
    defaults: dict[str, Any] = {}
    for one in space["TuningParameters"]:
        name = str(one["Name"])
        place = f"{where}: parameter {name}"
        some = evaluated(str(one["Values"]), {}, where=place)
        if not isinstance(some, list | tuple | range) or len(some) > _MOST_VALUES:
            raise FamilyError(
                f"{place}: its Values are no list of at most {_MOST_VALUES:,}: {one['Values']!r}"
            )
        values[name] = list(some)
        default = one.get("Default")
        default = default[0] if isinstance(default, list) and default else default
        if default in values[name]:
            defaults[name] = default
    conditions = [str(one["Expression"]) for one in space.get("Conditions") or ()]
    return Parameters(values, defaults, conditions)


def _launch(spec: Mapping[str, Any], parameters: Parameters, where: str) -> tuple[list[str], list[str]]:
    """Blocks and threads. With a ProblemSize, that over the divisors, as Kernel Tuner has it; else GlobalSize, in
    blocks (CUDA) or threads (OpenCL)."""
    local = spec.get("LocalSize") or {}
    block = [_size(local.get(axis), parameters, f"{where}: LocalSize.{axis}") for axis in _AXES]
    if spec.get("ProblemSize") is not None:
        divisors = [spec.get(f"GridDiv{axis}") or None for axis in _AXES]
        size = spec["ProblemSize"]
        return parameters.grid(tuple(size) if isinstance(size, list) else size, divisors), block
    given = spec["GlobalSize"]
    grid = [_size(given.get(axis), parameters, f"{where}: GlobalSize.{axis}") for axis in _AXES]
    if spec.get("GlobalSizeType", "CUDA") != "CUDA":
        grid = [f"ceil_div({threads}, {of})" for threads, of in zip(grid, block, strict=True)]
    return grid, block


def _size(text: Any, parameters: Parameters, where: str) -> str:
    return "1" if text is None else parameters.text(str(text), where)


def _arguments(
    given: Sequence[Mapping[str, Any]], names: Mapping[str, Any], where: str
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
    """(the kernel's arguments, its symbols, what fills the inputs, the sizes)."""
    arguments: dict[str, Any] = {}
    symbols: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    sizes: dict[str, Any] = {}
    for number, one in enumerate(given):
        name = str(one.get("Name") or f"argument_{number}")
        place = f"{where}: argument {name}"
        kind = _type(one, place)
        memory = one["MemoryType"]
        if memory == "Scalar":
            arguments[name] = np.dtype(kind).type(one["FillValue"])
            continue
        if memory not in ("Vector", "Symbol"):
            raise FamilyError(
                f"{place}: MemoryType {memory} has no counterpart: Scalar, Vector and Symbol have"
            )
        count = (
            one["Size"] if isinstance(one["Size"], int) else evaluated(str(one["Size"]), names, where=place)
        )
        role, is_symbol = _role(one), one.get("MemType") == "Constant"
        held = f"{name}_argument" if is_symbol else name  # Kernel Tuner hands it over as well
        sizes[f"{held}_size"] = {"value": int(count)}
        declared = {"type": kind}
        shape = [f"{held}_size"]
        if memory == "Vector":
            arguments[held] = {"role": role, **declared, "shape": list(shape)}
        if memory == "Symbol" or is_symbol:
            symbols[name] = {"role": "input", **declared, "shape": list(shape), "symbol": name}
        fill = _fill(one, int(count), kind, number, place)
        for filled in ({held} if role != "output" and memory == "Vector" else set()) | symbols.keys() & {
            name
        }:
            arrays[filled] = deepcopy(fill)
    return arguments, symbols, arrays, sizes


def _type(one: Mapping[str, Any], place: str) -> str:
    if one["Type"] not in _TYPES:
        raise FamilyError(f"{place}: Type {one['Type']} has no counterpart: {', '.join(_TYPES)} have")
    return _TYPES[one["Type"]]


def _role(one: Mapping[str, Any]) -> str:
    """What is written, or is an Output, is one; what it holds before counts only where it was filled by chance."""
    access = one.get("AccessType", "ReadOnly")
    if access == "ReadOnly" and not one.get("Output"):
        return "input"
    if access == "ReadWrite" and one.get("FillType") == "Random":
        return "inout"
    return "output"


def _fill(one: Mapping[str, Any], count: int, kind: str, number: int, place: str) -> dict[str, Any]:
    """A workload's words for it. Random numbers are those of a normal distribution, as Kernel Tuner draws them; whole
    ones lie below FillValue."""
    how, value = one.get("FillType", "Constant"), one.get("FillValue", 0)
    seed = int(one.get("RandomSeed", number))
    is_whole = np.dtype(kind).kind in "iu"
    if how == "Constant":
        if is_whole:
            return {"random": "integers", "shape": [count], "low": int(value), "high": int(value) + 1}
        return {"random": "uniform", "shape": [count], "low": float(value), "high": float(value)}
    if how == "Random":
        if is_whole:
            return {
                "random": "integers",
                "shape": [count],
                "low": 0,
                "high": max(int(value), 1) + 1,
                "seed": seed,
            }
        return {"random": "normal", "shape": [count], "seed": seed}
    raise FamilyError(
        f"{place}: FillType {how} has no counterpart: Constant and Random have; give arrays of your own with "
        "--workload FILE"
    )


def _options(given: Sequence[str]) -> list[str]:
    """Without the language's version: what autotune puts ahead of a kernel needs its own."""
    return [option for option in given if not option.lstrip("-").startswith("std=")]

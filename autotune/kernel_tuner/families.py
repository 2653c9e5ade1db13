"""T1 files of the autotuning community (schema 1.0.0, FAIR benchmark hub): a kernel with its parameters and arguments,
read as a family with one workload.

Next to what the schema names, the hub's files say ``ProblemSize``, ``GridDivX`` and the like, ``MemType`` and
``Output`` in the way of Kernel Tuner, which is followed.
"""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from autotune import Kernel
from autotune.declaration import Expression, Family
from autotune.errors import FamilyError
from autotune.kernel_tuner.formula import expression
from autotune.kernel_tuner.parameters import BLOCK_NAMES, Parameters
from autotune.kernel_tuner.source_text import headers, own_options, prologue

_WORKLOAD = "t1"
_TOLERANCE = {"relative": 1e-4, "absolute": 1e-4}  # between two runs of one configuration
_TYPES = {
    "bool": "uint8", "int8": "int8", "uint8": "uint8", "int16": "int16", "uint16": "uint16", "int32": "int32",
    "uint32": "uint32", "int64": "int64", "uint64": "uint64", "float": "float32", "double": "float64",
}  # fmt: skip
_AXES = "XYZ"
_MOST_VALUES = 10_000  # of a parameter
_SHOWN = 200  # characters of a text in a message


def read_family(path: Path) -> Family:
    """The kernel in the T1 file ``path`` as a folder of the user's cache, with its arguments as a workload. Raises
    FamilyError for what it lacks, and for what autotune has no counterpart of."""
    where = str(path)
    content = _read(path)
    try:
        return _kernel(path, content, content["KernelSpecification"]).family
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
    problem = spec.get("ProblemSize")
    lists = {**parameters.values, "ProblemSize": problem if isinstance(problem, list) else [problem]}
    grid, block = _launch(spec, parameters, where)
    arguments, symbols, arrays, sizes = _arguments(spec.get("Arguments", ()), lists, where)
    general = content.get("General", {})
    name = str(spec["KernelName"])
    family = _name(str(general.get("BenchmarkName") or name))
    defined = {"kernel_tuner": "1", **dict.fromkeys(BLOCK_NAMES, "1")}
    workload = {"schema": 1, "workload": _WORKLOAD, "family": family, "arrays": arrays}
    return Kernel(
        prologue(text, defined, grid, list(parameters.values)) + text, name, family=family, grid=grid,
        title=f"{general.get('BenchmarkName', name)}, from {path.name}", arguments=arguments, symbols=symbols,
        block=block, shared_bytes=int(spec.get("SharedMemory") or 0), **parameters.declared, extents=sizes,
        compile_options=own_options(spec.get("CompilerOptions", ())), tolerance=_TOLERANCE,
        reference="itself", default_workload=_WORKLOAD,
        headers=headers(text, [file.parent])
        | {f"workloads/{_WORKLOAD}.yaml": yaml.safe_dump(workload, sort_keys=False)},
    )  # fmt: skip


def _name(benchmark: str) -> str:
    made = "".join(c if c.isascii() and c.isalnum() else "_" for c in benchmark.lower()).strip("_")
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
        values[name] = _values(str(one["Values"]), f"{where}: parameter {name}")
        default = one.get("Default")
        default = default[0] if isinstance(default, list) and default else default
        if default in values[name]:
            defaults[name] = default
    conditions = [str(one["Expression"]) for one in space.get("Conditions") or ()]
    return Parameters(values, defaults, conditions)


class _NoList(Exception):
    pass


def _values(text: str, where: str) -> Sequence[Any]:
    """Those of a list of formulas, of a range, of a comprehension with one name, or of several of these added."""
    try:
        return _items(ast.parse(text.strip(), mode="eval").body, where)
    except (SyntaxError, RecursionError, MemoryError, _NoList):
        raise FamilyError(
            f"{where}: its Values are no list of at most {_MOST_VALUES:,}: {text[:_SHOWN]!r}"
        ) from None


def _items(node: ast.expr, where: str) -> Sequence[Any]:
    def formula(part: ast.expr, *names: str) -> Expression:
        return expression(ast.unparse(part), dict.fromkeys(names, ()), where)

    listed: Sequence[Any]
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            listed = [formula(item).evaluate({}) for item in items]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            listed = [*_items(left, where), *_items(right, where)]
        case ast.Call(func=ast.Name(id="list"), args=[inner]):
            listed = _items(inner, where)
        case ast.Call(func=ast.Name(id="range"), args=ends):
            listed = range(*(formula(end).integer({}) for end in ends))
        case ast.ListComp(
            elt=made, generators=[ast.comprehension(target=ast.Name(id=name), iter=among, ifs=ifs)]
        ):
            value, tests = formula(made, name), [formula(test, name) for test in ifs]
            bound = [{name: one} for one in _items(among, where)]
            listed = [value.evaluate(names) for names in bound if all(test.evaluate(names) for test in tests)]
        case _:
            raise _NoList
    if len(listed) > _MOST_VALUES:
        raise _NoList
    return listed


def _launch(spec: Mapping[str, Any], parameters: Parameters, where: str) -> tuple[list[str], list[str]]:
    """Blocks and threads. With a ProblemSize, that over the divisors, as Kernel Tuner has it; else GlobalSize, in
    blocks (CUDA) or threads (OpenCL)."""

    def sizes(key: str, given: Mapping[str, Any]) -> list[str]:
        return [parameters.text(str(given.get(axis) or 1), f"{where}: {key}.{axis}") for axis in _AXES]

    block = sizes("LocalSize", spec.get("LocalSize") or {})
    if spec.get("ProblemSize") is not None:
        divisors = [spec.get(f"GridDiv{axis}") or None for axis in _AXES]
        size = spec["ProblemSize"]
        return parameters.grid(tuple(size) if isinstance(size, list) else size, divisors), block
    grid = sizes("GlobalSize", spec["GlobalSize"])
    if spec.get("GlobalSizeType", "CUDA") != "CUDA":
        grid = [f"ceil_div({threads}, {of})" for threads, of in zip(grid, block, strict=True)]
    return grid, block


def _arguments(
    given: Sequence[Mapping[str, Any]], lists: Mapping[str, Sequence[Any]], where: str
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
    """(the kernel's arguments, its symbols, what fills the inputs, the sizes)."""
    arguments: dict[str, Any] = {}
    symbols: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    sizes: dict[str, Any] = {}
    for number, one in enumerate(given):
        name = str(one.get("Name") or f"argument_{number}")
        place = f"{where}: argument {name}"
        if one["Type"] not in _TYPES:
            raise FamilyError(f"{place}: Type {one['Type']} is not supported: use {', '.join(_TYPES)}")
        kind = _TYPES[one["Type"]]
        memory = one["MemoryType"]
        if memory == "Scalar":
            arguments[name] = np.dtype(kind).type(one["FillValue"])
            continue
        if memory not in ("Vector", "Symbol"):
            raise FamilyError(f"{place}: MemoryType {memory} is not supported: use Scalar, Vector or Symbol")
        count = _count(str(one["Size"]), lists, place)
        role, is_symbol = _role(one), one.get("MemType") == "Constant"
        held = f"{name}_argument" if is_symbol else name  # Kernel Tuner hands it over as well
        sizes[f"{held}_size"] = {"value": count}
        if memory == "Vector":
            arguments[held] = {"role": role, "type": kind, "shape": [f"{held}_size"]}
            if role != "output":
                arrays[held] = _fill(one, count, kind, number, place)
        if memory == "Symbol" or is_symbol:
            symbols[name] = {"role": "input", "type": kind, "shape": [f"{held}_size"], "symbol": name}
            arrays[name] = _fill(one, count, kind, number, place)
    return arguments, symbols, arrays, sizes


def _count(text: str, lists: Mapping[str, Sequence[Any]], where: str) -> int:
    """A size over items of ``lists``, ``ProblemSize[0]``, and their ends, ``max(tile)``."""

    def item(found: re.Match[str]) -> str:
        some = lists.get(found[1], ())
        return str(some[int(found[2])]) if int(found[2]) < len(some) else found[0]

    def end(found: re.Match[str]) -> str:
        return str({"max": max, "min": min}[found[1]](lists[found[2]])) if found[2] in lists else found[0]

    text = re.sub(r"\b(max|min)\((\w+)\)", end, re.sub(r"\b(\w+)\[(\d+)\]", item, text))
    return expression(text, {}, where).integer({})


def _role(one: Mapping[str, Any]) -> str:
    """What is written, or is an Output, is one; what it holds before counts only where it was filled at random."""
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
    is_whole = np.dtype(kind).kind in "iu"
    made = {"random": "integers" if is_whole else "uniform", "shape": [count]}
    seed = {"seed": int(one.get("RandomSeed", number))}
    if how == "Constant" and is_whole:
        return {**made, "low": int(value), "high": int(value) + 1}
    if how == "Constant":
        return {**made, "low": float(value), "high": float(value)}
    if how == "Random" and is_whole:
        return {**made, "low": 0, "high": max(int(value), 1) + 1, **seed}
    if how == "Random":
        return {"random": "normal", "shape": [count], **seed}
    raise FamilyError(
        f"{place}: FillType {how} is not supported: use Constant or Random, or give arrays of your own with "
        "--workload FILE"
    )

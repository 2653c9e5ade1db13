"""From the mapping in ``family.yaml`` to frozen values, every name checked against what is declared."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autotune.declaration.access import (
    accesses,
    beginnings,
    check_arguments,
    check_macros,
    check_policies,
    check_template,
    extent_types,
    symbols,
)
from autotune.declaration.compile_options import compile_options, read_policy_options
from autotune.declaration.data import (
    check_choice,
    check_drivers,
    check_views,
    data_of,
    declare_converted,
    read_windowed,
)
from autotune.declaration.derived import derive_constraints
from autotune.declaration.expression import Expression
from autotune.declaration.orders import DeclaredOrder, read_orders
from autotune.declaration.shared import SharedData, read_shared
from autotune.declaration.space import CONTROL, FULL, POSSIBLE, Constraint, Policy, PolicyValue, Preset, Space
from autotune.declaration.tolerance import tolerance_rules
from autotune.errors import AutotuneError, FamilyError, UnknownName
from autotune.layout import Data

ITSELF = "itself"  # as a reference: each configuration's own first run
BASELINE = "baseline"  # as a reference: what the baseline gives on the device that is swept

_WORD = r"[\w.+-]+"  # what goes into C++ text


@dataclass(frozen=True)
class FamilyKernel:
    """One kernel: its arguments in order and its launch geometry (blocks; threads; bytes). ``template`` is what it is
    instantiated with where that is not the policy struct alone. ``struct`` is the type that has its arguments as
    members, where they are one parameter."""

    name: str
    arguments: tuple[str, ...]
    grid: tuple[Expression, ...]
    block: tuple[Expression, ...]
    shared_bytes: Expression
    template: tuple[str | int, ...] = ()
    struct: str = ""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters by name: the arguments, or the struct of them."""
        return (self.struct,) if self.struct else self.arguments

    @property
    def block_names(self) -> frozenset[str]:
        """What the threads of a block and its shared memory depend on."""
        return frozenset().union(*(item.names for item in (*self.block, self.shared_bytes)))

    @property
    def names(self) -> frozenset[str]:
        """What its launch depends on."""
        return self.block_names.union(*(item.names for item in self.grid))


@dataclass(frozen=True)
class Scalar:
    """A plain kernel argument of numpy type ``type``; computed by ``value`` unless the workload gives it. What is
    ``of_launch`` the plan gives to each launch, and no caller has to know."""

    name: str
    type: str
    value: Expression | None = None
    default: float | None = None
    of_launch: bool = False


@dataclass(frozen=True)
class FamilyOption:
    """A choice that changes the result: made by the workload or the caller, never by the tuner."""

    name: str
    values: tuple[str | int, ...]
    default: str | int
    doc: str = ""


def parse(content: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The fields of ``family_folder.Family``. ``content`` has the shape of schemas/family.json."""
    where = f"family {content['family']}"
    source = folder / content["source"]
    if not source.is_file():
        raise FamilyError(f"{where}: source: {source} is not there: write it, or correct the name")
    data = {key: data_of(key, value, where) for key, value in content["data"].items()}
    shared = _read_shared(content, where)
    placed = {**data, **{key: value.data for key, value in shared.items()}}
    policies = tuple(_policy(key, value, placed, where) for key, value in content["policies"].items())
    check_drivers(placed, policies, where)
    kinds = accesses(content, where)
    structs, is_plain = content.get("structs", {}), content.get("choices") == "macros"
    if is_plain and (members := [key for key in ("structs", "shared") if content.get(key)]):
        raise FamilyError(
            f"{where}: {members[0]}: these are members of Policy, which a source with choices: macros does not have"
        )
    data = declare_converted(data, kinds, content["kernels"], is_plain, where)
    check_policies(kinds, policies, where)
    check_views(data, policies, {key for key, value in content["data"].items() if "used" in value}, where)
    options = {key: _option(key, value, where) for key, value in content.get("options", {}).items()}
    numbers = {**content.get("scalars", {}), **content.get("launch", {})}
    given = [key for key, value in numbers.items() if "value" not in value]
    extents = _extents(content, data, {*given, *options}, where)
    scalars: dict[str, Scalar] = {}
    for key, value in numbers.items():
        known = {*extents, *options, *scalars}
        scalars[key] = _scalar(key, value, known, key in content.get("launch", {}), where)
    names = {*extents, *options, *scalars, *(p.name for p in policies)}
    compiled = content.get("compiled", {})
    numbered = [content.get(key, {}) for key in ("scalars", "launch")]
    _check_distinct(
        [extents, options, structs, *numbered, placed, compiled, [p.name for p in policies]], where
    )
    taken = _Taken(
        (*data, *scalars, *extents), kinds, (*options, *(p.name for p in policies)), tuple(compiled), structs
    )
    kernels = {key: _kernel(key, value, taken, names, where) for key, value in content["kernels"].items()}
    if content.get("choices") == "macros":
        check_macros(_macros(kernels.values(), options, policies), where)
    return {
        "folder": folder,
        "source": source,
        "extents": extents,
        "scalars": scalars,
        "options": options,
        "features": _features(content, extents, scalars, where),
        "data": data,
        "shared": shared,
        "windowed": read_windowed(content["data"], policies, where),
        **_conditions(content["data"], names, where),
        "kernels": kernels,
        "compiled": compiled,
        "choices": content.get("choices", "struct"),
        "accesses": kinds,
        "symbols": symbols(content, kinds),
        "extent_types": extent_types(content, extents),
        "beginnings": beginnings(content, kinds, policies, where),
        "space": _space(content, policies, data, shared, names, where),
        "accuracy": tuple(Space(policies).policy(key).name for key in content.get("accuracy", ())),
        "declared_orders": _orders(content["policies"], policies, data, where),
        "means": {key: _means(value) for key, value in content["policies"].items()},
        "tolerance_rules": tolerance_rules(content, data, names, where),
        "compile_options": compile_options(content.get("compile_options", ()), where),
        **_read_texts(content, names, where),
    }


def _read_texts(content: Mapping[str, Any], names: Collection[str], where: str) -> dict[str, Any]:
    """What is no more than named: texts, and what a result is held against and counted by."""
    operations = content.get("operations", {})
    return {
        "name": content["family"],
        **{key: content.get(key, "") for key in ("title", "doc", "default_workload")},
        "reference": _reference(content),
        "bytes": _optional(content.get("bytes"), f"{where}: bytes", names),
        "needs": _expressions(content.get("needs", {}), f"{where}: needs", names),
        "operations": _optional(operations.get("count"), f"{where}: operations", names),
        "operation_unit": operations.get("unit", ""),
    }


def _read_shared(content: Mapping[str, Any], where: str) -> dict[str, SharedData]:
    """The arrays in shared memory, whose sizes are the compiler's constants."""
    extents = [
        key
        for key, value in content.get("extents", {}).items()
        if isinstance(value, Mapping) and "value" in value
    ]
    known = {*content["policies"], *content.get("options", {}), *extents}
    return {key: read_shared(key, value, known, where) for key, value in content.get("shared", {}).items()}


def _reference(content: Mapping[str, Any]) -> str:
    """Return the configuration that gives the reference if family.py has none; for an unmodified kernel, control."""
    return str(content.get("reference", "control" if content.get("choices") == "macros" else ""))


def _features(
    content: Mapping[str, Any], extents: Mapping[str, Expression | None], scalars: Collection[str], where: str
) -> dict[str, Expression]:
    """Those that are named, else every extent that differs between inputs."""
    varying = [name for name, value in extents.items() if value is None or value.names] or [*extents]
    texts = content.get("features", {name: name for name in varying})
    return _expressions(texts, f"{where}: feature", {*extents, *scalars})


def _conditions(
    data: Mapping[str, Any], names: Collection[str], where: str
) -> dict[str, dict[str, Expression]]:
    """``zero`` and ``used`` of the arrays that have them."""
    parsed: dict[str, dict[str, Expression]] = {"zero": {}, "used": {}}
    for name, value in data.items():
        place = f"{where}: data {name}"
        for key, conditions in parsed.items():
            if text := str(value.get(key, "")):
                conditions[name] = Expression(text, f"{place}: {key}").require(names)
        if name in parsed["used"] and (value["role"] not in ("input", "view") or "converted" in value):
            raise FamilyError(f"{place}: used is for inputs and plain views, and this is {value['role']}")
    return parsed


def _space(
    content: Mapping[str, Any], policies: tuple[Policy, ...], data: Mapping[str, Data],
    shared: Mapping[str, SharedData], names: Collection[str], where: str,
) -> Space:  # fmt: skip
    constraints = _rules(content.get("constraints", ()), f"{where}: constraint", names)
    for array in shared.values():
        constraints += tuple(array.constraints)
    for policy in policies:
        constraints += _read_when(policy, content["policies"][policy.name].get("when", {}), names, where)
    explore = _rules(content.get("explore", ()), f"{where}: explore", {policy.name for policy in policies})
    space = Space(policies, constraints, _presets(content.get("presets", {}), policies, where), explore)
    means = {key: _means(value) for key, value in content["policies"].items()}
    try:
        space.check()
        space = replace(space, constraints=constraints + derive_constraints(data, space, means))
        space.check()
        reference = _reference(content)
        if reference == BASELINE and "baseline" not in content:
            raise FamilyError(
                "reference: baseline, and no baseline: is declared; declare one, or name a configuration"
            )
        if reference and reference not in (ITSELF, BASELINE):
            space.configuration(reference)
    except AutotuneError as problem:
        raise FamilyError(f"{where}: {str(problem).removeprefix(f'{where}: ')}") from None
    return space


def _rules(items: Iterable[Mapping[str, Any]], place: str, names: Collection[str]) -> tuple[Constraint, ...]:
    return tuple(
        Constraint(Expression(str(item["require"]), place).require(names), item["reason"]) for item in items
    )


def _read_when(policy: Policy, when: Any, names: Collection[str], where: str) -> tuple[Constraint, ...]:
    """What ``when`` of a policy asks for: its default unless the condition holds, or of a mapping not those values."""
    name, place = policy.name, f"{where}: policy {policy.name}: when"
    if policy.when:
        policy.when.require(names)
        return (
            Constraint(
                Expression(f"{name} == {policy.default!r} or ({policy.when.text})", place),
                f"{name} stays at {policy.default} unless {policy.when.text}",
            ),
        )
    return tuple(
        Constraint(
            Expression(f"{name} != {policy.value(value)!r} or ({text})", place).require(names),
            f"{name}={value} needs {text}",
        )
        for value, text in when.items()
    )


def _expressions(texts: Mapping[str, Any], place: str, names: Collection[str]) -> dict[str, Expression]:
    return {key: Expression(str(text), f"{place} {key}").require(names) for key, text in texts.items()}


def _optional(text: Any, where: str, names: Collection[str]) -> Expression | None:
    return None if text is None else Expression(str(text), where).require(names)


def _check_distinct(groups: list[Any], where: str) -> None:
    seen: set[str] = set()
    for group in groups:
        for name in group:
            if name in seen:
                raise FamilyError(
                    f"{where}: the name {name!r} is used twice; extents, options, scalars, data, shared, structs, "
                    "compiled numbers and policies share one namespace"
                )
            seen.add(name)


def _policy(name: str, value: Mapping[str, Any], data: Mapping[str, Data], where: str) -> Policy:
    place = f"{where}: policy {name}"
    values: tuple[PolicyValue, ...] = tuple(value["values"])
    layout, applies = value.get("layout", ""), tuple(value.get("data", ()))
    texts = _words(value, place)
    if bool(layout) != bool(applies):
        raise FamilyError(f"{place}: layout and data go together: which layout dimension, of which arrays")
    spaces = sorted({extent for d in data.values() if d.role != "shared" for extent in d.shape})
    what, known = ("extent", spaces) if layout == "order" else ("data", [*data])
    for target in applies:
        if target not in known:
            raise UnknownName(what, target, known, place)
    if layout == "grouping" and (len(applies) < 2 or any(data[name].role != "input" for name in applies)):
        raise FamilyError(f"{place}: grouping merges two or more inputs; data names {', '.join(applies)}")
    means = _means(value)
    for text in means:
        if text not in texts:
            raise UnknownName("value", text, values, f"{place}: means")
    for item in values:
        for target in applies if layout != "order" else ():
            check_choice(place, data[target], layout, means.get(str(item), item))
    if (
        layout == "grouping"
        and len({(data[target].shape, data[target].dtype.itemsize) for target in applies}) > 1
    ):
        raise FamilyError(
            f"{place}: {', '.join(applies)} differ in shape or element size, so they cannot be merged"
        )
    constant = bool(value.get("constant", False))
    if constant and not layout:
        raise FamilyError(f"{place}: constant is for layout policies; a plain policy always is a constant")
    adds = read_policy_options(value, place)
    when = value.get("when", {})
    for text in when if isinstance(when, Mapping) else ():
        if str(text) not in texts:
            raise UnknownName("value", text, values, f"{place}: when")
    condition = None if isinstance(when, Mapping) else Expression(when, f"{place}: when")
    return Policy(
        name, values, value["default"], layout, applies, value.get("doc", ""), constant, adds, condition
    )


def _words(value: Mapping[str, Any], place: str) -> list[str]:
    """The texts of a policy's or an option's values, one of which is its default. Raises FamilyError, UnknownName."""
    texts = [str(item) for item in value["values"]]
    if len(set(texts)) < len(texts) or not all(re.fullmatch(_WORD, text) for text in texts):
        raise FamilyError(f"{place}: values {texts} must be distinct words (letters, digits, _ . + -)")
    if value["default"] not in value["values"]:
        raise UnknownName("default", value["default"], value["values"], place)
    return texts


def _means(policy: Mapping[str, Any]) -> dict[str, Any]:
    """What each value stands for, by its text: a YAML key may be a number."""
    return {str(value): meaning for value, meaning in policy.get("means", {}).items()}


def _orders(
    content: Mapping[str, Any], policies: Iterable[Policy], data: Mapping[str, Data], where: str
) -> dict[str, dict[str, DeclaredOrder]]:
    """What ``means`` says of the values of order policies, by policy."""
    return {
        policy.name: read_orders(
            _means(content[policy.name]), policy.data, data, f"{where}: policy {policy.name}"
        )
        for policy in policies
        if policy.layout == "order"
    }


def _extents(
    content: Mapping[str, Any], data: Mapping[str, Data], given: Collection[str], where: str
) -> dict[str, Expression | None]:
    """``given`` names the options and the scalars that are not computed: an extent may be made of them."""
    inputs = {name for d in data.values() if d.role == "input" for name in d.shape}
    extents: dict[str, Expression | None] = dict.fromkeys(sorted(inputs))
    for name, value in content.get("extents", {}).items():
        if isinstance(value, Mapping) and "value" in value:
            extents[name] = Expression(str(value["value"]), f"{where}: extent {name}").require(
                {*extents, *given}
            )
        elif name not in inputs:
            raise FamilyError(f"{where}: extent {name} is in no input's shape: give it a value expression")
    for array in data.values():
        links = [f.link for f in array.fields if f.link]
        for name in (*array.shape, *links, *([array.pitch] if array.pitch else [])):
            if name not in extents:
                raise UnknownName("extent", name, extents, f"{where}: data {array.name}")
    return extents


def _option(name: str, value: Mapping[str, Any], where: str) -> FamilyOption:
    _words(value, f"{where}: option {name}")
    return FamilyOption(name, tuple(value["values"]), value["default"], value.get("doc", ""))


def _scalar(
    name: str, value: Mapping[str, Any], known: Collection[str], of_launch: bool, where: str
) -> Scalar:
    parsed = _optional(value.get("value"), f"{where}: scalar {name}", known)
    if of_launch and not {"value", "default"} & value.keys():
        raise FamilyError(f"{where}: launch: {name} needs a default or a value, since no caller gives it")
    return Scalar(name, value["type"], parsed, value.get("default"), of_launch)


@dataclass(frozen=True)
class _Taken:
    """What a kernel may take: ``arguments``, how arrays are found, ``choices``, which may be template arguments, and
    ``compiled`` numbers, which its grid and its shared memory may read, ``structs`` of arguments."""

    arguments: tuple[str, ...]
    accesses: Mapping[str, str]
    choices: tuple[str, ...]
    compiled: tuple[str, ...]
    structs: Mapping[str, list[str]]


def _macros(
    kernels: Iterable[FamilyKernel], options: Collection[str], policies: Iterable[Policy]
) -> list[str]:
    """The choices that are macros: all that a kernel knows and none has as a template argument."""
    templates = {entry for kernel in kernels for entry in kernel.template}
    return [
        name for name in (*options, *(p.name for p in policies if p.is_constant)) if name not in templates
    ]


def _kernel(
    name: str, value: Mapping[str, Any], taken: _Taken, names: Collection[str], where: str
) -> FamilyKernel:
    place = f"{where}: kernel {name}"
    given = value["arguments"]
    if isinstance(given, str) and given not in taken.structs:
        raise UnknownName("struct", given, taken.structs, f"{place}: arguments")
    arguments = taken.structs[given] if isinstance(given, str) else given
    check_arguments(name, arguments, taken.accesses, taken.arguments, where)
    accessors = [key for key in taken.arguments if key not in taken.accesses]

    def parse_all(items: Any, what: str, more: tuple[str, ...] = taken.compiled) -> tuple[Expression, ...]:
        return tuple(Expression(str(item), f"{place}: {what}").require({*names, *more}) for item in items)

    return FamilyKernel(
        name,
        tuple(arguments),
        parse_all(value["grid"], "grid"),
        parse_all(value["block"], "block", ()),
        parse_all([value.get("shared_bytes", 0)], "shared_bytes")[0],
        check_template(value.get("template", ()), taken.choices, accessors, f"{place}: template"),
        given if isinstance(given, str) else "",
    )


def _presets(content: Mapping[str, Any], policies: tuple[Policy, ...], where: str) -> dict[str, Preset]:
    space = Space(policies)
    presets: dict[str, Preset] = {}
    for name, value in content.items():
        place = f"{where}: preset {name}"
        if name in (CONTROL, FULL, POSSIBLE):
            raise FamilyError(
                f"{place}: every family has one of that name (all defaults; everything explored; everything possible); "
                "choose another name"
            )
        if value.get("presets") and ("set" in value or "all" in value):
            raise FamilyError(f"{place}: give either presets, or set and all")
        for other in value.get("presets", ()):
            if other not in content or other == name or content[other].get("presets"):
                raise UnknownName(
                    "preset", other, [n for n in content if not content[n].get("presets")], place
                )
        try:
            values = {policy: space.policy(policy).values for policy in value.get("all", ())}
            for policy, chosen in value.get("set", {}).items():
                listed = chosen if isinstance(chosen, list) else [chosen]
                values[policy] = tuple(space.policy(policy).value(v) for v in listed)
        except UnknownName as problem:
            raise FamilyError(f"{place}: {problem}") from None
        parts, explores_all = tuple(value.get("presets", ())), "explore" in value
        presets[name] = Preset(name, values, parts, value.get("doc", ""), explores_all)
    return presets

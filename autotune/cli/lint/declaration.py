"""What can be told from family.yaml: data and policies that nothing uses, constraints that leave nothing, what the
results are compared with."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from autotune.cli.lint.findings import Declared, Finding, is_constant
from autotune.declaration import (
    AS_GIVEN,
    BASELINE,
    ITSELF,
    ORDERS,
    Configuration,
    Constraint,
    Expression,
    Policy,
    Space,
    listed,
)
from autotune.errors import FamilyError, suggestion
from autotune.hardware import Limits

_MOST = 5000  # combinations of policies that are looked at: well under a second
_THREADS = Limits().threads_per_block


def check_declaration(declared: Declared) -> Iterator[Finding]:
    yield from _data(declared)
    for name, policy in declared.policies.items():
        if policy.get("layout"):
            yield from _layout_policy(declared, name, policy)
            if policy["layout"] == "order":
                yield from _orders(declared, name, policy)
        if is_constant(policy):
            yield from _plain_policy(declared, name)
    yield from _dims(declared)
    yield from _blocks(declared)
    yield from _constraints(declared)
    yield from _extents(declared)
    yield from _features(declared)
    yield from _reference(declared)
    yield from _tolerance(declared)


def _data(declared: Declared) -> Iterator[Finding]:
    known = [*declared.data, *declared.numbers]
    for kernel, value in declared.kernels.items():
        for i, name in enumerate(value["arguments"]):
            if name not in known:
                yield declared.found(
                    "undeclared-data",
                    f"kernel {kernel} takes {name!r}, which is neither data nor a number{suggestion(name, known)} "
                    f"(declared: {', '.join(known)}); declare it under data or scalars, or correct the name",
                    "kernels", kernel, "arguments", i,
                )  # fmt: skip
    begun = {value.get("begins_as") for value in declared.data.values()}
    for name, value in declared.data.items():
        planned = "plan" in declared.defined and re.search(rf"""["']{name}["']""", declared.python)
        if name in begun or declared.access(name) == "symbol":
            continue
        if name not in declared.taken and not planned:
            role = value["role"]
            yield declared.found(
                "unused-data",
                f"no kernel takes the {role} {name!r}: add it to a kernel's arguments, or delete it here",
                "data", name,
                is_error=role == "output",
            )  # fmt: skip


def _plain_policy(declared: Declared, name: str) -> Iterator[Finding]:
    """Read by a source, by a launch or a clearing, or named in a string of the family's Python (a plan may read it)."""
    said = rf"\b{name}\b" if declared.is_plain else rf"::\s*{name}\b"
    if any(re.search(said, source.code) for source in declared.sources):
        return
    read = [value.get("zero", "") for value in declared.data.values()]
    for kernel in declared.kernels.values():
        read += [
            *kernel["grid"],
            *kernel["block"],
            kernel.get("shared_bytes", ""),
            *kernel.get("template", ()),
        ]
    if any(re.search(rf"\b{name}\b", str(text)) for text in read):
        return
    if re.search(rf"""["']{name}["']""", declared.python):
        return
    files = ", ".join(source.path.name for source in declared.sources)
    called = name if declared.is_plain else f"Policy::{name}"
    yield declared.found(
        "unread-policy",
        f"no kernel reads policy {name!r}: {called} is not in {files}, and no grid, block or shared_bytes reads it, so "
        "its values are the same program; read it in a kernel, or delete it",
        "policies", name,
    )  # fmt: skip


def _layout_policy(declared: Declared, name: str, policy: Mapping[str, Any]) -> Iterator[Finding]:
    targets = policy.get("data", ())
    if policy["layout"] == "order":
        reached = {
            extent
            for array in declared.taken & declared.data.keys()
            for extent in declared.data[array]["shape"]
        }
    else:
        reached = set(declared.taken)
    if targets and not reached & set(targets):
        yield declared.found(
            "unread-policy",
            f"policy {name!r} decides the layout of {', '.join(targets)}, which no kernel takes: every value is the "
            "same program; name data that a kernel takes, or delete the policy",
            "policies", name,
        )  # fmt: skip


def _orders(declared: Declared, name: str, policy: Mapping[str, Any]) -> Iterator[Finding]:
    """A value that is neither in means nor a function in family.py is no order; loading says what is wrong in means."""
    known = declared.orders
    if known is None:
        return
    for i, value in enumerate(policy["values"]):
        if str(value) in map(str, policy.get("means", ())):
            continue
        if value not in known and value not in (policy["default"], AS_GIVEN):
            yield declared.found(
                "unknown-order",
                f"{name}={value} is no order: orders in family.py has {', '.join(sorted(known)) or 'none'}"
                f"{suggestion(str(value), known)}; write it there, or call the value {AS_GIVEN} if it stands for no "
                f"order, or say in means which it is of {', '.join(ORDERS)}",
                "policies", name, "values", i,
            )  # fmt: skip


def _dims(declared: Declared) -> Iterator[Finding]:
    """A plane of single rows, and an image that is read, has the addresses of a line, but for a texture. Where an array
    has both, what is not a texture's is excluded by itself, unless the defaults ask for it."""
    layouts = {
        (policy["layout"], name): key
        for key, policy in declared.policies.items()
        if policy.get("layout") in ("dims", "memory")
        for name in policy.get("data", ())
    }
    for (layout, name), dims in layouts.items():
        value = declared.data.get(name)
        if layout != "dims" or value is None or value.get("plane", {}).get("rows", 1) > 1:
            continue
        if value["role"] != "input":
            continue  # a surface is one in the only memory that can be written
        memory = layouts.get(("memory", name), "")
        memories = (
            declared.policies[memory]["values"]
            if memory
            else [value.get("layout", {}).get("memory", "global")]
        )
        without = {
            (plane, place)
            for plane in declared.policies[dims]["values"]
            for place in memories
            if _meaning(declared, dims, plane) != "1d" and _meaning(declared, memory, place) != "texture"
        }
        if memory:
            without &= {(one[dims], one[memory]) for one in _left_of(declared, {dims, memory})}
        textures = [v for v in memories if _meaning(declared, memory, v) == "texture"]
        asked = [
            _meaning(declared, each, declared.policies[each]["default"]) for each in (dims, memory) if each
        ]
        is_excluded = textures and (asked[0] == "1d" or asked[-1] == "texture")
        if not without or is_excluded:
            continue
        planes, places = (sorted({str(pair[i]) for pair in without}) for i in (0, 1))
        line = next(
            (v for v in declared.policies[dims]["values"] if _meaning(declared, dims, v) == "1d"), "1d"
        )
        how = (
            f"constrain it: {dims} == {line!r} or {memory} == {textures[0]!r}"
            if textures
            else "delete the policy"
        )
        yield declared.found(
            "no-effect",
            f"{dims}={'|'.join(planes)} changes nothing for {name!r} in {'|'.join(places)} memory: only a texture is "
            f"read by rows, so these are the same program as {line}, tried again; {how}",
            "policies", dims,
            is_error=False,
        )  # fmt: skip


def _meaning(declared: Declared, policy: str, value: Any) -> str:
    means = declared.policies[policy].get("means", {}) if policy else {}
    return str({str(key): meaning for key, meaning in means.items()}.get(str(value), value))


def _left_of(declared: Declared, names: Set[str]) -> Sequence[Configuration]:
    """What constraints leave of the policies of those names and of all that are linked with them; nothing where more
    than ``_MOST`` configurations would have to be looked at."""
    try:
        return listed(_linked(declared, names), _MOST) or ()
    except FamilyError:
        return ()  # the constraints are told of by themselves


def _linked(declared: Declared, names: Set[str]) -> Space:
    """Of the policies of those names and all that constraints on policies alone link with them. Raises FamilyError."""
    linked, kept = {*names}, []
    left = [c for c in _constraints_of(declared) if c.require.names <= declared.policies.keys()]
    while more := [c for c in left if c.require.names & linked]:
        left = [c for c in left if c not in more]
        kept += more
        linked = linked.union(*(c.require.names for c in more))
    return _space(declared, linked, kept)


def _constraints_of(declared: Declared) -> list[Constraint]:
    """In the order in which they are declared."""
    items = enumerate(declared.content.get("constraints", ()), 1)
    return [
        Constraint(Expression(str(item["require"]), f"constraint {i}"), item["reason"]) for i, item in items
    ]


def _space(declared: Declared, names: Set[str], constraints: Sequence[Constraint] = ()) -> Space:
    chosen = {key: value for key, value in declared.policies.items() if key in names}
    policies = (Policy(key, tuple(value["values"]), value["default"]) for key, value in chosen.items())
    return Space(tuple(policies), tuple(constraints))


def _blocks(declared: Declared) -> Iterator[Finding]:
    """Blocks that no GPU takes, where policies alone decide how many threads they have."""
    for kernel, value in declared.kernels.items():
        texts = [str(text) for text in value["block"]]
        names = {name for text in texts for name in _names(text)}
        if not names <= declared.policies.keys():
            continue
        try:
            sizes = _threads(texts, names, listed(_space(declared, names), _MOST) or ())
            if names and any(size > _THREADS for size in sizes.values()):  # constraints may exclude those
                sizes = _threads(texts, names, _left_of(declared, names))
        except FamilyError:
            continue  # loading or a sweep says what is wrong with it
        large = {what: size for what, size in sizes.items() if size > _THREADS}
        if not large:
            continue
        what, size = max(large.items(), key=lambda one: one[1])
        is_all = len(large) == len(sizes)
        where = f" with {what}" if what else ""
        how = "make it smaller" if is_all else "take away such values, or constrain them"
        yield declared.found(
            "block-size",
            f"kernel {kernel} has {'no block but' if is_all else 'blocks'} of over {_THREADS} threads, the most that a "
            f"GPU takes (up to {size:,}{where}), which every sweep excludes: {how}",
            "kernels", kernel, "block",
            is_error=is_all,
        )  # fmt: skip


def _threads(texts: Sequence[str], names: Set[str], of: Sequence[Configuration]) -> dict[str, int]:
    """Threads of a block by the values of the policies ``names``."""
    sizes: dict[str, int] = {}
    for one in of:
        what = ", ".join(f"{name}={one[name]}" for name in sorted(names))
        if what not in sizes:
            sizes[what] = math.prod(Expression(text).integer(one) for text in texts)
    return sizes


def _constraints(declared: Declared) -> Iterator[Finding]:
    """What the constraints that read policies alone leave of the space; one that reads sizes or options needs a
    workload."""
    try:
        yield from _left(declared)
    except FamilyError as problem:  # one that cannot be read, or has no value for some configuration
        yield declared.found("declaration", f"{problem}; correct it", "constraints")


def _left(declared: Declared) -> Iterator[Finding]:
    """Each constraint by itself and against the defaults, then all that are linked by the policies they read. More than
    ``_MOST`` combinations of linked policies are not looked at."""
    control = _space(declared, declared.policies.keys()).control
    linked: dict[str, None] = {}
    for i, constraint in enumerate(_constraints_of(declared)):
        read = constraint.require.names
        if not read <= control.keys():
            continue
        linked |= dict.fromkeys(sorted(read))
        what = ""
        if listed(_space(declared, read, [constraint]), _MOST) == ():
            what = "no configuration meets it, so everything is excluded: correct it, or widen the values it reads"
        elif not constraint.require.evaluate(control):
            what = f"the defaults break it ({control.id}): change a default, as all others are compared with them"
        if what:
            text = f"constraint `{constraint.require.text}` ({constraint.reason}): {what}"
            yield declared.found("excluded", text, "constraints", i, "require")
            return
    while linked:
        space = _linked(declared, {next(iter(linked))})
        linked = {name: None for name in linked if name not in {policy.name for policy in space.policies}}
        yield from _absent(declared, space)


def _absent(declared: Declared, space: Space) -> Iterator[Finding]:
    left = listed(space, _MOST)
    for policy in space.policies if left is not None else ():
        for value in policy.values:
            if all(configuration[policy.name] != value for configuration in left or ()):
                yield declared.found(
                    "excluded",
                    f"no configuration has {policy.name}={value}: the constraints exclude it whatever the other "
                    "policies are; delete the value, or loosen a constraint",
                    "policies", policy.name, "values",
                    is_error=False,
                )  # fmt: skip


def _extents(declared: Declared) -> Iterator[Finding]:
    """A bare text describes an extent; one that could be computed was meant as its value."""
    content = declared.content
    names = {extent for value in declared.data.values() for extent in value["shape"]}
    names |= {*content.get("extents", {}), *content.get("scalars", {}), *content.get("options", {})}
    for name, text in content.get("extents", {}).items():
        if isinstance(text, str) and re.search(r"[-+*/%(]|^[0-9]+$", text) and _is_expression(text, names):
            yield declared.found(
                "extent-text",
                f"extent {name}: {text!r} looks like an expression, and is taken for a description: write "
                f'{{value: "{text}"}} if {name} is to be that',
                "extents", name,
                is_error=False,
            )  # fmt: skip


def _is_expression(text: str, names: Set[str]) -> bool:
    try:
        return Expression(text).names <= names
    except FamilyError:
        return False


def _features(declared: Declared) -> Iterator[Finding]:
    """What tells two inputs apart must follow from the shapes of inputs or from scalars that are given."""
    content = declared.content
    scalars = content.get("scalars", {})
    bound = [
        extent for value in declared.data.values() if value["role"] == "input" for extent in value["shape"]
    ]
    varying = {*bound, *(name for name, value in scalars.items() if "value" not in value)}
    computed = {
        name: str(value["value"])
        for name, value in {**content.get("extents", {}), **scalars}.items()
        if isinstance(value, Mapping) and "value" in value
    }
    for _ in computed:  # one may be made of another
        varying |= {name for name, text in computed.items() if _names(text) & varying}
    extents = {*bound, *content.get("extents", {})}
    features = content.get("features") or {name: name for name in sorted(extents)}
    if not any(_names(str(text)) & varying for text in features.values()):
        yield declared.found(
            "no-features",
            f"no feature changes with the input (features: {', '.join(features) or 'none'}), so the dispatcher takes "
            "all inputs for alike: give an input an extent that varies, or name features: over extents and scalars",
            "features",
            is_error=False,
        )


def _names(text: str) -> frozenset[str]:
    try:
        return Expression(text).names
    except FamilyError:
        return frozenset()  # loading says what is wrong with it


def _reference(declared: Declared) -> Iterator[Finding]:
    if "reference" in declared.defined:
        return
    named = declared.content.get("reference", "control" if declared.is_plain else "")
    how = "write reference(arrays, options) in family.py, in numpy or another program, from the inputs to every output"
    if not named:
        yield declared.found(
            "no-reference", f"nothing says what is right: {how}, or name a configuration with reference:"
        )
        return
    if named == ITSELF:
        yield declared.found(
            "no-reference",
            f"nothing says what is right: each configuration is held against its own first run; {how}",
            "reference",
            is_error=False,
        )
        return
    if named == BASELINE:
        told = "the reference is the kernel of baseline: a mistake that it has, too, is never seen"
    else:
        told = (
            f"the reference is the kernel itself, in configuration {named!r}: a mistake that all configurations share "
            "is never seen"
        )
    yield declared.found(
        "reference-is-kernel",
        f"{told}; {how}",
        "reference",
        is_error=False,
    )


def _tolerance(declared: Declared) -> Iterator[Finding]:
    """One for every floating point output, of which none is left: integers have only what is declared for them."""
    told = declared.content.get("tolerance", {})
    if not {"relative", "absolute"} & told.keys():
        return
    outputs = {name: value for name, value in declared.data.items() if value["role"] == "output"}
    types = {name: [value["type"]] if "type" in value else [_type(f) for f in value["fields"].values()]
             for name, value in outputs.items() if name not in told}  # fmt: skip
    if any("float" in one for of in types.values() for one in of):
        return
    left = ", ".join(f"{name}: {'/'.join(dict.fromkeys(of))}" for name, of in types.items())
    yield declared.found(
        "exact-integers",
        f"tolerance does not apply to {left}; integers are compared exactly. Delete it, or declare what one output may "
        f"be off: tolerance: {{{next(iter(types))}: {{absolute: 1}}}}"
        if types
        else "tolerance: relative and absolute are for no output, each has its own; delete them",
        "tolerance",
        is_error=False,
    )


def _type(member: Any) -> str:
    return str(member if isinstance(member, str) else member["type"])

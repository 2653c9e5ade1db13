"""What a family that can be loaded declares in vain: data and policies that nothing uses, values that no configuration
has or that are the same program, results that nothing is compared with."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from autotune.cli.lint.findings import Declared, Finding
from autotune.declaration import (
    AS_GIVEN,
    BASELINE,
    ORDERS,
    SYMBOL,
    Configuration,
    Expression,
    Policy,
    Space,
    listed,
)
from autotune.errors import FamilyError, suggestion
from autotune.hardware import Limits
from autotune.layout import DIMENSIONS

_MOST = 5000  # combinations of policies that are looked at: well under a second
_THREADS = Limits().threads_per_block
_ATOMICS = (r"\b{name}\s*\.\s*add\s*\(", r"\belement\s*\(\s*{name}\b", r"\bfield\s*<[^;]*>\s*\(\s*{name}\b")


def check_declaration(declared: Declared) -> Iterator[Finding]:
    yield from _unused_data(declared)
    for policy in declared.family.space.policies:
        if policy.layout:
            yield from _layout_policy(declared, policy)
        if policy.layout == "order":
            yield from _unknown_orders(declared, policy)
        if policy.layout in DIMENSIONS:
            yield from _equal_values(declared, policy)
        if policy.is_constant:
            yield from _unread_policy(declared, policy.name)
    try:
        yield from _planes(declared)
        yield from _blocks(declared)
        yield from _absent_values(declared)
    except FamilyError as problem:  # a constraint that has no value for some configuration
        yield declared.found("declaration", f"{problem}; correct it", "constraints")
    yield from _features(declared)
    yield from _reference(declared)
    yield from _tolerance(declared)
    yield from _storage(declared)


def check_extents(declared: Declared, extents: Mapping[str, Any]) -> Iterator[Finding]:
    """A bare text describes an extent; one that could be computed was meant as its value."""
    family = declared.family
    names = {*family.extents, *family.scalars, *family.options}
    for name, text in extents.items():
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


def _unused_data(declared: Declared) -> Iterator[Finding]:
    family = declared.family
    filled = {*family.beginnings.values(), *(n for n, how in family.accesses.items() if how == SYMBOL)}
    for name, data in family.data.items():
        planned = "plan" in declared.defined and re.search(rf"""["']{name}["']""", declared.python)
        if name not in (*filled, *declared.taken) and not planned:
            yield declared.found(
                "unused-data",
                f"no kernel takes the {data.role} {name!r}: add it to a kernel's arguments, or delete it here",
                "data", name,
                is_error=data.role == "output",
            )  # fmt: skip


def _unread_policy(declared: Declared, name: str) -> Iterator[Finding]:
    """Read by a source, by a launch or a clearing, or named in a string of the family's Python (a plan may read it)."""
    family = declared.family
    said = rf"\b{name}\b" if family.is_plain else rf"::\s*{name}\b"
    if any(re.search(said, source.code) for source in declared.sources):
        return
    read = [*family.zero.values()]
    for kernel in family.kernels.values():
        read += [*kernel.grid, *kernel.block, kernel.shared_bytes]
    if any(name in expression.names for expression in read) or any(
        name in kernel.template for kernel in family.kernels.values()
    ):
        return
    if re.search(rf"""["']{name}["']""", declared.python):
        return
    files = ", ".join(source.path.name for source in declared.sources)
    called = name if family.is_plain else f"Policy::{name}"
    yield declared.found(
        "unread-policy",
        f"no kernel reads policy {name!r}: {called} is not in {files}, and no grid, block or shared_bytes reads it, so "
        "its values are the same program; read it in a kernel, or delete it",
        "policies", name,
    )  # fmt: skip


def _layout_policy(declared: Declared, policy: Policy) -> Iterator[Finding]:
    reached: Set[str] = declared.taken
    if policy.layout == "order":
        taken = [data for name, data in declared.family.data.items() if name in declared.taken]
        reached = {extent for data in taken for extent in data.shape}
    if not reached & set(policy.data):
        yield declared.found(
            "unread-policy",
            f"policy {policy.name!r} decides the layout of {', '.join(policy.data)}, which no kernel takes: every "
            "value is the same program; name data that a kernel takes, or delete the policy",
            "policies", policy.name,
        )  # fmt: skip


def _unknown_orders(declared: Declared, policy: Policy) -> Iterator[Finding]:
    """A value that is neither in means nor a function in family.py is no order."""
    known, meant = declared.orders, declared.family.declared_orders[policy.name]
    if known is None:
        return
    for i, value in enumerate(policy.values):
        if str(value) not in meant and not policy.is_order(value, known):
            yield declared.found(
                "unknown-order",
                f"{policy.name}={value} is no order: orders in family.py has {', '.join(sorted(known)) or 'none'}"
                f"{suggestion(str(value), known)}; write it there, or call the value {AS_GIVEN} if it stands for no "
                f"order, or say in means which it is of {', '.join(ORDERS)}",
                "policies", policy.name, "values", i,
            )  # fmt: skip


def _equal_values(declared: Declared, policy: Policy) -> Iterator[Finding]:
    """Values of one layout policy that store every array alike, under two names."""
    name, first = policy.name, dict[str, Any]()
    arrays = [declared.family.data[array] for array in policy.data]
    dimension = DIMENSIONS[policy.layout]
    for i, value in enumerate(policy.values):
        meaning = _meaning(declared, policy, value)
        same = repr([dimension.meaning(meaning, data, data.name) for data in arrays])
        if same in first:
            yield declared.found(
                "no-effect",
                f"{name}={value} stores {', '.join(policy.data)} as {name}={first[same]} does: the same program, tried "
                "again; delete one of them",
                "policies", name, "values", i,
                is_error=False,
            )  # fmt: skip
        first.setdefault(same, value)


def _meaning(declared: Declared, policy: Policy, value: Any) -> Any:
    return declared.family.means[policy.name].get(str(value), value)


def _planes(declared: Declared) -> Iterator[Finding]:
    """A plane of single rows, and an image that is read, has the addresses of a line, but for a texture. Where an array
    has both, what is not a texture's is excluded by itself, unless the defaults or a preset ask for it."""
    family = declared.family
    drivers = {(policy.layout, name): policy for policy in family.space.policies for name in policy.data}
    for (layout, name), dims in drivers.items():
        if layout != "dims" or family.data[name].role != "input" or family.data[name].plane[1] > 1:
            continue  # a surface is one in the only memory that can be written
        memory, fixed = drivers.get(("memory", name)), family.data[name].fixed.get("memory", "global")
        without: set[tuple[str, str]] = set()
        for one in _possible(family.space, {dims.name, *([memory.name] if memory else [])}):
            place = one[memory.name] if memory else fixed
            kept = _meaning(declared, memory, place) if memory else fixed
            if _meaning(declared, dims, one[dims.name]) != "1d" and kept != "texture":
                without.add((str(one[dims.name]), str(place)))
        if not without:
            continue
        planes, places = (sorted({pair[i] for pair in without}) for i in (0, 1))
        line = next((v for v in dims.values if _meaning(declared, dims, v) == "1d"), "1d")
        how = "delete the policy"
        for texture in memory.values if memory else ():
            if memory and _meaning(declared, memory, texture) == "texture":
                how = f"constrain it: {dims.name} == {line!r} or {memory.name} == {texture!r}"
        yield declared.found(
            "no-effect",
            f"{dims.name}={'|'.join(planes)} changes nothing for {name!r} in {'|'.join(places)} memory: only a texture "
            f"is read by rows, so these are the same program as {line}, tried again; {how}",
            "policies", dims.name,
            is_error=False,
        )  # fmt: skip


def _possible(space: Space, names: Set[str]) -> Sequence[Configuration]:
    """What constraints leave of the policies of those names and of all that are linked with them; nothing where more
    than ``_MOST`` configurations would have to be looked at."""
    return listed(_linked(space, names), _MOST) or ()


def _linked(space: Space, names: Set[str]) -> Space:
    """The policies of those names and all that constraints on policies alone link with them."""
    linked, kept = {*names}, []
    left = [rule for rule in space.constraints if rule.require.names <= space.control.keys()]
    while more := [rule for rule in left if rule.require.names & linked]:
        left = [rule for rule in left if rule not in more]
        kept += more
        linked = linked.union(*(rule.require.names for rule in more))
    return Space(tuple(policy for policy in space.policies if policy.name in linked), tuple(kept))


def _blocks(declared: Declared) -> Iterator[Finding]:
    """Blocks that no GPU takes, where policies alone decide how many threads they have."""
    space = declared.family.space
    for kernel in declared.family.kernels.values():
        names = frozenset().union(*(item.names for item in kernel.block))
        if not names <= space.control.keys():
            continue
        sizes: dict[str, int] = {}
        for one in _possible(space, names) if names else (space.control,):
            what = ", ".join(f"{name}={one[name]}" for name in sorted(names))
            sizes[what] = math.prod(item.integer(one) for item in kernel.block)
        large = {what: size for what, size in sizes.items() if size > _THREADS}
        if not large:
            continue
        what, size = max(large.items(), key=lambda one: one[1])
        is_all = len(large) == len(sizes)
        where = f" with {what}" if what else ""
        how = "make it smaller" if is_all else "take away such values, or constrain them"
        yield declared.found(
            "block-size",
            f"kernel {kernel.name} has {'no block but' if is_all else 'blocks'} of over {_THREADS} threads, the most "
            f"that a GPU takes (up to {size:,}{where}), which every sweep excludes: {how}",
            "kernels", kernel.name, "block",
            is_error=is_all,
        )  # fmt: skip


def _absent_values(declared: Declared) -> Iterator[Finding]:
    """Values that the constraints on policies alone leave to no configuration."""
    space = declared.family.space
    names = dict.fromkeys(policy.name for policy in space.policies)
    while names:
        part = _linked(space, {next(iter(names))})
        names = {name: None for name in names if name not in {policy.name for policy in part.policies}}
        left = listed(part, _MOST)
        for policy in part.policies if left is not None else ():
            for value in policy.values:
                if all(configuration[policy.name] != value for configuration in left or ()):
                    yield declared.found(
                        "excluded",
                        f"no configuration has {policy.name}={value}: the constraints exclude it whatever the other "
                        "policies are; delete the value, or loosen a constraint",
                        "policies", policy.name, "values",
                        is_error=False,
                    )  # fmt: skip


def _features(declared: Declared) -> Iterator[Finding]:
    """What tells two inputs apart must follow from the shapes of inputs or from scalars that are given."""
    family = declared.family
    values = {**family.extents, **{name: scalar.value for name, scalar in family.scalars.items()}}
    varying = {name for name, value in values.items() if value is None}
    for _ in values:  # one may be made of another
        varying |= {name for name, value in values.items() if value and value.names & varying}
    if not any(feature.names & varying for feature in family.features.values()):
        yield declared.found(
            "no-features",
            f"no feature changes with the input (features: {', '.join(family.features) or 'none'}), so the dispatcher "
            "takes all inputs for alike: give an input an extent that varies, or name features: over extents and "
            "scalars",
            "features",
            is_error=False,
        )


def _reference(declared: Declared) -> Iterator[Finding]:
    family = declared.family
    if "reference" in declared.defined:
        return
    how = "write reference(arrays, options) in family.py, in numpy or another program, from the inputs to every output"
    rule, told = "no-reference", "nothing says what is right"
    if family.is_own_reference:
        told = f"{told}: each configuration is held against its own first run; {how}"
    elif family.reference == BASELINE:
        rule = "reference-is-kernel"
        told = f"the reference is the kernel of baseline: a mistake that it has, too, is never seen; {how}"
    elif family.reference:
        rule = "reference-is-kernel"
        told = (
            f"the reference is the kernel itself, in configuration {family.reference!r}: a mistake that all "
            f"configurations share is never seen; {how}"
        )
    else:
        told = f"{told}: {how}, or name a configuration with reference:"
    yield declared.found(rule, told, "reference", is_error=not family.reference)


def _tolerance(declared: Declared) -> Iterator[Finding]:
    """One for every floating point output, of which none is left: integers have only what is declared for them."""
    family = declared.family
    outputs = [data for data in family.outputs if data.name not in family.tolerance_rules]
    types = {data.name: [field.type for field in data.fields] for data in outputs}
    if "" not in family.tolerance_rules or any("float" in one for of in types.values() for one in of):
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


def _storage(declared: Declared) -> Iterator[Finding]:
    """Numbers that are, or may be, stored in fewer bits than declared."""
    family = declared.family
    drivers = {name: ("data", name) for name, data in family.data.items() if "storage" in data.fixed}
    for policy in family.space.policies:
        if policy.layout == "storage":
            drivers |= dict.fromkeys(policy.data, ("policies", policy.name))
    for name, place in drivers.items():
        yield from _atomics(declared, name, place)
    if drivers and not family.tolerance_rules:
        name, place = next(iter(drivers.items()))
        yield declared.found(
            "storage-without-tolerance",
            f"{name} can be stored in fewer bits, and no tolerance is declared: whatever differs in its last bit is "
            "wrong then. Say what a result may be off, by policy where it depends on it: tolerance: {absolute: ...}",
            *place,
            is_error=False,
        )


def _atomics(declared: Declared, name: str, place: tuple[str, str]) -> Iterator[Finding]:
    """What works on memory itself finds codes there."""
    for source in declared.sources:
        for pattern in _ATOMICS:
            if found := re.search(pattern.format(name=re.escape(name)), source.code):
                yield declared.found(
                    "storage-of-atomics",
                    f"{name} can be stored in fewer bits, and {source.path.name} has `{found[0]}` in line "
                    f"{source.line(found.start())}: what works on memory itself would find codes there; load and "
                    "store it, or leave the storage out",
                    *place,
                )
                return

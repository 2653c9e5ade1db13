"""A kernel's source that is compiled unmodified: what goes ahead of it for one configuration, and how C++ names what
is instantiated."""

import hashlib
from collections.abc import Iterable, Mapping

from autotune.compile.toolchain import VariantSource
from autotune.declaration import POINTER, Family, PolicyValue, cpp_type
from autotune.layout import CPP_NAMES, SCALAR_TYPES, Data, Layout

Choices = Mapping[str, PolicyValue]


def plain_source(
    family: Family,
    choices: Choices,
    layouts: Mapping[str, Layout],
    checks: str,
    headers: tuple[str, ...],
    options: tuple[str, ...] = (),
) -> VariantSource:
    """The choices as macros, and the accessors in a struct; ``checks`` hold records against their declaration,
    ``headers`` are the library's that go ahead."""
    templates = {entry for kernel in family.kernels.values() for entry in kernel.template}
    macros = {name: value for name, value in choices.items() if name not in templates}
    ahead = _struct(family, layouts) + "".join(f"#define {name} {value}\n" for name, value in macros.items())
    symbols = tuple(family.symbols.values())
    behind = "".join(f"#undef {name}\n" for name in macros) + checks + symbol_checks(symbols)
    instances = tuple(
        (kernel.name, _name_instance(family, kernel.name, choices, "Policy"))
        for kernel in family.kernels.values()
    )
    key = key_of(family, [ahead, behind, repr(instances)], options)
    return VariantSource(
        key, f"V{key[:16]}", ahead, tuple(family.kernels), behind, instances, is_plain=True, headers=headers,
        symbols=symbols, options=options, numbers=tuple(family.compiled.items()),
    )  # fmt: skip


def key_of(family: Family, texts: Iterable[str], options: Iterable[str]) -> str:
    """A sha256 over all that decides a variant's machine code: its own ``texts`` and ``options``, and the family's."""
    told = [*texts, *family.compile_options, *options, family.source_digest, *family.compiled.values()]
    return hashlib.sha256("\0".join(told).encode()).hexdigest()


def symbol_checks(symbols: Iterable[str]) -> str:
    """C++ text that does not compile where the source has no variable of such a name."""
    return "".join(f"static_assert(sizeof({symbol}) > 0);\n" for symbol in symbols)


def _struct(family: Family, layouts: Mapping[str, Layout]) -> str:
    """``struct Policy`` with the accessors' types. Records are the source's, which comes later: a name is enough."""
    if not family.accessors:
        return ""
    records = dict.fromkeys(data.record for data in family.accessors if data.record)
    known = "".join(f"struct {record};\n" for record in records)
    members = "".join(f"  using {data.name} = {layouts[data.name].cpp};\n" for data in family.accessors)
    return f"{known}struct Policy {{\n{members}}};\n"


def instances_of(family: Family, choices: Choices, struct: str) -> tuple[tuple[str, str], ...]:
    """How C++ names the kernels that say what they are instantiated with, in a family of templates."""
    kernels = family.kernels.values()
    return tuple(
        (kernel.name, _name_instance(family, kernel.name, choices, struct))
        for kernel in kernels
        if kernel.template
    )


def _name_instance(family: Family, kernel: str, choices: Choices, struct: str) -> str:
    """``sum<16, float>``: the kernel as an expression names it."""
    entries = [_entry(family, entry, choices, struct) for entry in family.kernels[kernel].template]
    return f"{kernel}<{', '.join(entries)}>" if entries else kernel


def _entry(family: Family, entry: str | int, choices: Choices, struct: str) -> str:
    if isinstance(entry, int):
        return str(entry)
    if entry in choices:
        value = choices[entry]
        return (
            f"{enumeration(entry)}::{value}" if isinstance(value, str) and not family.is_plain else str(value)
        )
    if entry == "Policy":
        return struct
    return f"{struct}::{entry}" if entry in family.data else cpp_type(entry)


def enumeration(name: str) -> str:
    """The enum class that a source of templates declares for a choice among words."""
    return "".join(word.capitalize() for word in name.split("_"))


def argument_type(family: Family, name: str, struct: str) -> str:
    """The C++ type of a kernel's parameter; of an array, what ``struct`` has for it or a pointer."""
    if number := family.number_type(name):
        return SCALAR_TYPES[number]
    if family.accesses.get(name) == POINTER:
        data = family.data[name]
        return f"{'const ' if data.role in ('input', 'view') else ''}{element_type(data)}*"
    return f"{struct}::{name}"


def element_type(data: Data) -> str:
    """What C++ calls one element."""
    return data.record or CPP_NAMES[data.element or data.fields[0].type][0]


def plain_header(source: VariantSource) -> str:
    """``default.cuh`` of a source that is compiled unmodified: what stands ahead of it in the default configuration,
    each macro as long as nothing else defined it."""
    lines = [
        "// Made by `autotune show FAMILY control --header`: what stands ahead of the kernel source in the default",
        "// configuration, for editors.",
        "// clang-format off",
        "#pragma once",
        *(f'#include "{name}"' for name in source.headers),
    ]
    for line in source.struct.splitlines():
        name = line.split()[1] if line.startswith("#define ") else ""
        lines += [f"#ifndef {name}", line, "#endif"] if name else [line]
    return "\n".join(lines) + "\n"

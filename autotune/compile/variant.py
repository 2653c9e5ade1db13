"""A configuration of a family made concrete: its layouts, its policy struct, its launch geometry, and
why it is excluded on a device.

The struct is all that is generated per configuration; the kernel templates themselves are never touched.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from autotune.compile.conversion import Conversion, order_launches
from autotune.compile.plain_source import (
    argument_type,
    enumeration,
    instances_of,
    key_of,
    plain_header,
    plain_source,
    symbol_checks,
)
from autotune.compile.toolchain import Batch, VariantSource
from autotune.declaration import LIBRARY, Configuration, Family, FamilyKernel, Policy, PolicyValue
from autotune.files import include_dir
from autotune.hardware import Limits
from autotune.layout import (
    ALIAS,
    COPIED,
    DIMENSIONS,
    SAME,
    Data,
    Layout,
    SharedLayout,
    constant_places,
    convert_layout,
    layout_of,
    limit_shape,
    relation,
    view_refusal,
    view_room,
)

# NVRTC 13.0 has no offsetof, neither as a builtin nor in a header; its front end's own intrinsic is what makes one.
_OFFSET = """\
#ifndef CHECKED_OFFSET
#ifdef __CUDACC_RTC__
#define CHECKED_OFFSET(R, field) ((unsigned long long)__INTADDR__(&(((R*)0)->field)))
#else
#define CHECKED_OFFSET(R, field) __builtin_offsetof(R, field)
#endif
#endif
"""

_FIELD_CHECK = """\
template <class R, class = decltype(sizeof(0))> struct {trait} {{ static constexpr bool is_right = true; }};
template <class R> struct {trait}<R, decltype(sizeof(R::{name}))> {{
  static constexpr bool is_right = CHECKED_OFFSET(R, {name}) == {offset} && sizeof(R::{name}) == {size};
}};
static_assert({trait}<{record}>::is_right, "{message}");
"""


@dataclass(frozen=True)
class Geometry:
    """Blocks in the grid, threads in a block, dynamic shared memory in bytes."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0

    @property
    def block_size(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    def explain_refusal(self, limits: Limits) -> str:
        """Why a device with ``limits`` cannot launch this; empty when it can."""
        for axis, blocks, most in zip(
            "xyz", self.grid, (limits.grid_x, limits.grid_y, limits.grid_z), strict=True
        ):
            if not 0 < blocks <= most:
                return f"a grid of {blocks} blocks in {axis} is outside 1..{most}"
        if not 0 < self.block_size <= limits.threads_per_block:
            return f"a block of {self.block_size} threads is outside 1..{limits.threads_per_block}"
        if self.shared_bytes < 0:
            return f"{self.shared_bytes} bytes of shared memory a block are less than none"
        if self.shared_bytes > limits.shared_bytes_per_block:
            return f"{self.shared_bytes} bytes of shared memory a block pass {limits.shared_bytes_per_block}"
        return ""


@dataclass(frozen=True)
class Variant:
    """``options`` are the family's options as chosen (see Family.chosen_options): part of the machine code, never
    tuned."""

    family: Family
    configuration: Configuration
    options: tuple[tuple[str, str | int], ...] = ()

    @classmethod
    def make(
        cls, family: Family, configuration: Configuration, options: Mapping[str, str | int]
    ) -> "Variant":
        return cls(family.apply_types(options), configuration, tuple(options.items()))

    @cached_property
    def layouts(self) -> Mapping[str, Layout]:
        """The layout of every declared array."""
        choices = {name: self._chosen(data) for name, data in self.family.data.items()}
        places = {name: (len(group), member) for group in self.groups for member, name in enumerate(group)}
        layouts = {
            name: layout_of(data, choices[name], Layout(data=data, group=places.get(name, (1, 0))))
            for name, data in self.family.data.items()
            if not data.converted
        }
        sizes = self.family.compute_known_sizes(dict(self.options))
        for name, (offset, part) in constant_places(layouts, sizes).items():
            data = replace(layouts[name].data, constant_bytes=part)
            layouts[name] = replace(layouts[name], data=data, constant_offset=offset)
        made = {
            name: _convert_layout(data, layouts[data.of], choices[name], choices[data.of])
            for name, data in self.family.data.items()
            if data.converted
        }
        layouts = {name: made.get(name) or layouts[name] for name in self.family.data}
        return {name: replace(layout, sizes=self._sizes(name, sizes)) for name, layout in layouts.items()}

    @cached_property
    def shared(self) -> Mapping[str, SharedLayout]:
        """The arrays that kernels declare in shared memory."""
        options = dict(self.options)
        names = {**self.family.compute_known_sizes(options), **options, **self.configuration}
        return {
            name: SharedLayout(
                replace(layout_of(array.data, self._chosen(array.data)), sizes=array.extents(names))
            )
            for name, array in self.family.shared.items()
        }

    def _chosen(self, data: Data) -> dict[str, Any]:
        """What is chosen for an array, by dimension."""
        drivers = [p for p in self.family.space.policies if p.layout in DIMENSIONS and data.name in p.data]
        return {**data.fixed, **{policy.layout: self._meaning(policy) for policy in drivers}}

    def _sizes(self, name: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The extents of an array that its accessor's type has: those among ``sizes``, but for one of which a kernel
        sees a window; 0 for others."""
        data = self.family.data[name]
        window = self.family.windowed.get(data.of or name)
        return tuple(max(0, sizes.get(extent, 0)) if extent != window else 0 for extent in data.shape)

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """The converted views that are their array itself in this configuration, with the array's name."""
        return {name: layout.data.of for name, layout in self._select_converted(ALIAS)}

    @cached_property
    def conversions(self) -> Mapping[str, Conversion]:
        """What makes the converted views that are copies, by view."""
        return {
            name: Conversion(self.layouts[layout.data.of], layout)
            for name, layout in self._select_converted(COPIED)
        }

    def _select_converted(self, how: str) -> list[tuple[str, Layout]]:
        return [
            (name, layout)
            for name, layout in self.layouts.items()
            if layout.data.converted and relation(layout, self.layouts[layout.data.of]) == how
        ]

    @cached_property
    def kernels(self) -> Mapping[str, FamilyKernel]:
        """The family's kernels and those that make copies, each where it comes first in the default plan."""
        own = {conversion.name: conversion.kernel for conversion in self.conversions.values()}
        return {name: own.get(name) or self.family.kernels[name] for name in self.turns}

    @cached_property
    def turns(self) -> tuple[str, ...]:
        """The kernels that the default plan launches, in order."""
        return tuple(order_launches(self.family.kernels, self.conversions))

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The arrays that a grouping policy merges, a tuple for each buffer."""
        grouping = [p for p in self.family.space.policies if p.layout == "grouping"]
        return tuple(p.data for p in grouping if self._meaning(p) == "merged")

    def _meaning(self, policy: Policy) -> Any:
        """What the policy's value stands for in the layout library."""
        value = self.configuration[policy.name]
        return self.family.means.get(policy.name, {}).get(str(value), value)

    def _members(self, struct: str) -> str:
        """The members of the policy struct, which is called ``struct``, as C++ text."""
        lines = [_constant(name, value) for name, value in self._choices.items()]
        lines += [f"  using {data.name} = {self.layouts[data.name].cpp};" for data in self.family.accessors]
        lines += [f"  using {name} = {array.cpp};" for name, array in self.shared.items()]
        named = [
            name
            for name in self.family.typed_names
            if name not in self.layouts or name in self.family.accesses
        ]
        lines += [f"  using {name} = {argument_type(self.family, name, struct)};" for name in named]
        lines += [conversion.member for conversion in self.conversions.values()]
        structs = {
            kernel.struct: kernel.arguments for kernel in self.family.kernels.values() if kernel.struct
        }
        for name, arguments in structs.items():
            inside = "".join(
                f"    {argument_type(self.family, each, struct)} {each};\n" for each in arguments
            )
            lines.append(f"  struct {name} {{\n{inside}  }};")
        return "\n".join(lines)

    @property
    def headers(self) -> tuple[str, ...]:
        """Those of the layout library that its accessors need beyond ``array.cuh``."""
        layouts = (self.layouts[data.name] for data in self.family.accessors)
        placed = [layout.headers for layout in layouts] + [array.headers for array in self.shared.values()]
        return tuple(dict.fromkeys(header for headers in placed for header in headers))

    @property
    def _choices(self) -> dict[str, PolicyValue]:
        """What the source knows: policies that are constants, and options."""
        constants = [policy.name for policy in self.family.space.policies if policy.is_constant]
        return {**{name: self.configuration[name] for name in constants}, **dict(self.options)}

    @property
    def compile_options(self) -> tuple[str, ...]:
        """What this configuration adds to the family's compiler options."""
        chosen = [
            (p.adds, self.configuration[p.name]) for p in self.family.space.policies if p.adds is not None
        ]
        return tuple(option for adds, value in chosen for option in adds.get(str(value), ()))

    @cached_property
    def source(self) -> VariantSource:
        if self.family.is_plain:
            checks = _record_checks(
                d for d in self.family.data.values() if self.family.names_record(d.record)
            )
            headers = (LIBRARY, *self.headers) if self.family.accessors else ()
            return plain_source(
                self.family, self._choices, self.layouts, checks, headers, self.compile_options
            )
        family, choices = self.family, self._choices
        symbols = tuple(family.symbols.values())
        checks = _includes(self.headers) + _record_checks(family.data.values()) + symbol_checks(symbols)
        checks += "".join(conversion.text for conversion in self.conversions.values())
        kernels, numbers = tuple(self.kernels), tuple(family.compiled.items())
        told = [self._members(""), checks, repr(instances_of(family, choices, "")), *kernels]
        key = key_of(family, told, self.compile_options)
        name = f"V{key[:16]}"
        return VariantSource(
            key, name, f"struct {name} {{\n{self._members(name)}\n}};\n", kernels, checks,
            instances_of(family, choices, name), symbols=symbols, options=self.compile_options, numbers=numbers,
        )  # fmt: skip

    def order_policies(self, name: str = "") -> list[Policy]:
        """The order policies; with ``name`` those that move the array or renumber what is in it."""
        orders = list(self.family.space.order_policies)
        if not name:
            return orders
        data = self.family.data[name]
        spaces = {*data.shape, *(member.link for member in data.fields)}
        return [policy for policy in orders if spaces & set(policy.data)]

    def is_reordered(self, name: str = "") -> bool:
        """Whether an order policy permutes anything; with ``name``, extents of that array or links in it."""
        moved = self.family.find_reordering(self.configuration)
        return bool(moved) and any(policy in moved for policy in self.order_policies(name))

    def is_cut(self, name: str) -> bool:
        """Whether the array goes through constant memory in windows, into which the host cuts it."""
        return name in self.family.windowed and self.layouts[name].memory == "constant"

    def geometry(self, kernel: FamilyKernel, names: Mapping[str, Any]) -> Geometry:
        """Launch geometry with ``names`` (extents, policies, options, scalars, compiled numbers) bound."""
        block, shared_bytes = self.block(kernel, names)
        return Geometry(_pad_to_three([item.integer(names) for item in kernel.grid]), block, shared_bytes)

    def block(self, kernel: FamilyKernel, names: Mapping[str, Any]) -> tuple[tuple[int, int, int], int]:
        """Threads of a block and its dynamic shared memory in bytes; often known without the extents."""
        return _pad_to_three([item.integer(names) for item in kernel.block]), kernel.shared_bytes.integer(
            names
        )

    def explain_exclusion(self, names: Mapping[str, Any], limits: Limits) -> str:
        """Explain why this variant cannot run at the sizes in ``names`` on a device with ``limits``; empty if it can.
        Without compiled numbers in ``names`` the answer leaves out what only the compiled code shows."""
        if reason := self.family.space.explain_exclusion(names):
            return reason
        for name, layout in self.layouts.items():
            if reason := self._array_refusal(name, layout, names, limits):
                return reason
        unknown = self.family.compiled.keys() - names.keys()
        for kernel in self.kernels.values():
            if not kernel.names & unknown and (
                reason := self.geometry(kernel, names).explain_refusal(limits)
            ):
                return f"kernel {kernel.name}: {reason}"
        return ""

    def _array_refusal(self, name: str, layout: Layout, names: Mapping[str, Any], limits: Limits) -> str:
        if name in self.aliases:
            return ""
        if layout.data.is_view:
            owner, used = self.layouts[layout.data.of], self.family.used.get(name)
            if used is not None and not used.evaluate(names):
                return ""
            is_declared = owner.storage == Layout.make_plain(owner.data).storage
            if not (is_declared and owner.is_in_place(owner.data.shape_for(names))):
                return f"{name}: a layout moves the elements of {owner.data.name}, which a view has to find in order"
            whole = owner.room(owner.data.shape_for(names))
            return view_refusal(layout, view_room(layout, names), whole, limits)
        extent = self.family.windowed.get(name, "")
        shape = limit_shape(layout, extent, layout.data.shape_for(names), limits)
        return layout.room(shape).explain_refusal(layout.data, limits)


def batch(family: Family, variants: tuple[Variant, ...]) -> Batch:
    """The variants as one compiler request."""
    return Batch(
        family.source,
        (include_dir(), family.folder),
        tuple(v.source for v in variants),
        family.compile_options,
        tuple(family.sources.values()),
    )


def _convert_layout(data: Data, of: Layout, chosen: Mapping[str, Any], of_array: Mapping[str, Any]) -> Layout:
    """The layout of a converted view, whose array is stored as ``of`` by what is chosen for it."""
    own = {kind: value for kind, value in chosen.items() if value != SAME}
    memory = own.pop("memory", "")
    padding = {"padding": of_array["padding"]} if "padding" in of_array else {}  # may be in bytes
    return convert_layout(
        of, layout_of(data, {**padding, **own}, replace(of, data=data, group=(1, 0))), memory
    )


def _includes(headers: Iterable[str]) -> str:
    return "".join(f'#include "{header}"\n' for header in headers)


def _constant(name: str, value: str | int) -> str:
    """A compile-time member: an int, or a value of the enum class that the kernel source declares for it."""
    if isinstance(value, int):
        return f"  static constexpr int {name} = {value};"
    kind = enumeration(name)
    return f"  static constexpr {kind} {name} = {kind}::{value};"


def _record_checks(arrays: Iterable[Data]) -> str:
    """C++ text that holds the kernel source's records against the declared fields: the host writes these, and a kernel
    that reads others would run on nonsense. A field counts where the struct has a member of that name: it may gather
    several in an array."""
    checks: dict[str, None] = {}
    for data in arrays:
        if not data.record:
            continue
        size, fields = data.dtype.itemsize, ", ".join(f"{f.type} {f.name}" for f in data.fields)
        told = f"record {data.record}: family.yaml declares {size} bytes ({fields})"
        checks[f'static_assert(sizeof({data.record}) == {size}, "{told}");\n'] = None
        for name, (kind, offset) in ((n, found[:2]) for n, found in (data.dtype.fields or {}).items()):
            told = f"record {data.record}: family.yaml has its field {name} ({kind}) at byte {offset}"
            text = _FIELD_CHECK.format(
                trait=f"Checked_{data.record.replace('::', '_')}_{name}_{offset}_{kind}", record=data.record, name=name,
                offset=offset, size=kind.itemsize, message=told,
            )  # fmt: skip
            checks[text] = None
    if not checks:
        return ""
    text = _OFFSET + "".join(checks)
    # Once for a batch of variants.
    guard = f"CHECKED_RECORDS_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return f"#ifndef {guard}\n#define {guard}\n{text}#endif\n"


def _pad_to_three(items: list[int]) -> tuple[int, int, int]:
    x, y, z, *_ = [*items, 1, 1]
    return x, y, z


def scalar_bytes(type_name: str, value: Any) -> bytes:
    """A scalar kernel argument's bytes."""
    return bytes(np.dtype(type_name).type(value).tobytes())


def default_header(family: Family) -> str:
    """``default.cuh``: the control configuration, so that the family's .cu opens in an editor and compiles alone."""
    variant = Variant.make(family, family.space.control, family.choose_options({}))
    if family.is_plain:
        return plain_header(variant.source)
    members, choices = variant._members("Default"), variant._choices  # noqa: SLF001 - one module
    lines = [
        "// Made by `autotune show FAMILY control --header`: the default configuration, for editors and for compiling",
        "// the kernel source on its own.",
        "// clang-format off",
        "#pragma once",
        *_includes(variant.headers).splitlines(),
        "",
        f"struct Default {{\n{members}\n}};",
    ]
    instances = dict(instances_of(family, choices, "Default"))
    for kernel in family.kernels.values():
        types = [argument_type(family, name, "Default") for name in kernel.parameters]
        instance = instances.get(kernel.name, f"{kernel.name}<Default>")
        lines.append(f"template __global__ void {instance}({', '.join(types)});")
    return "\n".join(lines) + "\n"

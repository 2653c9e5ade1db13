"""family.yaml, family.py and a workload of an adopted kernel, as text that a person will go on with."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from autotune.adopt.arrays import Array, Arrays
from autotune.adopt.elements import type_name
from autotune.adopt.function import Function, Variable
from autotune.adopt.launch import LaunchShape
from autotune.adopt.symbols import Symbol
from autotune.declaration import yamlfile
from autotune.errors import FamilyError

_MOST_AXES = 4  # arrays whose axes are chosen one by one; more of them share one choice
BEFORE = "before.cu"  # the kernel as it was, with what it needs
COPY = "begin"  # the kernel that copies what an array holds before the launch


@dataclass
class Declaration:
    """``kept`` are outputs that the kernel was seen to leave gaps in, which keep what the caller gives; ``defines`` the
    macros it was read with."""

    name: str
    source: str
    arrays: Arrays
    geometry: LaunchShape
    title: str
    defines: tuple[str, ...] = ()
    kept: frozenset[str] = frozenset()
    shared_bytes: str = ""
    symbols: tuple[Symbol, ...] = ()
    small: Sequence[Mapping[str, int]] = ()

    @property
    def function(self) -> Function:
        return self.arrays.function

    @cached_property
    def in_place(self) -> tuple[Array, ...]:
        """Arrays that the kernel reads and writes, or writes in part."""
        return tuple(
            a for a in self.arrays.all.values() if a.is_written and (a.is_read or a.name in self.kept)
        )

    @cached_property
    def inputs(self) -> tuple[Array, ...]:
        return tuple(a for a in self.arrays.all.values() if not a.is_written)

    def declared(self, array: Array) -> str:
        """The name of what the kernel takes: of an array that changes, of what comes of it."""
        return self._free(f"{array.name}_after") if array in self.in_place else array.name

    def _free(self, name: str) -> str:
        """The name, or one that no parameter has: both are in one namespace."""
        while name in self._parameters:
            name += "_"
        return name

    @cached_property
    def _parameters(self) -> frozenset[str]:
        return frozenset(cursor.spelling for cursor in self.function.parameters)

    def is_open(self, array: Array) -> bool:
        """Whether nothing but the caller says how large it is."""
        return self.arrays.extents[array.shape[0]].is_given and array.shape[0] not in self._parameters

    @cached_property
    def unnamed(self) -> dict[str, str]:
        """Sizes of outputs that neither the kernel nor its launch says, each with its array: the caller does."""
        return {
            name: next(a.name for a in self.arrays.all.values() if name in a.shape)
            for name in self.scalars
            if name not in self._parameters
        }

    @cached_property
    def guesses(self) -> list[str]:
        """What nothing says, and is a guess."""
        sizes = [f"the size of {a.name}" for a in self.arrays.all.values() if self.is_open(a)]
        shared = f"{self.shared_bytes} bytes of shared memory"
        return [*sizes, *([shared] if self.shared_bytes and not self.geometry.shared_bytes else [])]

    # -- numbers ----------------------------------------------------------------------------------------

    @cached_property
    def bound(self) -> frozenset[str]:
        """Extents that the shapes of inputs decide."""
        given = [*self.inputs, *self.in_place]
        return frozenset(name for a in given for name in a.shape if self.arrays.extents[name].is_given)

    @cached_property
    def scalars(self) -> dict[str, str]:
        """The kernel's numbers that no shape decides, with their types. Raises FamilyError for other parameters."""
        found = {}
        for cursor in self.function.parameters:
            variable = self.function.variables[cursor.location.offset]
            if variable.name in self.arrays.all or variable.name in self.bound:
                continue
            found[variable.name] = self._scalar_type(variable)
        for extent in self.arrays.extents.values():
            if extent.is_given and extent.name not in self.bound:
                found.setdefault(extent.name, "int32")
        return found

    def _scalar_type(self, variable: Variable) -> str:
        found = type_name(variable.cursor.type)
        if not found or "float16" in found:
            line = self.function.source.line(variable.place)
            why = (
                "a number of a family has no 16-bit type: pass a float and convert it in the kernel"
                if found
                else "a family's kernel takes arrays and numbers: pass its members one by one"
            )
            raise FamilyError(
                f"{self.function.source.path}:{line}: {self.function.name} takes {variable.cursor.type.spelling} "
                f"{variable.name}, and {why}"
            )
        return found

    def shape(self, array: Array) -> list[str]:
        """Names of extents; those of a number that the caller gives are named for it."""
        return [self._extent(name) for name in array.shape]

    def _extent(self, name: str) -> str:
        return f"{name}_extent" if name in self.scalars else name

    # -- policies ---------------------------------------------------------------------------------------

    def policies(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Each with its keys as YAML text."""
        accessors = [a for a in self.arrays.all.values() if a.is_accessor]
        for array in accessors:
            if array.record and len(array.fields) > 1:
                yield f"{array.name}_records", {
                    "layout": "records", "data": f"[{self.declared(array)}]", "values": "[aos, soa, aosoa32]",
                    "default": "aos",
                    "doc": "the fields of a record side by side; each in a run of its own; so for 32 records at a time",
                }  # fmt: skip
        yield from self._axes([a for a in accessors if len(a.shape) > 1])
        yield from self._memories([a for a in accessors if not a.is_written])
        wide = [self.declared(a) for a in accessors if len(a.shape) > 1]
        if wide:
            yield "padding", {
                "layout": "padding", "data": f"[{', '.join(wide)}]", "values": "[1, 32]", "default": "1",
                "doc": "rows begin at a multiple of so many elements",
            }  # fmt: skip
        for extent in self.linked:
            yield f"order_of_{extent}", {
                "layout": "order", "data": f"[{extent}]", "values": "[given, first_use]", "default": "given",
                "doc": "as the caller has them, or in the order in which links name them (orders in family.py)",
            }  # fmt: skip
        for name, values in self.geometry.policies.items():
            yield name, {
                "values": f"[{', '.join(map(str, sorted(values)))}]", "default": str(values[0]),
                "doc": "threads of a block" + (f" in {name[6]}" if re.match("block_[xyz]", name) else ""),
            }  # fmt: skip

    def _axes(self, wide: list[Array]) -> Iterator[tuple[str, dict[str, str]]]:
        for array in wide[:_MOST_AXES]:
            shape = self.shape(array)
            ways = {"given": shape, "reversed": shape[::-1]}
            if len(shape) > 2:
                ways["rotated"] = [*shape[1:], shape[0]]
            means = ", ".join(f"{name}: [{', '.join(way)}]" for name, way in ways.items())
            yield f"{array.name}_axes", {
                "layout": "axes", "data": f"[{self.declared(array)}]", "values": f"[{', '.join(ways)}]",
                "means": f"{{{means}}}", "default": "given", "doc": "the last index listed is the contiguous one",
            }  # fmt: skip

    def _memories(self, inputs: list[Array]) -> Iterator[tuple[str, dict[str, str]]]:
        """Where the compiler may choose (``__restrict__``), global comes closest; read-only loads, forced, cost up
        to 12 % where that was measured (docs/adopted.md)."""
        if inputs:
            yield "memory", {
                "layout": "memory", "data": f"[{', '.join(a.name for a in inputs)}]",
                "values": "[global, readonly, texture]", "default": "global", "doc": "which instruction loads",
            }  # fmt: skip

    @cached_property
    def linked(self) -> tuple[str, ...]:
        """Extents that can be reordered: reached by links, and by nothing that counts on neighbours."""
        found = dict.fromkeys(a.link for a in self.inputs if self._is_followed(a))
        return tuple(name for name in found if self._is_free(name))

    def _is_followed(self, array: Array) -> bool:
        return (
            array.link in self.bound and array.is_accessor and not array.is_ascending and not array.is_walked
        )

    def _is_free(self, extent: str) -> bool:
        if extent in {p.name for p in self.function.variables.values() if p.is_parameter} - self.bound:
            return False
        for array in self.arrays.all.values():
            if extent not in array.shape:
                continue
            if not array.is_accessor or array.is_ascending or array.shape.count(extent) > 1:
                return False
            place = array.shape.index(extent)
            for access in array.pointer.accesses:
                index = array.indices(access)[place]
                if len(index) != 1 or len(index[0].factors) != 1 or index[0].sign < 0:
                    return False
        return True

    # -- family.yaml ------------------------------------------------------------------------------------

    def family_yaml(self) -> str:
        lines = [
            yamlfile.editor_line("family"),
            f"# Made by `autotune adopt` from {self.source}; change it as you like. What says `check` was guessed.",
            "schema: 1",
            f"family: {self.name}",
            f"title: {self.title}",
            f"source: {self.name}.cu",
            "default_workload: adopted",
            "",
        ]
        if self.defines:
            lines += [f"compile_options: [{', '.join(quoted(d) for d in self.defines)}]", ""]
        lines += [*self._extents(), *self._scalars(), "data:"]
        for array in self.arrays.all.values():
            lines += self._data(array)
        lines += [symbol.declared() for symbol in self.symbols]
        lines += ["", "kernels:"]
        for array in self.copied:
            count = " * ".join(self.shape(array))
            lines += [f"  {COPY}_{array.name}:", f"    arguments: [{array.name}, {self.declared(array)}]",
                      f'    grid: ["ceil_div({count}, 256)"]', "    block: [256]"]  # fmt: skip
        lines += self._kernel()
        lines += [
            "",
            "# A first set: every combination is tried, so take out what you do not want.",
            "policies:",
        ]
        for name, keys in self.policies():
            lines.append(f"  {self._free(name)}:")
            lines += [f"    {key}: {value}" for key, value in keys.items()]
        if self.geometry.divided:
            lines += ["", "constraints:"]
            for whole, by in dict.fromkeys(self.geometry.divided):
                lines += [f"  - require: ({self._of_extents(whole)}) % {by} == 0",
                          "    reason: the launch counts on it that blocks divide what there is"]  # fmt: skip
        lines += self._baseline()
        lines += [
            "",
            "# What is right: the result of the kernel as it was, on the same device.",
            "reference: baseline",
        ]
        relative, absolute = self._tolerance()
        beside = "  # check: with a reference of your own, as far as it rounds otherwise"
        lines += [f"tolerance: {{relative: {relative}, absolute: {absolute}}}{beside}", ""]
        return "\n".join(lines)

    @property
    def copied(self) -> list[Array]:
        """Arrays in place whose layout can be chosen: a kernel copies what they begin as."""
        return [a for a in self.in_place if a.is_accessor]

    def _extents(self) -> list[str]:
        lines = []
        for extent in self.arrays.extents.values():
            name = self._extent(extent.name)
            if not extent.is_given:
                lines.append(f"  {name}: {{value: {quoted(extent.text)}}}")
            elif name != extent.name:
                lines.append(f"  {name}: {{value: {extent.name}}}")
            elif (type_ := self._argument_type(name)) not in ("", "int32"):
                lines.append(f"  {name}: {{type: {type_}}}")
            elif name in (a.shape[0] for a in self.arrays.all.values()) and not type_:
                lines.append(f"  {name}: size  # check: nothing in the kernel bounds this index")
        for symbol in self.symbols:
            lines += [
                f"  {name}: {{value: {count}}}"
                for name, count in zip(symbol.shape, symbol.counts, strict=True)
            ]
        return ["extents:", *lines, ""] if lines else []

    def _argument_type(self, name: str) -> str:
        """The type of the kernel's parameter of that name; empty where there is none."""
        for cursor in self.function.parameters:
            if cursor.spelling == name:
                return type_name(cursor.type)
        return ""

    def _scalars(self) -> list[str]:
        if not self.scalars:
            return []
        lines = ["scalars:"]
        for name, type_ in self.scalars.items():
            of = self.unnamed.get(name)
            told = (
                f"  # check: an extent of {of}, which nothing in the kernel or its launch says" if of else ""
            )
            lines.append(f"  {name}: {{type: {type_}}}{told}")
        return [*lines, ""]

    def _data(self, array: Array) -> list[str]:
        element = (
            f"record: {array.record}, fields: {{{self._fields(array)}}}"
            if array.record
            else f"type: {array.type}"
        )
        shape = f"shape: [{', '.join(self.shape(array))}]"
        if array.is_accessor and len(array.shape) == 1:
            # As an int is one: 32 bits without a sign may wrap around, which keeps a compiler from going on from one
            # address to the next.
            shape += ", index_bits: 64"
        access = "" if array.is_accessor else ", access: pointer"
        told = f"  # stays a pointer: {array.pointer.reason}" if array.pointer.reason else ""
        if told and array.is_opaque:
            told += "; declared as bytes"
        if not array.is_written:
            link = f", link: {self._extent(array.link)}" if self.is_link(array) else ""
            return [f"  {array.name}: {{role: input, {element}{link}, {shape}{access}}}{told}"]
        if array not in self.in_place:
            return [f"  {array.name}: {{role: output, {element}, {shape}{access}}}{told}"]
        begins = "" if array.is_accessor else f", begins_as: {array.name}"
        how = "written in part" if array.name in self.kept else "read and written"
        return [
            f"  # {array.name} is {how}: what the caller gives, and what comes of it.",
            f"  {array.name}: {{role: input, {element}, {shape}{access}}}{told}",
            f"  {self.declared(array)}: {{role: output, {element}, {shape}{access}{begins}}}",
        ]

    def is_link(self, array: Array) -> bool:
        """Whether its numbers are declared as links, since what they lead to can be reordered."""
        return array.link in self.linked and self._is_followed(array)

    @staticmethod
    def _fields(array: Array) -> str:
        return ", ".join(f"{name}: {type_}" for name, type_ in array.fields.items())

    def _arguments(self) -> list[str]:
        """The kernel's parameters, by the names of what they are given."""
        names = [cursor.spelling for cursor in self.function.parameters]
        return [self.declared(self.arrays.all[name]) if name in self.arrays.all else name for name in names]

    def _kernel(self) -> list[str]:
        arguments = self._arguments()
        grid = ", ".join(quoted(self._of_extents(item)) for item in self.geometry.grid)
        lines = [f"  {self.function.name}:"]
        lines += [
            f"    arguments: [{', '.join(arguments)}]",
            f"    grid: [{grid}]  # check: {self.geometry.where}",
            f"    block: [{', '.join(self.geometry.block)}]",
        ]
        if self.shared_bytes:
            lines.append(f"    shared_bytes: {quoted(self._of_extents(self.shared_bytes))}  # check")
        return lines

    def _of_extents(self, text: str) -> str:
        """An expression over extents, by the names that they have in the end."""
        return re.sub(
            r"[A-Za-z_]\w*",
            lambda found: self._extent(found[0]) if found[0] in self.arrays.extents else found[0],
            text,
        )

    def _baseline(self) -> list[str]:
        """The kernel as it was, to be timed beside control."""
        usual = {name: str(values[0]) for name, values in self.geometry.policies.items()}

        def fixed(text: str) -> str:
            return re.sub(r"[A-Za-z_]\w*", lambda found: usual.get(found[0], found[0]), text)

        copies = {self.declared(array): array.name for array in self.copied}
        names = self._arguments()
        grid = ", ".join(quoted(fixed(self._of_extents(item))) for item in self.geometry.grid)
        lines = ["", "# The kernel as it was, timed in the same run.", "baseline:", f"  source: {BEFORE}",
                 f"  kernel: {self.function.name}", f"  arguments: [{', '.join(names)}]", f"  grid: [{grid}]",
                 f"  block: [{', '.join(map(fixed, self.geometry.block))}]"]  # fmt: skip
        if self.shared_bytes:
            lines.append(f"  shared_bytes: {quoted(fixed(self._of_extents(self.shared_bytes)))}")
        if copies:
            lines.append(f"  begins_as: {{{', '.join(f'{n}: {given}' for n, given in copies.items())}}}")
        if self.symbols:
            lines.append(f"  symbols: {{{', '.join(f'{s.name}: {s.name}' for s in self.symbols)}}}")
        return lines

    def _tolerance(self) -> tuple[str, str]:
        types = {t for a in self.arrays.all.values() for t in ([a.type] if a.type else a.fields.values())}
        adds = any(
            access.use in ("add", "address")
            for a in self.arrays.all.values()
            for access in a.pointer.accesses
        )
        if "float32" in types:
            return ("0.0001", "0.0001") if adds else ("0.00001", "0.000001")
        return ("0.000000001", "0.000000001") if adds else ("0.00000000001", "0.000000000001")

    def workload_yaml(self, sizes: Mapping[str, int]) -> str:
        numbers = ", ".join(f"{name}: {value}" for name, value in sizes.items())
        parameters = f"{numbers}, seed: 1" if numbers else "seed: 1"
        lines = [yamlfile.editor_line("workload"), "schema: 1", "workload: adopted", f"family: {self.name}",
                 f"parameters: {{{parameters}}}  # check: sizes like those of your program"]  # fmt: skip
        given = self.numbers(sizes)
        if given:
            lines.append(f"scalars: {{{', '.join(f'{n}: {v}' for n, v in given.items())}}}")
        return "\n".join(lines) + "\n"

    def numbers(self, sizes: Mapping[str, int]) -> dict[str, float]:
        """A value for each scalar: nothing has a default."""
        return {n: sizes.get(n, 1.5 if "float" in type_ else 1) for n, type_ in self.scalars.items()}

    # -- the source's end -------------------------------------------------------------------------------

    def copy_kernels(self) -> str:
        """Kernels that give each array in place what it begins as."""
        return "".join(_copy(array, self.declared(array)) for array in self.copied)


def _copy(array: Array, after: str) -> str:
    name, rank = array.name, len(array.shape)
    lines = [
        "",
        f"// What comes of {name} begins as what the caller gives.",
        "template <class Policy>",
        f"__global__ void {COPY}_{name}(typename Policy::{name} {name}, typename Policy::{after} {after}) {{",
        "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;",
    ]
    counts = [f"{name}.extent({axis})" for axis in range(rank)]
    lines.append(f"  if (i >= {' * '.join(counts)}) return;")
    indices, rest = [], "i"
    for axis in range(rank - 1, 0, -1):
        indices.append(f"{rest} % {counts[axis]}")
        rest = f"({rest} / {counts[axis]})" if axis > 1 else f"{rest} / {counts[axis]}"
    indices.append(rest)
    text = ", ".join(reversed(indices))
    lines += [f"  {after}.store({name}.load({text}), {text});", "}", ""]
    return "\n".join(lines)


def quoted(text: str) -> str:
    return text if re.fullmatch(r"\w+", text) else f'"{text}"'

"""family.yaml, family.py and a workload of an adopted kernel, as text that a person will go on with."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from autotune.adopt.arrays import Array, Arrays
from autotune.adopt.elements import Symbol, type_name
from autotune.adopt.expression import get_only_factor
from autotune.adopt.function import Function
from autotune.adopt.host import replace_names
from autotune.adopt.launch import LaunchShape
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
        written = (a for a in self.arrays.all.values() if a.is_written)
        return tuple(a for a in written if a.is_read or a.name in self.kept)

    @cached_property
    def inputs(self) -> tuple[Array, ...]:
        return tuple(a for a in self.arrays.all.values() if not a.is_written)

    def name_array(self, array: Array) -> str:
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
        found = [f"the size of {a.name}" for a in self.arrays.all.values() if self.is_open(a)]
        is_guess = self.shared_bytes and not self.geometry.shared_bytes
        return [*found, f"{self.shared_bytes} bytes of shared memory"] if is_guess else found

    # -- numbers ----------------------------------------------------------------------------------------

    @cached_property
    def bound(self) -> frozenset[str]:
        """Extents that the shapes of inputs decide."""
        given = [*self.inputs, *self.in_place]
        return frozenset(name for a in given for name in a.shape if self.arrays.extents[name].is_given)

    @cached_property
    def scalars(self) -> dict[str, str]:
        """The kernel's numbers that no shape decides, with their types. Raises FamilyError for other parameters."""
        scalars, function, shaped = {}, self.function, {*self.arrays.all, *self.bound}
        for cursor in (c for c in function.parameters if c.spelling not in shaped):
            type_ = scalars[cursor.spelling] = type_name(cursor.type)
            if not type_ or "float16" in type_:
                why = "a family's kernel takes arrays and numbers: pass its members one by one"
                if type_:
                    why = "a number of a family has no 16-bit type: pass a float and convert it in the kernel"
                raise FamilyError(
                    f"{function.source.path}:{function.source.line(cursor.location.offset)}: {function.name} takes "
                    f"{cursor.type.spelling} {cursor.spelling}, and {why}"
                )
        for extent in self.arrays.extents.values():
            if extent.is_given and extent.name not in self.bound:
                scalars.setdefault(extent.name, "int32")
        return scalars

    def shape(self, array: Array) -> list[str]:
        """Names of extents; those of a number that the caller gives are named for it."""
        return [self._extent(name) for name in array.shape]

    def _extent(self, name: str) -> str:
        return f"{name}_extent" if name in self.scalars else name

    # -- policies ---------------------------------------------------------------------------------------

    def policies(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Each with its keys as YAML text; where there is none, how many registers a thread may have."""
        found = [*self._policies()]
        yield from found or [("registers", {
            "compile_option": "true", "values": "[all, most_64, most_32]", "default": "all",
            "means": "{most_64: -maxrregcount=64, most_32: -maxrregcount=32}", "doc": "of a thread; no cpu has them",
        })]  # fmt: skip

    def _policies(self) -> Iterator[tuple[str, dict[str, str]]]:
        accessors = [a for a in self.arrays.all.values() if a.is_accessor]
        wide = [a for a in accessors if len(a.shape) > 1]
        inputs = [a.name for a in accessors if not a.is_written]
        for array in accessors:
            if len(array.element.fields) > 1:
                yield f"{array.name}_records", _chooses(
                    "records", [self.name_array(array)], ["aos", "soa", "aosoa32"],
                    "the fields of a record side by side; each in a run of its own; so for 32 records at a time",
                )  # fmt: skip
        for array in wide[:_MOST_AXES]:
            shape = self.shape(array)
            ways = {"given": shape, "reversed": shape[::-1]}
            ways |= {"rotated": [*shape[1:], shape[0]]} if len(shape) > 2 else {}
            means = format_mapping({name: format_list(way) for name, way in ways.items()})
            doc = "the last index listed is the contiguous one"
            yield f"{array.name}_axes", _chooses("axes", [self.name_array(array)], ways, doc, means=means)
        if inputs:
            # Where the compiler may choose (__restrict__), global comes closest; read-only loads, forced, cost up to
            # 12 % where that was measured (docs/guides/adopt.md).
            values = ["global", "readonly", "texture"]
            yield "memory", _chooses("memory", inputs, values, "which instruction loads")
        if wide:
            names, doc = [self.name_array(a) for a in wide], "rows begin at a multiple of that many elements"
            yield "padding", _chooses("padding", names, ["1", "32"], doc)
        for extent in self.linked:
            yield f"order_of_{extent}", _chooses(
                "order", [extent], ["given", "first_use"],
                "as the caller has them, or in the order in which links name them (orders in family.py)",
            )  # fmt: skip
        for name, sizes in self.geometry.policies.items():
            yield name, {
                "values": format_list(map(str, sorted(sizes))), "default": str(sizes[0]),
                "doc": "threads of a block" + (f" in {name[6]}" if re.match("block_[xyz]", name) else ""),
            }  # fmt: skip

    @cached_property
    def linked(self) -> tuple[str, ...]:
        """Extents that can be reordered: reached by links, and by nothing that counts on neighbours."""
        found = dict.fromkeys(a.link for a in self.inputs if self._is_followed(a))
        return tuple(name for name in found if self._is_free(name))

    def _is_followed(self, array: Array) -> bool:
        is_link = array.link in self.bound and array.is_accessor
        return is_link and not array.is_ascending and not array.is_walked

    def is_link(self, array: Array) -> bool:
        """Whether its numbers are declared as links, since what they lead to can be reordered."""
        return array.link in self.linked and self._is_followed(array)

    def _is_free(self, extent: str) -> bool:
        if extent in {p.name for p in self.function.variables.values() if p.is_parameter} - self.bound:
            return False
        for array in (a for a in self.arrays.all.values() if extent in a.shape):
            indices = (
                array.split_index(access)[array.shape.index(extent)] for access in array.pointer.accesses
            )
            is_one = array.is_accessor and not array.is_ascending and array.shape.count(extent) == 1
            if not is_one or not all(map(get_only_factor, indices)):
                return False
        return True

    # -- family.yaml ------------------------------------------------------------------------------------

    def family_yaml(self) -> str:
        constraints = []
        for whole, by in dict.fromkeys(self.geometry.divided):
            constraints += [f"  - require: ({self._write_over_extents(whole)}) % {by} == 0",
                            "    reason: the launch counts on it that blocks divide what there is"]  # fmt: skip
        relative, absolute = self._tolerance()
        beside = "  # check: with a reference of your own, as far as it rounds otherwise"
        lines = [
            yamlfile.editor_line("family"),
            f"# Made by `autotune adopt` from {self.source}; edit it as you like. Lines marked `check` are guesses.",
            "schema: 1",
            f"family: {self.name}",
            f"title: {self.title}",
            f"source: {self.name}.cu",
            "default_workload: adopted",
            "",
            *([f"compile_options: {format_list(map(quote, self.defines))}", ""] if self.defines else []),
            *_section("extents:", self._extents()),
            *_section("scalars:", self._scalars()),
            *_section("data:", self._data()),
            *_section("kernels:", self._kernels()),
            "# A first set: every combination is tried, so remove those that you do not want.",
            *_section(
                "policies:", (t for name, keys in self.policies() for t in _block(self._free(name), keys))
            ),
            *_section("constraints:", constraints),
            "# The kernel as it was, timed in the same run.",
            *_section("baseline:", self._baseline()),
            "# What is right: the result of the kernel as it was, on the same device.",
            "reference: baseline",
            f"tolerance: {{relative: {relative}, absolute: {absolute}}}{beside}",
            "",
        ]
        return "\n".join(lines)

    @property
    def copied(self) -> list[Array]:
        """Arrays in place whose layout can be chosen: a kernel copies what they begin as."""
        return [a for a in self.in_place if a.is_accessor]

    def _extents(self) -> Iterator[str]:
        types = {c.spelling: type_name(c.type) for c in self.function.parameters}
        firsts = {array.shape[0] for array in self.arrays.all.values()}
        for extent in self.arrays.extents.values():
            name = self._extent(extent.name)
            if not extent.is_given or name != extent.name:
                yield f"  {name}: {{value: {quote(extent.text)}}}"
            elif types.get(name, "") not in ("", "int32"):
                yield f"  {name}: {{type: {types[name]}}}"
            elif name in firsts and not types.get(name):
                yield f"  {name}: size  # check: nothing in the kernel bounds this index"
        for symbol in self.symbols:
            for name, count in zip(symbol.shape, symbol.counts, strict=True):
                yield f"  {name}: {{value: {count}}}"

    def _scalars(self) -> Iterator[str]:
        for name, type_ in self.scalars.items():
            told = "  # check: an extent of {}, which neither the kernel nor its launch defines"
            yield f"  {name}: {{type: {type_}}}{told.format(self.unnamed[name]) if name in self.unnamed else ''}"

    def _data(self) -> Iterator[str]:
        for array in self.arrays.all.values():
            element, text = array.element.declare(), f"shape: {format_list(self.shape(array))}"
            if not array.is_accessor:
                text += ", access: pointer"
            elif len(array.shape) == 1:
                # As an int is one: 32 bits without a sign may wrap around, which keeps a compiler from going on from
                # one address to the next.
                text += ", index_bits: 64"
            elif array.is_indexed_by_int:
                text += ", index_bits: 31"  # for the same reason
            told = "; declared as bytes" if array.is_opaque else ""
            told = f"  # stays a pointer: {array.pointer.reason}{told}" if array.pointer.reason else ""
            if array in self.in_place:
                begins = "" if array.is_accessor else f", begins_as: {array.name}"
                how = "written in part" if array.name in self.kept else "read and written"
                yield f"  # {array.name} is {how}: what the caller gives, and what comes of it."
                yield f"  {array.name}: {{role: input, {element}, {text}}}{told}"
                yield f"  {self.name_array(array)}: {{role: output, {element}, {text}{begins}}}"
            else:
                role = "output" if array.is_written else "input"
                link = (
                    f", link: {self._extent(array.link)}" if role == "input" and self.is_link(array) else ""
                )
                yield f"  {array.name}: {{role: {role}, {element}{link}, {text}}}{told}"
        for symbol in self.symbols:
            text = f"shape: {format_list(symbol.shape)}, access: symbol"
            yield f"  {symbol.name}: {{role: input, {symbol.element.declare()}, {text}}}"

    def _kernels(self) -> Iterator[str]:
        for array in self.copied:
            yield from _block(f"{COPY}_{array.name}", {
                "arguments": format_list([array.name, self.name_array(array)]),
                "grid": f'["ceil_div({" * ".join(self.shape(array))}, 256)"]', "block": "[256]",
            })  # fmt: skip
        launch = self._declare_launch()
        launch["grid"] += f"  # check: {self.geometry.where}"
        launch |= {key: f"{launch[key]}  # check" for key in launch.keys() & {"shared_bytes"}}
        yield from _block(self.function.name, launch)

    def _declare_launch(self) -> dict[str, str]:
        """How the kernel is launched, by keys of family.yaml."""
        names = [cursor.spelling for cursor in self.function.parameters]
        given = [self.name_array(self.arrays.all[n]) if n in self.arrays.all else n for n in names]
        grid = (quote(self._write_over_extents(item)) for item in self.geometry.grid)
        launch = {
            "arguments": format_list(given),
            "grid": format_list(grid),
            "block": format_list(self.geometry.block),
        }
        if self.shared_bytes:
            launch["shared_bytes"] = quote(self._write_over_extents(self.shared_bytes))
        return launch

    def _write_over_extents(self, text: str) -> str:
        """An expression over extents, by the names that they have in the end."""
        return replace_names(text, {name: self._extent(name) for name in self.arrays.extents})

    def _baseline(self) -> Iterator[str]:
        """Yield the lines that declare the original kernel, which a sweep times to compare it with control."""
        usual = {name: str(value) for name, value in self.geometry.usual.items()}
        launch = self._declare_launch()
        keys = {"source": BEFORE, "kernel": self.function.name, "arguments": launch.pop("arguments")}
        keys |= {key: replace_names(text, usual) for key, text in launch.items()}
        if self.copied:
            keys["begins_as"] = format_mapping({self.name_array(a): a.name for a in self.copied})
        if self.symbols:
            keys["symbols"] = format_mapping({s.name: s.name for s in self.symbols})
        return (f"  {key}: {text}" for key, text in keys.items())

    def _tolerance(self) -> tuple[str, str]:
        arrays = self.arrays.all.values()
        types = {type_ for a in arrays for type_ in (a.element.type, *a.element.fields.values())}
        adds = any(access.use in ("add", "address") for a in arrays for access in a.pointer.accesses)
        if "float32" in types:
            return ("0.0001", "0.0001") if adds else ("0.00001", "0.000001")
        return ("0.000000001", "0.000000001") if adds else ("0.00000000001", "0.000000000001")

    def workload_yaml(self, sizes: Mapping[str, int]) -> str:
        parameters, given = format_mapping({**sizes, "seed": 1}), self.numbers(sizes)
        lines = [yamlfile.editor_line("workload"), "schema: 1", "workload: adopted", f"family: {self.name}",
                 f"parameters: {parameters}  # check: sizes like those of your program",
                 *([f"scalars: {format_mapping(given)}"] if given else []), ""]  # fmt: skip
        return "\n".join(lines)

    def numbers(self, sizes: Mapping[str, int]) -> dict[str, float]:
        """A value for each scalar: nothing has a default."""
        return {n: sizes.get(n, 1.5 if "float" in type_ else 1) for n, type_ in self.scalars.items()}

    # -- the source's end -------------------------------------------------------------------------------

    def copy_kernels(self) -> str:
        """Kernels that give each array in place what it begins as."""
        return "".join(_copy(array, self.name_array(array)) for array in self.copied)


def _chooses(layout: str, data: list[str], values: Iterable[str], doc: str, **more: str) -> dict[str, str]:
    """A policy of a layout; the first value is the default."""
    return {"layout": layout, "data": format_list(data), "values": format_list(values), **more,
            "default": next(iter(values)),
            "doc": doc}  # fmt: skip


def _section(head: str, lines: Iterable[str]) -> list[str]:
    found = [*lines]
    return [head, *found, ""] if found else []


def _block(name: str, keys: Mapping[str, str]) -> list[str]:
    return [f"  {name}:", *(f"    {key}: {text}" for key, text in keys.items())]


def _copy(array: Array, after: str) -> str:
    name, counts = array.name, [f"{array.name}.extent({axis})" for axis in range(len(array.shape))]
    indices, rest = list[str](), "i"
    for axis in range(len(counts) - 1, 0, -1):
        indices.insert(0, f"{rest} % {counts[axis]}")
        rest = f"({rest} / {counts[axis]})" if axis > 1 else f"{rest} / {counts[axis]}"
    text = ", ".join([rest, *indices])
    return f"""
// What comes of {name} begins as what the caller gives.
template <class Policy>
__global__ void {COPY}_{name}(typename Policy::{name} {name}, typename Policy::{after} {after}) {{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= {" * ".join(counts)}) return;
  {after}.store({name}.load({text}), {text});
}}
"""


def quote(text: str) -> str:
    return text if re.fullmatch(r"\w+", text) else f'"{text}"'


def format_list(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


def format_mapping(items: Mapping[str, object]) -> str:
    return f"{{{', '.join(f'{name}: {value}' for name, value in items.items())}}}"

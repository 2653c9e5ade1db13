"""family.yaml, family.py and a workload of an adopted kernel, as text that a person will go on with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from autotune.adopt.arrays import Array, Arrays
from autotune.adopt.elements import Symbol, type_name
from autotune.adopt.expression import get_only_factor
from autotune.adopt.function import Function
from autotune.adopt.host import replace_names
from autotune.adopt.launch import LaunchShape
from autotune.adopt.templates import format_list, format_mapping, quote, render
from autotune.declaration import yamlfile
from autotune.errors import FamilyError

BEFORE = "before.cu"  # the kernel as it was, with what it needs


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
        return self.free(f"{array.name}_after") if array in self.in_place else array.name

    def free(self, name: str) -> str:
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
        arrays, names = self.arrays.all.values(), (n for n in self.scalars if n not in self._parameters)
        return {name: next(array.name for array in arrays if name in array.shape) for name in names}

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
        return [self.name_extent(name) for name in array.shape]

    def name_extent(self, name: str) -> str:
        return f"{name}_extent" if name in self.scalars else name

    # -- policies ---------------------------------------------------------------------------------------

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
            place = array.shape.index(extent)
            indices = (array.split_index(access)[place] for access in array.pointer.accesses)
            is_one = array.is_accessor and not array.is_ascending and array.shape.count(extent) == 1
            if not is_one or not all(map(get_only_factor, indices)):
                return False
        return True

    # -- family.yaml ------------------------------------------------------------------------------------

    def family_yaml(self) -> str:
        accessors = [array for array in self.arrays.all.values() if array.is_accessor]
        wide = [array for array in accessors if len(array.shape) > 1]
        names = [cursor.spelling for cursor in self.function.parameters]
        launch = {
            "grid": format_list(quote(self.write_over_extents(item)) for item in self.geometry.grid),
            "block": format_list(self.geometry.block),
        }
        if self.shared_bytes:
            launch["shared_bytes"] = quote(self.write_over_extents(self.shared_bytes))
        return render(
            "family.yaml.jinja", of=self, editor_line=yamlfile.editor_line("family"), launch=launch,
            arguments=[self.name_array(self.arrays.all[n]) if n in self.arrays.all else n for n in names],
            types={cursor.spelling: type_name(cursor.type) for cursor in self.function.parameters},
            inputs=[array.name for array in accessors if not array.is_written], accessors=accessors,
            wide=wide, padded=[self.name_array(array) for array in wide],
            firsts={array.shape[0] for array in self.arrays.all.values()}, tolerance=self._tolerance(),
            usual={name: str(value) for name, value in self.geometry.usual.items()},
        )  # fmt: skip

    @property
    def copied(self) -> list[Array]:
        """Arrays in place whose layout can be chosen: a kernel copies what they begin as."""
        return [array for array in self.in_place if array.is_accessor]

    def write_over_extents(self, text: str) -> str:
        """An expression over extents, by the names that they have in the end."""
        return replace_names(text, {name: self.name_extent(name) for name in self.arrays.extents})

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
        arrays = [(array.name, self.name_array(array), *_index(array)) for array in self.copied]
        return render("begin.cu.jinja", arrays=arrays)


def _index(array: Array) -> tuple[str, str]:
    """How many elements an array has in C++, and the indices of element i."""
    counts = [f"{array.name}.extent({axis})" for axis in range(len(array.shape))]
    indices, rest = list[str](), "i"
    for axis in range(len(counts) - 1, 0, -1):
        indices.insert(0, f"{rest} % {counts[axis]}")
        rest = f"({rest} / {counts[axis]})" if axis > 1 else f"{rest} / {counts[axis]}"
    return " * ".join(counts), ", ".join([rest, *indices])

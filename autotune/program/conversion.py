"""Conversions between two forms of an array: by a kernel on the device, or by the host for what no kernel can make."""

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autotune.compile import Batch, Cache, Geometry, VariantSource, compile_batch, compile_one
from autotune.declaration import source_files
from autotune.device import Backend, Module, Placed
from autotune.files import include_dir
from autotune.layout import SCALAR_TYPES, tile_edge
from autotune.program.forms import Form

_KERNEL, _THREADS = "convert_form", 256  # convert.cuh: conversion_threads


@dataclass(frozen=True)
class FormConversion:
    """The copy of an array of canonical ``shape`` from ``before`` to ``after``."""

    before: Form
    after: Form
    shape: tuple[int, ...]

    @property
    def is_on_host(self) -> bool:
        """Whether no kernel can make it: packed values of another kind, scales that are found in the content."""
        before, after = self.before.layout, self.after.layout
        packed = (before.packing, before.vector) != (after.packing, after.vector)
        return packed or any(layout.stored_scales is not None for layout in (before, after))

    @cached_property
    def source(self) -> Batch:
        """The kernel as one compiler request."""
        before, after = self.before.layout, self.after.layout
        index = "unsigned long long" if after.data.index_bits == 64 else "unsigned"
        ends = f"{before.axes[-1]}, {after.axes[-1]}"
        name = f"C{self.before.digest}{self.after.digest}"
        members = (
            f"  using from_type = {before.cpp};\n  using to_type = {after.cpp};\n"
            f"  using shape = autotune::Conversion<{len(self.shape)}, {ends}, {tile_edge(after)}, {index}>;\n"
        )
        headers = "".join(f'#include "{name}"\n' for name in dict.fromkeys((*before.headers, *after.headers)))
        if after.data.record:
            fields = " ".join(f"{SCALAR_TYPES[field.type]} {field.name};" for field in after.data.fields)
            guard = f"HAS_{after.data.record}"  # once for a batch
            record = f"struct {after.data.record} {{ {fields} }};"
            headers += f"#ifndef {guard}\n#define {guard}\n{record}\n#endif\n"
        struct = f"struct {name} {{\n{members}}};\n"
        file = Path(__file__).with_name("convert.cu")
        files = source_files.hash_files(source_files.follow_includes([file], file.parent, include_dir()))
        key = hashlib.sha256("\n".join((source_files.combine(files), headers, struct)).encode()).hexdigest()
        return Batch(file, (include_dir(),), (VariantSource(key, name, struct, (_KERNEL,), headers),))

    @property
    def geometry(self) -> Geometry:
        """A block for each tile, or for as many values in a row."""
        after, edge = self.after.layout, tile_edge(self.after.layout)
        extents, ends = after.extents(self.shape), {self.before.layout.axes[-1], after.axes[-1]}
        if len(ends) == 1:
            blocks = -(-math.prod(extents) // edge**2)
        else:
            blocks = math.prod(-(-n // edge) if axis in ends else n for axis, n in enumerate(extents))
        return Geometry((blocks, 1, 1), (_THREADS, 1, 1))


class Converter:
    """Conversions on one device, compiled when they are first wanted."""

    def __init__(self, backend: Backend, cache: Cache) -> None:
        self._backend, self._cache = backend, cache
        self._modules: dict[FormConversion, Module] = {}

    def prepare(self, conversions: Iterable[FormConversion]) -> None:
        """Compile those that will be wanted, in one call of the compiler; what does not compile says so when it is
        made."""
        due = [one.source for one in conversions if not one.is_on_host and one not in self._modules]
        if due:
            variants = {batch.variants[0].key: batch.variants[0] for batch in due}
            compile_batch(due[0].select([*variants.values()]), self._backend.toolchain(), self._cache)

    def make_copy(self, conversion: FormConversion, source: Placed, target: Placed) -> Callable[[], None]:
        """What copies ``source`` to ``target``, both of the conversion's forms. Raises CompilerError, LaunchError."""
        if conversion.is_on_host:
            return lambda: self._convert_by_host(conversion, source, target)
        if conversion not in self._modules:
            failed = f"a conversion to {conversion.after.layout.cpp} does not compile: "
            compiled = compile_one(conversion.source, self._backend.toolchain(), self._cache, failed)
            self._modules[conversion] = self._backend.load(compiled)
        module, geometry = self._modules[conversion], conversion.geometry
        arguments = [
            self._backend.view(form.layout.room(conversion.shape), placed).argument
            for form, placed in ((conversion.before, source), (conversion.after, target))
        ]
        return lambda: self._backend.launch(module, _KERNEL, geometry, arguments)

    def _convert_by_host(self, conversion: FormConversion, source: Placed, target: Placed) -> None:
        array = conversion.before.restore(self._backend.download(source), conversion.shape)
        self._backend.upload(target, conversion.after.layout.apply(array))

    def close(self) -> None:
        """Unload what was compiled. Safe to call twice."""
        for module in self._modules.values():
            module.unload()
        self._modules.clear()

"""The kernels that make converted views: their C++, their launches, and where they stand among the family's own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from autotune.declaration import CONVERT, Expression, FamilyKernel
from autotune.layout import Layout, tile_edge

_THREADS = 256  # convert.cuh

_TEMPLATE = """\
#ifndef AUTOTUNE_{name}
#define AUTOTUNE_{name}
#include "{header}"
template <class Policy>
__global__ void __launch_bounds__({threads}) {name}(typename Policy::{of} from, typename Policy::to_{name} to) {{
  autotune::convert<typename Policy::of_{name}>(from, to);
}}
#endif
"""


@dataclass(frozen=True)
class Conversion:
    """One copy that is made: of the array ``of`` to the view ``view``, as they are stored."""

    of: Layout
    view: Layout

    @property
    def name(self) -> str:
        """The kernel's."""
        return f"convert_{self.view.data.name}"

    def __str__(self) -> str:
        return f"{self.view.data.name} is a copy of {self.of.data.name}, made by {self.name}"

    @property
    def text(self) -> str:
        """The kernel's definition, a template that stands ahead of the policy structs, once for a batch."""
        return _TEMPLATE.format(name=self.name, header=CONVERT, threads=_THREADS, of=self.of.data.name)

    @property
    def member(self) -> str:
        """What the policy struct says of it: the tiles, and the accessor that the copy is written through, whatever it
        is read through afterwards."""
        written = replace(self.view, data=replace(self.view.data, role="scratch"), memory="global").cpp
        rank, edge = len(self.view.axes), tile_edge(self.view)
        ends = f"{self.of.axes[-1]}, {self.view.axes[-1]}"
        index = "unsigned long long" if self.view.data.index_bits == 64 else "unsigned"
        return (
            f"  using of_{self.name} = autotune::Conversion<{rank}, {ends}, {edge}, {index}>;\n"
            f"  using to_{self.name} = {written};"
        )

    @cached_property
    def kernel(self) -> FamilyKernel:
        """With its launch: a block for each tile, or for as many values in a row."""
        data, edge = self.view.data, tile_edge(self.view)
        joined = self.view.packing.elements * self.view.vector if self.view.packing else 1
        extents = [f"ceil_div({n}, {joined})" if n == data.packed else n for n in data.shape]
        ends = {self.of.axes[-1], self.view.axes[-1]}
        if len(ends) == 1:
            blocks = f"ceil_div({' * '.join(extents)}, {edge * edge})"
        else:
            blocks = " * ".join(
                f"ceil_div({n}, {edge})" if axis in ends else n for axis, n in enumerate(extents)
            )
        where = f"the conversion of {data.of} to {data.name}"
        grid, block, none = (Expression(text, where) for text in (blocks, str(_THREADS), "0"))
        return FamilyKernel(self.name, (data.of, data.name), (grid,), (block,), none)


def order_launches(
    kernels: Mapping[str, FamilyKernel], conversions: Mapping[str, Conversion]
) -> Iterator[str]:
    """The names of the family's ``kernels`` in their order, and ahead of one that takes a view the ``conversions`` (by
    view) that are due: the first time, and again where a kernel since then had the array, which it may have written.
    """
    is_due = dict.fromkeys(conversions, True)
    for name, kernel in kernels.items():
        for view, conversion in conversions.items():
            if view in kernel.arguments and is_due[view]:
                yield conversion.name
                is_due[view] = False
        yield name
        for view, conversion in conversions.items():
            of = conversion.of.data
            is_due[view] |= of.role != "input" and of.name in kernel.arguments

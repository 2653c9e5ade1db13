"""One variant bound to resident data: what a call does on a device, ready to be run again and again.

The default plan clears the outputs that ask for it and launches every kernel once. A family whose
``family.py`` has a ``plan(execution)`` function drives the launches itself.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from autotune.backends import Backend, Module, Placed
from autotune.expression import Expression
from autotune.layout import Stored
from autotune.order import merged, reordered, restored
from autotune.variant import Geometry, Variant, scalar_bytes
from autotune.workload import Inputs

__all__ = ["Execution", "Resident", "Shared", "layout_key", "orders_of", "store"]


@dataclass(frozen=True)
class Shared:
    """Another accessor onto data that ``owner`` holds (grouping: merged)."""

    owner: Placed
    stored: Stored

    @property
    def argument(self) -> bytes:
        handle = int.from_bytes(self.owner.argument[:8], "little")  # an accessor begins with its handle
        return self.stored.argument(handle)

    def free(self) -> None:
        """The owner does."""


@dataclass
class Execution:
    """``names`` binds every extent, policy, option and scalar. ``run`` is asynchronous where the backend is."""

    backend: Backend
    variant: Variant
    module: Module
    placed: Mapping[str, Placed]
    names: Mapping[str, Any]
    windows: Mapping[str, Stored] = field(default_factory=dict)
    orders: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    transform_ms: float = 0.0
    transfer_ms: float = 0.0
    _launches: list[tuple[str, Geometry, list[bytes]]] = field(default_factory=list)
    _zeroed: list[Placed] = field(default_factory=list)

    def __post_init__(self) -> None:
        family = self.variant.family
        for data in family.data.values():
            if data.zero and Expression(data.zero).evaluate(self.names):
                self._zeroed.append(self.placed[data.name])
        for kernel in family.kernels.values():
            geometry = self.variant.geometry(kernel, self.names)
            self._launches.append((kernel.name, geometry, self._arguments(kernel.arguments, self.names)))
        self._plan = getattr(family.module, "plan", None)

    def _arguments(self, arguments: tuple[str, ...], names: Mapping[str, Any]) -> list[bytes]:
        scalars = self.variant.family.scalars
        return [
            scalar_bytes(scalars[name].type, names[name]) if name in scalars else self.placed[name].argument
            for name in arguments
        ]

    @property
    def has_own_plan(self) -> bool:
        """Whether the family drives the launches itself."""
        return self._plan is not None

    def run(self) -> None:
        """One call: the family's own plan, or every kernel once."""
        if self._plan is not None:
            self._plan(self)
            return
        for placed in self._zeroed:
            self.backend.fill(placed, 0)
        for kernel, geometry, arguments in self._launches:
            self.backend.launch(self.module, kernel, geometry, arguments)

    @property
    def footprint_bytes(self) -> int:
        """Device memory the call's arrays take."""
        return sum(p.stored.nbytes for p in self.placed.values() if not isinstance(p, Shared))

    def restore(self, name: str, shape: Sequence[int]) -> NDArray[Any]:
        """The canonical content of one array as the device has it now: layout and order undone."""
        placed = self.placed[name]
        stored = replace(placed.stored, buffer=self.backend.download(placed))
        array = self.variant.layouts[name].restore(stored, shape)
        return restored(self.variant.family.data[name], array, self.orders)

    def prepare(self) -> None:
        """Fill the constant windows again: another variant in the same binary may have used them since."""
        for stored in self.windows.values():
            self.backend.place(stored, self.module)

    def launch(self, kernel: str, **scalars: Any) -> None:
        """For a family's own plan: one launch with the given scalars in place of the workload's."""
        declared = self.variant.family.kernels[kernel]
        names = {**self.names, **scalars}
        self.backend.launch(
            self.module,
            kernel,
            self.variant.geometry(declared, names),
            self._arguments(declared.arguments, names),
        )

    def zero(self, data: str) -> None:
        """For a family's own plan: clear one array."""
        self.backend.fill(self.placed[data], 0)


def store(variant: Variant, inputs: Inputs) -> dict[str, Stored]:
    """The host transform of every input: data name -> Stored. Reorders, merges, packs, transposes. The members of
    a merged group share one buffer."""
    family, layouts = variant.family, variant.layouts
    orders = orders_of(variant, inputs)
    arrays = {name: reordered(family.data[name], array, orders) for name, array in inputs.arrays.items()}
    stored: dict[str, Stored] = {}
    for group in variant.groups:
        joined = merged([layouts[m] for m in group], [arrays[m] for m in group])
        stored.update(zip(group, joined, strict=True))
    alone = [name for name in arrays if name not in stored]
    return stored | {name: layouts[name].apply(arrays[name]) for name in alone}


def orders_of(variant: Variant, inputs: Inputs) -> dict[str, Any]:
    """Permutation of each index space that an order policy moves: ``orders`` in family.py, by policy value."""
    orders: dict[str, Any] = {}
    for policy in variant.family.space.policies:
        if policy.layout == "order":
            maker = getattr(variant.family.module, "orders", {}).get(variant.configuration[policy.name])
            if maker is not None:
                orders.update(dict.fromkeys(policy.data, maker(inputs.arrays)))
    return orders


@dataclass
class Resident:
    """Arrays on one device for many variants: variants of one layout share their inputs, all share their outputs.

    Keeps the ``most`` latest input layouts. ``transform_ms`` and ``transfer_ms`` are what a layout cost when it was
    first made: the host transform, and allocation with the copy to the device.
    """

    backend: Backend
    inputs: Inputs
    most: int = 10
    _inputs: dict[str, tuple[dict[str, Stored], dict[str, Placed], float, float]] = field(
        default_factory=dict
    )
    _outputs: dict[str, Placed] = field(default_factory=dict)

    def execution(self, variant: Variant, module: Module) -> Execution:
        """``variant`` bound to resident data, its constant windows filled."""
        family, layouts = variant.family, variant.layouts
        key = layout_key(variant)
        if key not in self._inputs:
            while len(self._inputs) >= self.most:
                self._free(next(iter(self._inputs)))
            begin = time.perf_counter()
            stored = store(variant, self.inputs)
            middle = time.perf_counter()
            placed = self._placed(stored)
            self.backend.synchronize()
            end = time.perf_counter()
            self._inputs[key] = stored, placed, (middle - begin) * 1e3, (end - middle) * 1e3
        stored, placed, transform_ms, transfer_ms = self._inputs[key]
        windows = {n: s for n, s in stored.items() if s.memory == "constant"}
        bound = {**placed, **{n: self.backend.place(s, module) for n, s in windows.items()}}
        for name, layout in layouts.items():
            if name not in stored:
                if layout.cpp + name not in self._outputs:
                    shape = tuple(self.inputs.sizes[extent] for extent in family.data[name].shape)
                    self._outputs[layout.cpp + name] = self.backend.place(layout.room(shape))
                bound[name] = self._outputs[layout.cpp + name]
        names = family.names(
            variant.configuration, self.inputs.sizes, self.inputs.options, self.inputs.scalars
        )
        orders = orders_of(variant, self.inputs)
        return Execution(
            self.backend, variant, module, bound, names, windows, orders, transform_ms, transfer_ms
        )

    def _placed(self, stored: Mapping[str, Stored]) -> dict[str, Placed]:
        """Every input but the constant ones on the device, a shared buffer once."""
        owners: dict[int, Placed] = {}
        placed: dict[str, Placed] = {}
        for name, item in stored.items():
            if item.memory == "constant":
                continue
            if id(item.buffer) in owners:
                placed[name] = Shared(owners[id(item.buffer)], item)
            else:
                placed[name] = owners[id(item.buffer)] = self.backend.place(item)
        return placed

    def _free(self, key: str) -> None:
        for placed in self._inputs.pop(key)[1].values():
            placed.free()

    def close(self) -> None:
        """Free everything; what ``execution`` gave is of no use afterwards."""
        for key in list(self._inputs):
            self._free(key)
        for placed in self._outputs.values():
            placed.free()
        self._outputs.clear()


def layout_key(variant: Variant) -> str:
    """Equal for variants whose inputs are stored alike."""
    family = variant.family
    orders = [str(variant.configuration[p.name]) for p in family.space.policies if p.layout == "order"]
    layouts = [f"{d.name}:{variant.layouts[d.name]!r}" for d in family.inputs]
    return "|".join(orders + layouts)

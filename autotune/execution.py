"""One variant bound to resident data: what a call does on a device, ready to be run again and again.

The default plan clears the outputs that ask for it and launches every kernel once. A family whose
``family.py`` has a ``plan(execution)`` function drives the launches itself.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autotune.backends import Backend, Module, Placed
from autotune.expression import Expression
from autotune.layout import Stored
from autotune.order import merged, reordered
from autotune.variant import Geometry, Variant, scalar_bytes
from autotune.workload import Inputs

__all__ = ["Execution", "Resident", "layout_key", "store"]


@dataclass
class Execution:
    """``names`` binds every extent, policy, option and scalar. ``run`` is asynchronous where the backend is."""

    backend: Backend
    variant: Variant
    module: Module
    placed: Mapping[str, Placed]
    names: Mapping[str, Any]
    windows: Mapping[str, Stored] = field(default_factory=dict)
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
        plan = getattr(family.module, "plan", None)
        self.run = (lambda: plan(self)) if plan else self._run

    def _arguments(self, arguments: tuple[str, ...], names: Mapping[str, Any]) -> list[bytes]:
        scalars = self.variant.family.scalars
        return [
            scalar_bytes(scalars[name].type, names[name]) if name in scalars else self.placed[name].argument
            for name in arguments
        ]

    def _run(self) -> None:
        for placed in self._zeroed:
            self.backend.fill(placed, 0)
        for kernel, geometry, arguments in self._launches:
            self.backend.launch(self.module, kernel, geometry, arguments)

    @property
    def footprint_bytes(self) -> int:
        """Device memory the call's arrays take."""
        return sum(placed.stored.nbytes for placed in self.placed.values())

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
    """The host transform of every input: data name -> Stored. Reorders, merges, packs, transposes."""
    family, layouts = variant.family, variant.layouts
    orders = _orders(variant, inputs)
    arrays = {name: reordered(family.data[name], array, orders) for name, array in inputs.arrays.items()}
    stored: dict[str, Stored] = {}
    for name, layout in layouts.items():
        if name in stored or name not in arrays:
            continue
        if layout.group == (1, 0):
            stored[name] = layout.apply(arrays[name])
        else:
            members = [other for other in layouts if layouts[other].group[0] > 1 and other in arrays]
            joined = merged([layouts[m] for m in members], [arrays[m] for m in members])
            stored.update(zip(members, joined, strict=True))
    return stored


def _orders(variant: Variant, inputs: Inputs) -> dict[str, Any]:
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
            placed = {n: self.backend.place(s) for n, s in stored.items() if s.memory != "constant"}
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
        return Execution(self.backend, variant, module, bound, names, windows, transform_ms, transfer_ms)

    def _free(self, key: str) -> None:
        for placed in self._inputs.pop(key)[1].values():
            placed.free()

    def close(self) -> None:
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

"""One variant bound to resident data: what a call does on a device, ready to be run again and again.

The default plan clears the outputs that ask for it and launches every kernel once. A family whose
``family.py`` has a ``plan(execution)`` function drives the launches itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.backends import Backend, Module, Placed
from autotune.expression import Expression
from autotune.layout import Stored
from autotune.order import Order, restored
from autotune.variant import Geometry, Variant, scalar_bytes

__all__ = ["Execution", "Shared"]


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
    orders: Mapping[str, Order] = field(default_factory=dict)
    transform_ms: float = 0.0
    transfer_ms: float = 0.0
    _launches: list[tuple[str, Geometry, list[bytes]]] = field(default_factory=list)
    _zeroed: list[Placed] = field(default_factory=list)
    _graphs: dict[str, Callable[[], None]] = field(default_factory=dict)
    _bound: dict[tuple[Any, ...], tuple[Geometry, list[bytes]]] = field(default_factory=dict)

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

    def head(self, name: str, count: int) -> NDArray[Any]:
        """The first ``count`` elements of a one-dimensional array as the device has them now, links as they are; only
        those are fetched. The array must lie plainly: 1d, aos, not packed, padded or merged."""
        placed, data = self.placed[name], self.variant.family.data[name]
        return self.backend.download(placed, count * data.dtype.itemsize).view(data.dtype)

    def prepare(self) -> None:
        """Fill the constant windows again: another variant in the same binary may have used them since."""
        for stored in self.windows.values():
            self.backend.place(stored, self.module)

    def launch(self, kernel: str, **scalars: Any) -> None:
        """For a family's own plan: one launch with the given scalars in place of the workload's."""
        self.backend.launch(self.module, kernel, *self._launch_of(kernel, scalars))

    def launch_cooperative(self, kernel: str, **scalars: Any) -> None:
        """For a family's own plan: one launch whose blocks all run at the same time, so that they may wait for each
        other (on the cpu device, one block). The kernel's declared grid, in x alone, is the most blocks there will
        be; how many there are is in gridDim.x. Raises LaunchError."""
        self.backend.launch_cooperative(self.module, kernel, *self._launch_of(kernel, scalars))

    def _launch_of(self, kernel: str, scalars: Mapping[str, Any]) -> tuple[Geometry, list[bytes]]:
        """Geometry and arguments, worked out once: a plan may launch many thousand times."""
        key = kernel, *scalars.items()
        if key not in self._bound:
            declared = self.variant.family.kernels[kernel]
            names = {**self.names, **scalars}
            arguments = self._arguments(declared.arguments, names)
            self._bound[key] = self.variant.geometry(declared, names), arguments
        return self._bound[key]

    def graph(self, name: str, steps: Callable[[], None]) -> None:
        """For a family's own plan: what ``steps`` launches and clears, as one graph where the device has graphs. It is
        recorded the first time and only launched afterwards, so ``name`` must always stand for the very same steps,
        and ``steps`` may neither fetch nor upload."""
        if name not in self._graphs:
            self._graphs[name] = self.backend.record(steps)
        self._graphs[name]()

    def stage(self, name: str, work: Callable[[int], None]) -> None:
        """For a family's own plan: work that is no kernel of its own (see Backend.stage); ``name`` is no kernel's.
        Not inside a graph."""
        self.backend.stage(name, work)

    def refill(self, data: str, buffer: NDArray[np.uint8]) -> None:
        """For a family's own plan: new bytes, as many as there are, for an array as it lies on the device."""
        placed = self.placed[data]
        self.backend.upload(placed, replace(placed.stored, buffer=buffer))

    def address(self, data: str) -> int:
        """For a library: where a scratch or output array begins on the device."""
        return int.from_bytes(self.placed[data].argument[:8], "little")  # an accessor begins with its handle

    @property
    def graphs(self) -> int:
        """How many graphs have been recorded."""
        return len(self._graphs)

    def zero(self, data: str) -> None:
        """For a family's own plan: clear one array."""
        self.backend.fill(self.placed[data], 0)

"""One variant bound to resident data: what a call does on a device, ready to be run again and again.

The default plan clears the outputs that ask for it and launches every kernel once. A family whose
``family.py`` has a ``plan(execution)`` function drives the launches itself.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from autotune.backends import Backend, Launch, Module, Placed
from autotune.expression import parsed
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
    placed: MutableMapping[str, Placed]
    names: Mapping[str, Any]
    windows: Mapping[str, Stored] = field(default_factory=dict)
    orders: Mapping[str, Order] = field(default_factory=dict)
    transform_ms: float = 0.0
    transfer_ms: float = 0.0
    _launches: list[tuple[str, Geometry, list[bytes]]] = field(default_factory=list)
    _zeroed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        family = self.variant.family
        for data in family.data.values():
            if data.zero and parsed(data.zero).evaluate(self.names):
                self._zeroed.append(data.name)
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
        for name in self._zeroed:
            self.backend.fill(self.placed[name], 0)
        for kernel, geometry, arguments in self._launches:
            self.backend.launch(self.module, kernel, geometry, arguments)

    @property
    def fills(self) -> dict[str, Placed]:
        """What the default plan clears before its launches."""
        return {name: self.placed[name] for name in self._zeroed}

    @property
    def launches(self) -> list[Launch]:
        """The default plan's launches, each argument with the name of its array."""
        family = self.variant.family
        return [
            Launch(
                self.module,
                kernel,
                geometry,
                tuple(arguments),
                tuple("" if name in family.scalars else name for name in family.kernels[kernel].arguments),
            )
            for kernel, geometry, arguments in self._launches
        ]

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

"""One variant bound to resident data: what a call does on a device, ready to be run again and again.

The default plan clears the outputs that ask for it and launches every kernel once. A family whose
``family.py`` has a ``plan(execution)`` function drives the launches itself.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from autotune.compile import Geometry, Variant, scalar_bytes
from autotune.device.backend import Backend, Beginning, Launch, Module, Placed
from autotune.device.placed import PlacedInput, Shared, Windowed, linear
from autotune.errors import FamilyError, UnknownName
from autotune.layout import POINTER_BYTES, Order, Stored, handle, members, restore, struct_of

Made = TypeVar("Made")


@dataclass
class Execution:
    """``names`` binds every extent, policy, option and scalar. ``run`` is asynchronous where the backend is."""

    backend: Backend
    variant: Variant
    module: Module
    placed: MutableMapping[str, Placed]
    names: Mapping[str, Any]
    constants: Mapping[str, Stored] = field(default_factory=dict)
    orders: Mapping[str, Order] = field(default_factory=dict)
    transform_ms: float = 0.0
    transfer_ms: float = 0.0
    input_bytes: int = 0  # copied from the host for the inputs, as they are stored
    inputs: tuple[PlacedInput, ...] = ()
    _launches: list[tuple[str, Geometry, list[bytes]]] = field(default_factory=list)
    _zeroed: list[str] = field(default_factory=list)
    _at: dict[str, int] = field(default_factory=dict)  # the windowed extents a plan is in: which window
    _graphs: dict[str, tuple[tuple[bytes, ...], Callable[[], None]]] = field(default_factory=dict)
    _bound: dict[tuple[Any, ...], tuple[Geometry, dict[str, bytes]]] = field(default_factory=dict)
    _made: dict[str, Any] = field(default_factory=dict)
    _writers: dict[str, bytes] = field(default_factory=dict)  # by kernel: what a copy is written through
    _sent_bytes: int = 0  # by the latest run's plan

    def __post_init__(self) -> None:
        family = self.variant.family
        self._zeroed = family.list_cleared(self.names)
        for name, conversion in self.variant.conversions.items():
            placed = self.placed[name]
            linear_part = replace(placed.stored, memory="global")
            self._writers[conversion.name] = self.backend.view(linear_part, placed).argument
        self._set_launches()
        self._plan = getattr(family.module, "plan", None)
        self._windowed = {name: p for name, p in self.placed.items() if isinstance(p, Windowed)}
        self._fill_constants()

    def _set_launches(self) -> None:
        """The default plan's, with the arrays where they are now."""
        self._launches = [(name, *self.bind(name)) for name in self.variant.turns]

    def _accessor(self, kernel: str, name: str) -> bytes:
        """What the kernel gets for the array."""
        if kernel in self._writers and name in self.variant.conversions:
            return self._writers[kernel]
        name = self._array(name)
        placed = self.placed[name]
        if isinstance(placed, Windowed) and placed.extent in self._at:
            return placed.windows[self._at[placed.extent]].stored.argument(0)
        if name in self.variant.family.accesses:
            return placed.argument[:POINTER_BYTES]
        return placed.argument

    def _array(self, name: str) -> str:
        """The array that has the name, where that is a view's which is the array itself."""
        return self.variant.aliases.get(name, name)

    def has_memory(self, name: str) -> bool:
        """Return whether the array has memory of its own, and is not a view of another."""
        return not self.variant.family.data[name].of or name in self.variant.conversions

    def _refuse_partial(self, kernel: str) -> None:
        """Raise FamilyError for a launch that would see one of several windows and take it for the whole."""
        for name, placed in self._windowed.items():
            takes = name in self.variant.kernels[kernel].arguments
            if takes and len(placed.windows) > 1 and placed.extent not in self._at:
                raise FamilyError(
                    f"family {self.variant.family.name}: kernel {kernel} is launched with {name}, which is in "
                    f"{len(placed.windows)} windows: the plan in family.py has to walk through "
                    f'execution.windows("{placed.extent}")'
                )

    @property
    def has_own_plan(self) -> bool:
        """Whether the family drives the launches itself."""
        return self._plan is not None

    def run(self) -> None:
        """Run one call: the family's own plan, or every kernel once."""
        if self._plan is not None:
            self._sent_bytes = 0
            self._plan(self)
            return
        for name in self._zeroed:
            self.backend.fill(self.placed[name], 0)
        for name in self.variant.family.beginnings:
            self.begin(name)
        for kernel, geometry, arguments in self._launches:
            self._refuse_partial(kernel)
            self.backend.launch(self.module, kernel, geometry, arguments)

    @property
    def whole_windows(self) -> dict[str, Windowed] | None:
        """What is in constant memory before the launches and stays there, from memory of the device; None where some of
        it is cut or comes from the host."""
        if self.constants or any(len(placed.windows) > 1 for placed in self._windowed.values()):
            return None
        return self._windowed

    @property
    def symbols(self) -> dict[str, tuple[str, Placed]]:
        """The inputs that arrays of the source are filled from, each with what it is called there."""
        return {name: (symbol, self.placed[name]) for name, symbol in self.variant.family.symbols.items()}

    def lend(self, name: str, placed: Placed) -> None:
        """The array ``name`` is ``placed`` from now on; in constant memory, what its window is filled from."""
        held = self.placed[name]
        if isinstance(held, Windowed):
            placed = self._windowed[name] = replace(held, resident=placed)
        self.placed[name] = placed
        self._set_launches()

    @property
    def fills(self) -> dict[str, Placed]:
        """What the default plan clears before its launches."""
        return {name: self.placed[name] for name in self._zeroed}

    @property
    def beginnings(self) -> tuple[Beginning, ...]:
        """What the default plan copies before its launches."""
        return tuple(
            Beginning(name, self.placed[name], given, self.placed[given])
            for name, given in self.variant.family.beginnings.items()
        )

    @property
    def launches(self) -> list[Launch]:
        """The default plan's launches, with the addresses of arrays; what is in constant memory has none."""
        made = []
        for kernel, geometry, arguments in self._launches:
            declared = self.variant.kernels[kernel]
            named = list(map(self._array, declared.arguments))
            places = [(number, 0) for number in range(len(named))]
            if declared.struct:
                places = [(0, byte) for byte in members(self._values(kernel)[1])[1]]
            addresses = tuple(
                (name, *place)
                for name, place in zip(named, places, strict=True)
                if name in self.placed and name not in self._windowed
            )
            made.append(Launch(self.module, kernel, geometry, tuple(arguments), addresses))
        return made

    @property
    def footprint_bytes(self) -> int:
        """Return the device memory of the call's arrays, in bytes."""
        own = (p for n, p in self.placed.items() if not isinstance(p, Shared) and self.has_memory(n))
        return sum(placed.stored.nbytes for placed in own)

    @property
    def transfer_bytes(self) -> int:
        """Return the bytes copied from the host for one call: inputs, and what the plan sent in the latest run."""
        return self.input_bytes + self._sent_bytes

    def restore(self, name: str, shape: Sequence[int]) -> NDArray[Any]:
        """The canonical content of one array as the device has it now: layout and order undone. Not of an input in a
        texture's plane or in several windows. Raises FamilyError for a view."""
        if not self.has_memory(name):
            raise FamilyError(f"{name} is a view of {self.variant.family.data[name].of}: restore that")
        placed = self.placed[name]
        owner = placed.owner if isinstance(placed, Shared) else linear(placed)
        kept = placed.windows[0].stored if isinstance(placed, Windowed) else placed.stored
        stored = replace(kept, buffer=self.backend.download(owner))
        array = self.variant.layouts[name].restore(stored, shape)
        return restore(self.variant.family.data[name], array, self.orders)

    def head(self, name: str, count: int, into: NDArray[np.uint8] | None = None) -> NDArray[Any]:
        """The first ``count`` elements of a one-dimensional array as the device has them now, links as they are; only
        those are fetched, to the bytes ``into`` where they are given. The array must lie plainly: 1d, aos, not packed,
        padded or merged. Raises FamilyError for numbers that are stored as codes."""
        if stored := self.variant.layouts[name].storage:
            raise FamilyError(
                f"{name}: its head cannot be fetched, since its numbers are stored as {stored.name}"
            )
        placed, data = self.placed[name], self.variant.family.data[name]
        return self.backend.download(placed, count * data.dtype.itemsize, into).view(data.dtype)

    @property
    def uses_constant(self) -> bool:
        """Whether ``prepare`` has something to do, and no other variant of the binary may run meanwhile."""
        return bool(self.constants or self._windowed or self.variant.family.symbols)

    def prepare(self) -> None:
        """Fill constant memory again: another variant in the same binary, or the same one on other data, may have used
        it since."""
        for stored in self.constants.values():
            self.backend.place(stored, self.module)
        self._fill_constants()

    def _fill_constants(self) -> None:
        """An array that fits is there before the plan, as any other array in constant memory, and so are the source's
        own."""
        for symbol, placed in self.symbols.values():
            self.backend.fill_symbol(self.module, symbol, placed)
        for placed in self._windowed.values():
            if len(placed.windows) == 1:
                self.backend.fill_window(self.module, placed.resident, 0, placed.windows[0].stored)

    def windows(self, extent: str) -> Iterator[tuple[int, int]]:
        """For a family's own plan: (first, count) of each window over ``extent``, along which arrays are declared
        ``windowed``. In the loop's body those in constant memory hold that window, at index 0, and their extent is
        ``count``; the copies are queued on the device like launches. In any other memory everything is one window.
        Raises UnknownName when no array is windowed along ``extent``."""
        declared = set(self.variant.family.windowed.values())
        if extent not in declared:
            raise UnknownName("windowed extent", extent, declared, f"family {self.variant.family.name}")
        cut = [placed for placed in self._windowed.values() if placed.extent == extent]
        if not cut:
            yield 0, int(self.names[extent])
            return
        try:
            for number, window in enumerate(cut[0].windows):
                self._at[extent] = number
                for placed in cut if len(cut[0].windows) > 1 else ():
                    part = placed.windows[number]
                    self.backend.fill_window(self.module, placed.resident, part.begin, part.stored)
                yield window.first, window.count
        finally:
            self._at.pop(extent, None)

    def launch(self, kernel: str, **scalars: Any) -> None:
        """For a family's own plan: launch a kernel with the given scalars in place of the workload's."""
        self._refuse_partial(kernel)
        self.backend.launch(self.module, kernel, *self.bind(kernel, **scalars))

    def convert(self, view: str) -> None:
        """For a family's own plan: make a converted view what its array is now, in the layout that was chosen for it;
        nothing where that is the array's own. Raises UnknownName for what is no converted view."""
        views = [name for name, data in self.variant.family.data.items() if data.converted]
        if view not in views:
            raise UnknownName("converted view", view, views, f"family {self.variant.family.name}")
        if view in self.variant.conversions:
            self.launch(self.variant.conversions[view].name)

    def launch_cooperative(self, kernel: str, **scalars: Any) -> None:
        """For a family's own plan: one launch whose blocks all run at the same time, so that they may wait for each
        other (on the cpu device, as many as it has threads). The kernel's declared grid, in x alone, is the most
        blocks there will be; how many there are is in gridDim.x. Raises LaunchError."""
        self._refuse_partial(kernel)
        self.backend.launch_cooperative(self.module, kernel, *self.bind(kernel, **scalars))

    def bind(self, kernel: str, **scalars: Any) -> tuple[Geometry, list[bytes]]:
        """Return a launch's geometry and the bytes of its kernel's parameters."""
        geometry, values = self._values(kernel, **scalars)
        return geometry, [struct_of(values)] if self.variant.kernels[kernel].struct else values

    def _values(self, kernel: str, **scalars: Any) -> tuple[Geometry, list[bytes]]:
        """A launch's geometry and arguments. What the scalars decide is worked out once, since a plan may launch many
        thousand times; the arrays may be others at each launch."""
        key = kernel, *scalars.items()
        declared = self.variant.kernels[kernel]
        if key not in self._bound:
            names, kind_of = {**self.names, **scalars}, self.variant.family.number_type
            given = {n: scalar_bytes(kind, names[n]) for n in declared.arguments if (kind := kind_of(n))}
            self._bound[key] = self.variant.geometry(declared, names), given
        geometry, given = self._bound[key]
        return geometry, [
            given[name] if name in given else self._accessor(kernel, name) for name in declared.arguments
        ]

    def graph(self, name: str, steps: Callable[[], None]) -> None:
        """For a family's own plan: what ``steps`` launches and clears, as one graph on devices that have graphs.

        It is recorded the first time and only launched afterwards, so ``name`` must always stand for the same steps;
        ``steps`` may neither fetch nor upload. It is recorded again if an array has another address than the last time.
        """
        places = tuple(placed.argument for placed in self.placed.values())
        if name not in self._graphs or self._graphs[name][0] != places:
            self._graphs[name] = places, self.backend.record(steps)
        self._graphs[name][1]()

    def make_once(self, name: str, make: Callable[[], Made]) -> Made:
        """For a family's own plan: return what ``make`` made at the first call with ``name``; kept as long as this."""
        if name not in self._made:
            self._made[name] = make()
        made: Made = self._made[name]
        return made

    def stage(self, name: str, work: Callable[[int], None]) -> None:
        """For a family's own plan: work that is no kernel of its own (see Backend.stage); ``name`` is no kernel's.
        Not inside a graph."""
        self.backend.stage(name, work)

    def refill(self, data: str, buffer: NDArray[np.uint8]) -> None:
        """For a family's own plan: replace the bytes of an array on the device by as many new ones."""
        placed = self.placed[data]
        self.backend.upload(placed, replace(placed.stored, buffer=buffer))
        self._sent_bytes += buffer.nbytes

    def address(self, data: str) -> int:
        """Return the address of a scratch or output array on the device, for a library."""
        return handle(self.placed[data].argument)

    @property
    def graphs(self) -> int:
        """How many graphs have been recorded."""
        return len(self._graphs)

    def begin(self, data: str) -> None:
        """For a family's own plan: make an array a copy of the input that it begins as."""
        self.backend.copy(self.placed[data], self.placed[self.variant.family.beginnings[data]])

    def zero(self, data: str, first: int = 0, count: int | None = None) -> None:
        """For a family's own plan: clear an array, or ``count`` indices of its first extent from ``first``.

        That extent must be the slowest in memory. Raises FamilyError.
        """
        placed, layout = self.placed[data], self.variant.layouts[data]
        if count is None:
            self.backend.fill(placed, 0)
            return
        is_plain = layout.axes[0] == 0 and layout.mapping.is_strided and layout.dims == "1d"
        is_apart = layout.lanes != 1 and layout.parts > 1
        if not is_plain or layout.group[0] > 1 or layout.packing or is_apart:
            raise FamilyError(f"{data}: a part of it cannot be cleared, since its layout scatters it")
        step = placed.stored.strides[0] * layout.value_bytes
        self.backend.fill(placed, 0, first * step, count * step)

"""Arrays on one device for many variants: each stored once for every layout in which variants want it.

What is kept is kept by array (or merged group), so that changing one policy moves only the data it concerns. An array
that is on the GPU already is used where it is when the layout leaves it as it is, else stored by a kernel.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.compile import Cache, Compiled, Variant, batch, compile_one
from autotune.declaration import Configuration, Family, Inputs
from autotune.device.backend import Backend, LaunchError, Module, Placed, make_raw
from autotune.device.execution import Execution
from autotune.device.foreign import View
from autotune.device.orders import Ordering, order_key
from autotune.device.placed import PlacedInput, Shared, Windowed, linear
from autotune.device.transform import LayoutTransform, explain_refusal, is_as_stored, view_staged
from autotune.errors import DeviceError, LayoutRefusal
from autotune.layout import (
    Bytes,
    Layout,
    Order,
    Stored,
    Window,
    cut,
    find_gaps,
    handle,
    merge,
    steps,
    view_room,
)

_MEMORY_SHARE = 0.5  # of the device's memory, for inputs in layouts that are not in use


@dataclass
class Resident:
    """``execution`` binds a variant; it stays good until ``most`` others have been bound and memory runs short.

    All variants share their outputs; those in ``lent`` lie in arrays of the caller's. An array that is the very object
    in ``parent``'s inputs is shared with it (the parent must outlive this). ``transform_ms`` and ``transfer_ms`` of an
    execution are what its layouts cost when they were first made: the host transform with orders, and allocation with
    the copy to the device. What had been made for another layout counts as if it were made for this one alone.

    ``guard`` bytes lie around each array, and checksums of inputs are taken, for a verifier to see what a kernel
    does outside of its arrays and to its inputs; 0 for neither.
    """

    backend: Backend
    inputs: Inputs
    most: int = 10
    parent: "Resident | None" = None
    layout_transform: LayoutTransform | None = None
    lent: Mapping[str, Placed] = field(default_factory=dict)
    guard: int = 0
    _kept: dict[str, PlacedInput] = field(default_factory=dict)
    _outputs: dict[str, Placed] = field(default_factory=dict)
    _views: dict[str, Placed] = field(default_factory=dict)
    _bound: int = 0
    _ordering: Ordering = field(init=False)

    def __post_init__(self) -> None:
        above = self.parent._ordering if self.parent else None  # noqa: SLF001 - one class
        self._ordering = Ordering(above)

    def execution(self, variant: Variant, module: Module) -> Execution:
        """``variant`` bound to resident data, its constant windows filled. Raises LaunchError, FamilyError."""
        layouts = variant.layouts
        self._bound += 1
        orders = self._ordering.orders_of(variant, self.inputs)
        kept = self._hold(variant, orders)
        bound: dict[str, Placed] = {}
        windows: dict[str, Stored] = {}
        for item in kept:
            bound |= item.placed
            windows |= {name: s for name, s in item.stored.items() if s.buffer is not None}
        bound |= {name: self.backend.place(stored, module) for name, stored in windows.items()}
        for name, layout in layouts.items():
            if name not in bound and (not layout.data.of or name in variant.conversions):
                bound[name] = self._output(variant, name, layout)
        for name, layout in layouts.items():
            if name not in bound and name not in variant.aliases:
                bound[name] = self._view(variant, name, bound[layout.data.of])
        names = {**self.inputs.names(variant.configuration), **module.numbers}
        if module.numbers and (reason := variant.explain_exclusion(names, self.backend.device.limits)):
            raise LaunchError(reason)
        return Execution(
            self.backend, variant, module, bound, names, windows, orders,
            sum(item.transform_ms for item in kept) + self._ordering.ordering_ms(variant),
            sum(item.transfer_ms for item in kept),
            sum(item.transfer_bytes for item in kept) + sum(stored.nbytes for stored in windows.values()),
            inputs=tuple(kept),
        )  # fmt: skip

    def hold(self, variant: Variant) -> None:
        """Store the inputs as ``variant`` wants them, before anything is bound. Raises LaunchError, FamilyError."""
        self._hold(variant, self._ordering.orders_of(variant, self.inputs))

    def order(self, variant: Variant, inputs: Inputs) -> None:
        """Make the orders of ``variant`` from ``inputs``, arrays of the host, for all that has this as its parent."""
        self._ordering.orders_of(variant, inputs)

    def is_ordered(self, variant: Variant) -> bool:
        """Whether the orders of ``variant`` are made."""
        return self._ordering.has_orders_of(variant)

    def _hold(self, variant: Variant, orders: Mapping[str, Order]) -> list[PlacedInput]:
        grouped = {name: group for group in variant.groups for name in group}
        groups = dict.fromkeys(grouped.get(data.name, (data.name,)) for data in variant.family.inputs)
        return [self._keep(variant, group, orders) for group in groups]

    def refill(self, variant: Variant, arrays: Mapping[str, NDArray[Any]]) -> None:
        """New content for inputs of the same shape and dtype, in place: executions of ``variant`` made before read
        it at their next run. The arrays are canonical; none is merged, reordered or in constant memory that is filled
        from the host."""
        for name, array in arrays.items():
            if not self._is_used(variant, name):
                continue
            layout = variant.layouts[name]
            item = self._kept[_key(variant, (name,))]
            self.backend.upload(linear(item.placed[name]), layout.apply(array))

    def _keep(self, variant: Variant, group: tuple[str, ...], orders: Mapping[str, Order]) -> PlacedInput:
        parent = self.parent
        if parent and all(parent.inputs.arrays.get(n) is self.inputs.arrays[n] for n in group):
            return parent._keep(variant, group, orders)  # noqa: SLF001 - one class
        is_used = self._is_used(variant, group[0])
        key = _key(variant, group) + ("" if is_used else " unused")
        extent = variant.family.windowed.get(group[0], "")
        step = 0  # elements in a window
        if variant.is_cut(group[0]):
            limits = self.backend.device.limits
            step = steps(variant.layouts, variant.family.windowed, self.inputs.sizes, limits)[extent]
            key += f" by {step}"
        if key not in self._kept:
            self._make_room()
            if step:
                self._kept[key] = self._cut(variant, group[0], orders, step)
            elif is_used:
                self._kept[key] = self._store(variant, group, orders)
            else:
                self._kept[key] = self._room(variant.layouts[group[0]], group[0])
            if self.guard:
                self._kept[key].take_checksum(self.backend)
        item = self._kept[key]
        item.used = self._bound
        return item

    def _store(self, variant: Variant, group: tuple[str, ...], orders: Mapping[str, Order]) -> PlacedInput:
        begin = time.perf_counter()
        view: Any = self.inputs.arrays[group[0]]
        if isinstance(view, View) and len(group) > 1:
            return self._borrow_merged(variant, group)
        if isinstance(view, View):
            return self._from_device(variant.layouts[group[0]], group[0], view)
        if self.layout_transform is not None and can_be_staged(variant, group[0], view):
            room = self.backend.place(replace(make_raw(view.nbytes), buffer=view.reshape(-1).view(np.uint8)))
            try:
                there = view_staged(view, handle(room.argument))
                made = self._from_device(variant.layouts[group[0]], group[0], there)
                return replace(made, transfer_bytes=view.nbytes)
            finally:
                room.free()
        saved_ms = sum(self._ordering.saved_ms(variant, name) for name in group)
        shaped = self._shape_members(variant, group, orders)
        middle = time.perf_counter()
        owner: Placed | None = None
        placed: dict[str, Placed] = {}
        from_host = self.layout_transform is None and shaped[0].memory == "constant"
        rooms = shaped if from_host else [replace(stored, buffer=None) for stored in shaped]
        for name, stored, kept in zip(group, shaped, rooms, strict=True) if not from_host else ():
            if stored.memory == "constant":
                owner = owner or self.backend.place(replace(stored, memory="global"), guard=self.guard)
                placed[name] = Windowed.make_whole(kept, owner)
            elif owner is None:
                placed[name] = owner = self.backend.place(stored, guard=self.guard)
            else:
                placed[name] = Shared(owner, kept)
        self.backend.synchronize()
        end = time.perf_counter()
        contents = dict(zip(group, rooms, strict=True))
        sent = 0 if owner is None else owner.stored.nbytes  # the others of a group are in the same bytes
        made = PlacedInput(contents, placed, (middle - begin) * 1e3 + saved_ms, (end - middle) * 1e3, sent)
        if self.guard and owner is not None:
            made.content = lambda: _bytes(self._shape_members(variant, group, orders)[0])
            made.canonical = {name: self.inputs.arrays[name] for name in group}
            # A GPU's planes cannot be filled.
            if shaped[0].plane is None or self.backend.device.kind == "cpu":
                made.slack = find_gaps([variant.layouts[name] for name in group], view.shape)
        return made

    def _shape_members(
        self, variant: Variant, group: tuple[str, ...], orders: Mapping[str, Order]
    ) -> list[Stored]:
        """Each member of the group as it is stored, with its content."""
        arrays = [self._ordering.move(variant, self.inputs, name, orders) for name in group]
        chosen = [variant.layouts[name] for name in group]
        return merge(chosen, arrays) if len(group) > 1 else [chosen[0].apply(arrays[0])]

    def _is_used(self, variant: Variant, name: str) -> bool:
        """Return whether the input must be stored: if kernels of this configuration read it, and always if it shares
        its bytes, is a plane, an image or in constant memory, or is on the GPU already."""
        used = variant.family.used.get(name)
        others = any(name in group for group in variant.groups)
        layout = variant.layouts[name]
        if used is None or others or layout.memory == "constant" or layout.is_plane or layout.is_image:
            return True
        if isinstance(self.inputs.arrays[name], View):
            return True
        return bool(used.evaluate(self.inputs.names(variant.configuration)))

    def _room(self, layout: Layout, name: str) -> PlacedInput:
        """A place for an array that no kernel reads here."""
        room = layout.room(self.inputs.arrays[name].shape)
        placed = self.backend.place(room, guard=self.guard)
        return PlacedInput({name: room}, {name: placed}, is_room=True)

    def _cut(self, variant: Variant, name: str, orders: Mapping[str, Order], step: int) -> PlacedInput:
        """An array in windows of constant memory: all of them in the device's own."""
        begin = time.perf_counter()
        extent, saved_ms = variant.family.windowed[name], self._ordering.saved_ms(variant, name)

        def cut_windows() -> tuple[Stored, tuple[Window, ...]]:
            array = self._ordering.move(variant, self.inputs, name, orders)
            return cut(variant.layouts[name], extent, array, step)

        everything, windows = cut_windows()
        middle = time.perf_counter()
        resident = self.backend.place(everything, guard=self.guard)
        self.backend.synchronize()
        placed = Windowed(extent, windows, resident)
        transfer_ms = (time.perf_counter() - middle) * 1e3
        transform_ms = (middle - begin) * 1e3 + saved_ms
        made = PlacedInput({}, {name: placed}, transform_ms, transfer_ms, everything.nbytes)
        if self.guard:
            made.content = lambda: _bytes(cut_windows()[0])
        return made

    def _from_device(self, layout: Layout, name: str, view: View) -> PlacedInput:
        """An array that is on the GPU and can be stored there (transform.refusal says whether)."""
        backend: Any = self.backend  # of a kind that lends
        begin, room = time.perf_counter(), layout.room(view.shape)
        placed: Any
        constant = layout.memory == "constant"
        if is_as_stored(layout, view) and not constant:
            placed = backend.borrow(room, view.address)
        else:
            assert self.layout_transform is not None
            placed = backend.place(replace(room, memory="global") if constant else room)
            backend.fill(placed, 0)
            launch = self.layout_transform.launch(layout, view, placed, placed.address, True, ("", ""))
            backend.launch(launch.module, launch.kernel, launch.geometry, launch.arguments)
            backend.settle(placed)
            backend.synchronize()  # another stream may use it next
        if constant:
            placed = Windowed.make_whole(room, placed)
        return PlacedInput({name: room}, {name: placed}, (time.perf_counter() - begin) * 1e3)

    def _borrow_merged(self, variant: Variant, group: tuple[str, ...]) -> PlacedInput:
        """Arrays that lie on the GPU by turns as the layouts want them (transform.lie_merged says whether)."""
        backend: Any = self.backend  # of a kind that lends
        rooms = {n: variant.layouts[n].room(self.inputs.arrays[n].shape) for n in group}
        first: Any = self.inputs.arrays[group[0]]
        owner = backend.borrow(rooms[group[0]], first.address)
        placed: dict[str, Placed] = {n: Shared(owner, room) for n, room in rooms.items()}
        return PlacedInput(rooms, {**placed, group[0]: owner})

    def _make_room(self) -> None:
        """Free the inputs that were not used for longest, once they take their share of the memory."""
        most = _MEMORY_SHARE * self.backend.device.limits.memory_bytes
        idle = sorted(
            (key for key, item in self._kept.items() if item.used <= self._bound - self.most),
            key=lambda key: self._kept[key].used,
        )
        for key in idle:
            if sum(item.nbytes for item in self._kept.values()) <= most:
                return
            self._kept.pop(key).free()

    def _output(self, variant: Variant, name: str, layout: Layout) -> Placed:
        if name in self.lent:
            return self.lent[name]
        key = f"{name} {layout!r}"  # not its C++ type, which knows nothing of padding
        if key not in self._outputs:
            shape = variant.family.data[name].shape_for(self.inputs.sizes)
            self._outputs[key] = self.backend.place(layout.room(shape), guard=self.guard)
        return self._outputs[key]

    def _view(self, variant: Variant, name: str, of: Placed) -> Placed:
        """Return the view of a scratch array, which is never the caller's and keeps its place until ``close``."""
        layout = variant.layouts[name]
        key = f"{name} {layout!r} {variant.layouts[layout.data.of]!r}"
        if key not in self._views:
            sizes = self.inputs.sizes
            is_own = layout.data.converted  # as its array is stored, and not by a shape of its own
            room = layout.room(layout.data.shape_for(sizes)) if is_own else view_room(layout, sizes)
            self._views[key] = self.backend.view(room, of)
        return self._views[key]

    def close(self) -> None:
        """Free everything; what ``execution`` gave is of no use afterwards."""
        for item in self._kept.values():
            item.free()
        for placed in (*self._views.values(), *self._outputs.values()):
            placed.free()
        self._kept.clear()
        self._views.clear()
        self._outputs.clear()
        self._ordering.clear()


def run_once(
    family: Family, configuration: Configuration, inputs: Inputs, backend: Backend, cache: Cache
) -> dict[str, NDArray[Any]]:
    """The outputs of one configuration, canonical. Raises CompilerError, LaunchError, DeviceError."""
    (outputs,) = run_each(family, [configuration], inputs, backend, cache)
    return outputs


def run_each(
    family: Family, configurations: Iterable[Configuration], inputs: Inputs, backend: Backend, cache: Cache
) -> Iterator[dict[str, NDArray[Any]]]:
    """``run_once`` of one after another, on inputs that are placed once for all of one layout. What a configuration
    does not write is as the one before it left it."""
    with backend.current(), closing(Resident(backend, inputs)) as resident:
        for configuration in configurations:
            variant = Variant.make(family, configuration, inputs.options)
            if reason := variant.explain_exclusion(inputs.names(configuration), backend.device.limits):
                raise DeviceError(f"{configuration.id} cannot run here: {reason}")
            execution = resident.execution(variant, compile_module(backend, cache, variant))
            execution.run()
            yield {
                data.name: execution.restore(data.name, data.shape_for(inputs.sizes))
                for data in family.outputs
            }


def compile_module(
    backend: Backend, cache: Cache, variant: Variant, load: Callable[[Compiled], Module] | None = None
) -> Module:
    """The variant compiled (or from the cache) and loaded, by ``load`` in place of the backend's own. Raises
    CompilerError, LaunchError."""
    failed = f"{variant.configuration.id} does not compile:\n"
    compiled = compile_one(batch(variant.family, (variant,)), backend.toolchain(), cache, failed)
    return (load or backend.load)(compiled)


def can_be_staged(variant: Variant, name: str, array: NDArray[Any]) -> bool:
    """Whether the layout of a canonical array of the host is better applied on the GPU: there is something to do, and
    it can be done there. The bytes that are copied may be more, but they need not be moved about on the host."""
    layout = variant.layouts[name]
    is_on_host = layout.is_image or order_key(variant, name) or variant.is_cut(name)
    return not (is_on_host or layout.is_canonical(array.shape) or explain_refusal(layout, view_staged(array)))


def content_refusal(variant: Variant, arrays: Mapping[str, Any]) -> str:
    """Why what is in ``arrays`` of the host does not allow the variant's layouts; empty when it does, and for arrays
    that an order moves first, of which placing them tells."""
    try:
        check_numbers(variant, arrays)
    except LayoutRefusal as refusal:
        return str(refusal)
    return ""


def check_numbers(variant: Variant, arrays: Mapping[str, Any]) -> None:
    """Raise LayoutRefusal where one of ``arrays``, of the host, has numbers that its storage cannot hold."""
    for name, array in arrays.items():
        if isinstance(array, np.ndarray):
            variant.layouts[name].check_numbers(array)


def _bytes(stored: Stored) -> Bytes:
    assert stored.buffer is not None
    return stored.buffer


def _key(variant: Variant, group: tuple[str, ...]) -> str:
    """Equal for variants that store the group alike."""
    return "|".join(f"{name}:{variant.layouts[name]!r} {order_key(variant, name)}" for name in group)

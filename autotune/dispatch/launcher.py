"""A variant bound to data of certain sizes: filled, run and read back again and again, each time with other content."""

import logging
from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autotune.compile import Variant
from autotune.declaration import Inputs
from autotune.device import Call, Constant, Placed, Resident, View, can_be_staged, linear, make_raw, transform
from autotune.dispatch.target import Target
from autotune.dispatch.turns import Chosen
from autotune.errors import UsageError
from autotune.layout import Data, Layout, handle

# How an array gets to a kernel or comes from it: by the host; its bytes copied to the GPU and moved there; moved on the
# GPU; where it is.
HOST, STAGED, MOVED, LENT = "host", "staged", "moved", "lent"

_TEXTURES = 64  # over the caller's arrays, of each input
_WIDEST = 16  # bytes of a kernel's access

_say_once = lru_cache(maxsize=1024)(logging.getLogger("autotune").debug)


def transfer_in(variant: Variant, name: str, array: Any, can_stage: bool, orders_stay: bool = False) -> str:
    """How ``array`` becomes the input ``name`` of ``variant``; a GPU ``can_stage``. Where its ``orders_stay`` from one
    call to the next, only what they move goes through the host."""
    is_reordered = variant.is_reordered(name if orders_stay else "")
    if not isinstance(array, View):
        fits = can_stage and not is_reordered and can_be_staged(variant, name, array)
        return STAGED if fits else HOST
    obstacle = "it is cut into windows of constant memory" if variant.is_cut(name) else ""
    if is_reordered:
        obstacle = "an order policy moves index spaces on the host"
    return _transfer(variant, name, array, obstacle, inward=True)


def _transfer(variant: Variant, name: str, view: View, obstacle: str, *, inward: bool) -> str:
    layout = variant.layouts[name]
    if not obstacle and transform.is_as_stored(layout, view):
        return LENT
    if reason := obstacle or transform.explain_refusal(layout, view, inward):
        _say_once("%s: %s is copied through the host: %s", variant.family.name, name, reason)
    return HOST if reason else MOVED


class Transfers(NamedTuple):
    """How the arrays that come with a call get to ``variant``'s kernels (``inward``), and its results to the caller's
    arrays on the GPU (``outward``), by name. A device that ``lends`` fills constant memory from its own;
    ``orders_stay`` says that no order depends on what comes with a call."""

    variant: Variant
    inward: Mapping[str, str]
    outward: Mapping[str, str]
    lends: bool
    orders_stay: bool

    @classmethod
    def make(
        cls, variant: Variant, sent: Mapping[str, Any], views: Mapping[str, View], lends: bool
    ) -> "Transfers":
        """Those for the arrays ``sent``, and ``views`` of the caller's arrays."""
        # Any permutation is right, so one that moves prepared arrays only is made once, whatever else it looks at.
        stay = not any(map(variant.is_reordered, sent))
        inward = {name: transfer_in(variant, name, array, lends, stay) for name, array in sent.items()}
        outward = {}
        for name, view in views.items():
            obstacle = "an order policy moves it on the host" if variant.is_reordered(name) else ""
            outward[name] = _transfer(variant, name, view, obstacle, inward=False)
        return cls(variant, inward, outward, lends, stay)

    @property
    def can_be_repeated(self) -> bool:
        """Whether new content can take the place of the old in all that goes through the host, with nothing else to be
        made again."""
        return all(self._can_be_refilled(name) for name, how in self.inward.items() if how == HOST)

    def _can_be_refilled(self, name: str) -> bool:
        variant, layout = self.variant, self.variant.layouts[name]
        if layout.memory == "constant" and (not self.lends or variant.is_cut(name)):
            return False
        flat = layout.memory != "texture" or not layout.is_plane
        is_reordered = variant.is_reordered(name if self.orders_stay else "")
        return flat and layout.group == (1, 0) and not is_reordered

    def refuse_capture(self, arrays: Mapping[str, Any], still_to_do: str) -> None:
        """Raise UsageError for a call that a CUDA graph cannot hold, since the host has a part in it: in the transfers
        of ``arrays``, in those of outputs, of which some may be in no array on the GPU, or in the launches.
        ``still_to_do`` is what it does for the first of such calls."""
        family, named = self.variant.family, self.variant.configuration.id
        reason = ""
        for name, how in self.inward.items():
            if not isinstance(arrays[name], View):
                reason = f"{name} is an array of the host: give one on the GPU, or prepare it before"
            elif how == HOST:
                reason = f"{name} is copied through the host in {named}"
            elif how == MOVED and self.variant.layouts[name].is_image:
                reason = f"{name} is copied into an image in {named}"
        if still_to_do and not reason:
            reason = f"{still_to_do}: call it before the capture"
        for data in family.outputs:
            if data.name not in self.outward:
                reason = f"{data.name} comes to the host: give out= on the GPU"
            elif self.outward[data.name] == HOST:
                reason = f"{data.name} is copied through the host in {named}"
        if getattr(family.module, "plan", None) is not None:
            reason = "its launches are driven by plan in family.py"
        if any(self.variant.is_cut(data.name) for data in family.inputs):
            reason = "an input is cut into windows of constant memory"
        if reason:
            raise UsageError(
                f"{family.name} cannot be captured into a CUDA graph: {reason} (the logger autotune has details "
                "at level DEBUG)"
            )


class Launcher:
    """``inputs`` are the first content; arrays that are the very objects in ``parent`` stay, the others are sent again
    with each call, each by its transfer. ``outputs`` are the GPU arrays that results go to, by theirs; other outputs
    are fetched. One that ``is_captured`` is in a graph of others, which needs all of it until ``close``. One thread at
    a time. Raises LaunchError."""

    def __init__(
        self, target: Target, chosen: Chosen, inputs: Inputs, parent: Resident, transfers: Transfers,
        outputs: Mapping[str, View], is_captured: bool = False,
    ) -> None:  # fmt: skip
        self._target, self._backend, self._lender = target, target.backend, target.lender
        self._variant = variant = chosen.variant
        self._inward, self._outward = transfers.inward, transfers.outward
        self._is_captured = is_captured
        self._shapes = {data.name: data.shape_for(inputs.sizes) for data in variant.family.data.values()}
        self._plain = {
            name: variant.layouts[name].room(shape)
            for name, shape in self._shapes.items()
            if variant.layouts[name].is_canonical(shape) and not variant.is_reordered(name)
        }
        lent = {}
        for name, how in self._outward.items():
            if how == LENT:
                assert self._lender is not None
                room = variant.layouts[name].room(outputs[name].shape)
                lent[name] = self._lender.borrow(room, outputs[name].address)
        arrays: dict[str, Any] = dict(inputs.arrays)
        own = replace(inputs, arrays=arrays)
        self._staging: dict[str, Any] = {}
        self._textures: dict[str, dict[int, Placed]] = {}  # over the caller's arrays: by name and address
        for name, how in self._inward.items():
            if how == STAGED:
                arrays[name] = self._stage(name, arrays[name])
        self._resident = Resident(
            self._backend,
            own,
            parent=parent,
            layout_transform=target.layout_transform if self._lender else None,
            lent=lent,
        )
        try:
            module = (
                chosen.module if not is_captured else target.get_separate_module(variant) or chosen.module
            )
            with module.lock:  # binding fills constant memory
                self.execution = self._resident.execution(variant, module)
                if self.execution.uses_constant:
                    self._backend.synchronize()  # launches of another stream may be the next
            self.call = self._call(own, outputs)
            for name, how in self._inward.items():
                if how == LENT and variant.layouts[name].memory == "constant":  # a copy was bound
                    self._point(name, arrays[name])
        except BaseException:
            self.close()
            raise
        for name in self._inward:  # the caller's arrays are not kept alive
            del arrays[name]

    def _call(self, inputs: Inputs, outputs: Mapping[str, View]) -> Call | None:
        """The launches made ready, where the backend can and the family leaves them to it."""
        windows = self.execution.whole_windows
        if self._lender is None or self.execution.has_own_plan or windows is None or self._copies_images():
            return None
        constants = [
            Constant(
                name, self.execution.module, placed.windows[0].stored, placed.resident,
                stays=self._inward.get(name, HOST) == HOST,
            )
            for name, placed in windows.items()
        ]  # fmt: skip
        for name, (symbol, resident) in self.execution.symbols.items():
            stays = self._inward.get(name, HOST) == HOST
            constants.append(Constant(name, self.execution.module, resident.stored, resident, stays, symbol))
        moves = [
            self._move(name, inputs.arrays[name], inward=True)
            for name, how in self._inward.items()
            if how in (MOVED, STAGED)
        ]
        launches = self.execution.launches
        launches += [
            self._move(n, outputs[n], inward=False) for n, how in self._outward.items() if how == MOVED
        ]
        return self._lender.bind(self.execution.fills, launches, constants, moves, self.execution.beginnings)

    def _copies_images(self) -> bool:
        """Whether a call copies memory into an image before it launches."""
        filled = {*self.execution.fills, *self._variant.family.beginnings}
        filled |= {name for name, how in self._inward.items() if how in (MOVED, STAGED)}
        return any(self._variant.layouts[name].is_image for name in filled)

    def _move(self, name: str, view: Any, *, inward: bool) -> Any:
        placed: Any = linear(self.execution.placed[name])
        layout = self._variant.layouts[name]
        names = (_name_moved(name), "")
        return self._target.layout_transform.launch(layout, view, placed, placed.address, inward, names)

    def _move_now(self, name: str, view: Any, *, inward: bool) -> None:
        launch = self._move(name, view, inward=inward)
        self._backend.launch(launch.module, launch.kernel, launch.geometry, launch.arguments)

    def send(self, arrays: Mapping[str, Any]) -> None:
        """New content of the same shapes, by the transfers that were chosen for them."""
        for name, array in arrays.items():
            how = self._inward[name]
            if how == LENT:
                self._point(name, array)
            elif how in (MOVED, STAGED):
                view = self._stage(name, array) if how == STAGED else array
                if self.call is not None:
                    self.call.point(_name_moved(name), view.address)
                    continue
                self._move_now(name, view, inward=True)
                if self._lender is not None:
                    self._lender.settle(linear(self.execution.placed[name]))
            else:
                plain = self._plain.get(name)
                if plain is None:
                    stored = self._variant.layouts[name].apply(array)
                else:
                    stored = replace(plain, buffer=array.reshape(-1).view(np.uint8))
                self._backend.upload(linear(self.execution.placed[name]), stored)

    def _stage(self, name: str, array: NDArray[Any]) -> View:
        """The bytes of a canonical array of the host on the GPU, in room that is kept for them."""
        content = replace(make_raw(array.nbytes), buffer=array.reshape(-1).view(np.uint8))
        if name in self._staging:
            self._backend.upload(self._staging[name], content)
        else:
            self._staging[name] = self._backend.place(content)
        return transform.view_staged(array, self._staging[name].address)

    def receive(self, outputs: Mapping[str, View]) -> None:
        """Other arrays for the results of the next run."""
        for name, view in outputs.items():
            if self._outward[name] == LENT:
                self._point(name, view)
            elif self._outward[name] == MOVED and self.call is not None:
                self.call.point(_name_moved(name), view.address)

    def place(self, name: str) -> str:
        """What the caller's array for ``name`` is called in ``call``; empty when it goes through the host."""
        how = self._inward.get(name) or self._outward[name]
        return {LENT: name, MOVED: _name_moved(name)}.get(how, "")

    def alignment(self, name: str) -> int:
        """Bytes whose multiple the address of the caller's array for ``name`` has to be, to be used as it is now."""
        is_lent = LENT in (self._inward.get(name), self._outward.get(name))
        return max(_WIDEST, transform.alignment(self._variant.layouts[name]) if is_lent else 1)

    def point(self, place: str, address: int) -> None:
        """The caller's array at ``place`` in ``call`` is at ``address``."""
        assert self.call is not None
        layout = self._variant.layouts.get(place)
        if layout is not None and layout.memory == "texture":
            address = handle(self._texture(place, address).argument)
        self.call.point(place, address)

    def _texture(self, name: str, address: int) -> Placed:
        """Over the caller's array; made once for each address, as long as there are not too many."""
        known = self._textures.setdefault(name, {})
        if address not in known:
            assert self._lender is not None
            if len(known) >= _TEXTURES and not self._is_captured:
                self._backend.synchronize()  # kernels may still read by them
                _free(known)
            room = self._variant.layouts[name].room(self._shapes[name])
            known[address] = self._lender.borrow(room, address)
        return known[address]

    def _point(self, name: str, view: View) -> None:
        if self.call is not None:
            self.point(name, view.address)
            return
        assert self._lender is not None
        layout = self._variant.layouts[name]
        if layout.memory == "texture":
            self.execution.lend(name, self._texture(name, view.address))
            return
        room = layout.room(view.shape)
        if layout.memory == "constant":
            room = replace(room, memory="global")
        self.execution.lend(name, self._lender.borrow(room, view.address))

    def run(self, outputs: Mapping[str, View]) -> None:
        """Queue one call and what brings its results into ``outputs``; on a cpu it has run."""
        if self.call is None and self.execution.uses_constant:
            with self.execution.module.lock:
                self.execution.prepare()
                self._launch()
                self._backend.synchronize()
        else:
            self._launch()
        for name, view in outputs.items():
            how = self._outward[name]
            if how == MOVED and self.call is None:
                self._move_now(name, view, inward=False)
            elif how == HOST:
                self._write(self._variant.family.data[name], view)

    def _launch(self) -> None:
        if self.call is not None:
            self.call()
        else:
            self.execution.run()

    def _write(self, data: Data, view: View) -> None:
        """A result that only the host can bring into canonical form, copied to the GPU again."""
        assert self._lender is not None
        plain = Layout.make_plain(data).apply(self.fetch(data))
        self._backend.upload(self._lender.borrow(plain, view.address), plain)

    def fetch(self, data: Data) -> NDArray[Any]:
        """An output as a canonical array of the host; waits for it."""
        if data.name not in self._plain:
            return self.execution.restore(data.name, self._shapes[data.name])
        raw = self._backend.download(self.execution.placed[data.name])
        return raw.view(data.dtype).reshape(self._shapes[data.name])

    def close(self) -> None:
        """Free what is not the parent's."""
        for known in self._textures.values():
            _free(known)
        self._resident.close()
        _free(self._staging)

    @property
    def footprint_bytes(self) -> int:
        """Device memory that it takes, the parent's too."""
        staged_bytes: int = sum(p.stored.nbytes for p in self._staging.values())
        return self.execution.footprint_bytes + staged_bytes


def _name_moved(name: str) -> str:
    """Return the caller's array's name in a Call; its stored form has the plain name."""
    return f"{name} as given"


def _free(held: MutableMapping[Any, Placed]) -> None:
    for placed in held.values():
        placed.free()
    held.clear()

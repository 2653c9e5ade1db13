"""Data that stay on a device, to be called with the rest: layouts are applied to them once and kept."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from numpy.typing import NDArray

from autotune.compile import Variant
from autotune.declaration import Inputs
from autotune.device import (
    Closing,
    Execution,
    LaunchError,
    Resident,
    View,
    check_numbers,
    content_refusal,
    foreign,
    transform,
)
from autotune.dispatch.call import (
    NOTHING,
    Arguments,
    Destination,
    Request,
    arguments,
    read_sizes,
    request,
    results,
    wait_for_content,
)
from autotune.dispatch.fast_call import MISSED, FastCall, RawCall, fast_call, leave_out
from autotune.dispatch.launcher import HOST, Launcher, Transfers, transfer_in
from autotune.dispatch.monitor import Watching
from autotune.dispatch.target import Target
from autotune.dispatch.turns import Chosen, Turn
from autotune.errors import CompilerError, LayoutRefusal, UsageError, WorkloadError
from autotune.layout import canonical, check_links

_MOST_LAUNCHERS = 8  # sizes, streams and kinds of arrays that are kept ready at a time
_MEMORY_SHARE = 0.25  # of the device's memory, for what is kept ready


class _Call(NamedTuple):
    """What was ``asked``, where its results go (``places``), the ``views`` of those on the GPU, and the ``capture``
    that is under way, if any."""

    asked: Request
    places: Sequence[Destination]
    views: Mapping[str, View]
    capture: int


class Prepared(Closing):
    """Inputs that stay on the device, under the configuration chosen for them. Call it with the others.

    ``handle(*arrays, out=None, stream=None, **named)`` takes the inputs that were not prepared, in declared order or
    by name, options and scalars by name, and gives what the kernel gives: arrays of the kind that came with the
    call, or else were prepared, unless ``out`` says where to put them. For any number of threads; calls take turns.
    """

    def __init__(
        self, target: Target, kept: Arguments, example: Any = None, parent: "Prepared | None" = None
    ) -> None:
        self.target = target
        self._family = target.family.apply_types(kept.options)
        self._given = kept.arrays
        self._kept = replace(kept, arrays=self._match_parent(parent) if parent else dict(kept.arrays))
        self._example = example
        self._lock = threading.RLock()
        self._launchers: dict[object, Launcher] = {}
        self._lasting: dict[object, Launcher] = {}  # until the end: in graphs of others, for ``execution``
        self._fast_call: FastCall | None = None
        self._closed = False
        if parent is None and self._family.has_links:
            sizes = read_sizes(self._family, kept.arrays)
            for name, array in kept.arrays.items():
                if not isinstance(array, View):
                    check_links(self._family.data[name], array, sizes)
        self.rest = [data.name for data in self._family.inputs if data.name not in kept.arrays]
        self._resident = self._make_resident(parent)
        self._whole: Request | None = None
        self._chosen: Chosen | None = None
        if target.lender and any(isinstance(array, View) for array in self._kept.arrays.values()):
            made_on = foreign.current_stream(example)
            with target.lender.on(made_on) as capture:
                if capture:
                    raise UsageError(f"{self._family.name}: prepare before a CUDA graph is captured")
            target.lender.wait_for(made_on)  # from now on any stream may use them
        if not self.rest and kept is not NOTHING:  # a kernel's calls bring all, numbers too
            self._place(parent)

    def _match_parent(self, parent: "Prepared") -> dict[str, Any]:
        """The arrays given; one of a GPU that ``parent`` was given too, as it is there: by now it may be the host's."""
        arrays = dict(self._given)
        for name, array in self._given.items():
            known = parent._given.get(name)  # noqa: SLF001 - one class
            if isinstance(array, View) and isinstance(known, View) and known.owner is array.owner:
                arrays[name] = parent._kept.arrays[name]  # noqa: SLF001
        return arrays

    def _make_resident(self, parent: "Prepared | None") -> Resident:
        return Resident(
            self.target.backend,
            Inputs(arrays=self._kept.arrays, sizes={}, options={}, scalars={}),
            parent=parent._resident if parent else None,  # noqa: SLF001 - one class
            layout_transform=self.target.layout_transform if self.target.lender else None,
        )

    def _place(self, parent: "Prepared | None") -> None:
        """All inputs are there: choose, and store them."""
        stream = 0 if self._example is None else None
        self._whole = request(self._family, self._kept, NOTHING, stream, self._example)
        inputs = self._whole.inputs
        self._resident.inputs = replace(inputs, arrays=self._kept.arrays)  # orders need the sizes
        self._chosen = parent.chosen if parent else self.target.choose(inputs)
        if not parent and content_refusal(self._chosen.variant, inputs.arrays):
            self._chosen = self.target.choose_for(inputs)
        with self._lock, self._enter_stream(self._whole.stream), self.target.backend.current():
            try:
                self._settle(self._chosen.variant)
                check_numbers(self._chosen.variant, self._kept.arrays)
                self._resident.hold(self._chosen.variant)
                self.target.backend.synchronize()
            except BaseException:
                self._resident.close()
                raise

    @property
    def chosen(self) -> Chosen:
        """Return the configuration that runs, and why. Raises UsageError while inputs are missing."""
        if self._chosen is None:
            raise UsageError(
                f"{', '.join(self.rest)} of {self._family.name} were not prepared, and what runs depends on their "
                "sizes: call the handle with them"
            )
        return self._chosen

    @property
    def variant(self) -> Variant:
        """Return the variant that runs."""
        return self.chosen.variant

    @property
    def match(self) -> str:
        """Return the rule by which it was chosen."""
        return self.chosen.candidate.match

    @property
    def execution(self) -> Execution:
        """The launches themselves, for a program that drives them one by one, with its module's ``lock`` where it fills
        constant memory. Raises UsageError while inputs are missing."""
        chosen = self.chosen
        with self._lock:
            self._check_open()
            if "execution" not in self._lasting:
                assert self._whole is not None
                with self.target.backend.current():
                    none = Transfers.make(chosen.variant, {}, {}, self.target.lender is not None)
                    made = Launcher(self.target, chosen, self._inputs(self._whole), self._resident, none, {})
                    self._lasting["execution"] = made
            return self._lasting["execution"].execution

    def __call__(self, *arrays: Any, out: Any = None, stream: Any = None, **named: Any) -> Any:
        found = self.call_again(arrays, out, stream, named)
        if found is not MISSED:
            return found
        given = arguments(self._family, self.rest, arrays, named)
        asked = request(self._family, self._kept, given, stream, self._example)
        return self.answer(asked, out, RawCall(arrays, stream, named))

    def call_again(self, arrays: tuple[Any, ...], out: Any, stream: Any, named: Mapping[str, Any]) -> Any:
        """The call, when it is like the one before in all but addresses; else MISSED."""
        now = self._fast_call
        if now is None:
            return MISSED
        with self._lock:
            return now(arrays, out, stream, named) if self._fast_call is now else MISSED

    def answer(self, asked: Request, out: Any, raw: RawCall | None = None) -> Any:
        """The outputs for ``asked``: one, or a dict of them when the family has several. ``raw`` is how it was asked,
        where the next call may be the same."""
        with self._lock, self._enter_stream(asked.stream) as capture, self.target.backend.current():
            self._check_open()
            lender, given = self.target.lender, asked.inputs.arrays
            if lender is None and any(isinstance(array, View) for array in given.values()):
                arrays = {name: self._copy_to_host(name, array) for name, array in given.items()}
                asked = replace(asked, inputs=replace(asked.inputs, arrays=arrays))
            places = results(self._family, asked, out, lender is not None)
            views = {r.data.name: r.view for r in places if r.view} if lender else {}
            if lender:
                wait_for_content(lender, asked, views, capture)
            call = _Call(asked, places, views, capture)
            chosen, turn = self._turn(call)
            made, launcher, is_kept = self._run(call, chosen, turn)
            has_one = len(places) == 1 and not isinstance(out, Mapping) and not capture and turn is None
            if lender and views and raw is not None and is_kept and has_one:
                fast = fast_call(lender, launcher, asked, raw, places[0].array, out is None)
                if fast and isinstance(chosen.turns, Watching):
                    fast = leave_out(fast, chosen.turns.is_due)
                self._fast_call = fast
            return made

    def _turn(self, call: "_Call") -> tuple[Chosen, Turn | None]:
        """What runs; with the turn that it is, where several are tried in the first calls on inputs of these sizes, or
        calls are timed."""
        chosen = self.target.choose(call.asked.inputs)
        if chosen.turns is None:
            return chosen, None
        turn = None if call.capture else chosen.turns.turn()
        return (turn.chosen, turn) if turn else (chosen.turns.best, None)

    def _run(self, call: "_Call", chosen: Chosen, turn: Turn | None) -> tuple[Any, Launcher, bool]:
        """The outputs, what made them, and whether that is kept for the next call."""
        try:
            return self._launch(call, chosen, turn)
        except (LaunchError, CompilerError) as problem:
            if turn is None or not turn.of.mark_failed(turn.at, problem):
                raise
        except LayoutRefusal:  # chosen for other data of these sizes
            if call.capture:
                raise
            return self._launch(call, self.target.choose_for(self._inputs(call.asked)), None)
        return self._run(call, *self._turn(call))

    def _launch(self, call: "_Call", chosen: Chosen, turn: Turn | None) -> tuple[Any, Launcher, bool]:
        launcher, is_kept = self._launcher_for(call, chosen)
        try:
            with turn.of.time_turn(turn) if turn else nullcontext():
                launcher.run(call.views)
            made = {
                r.data.name: r.array if r.view else r.fetch(launcher.fetch(r.data), call.asked.example)
                for r in call.places
            }
        finally:
            if not is_kept:
                launcher.close()
        return (next(iter(made.values())) if len(made) == 1 else made), launcher, is_kept

    def _launcher_for(self, call: "_Call", chosen: Chosen) -> tuple[Launcher, bool]:
        """What runs the call, with its content sent; and whether it is kept, or for once."""
        variant, lender, asked = chosen.variant, self.target.lender, call.asked
        if not call.capture:
            self._settle(variant)
        inputs, arrays = asked.inputs, asked.inputs.arrays
        given = {name: arrays[name] for name in asked.sent}
        transfers = Transfers.make(variant, given, call.views, lender is not None)
        if call.capture:
            transfers.refuse_capture(arrays, self._describe_pending(variant))
        sent = {n: self._copy_to_host(n, a) if transfers.inward[n] == HOST else a for n, a in given.items()}
        check_numbers(variant, sent)
        key = (
            tuple(inputs.sizes.items()), tuple(inputs.options.items()), tuple(inputs.scalars.items()), asked.stream,
            tuple((v.dtype, v.strides) for v in (*sent.values(), *call.views.values()) if isinstance(v, View)),
            call.capture, variant.configuration.id, tuple(transfers.inward.items()), tuple(transfers.outward.items()),
        )  # fmt: skip
        kept = self._lasting if call.capture else self._launchers
        launcher = kept.pop(key, None)
        if launcher is None:
            inputs = replace(inputs, arrays={**arrays, **self._kept.arrays, **sent})
            make = partial(Launcher, self.target, chosen, inputs, self._resident, transfers, call.views)
            if not call.capture:
                launcher = self._make(variant, inputs, transfers, make)
                if transfers.can_be_repeated:
                    kept[key] = launcher
                return launcher, transfers.can_be_repeated
            assert lender is not None
            with lender.suspend_capture():  # no part of the capture
                launcher = make(is_captured=True)  # with room of its own whenever the graph is launched
        kept[key] = launcher  # the latest is last
        launcher.send(sent)
        launcher.receive(call.views)
        return launcher, True

    def _make(
        self, variant: Variant, inputs: Inputs, transfers: Transfers, make: Callable[[], Launcher]
    ) -> Launcher:
        """Return what ``make`` makes; what is kept ready is freed if the memory is too small for both."""
        check_numbers(variant, self._kept.arrays)
        if transfers.orders_stay and variant.is_reordered():
            on_host = {name: self._copy_to_host(name, array) for name, array in inputs.arrays.items()}
            self._resident.order(variant, replace(inputs, arrays=on_host))
        self._make_room()
        try:
            return make()
        except LaunchError:
            if not self._launchers:
                raise
            self._make_room(0)  # what is kept ready may have taken the memory
            return make()

    def _make_room(self, most: int = _MOST_LAUNCHERS - 1) -> None:
        """Keep the latest ``most``, and no more than a share of the memory."""
        share = _MEMORY_SHARE * self.target.backend.device.limits.memory_bytes
        while self._launchers and (
            len(self._launchers) > most
            or sum(each.footprint_bytes for each in self._launchers.values()) > share
        ):
            self._fast_call = None
            self._launchers.pop(next(iter(self._launchers))).close()

    def _settle(self, variant: Variant) -> None:
        """Kept arrays of a GPU that ``variant`` cannot take there are copied to the host, once."""
        kept: Any = self._kept.arrays
        for name in self._list_unsettled(variant):
            kept[name] = self._copy_to_host(name, kept[name])

    def _describe_pending(self, variant: Variant) -> str:
        """What the host does once for calls like this one, which a capture cannot wait for; empty for nothing."""
        if names := self._list_unsettled(variant):
            return f"{', '.join(names)} was prepared and is copied to the host once"
        if variant.is_reordered() and not self._resident.is_ordered(variant):
            return "the host makes an order of the arrays once"
        return ""

    def _list_unsettled(self, variant: Variant) -> list[str]:
        if self.target.lender is None:
            return [name for name, array in self._kept.arrays.items() if isinstance(array, View)]
        together = {name for group in variant.groups if self._lies_merged(variant, group) for name in group}
        return [
            name
            for name, array in self._kept.arrays.items()
            if isinstance(array, View)
            and name not in together
            and transfer_in(variant, name, array, False) == HOST
        ]

    def _lies_merged(self, variant: Variant, group: tuple[str, ...]) -> bool:
        views = [array for name in group if isinstance(array := self._kept.arrays.get(name), View)]
        is_reordered = any(variant.is_reordered(name) for name in group)
        whole = len(views) == len(group) and not is_reordered
        return whole and transform.lie_merged([variant.layouts[name] for name in group], views)

    def _copy_to_host(self, name: str, array: Any) -> Any:
        """The canonical array; what is on a GPU is copied."""
        if not isinstance(array, View):
            return array
        return canonical(self._family.data[name], self.target.fetch(array))

    def _inputs(self, asked: Request) -> Inputs:
        """With the kept arrays as they are now."""
        return replace(asked.inputs, arrays={**asked.inputs.arrays, **self._kept.arrays})

    def prepare_other(self, inputs: Inputs) -> "Prepared":
        """The same configuration on ``inputs`` of the same sizes; arrays that are the same objects are shared. Close
        it before this one."""
        given = Arguments(inputs.arrays, inputs.options, inputs.scalars)
        return Prepared(self.target, given, self._example, self)

    def stream(self) -> AbstractContextManager[None]:
        """For a thread of its own: see Backend.stream."""
        return self.target.backend.stream()

    def refill(self, **arrays: Any) -> None:
        """Replace the content of prepared inputs by arrays of the same shape.

        While other inputs are still missing, layouts are applied at the next call. Raises WorkloadError, UsageError.
        """
        given: dict[str, NDArray[Any]] = {}
        # Of all that a call has, or of the kept arrays alone.
        sizes = self._resident.inputs.sizes if self._chosen else read_sizes(self._family, self._kept.arrays)
        for name, array in arrays.items():
            if name not in self._kept.arrays:
                raise UsageError(f"{name!r} was not prepared")
            held = self._kept.arrays[name]
            if isinstance(held, View):
                raise UsageError(f"{name} was prepared from an array on the GPU: prepare the new one")
            if reason := foreign.obstacle(array):
                raise WorkloadError(f"{name}: {reason}")
            data = self._family.data[name]
            given[name] = canonical(data, foreign.to_host(foreign.view(array) or array))
            if given[name].shape != held.shape:
                raise WorkloadError(f"{name}: shape {given[name].shape} given, prepared for {held.shape}")
            check_links(self._family.data[name], given[name], sizes)
        if self._chosen is None:
            self._replace(given)
            return
        check_numbers(self._chosen.variant, given)
        backend = self.target.backend
        with self._lock, backend.current():
            self._check_open()
            backend.synchronize()  # calls on any stream may still read the old content
            self._resident.refill(self._chosen.variant, given)
            backend.synchronize()  # any stream may be the next to read it

    def _replace(self, given: Mapping[str, NDArray[Any]]) -> None:
        """What was stored of the kept arrays is of old content by now, in whichever layouts."""
        if self._lasting:
            raise UsageError(
                f"a CUDA graph reads what was prepared ({', '.join(given)}): prepare new data, and capture again"
            )
        with self._lock, self.target.backend.current():
            self._check_open()
            self._make_room(0)
            self._resident.close()
            self._kept = replace(self._kept, arrays={**self._kept.arrays, **given})
            self._resident = self._make_resident(None)

    def _enter_stream(self, stream: int) -> AbstractContextManager[int]:
        lender = self.target.lender
        return lender.on(stream) if lender and stream else nullcontext(0)

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("this was closed: prepare the data again")

    def close(self) -> None:
        """Free what is on the device. Safe to call twice."""
        with self._lock:
            if self._closed:
                return
            self._closed, self._fast_call = True, None
            with self.target.backend.current():
                for kept in (self._launchers, self._lasting):
                    for launcher in kept.values():
                        launcher.close()
                    kept.clear()
                self._resident.close()

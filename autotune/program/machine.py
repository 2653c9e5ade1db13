"""A program on one device: its arrays in the forms that steps ask for, steps launched, arrays converted where the form
at hand is another, turns recorded as CUDA graphs."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

from numpy.typing import NDArray

from autotune.compile import Cache
from autotune.device import Backend, Closing, Execution, LaunchError, Module, Placed, compile_module
from autotune.errors import AutotuneError, CompilerError, DeviceError, FamilyError, UsageError
from autotune.layout import Stored, view_room
from autotune.program.bound import BoundProgram
from autotune.program.candidates import Assignment, Runnable
from autotune.program.conversion import Converter, FormConversion
from autotune.program.forms import Form
from autotune.program.schedule import Event, Segment, segments

OnRead = Callable[[Mapping[str, NDArray[Any]]], None]


@dataclass(frozen=True)
class State:
    """Which memory each array has (by the array that had it first), and in which forms that holds its content."""

    memory: tuple[tuple[str, str], ...]
    valid: tuple[tuple[str, tuple[Form, ...]], ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.memory, self.valid))

    def __hash__(self) -> int:
        return self._hash  # asked for at every turn


@dataclass(frozen=True)
class Action:
    """One thing queued on the device: ``kind`` and ``name`` say of what step or conversion, ``array`` which array a
    conversion copies."""

    kind: str  # call, convert, read
    name: str
    run: Callable[[], None] = field(compare=False)
    array: str = ""


class _InPlace(Execution):
    """An execution whose outputs may be the inputs that they begin as."""

    def begin(self, data: str) -> None:
        source = self.variant.family.beginnings[data]
        if self.placed[data].argument != self.placed[source].argument:
            super().begin(data)


class Machine(Closing):
    """``bound`` on ``backend``. ``start`` gives the arrays their content; ``run`` runs segments under an assignment,
    and any assignment may follow another: what is in another form is converted first.

    ``apart`` reads arrays that a step updates in place from a copy, as the program is declared. One that ``keeps``
    what it is given has it on the device for the next start.
    """

    def __init__(
        self, bound: BoundProgram, backend: Backend, cache: Cache, apart: bool = False, keeps: bool = False
    ) -> None:
        self.bound, self.backend = bound, backend
        self._cache, self._apart, self._keeps = cache, apart, keeps
        self.converter = Converter(backend, cache)
        self._modules: dict[tuple[str, str], Module] = {}
        # Arrays in their forms, what was given as it was given, copies of what is updated in place, families' own.
        self._held: dict[tuple[Any, ...], Placed] = {}
        self._executions: dict[tuple[Any, ...], tuple[Execution, list[tuple[Placed, Placed]]]] = {}
        self._graphs: dict[tuple[Any, ...], tuple[Callable[[], None], State]] = {}
        self._plain: set[tuple[Any, ...]] = set()  # what cannot be a graph
        self._seen: set[tuple[Any, ...]] = set()
        self._stored = False  # whether making a segment's actions put given arrays in their places
        self._is_whole = True  # whether all that was planned was run: what is noted as there is there
        self._memory: dict[str, str] = {}
        self._valid: dict[str, tuple[Form, ...]] = {}
        self._given: dict[str, NDArray[Any]] = {}
        self._state: State | None = None  # as it is now, where nothing changed since it was asked for
        self.start()

    def start(self, given: Mapping[str, NDArray[Any]] | None = None) -> None:
        """Every array has the content that is given, by default that of ``bound``, and no other any."""
        self._state = None
        before, arrays = self._given, self.bound.program.arrays
        self._given = dict(self.bound.given if given is None else given)
        same = {name for name, array in self._given.items() if given is None and before.get(name) is array}
        self._free(lambda key: key[0] == "given" and key[1] not in same)
        self._memory = {name: name for name in self.bound.data}
        kept = {name for name in same if arrays[name].role == "input" and self._is_whole}
        self._valid = {name: self._valid[name] if name in kept else () for name in self.bound.data}
        self._is_whole = True

    def fetch(self, name: str) -> NDArray[Any]:
        """The canonical content of an array as it is now. Raises UsageError where no step has made it."""
        memory, shape = self._memory[name], self.bound.shapes[name]
        if not self._valid[memory]:
            if memory not in self._given:
                raise UsageError(f"array {name} has no content yet: no step has written it")
            return self._given[memory]
        plain = Form.make_plain(self.bound.data[name], shape)
        form = plain if plain in self._valid[memory] else self._valid[memory][0]
        with self.backend.current():
            return form.restore(self.backend.download(self._held["array", memory, form]), shape)

    def plain_copy(self, name: str) -> Placed:
        """The array as it is now in plain form, in memory of its own; the caller frees it."""
        memory, shape = self._memory[name], self.bound.shapes[name]
        plain, valid = Form.make_plain(self.bound.data[name], shape), self._valid[memory]
        target = self.backend.place(plain.layout.room(shape))
        if not valid:
            self.backend.upload(target, plain.layout.apply(self._given[memory]))
        elif plain in valid:
            self.backend.copy(target, self._held["array", memory, plain])
        else:
            source = self._held["array", memory, valid[0]]
            self.converter.make_copy(FormConversion(valid[0], plain, shape), source, target)()
        return target

    @property
    def state(self) -> State:
        if self._state is None:
            self._state = State(tuple(self._memory.items()), tuple(self._valid.items()))
        return self._state

    @property
    def nbytes(self) -> int:
        """What it holds on the device."""
        return sum(placed.stored.nbytes for placed in self._held.values())

    def run(self, assignment: Assignment, listed: Sequence[Segment], on_read: OnRead | None = None) -> None:
        """Queue the segments, as graphs where they can be; what the host reads goes to ``on_read``."""
        with self.backend.current():
            for segment in listed:
                self._is_whole = False
                self._run_segment(assignment, segment)
                self._is_whole = True
                if segment and segment[-1].kind == "read" and on_read is not None:
                    on_read({name: self.fetch(name) for name in segment[-1].names})

    def run_all(self, assignment: Assignment, on_read: OnRead | None = None) -> None:
        """The whole program, from where it is."""
        self.run(assignment, list(segments(self.bound, assignment.periods)), on_read)
        with self.backend.current():
            self.backend.synchronize()

    def _run_segment(self, assignment: Assignment, segment: Segment) -> None:
        key = assignment.id, segment, self.state
        if key in self._graphs:
            graph, after = self._graphs[key]
            graph()
            if after is not self._state:
                self._memory, self._valid, self._state = dict(after.memory), dict(after.valid), after
            return
        self._stored = False
        actions = self.actions(assignment, segment)
        calls = [assignment.chosen[action.name].call.family for action in actions if action.kind == "call"]
        is_plain = not actions or key in self._plain or any(family.symbols for family in calls)
        if not is_plain and not self._stored and key in self._seen:
            try:
                graph = self.backend.record(partial(_run_each, actions))
            except (AutotuneError, RuntimeError):
                self._plain.add(key)
            else:
                self._graphs[key] = graph, self.state
                graph()
                return
        self._seen.add(key)  # the first time it runs step by step, which makes all that there is to make
        _run_each(actions)

    def queue_timed(
        self, assignment: Assignment, segment: Segment
    ) -> Callable[[], list[tuple[Action, float]]]:
        """Queue a segment with marks around each action; the result is called later, for the milliseconds of each."""
        self._is_whole = False
        actions, marks = self.actions(assignment, segment), [self.backend.mark()]
        for action in actions:
            action.run()
            marks.append(self.backend.mark())
        self._is_whole = True

        def read() -> list[tuple[Action, float]]:
            self.backend.synchronize()
            times = [self.backend.between_ms(*span) or 0.0 for span in pairwise(marks)]
            return list(zip(actions, times, strict=True))

        return read

    def actions(self, assignment: Assignment, segment: Segment) -> list[Action]:
        """What a segment does from the present state, which becomes that behind it. All that the actions need is made
        before they are given."""
        made: list[Action] = []
        self._state = None
        for event in segment:
            if event.kind == "swap":
                first, second = event.names
                self._memory[first], self._memory[second] = self._memory[second], self._memory[first]
            elif event.kind == "call":
                made += self._call(event, assignment.chosen[event.names[0]])
        return made

    def _call(self, event: Event, candidate: Runnable) -> list[Action]:
        call, made = candidate.call, []
        for data, name in call.reads.items():
            made += self._convert(name, candidate.forms[data])
        execution, copies = self._execution(candidate)

        def run() -> None:
            for target, source in copies:
                self.backend.copy(target, source)
            if call.family.symbols:
                execution.prepare()
            execution.run()

        made.append(Action("call", event.names[0], run))
        for data, name in call.writes.items():
            self._valid[self._memory[name]] = (candidate.forms[data],)
        return made

    def _convert(self, name: str, form: Form) -> list[Action]:
        """What makes the array be there in ``form``."""
        memory, shape = self._memory[name], self.bound.shapes[name]
        valid = self._valid[memory]
        if form in valid:
            return []
        target, made = self._buffer(memory, form, shape), list[Action]()
        if valid:
            conversion = FormConversion(valid[0], form, shape)
            run = self.converter.make_copy(conversion, self._held["array", memory, valid[0]], target)
            made.append(Action("convert", f"{valid[0].digest} {form.digest}", run, name))
        else:
            self._store(memory, form, target)
        self._valid[memory] = (*valid, form)
        return made

    def _store(self, memory: str, form: Form, target: Placed) -> None:
        """Put what was given where it belongs, at once: its bytes go to the device as they are, and are moved there."""
        self._stored = True
        array = self._given[memory]
        plain = Form.make_plain(self.bound.data[memory], array.shape)
        if form == plain and not self._keeps:
            self.backend.upload(target, plain.layout.apply(array))
            return
        source = self._place("given", memory, stored=plain.layout.apply(array))
        if form == plain:
            self.backend.copy(target, source)
        else:
            self.converter.make_copy(FormConversion(plain, form, array.shape), source, target)()
        if not self._keeps:
            self.backend.synchronize()
            self._free(lambda key: key == ("given", memory))

    def _buffer(self, memory: str, form: Form, shape: tuple[int, ...]) -> Placed:
        is_new = ("array", memory, form) not in self._held
        placed = self._place("array", memory, form, stored=form.layout.room(shape))
        if is_new:
            self.backend.fill(placed, 0)  # what no kernel writes is the same everywhere
        return placed

    def _place(self, *key: Any, stored: Stored) -> Placed:
        """What is held under the key, placed when it is not there yet. Raises DeviceError."""
        if key not in self._held:
            try:
                self._held[key] = self.backend.place(stored)
            except LaunchError as problem:
                told = f"no room for array {key[1]}: {stored.nbytes:,} bytes, with {self.nbytes:,} in use"
                raise DeviceError(f"{told}: {problem}") from None
        return self._held[key]

    def _free(self, is_due: Callable[[tuple[Any, ...]], bool]) -> None:
        for key in [key for key in self._held if is_due(key)]:
            self._held.pop(key).free()

    def trim(self) -> None:
        """Give up every form in which no array has its content now, and all that was made for it."""
        there = {("array", memory, form) for memory, forms in self._valid.items() for form in forms}
        self._executions.clear()
        self._graphs.clear()
        self._free(lambda key: key[0] != "given" and key not in there)

    def _execution(self, candidate: Runnable) -> tuple[Execution, list[tuple[Placed, Placed]]]:
        """The call bound to where its arrays are, and what has to be copied before it."""
        call = candidate.call
        places = tuple(self._memory[name] for name in call.arrays.values())
        key = call.step, call.place, candidate.configuration.id, places
        if key not in self._executions:
            try:
                self._executions[key] = self._make(candidate)
            except (CompilerError, DeviceError, FamilyError) as problem:
                raise type(problem)(f"step {call.step}: {problem}") from None
        return self._executions[key]

    def _make(self, candidate: Runnable) -> tuple[Execution, list[tuple[Placed, Placed]]]:
        call, variant, backend = candidate.call, candidate.variant, self.backend
        sizes, module = call.inputs.sizes, self._module(candidate)
        names = {**call.inputs.names(candidate.configuration), **module.numbers}
        if module.numbers and (reason := variant.explain_exclusion(names, backend.device.limits)):
            raise LaunchError(reason)
        cleared, copies = set(call.family.list_cleared(names)), []
        written = {(self._memory[name], candidate.forms[data]): data for data, name in call.writes.items()}
        placed: dict[str, Placed] = {}
        for data, name in call.arrays.items():
            memory, form, shape = self._memory[name], candidate.forms[data], call.shape(data)
            held = self._buffer(memory, form, shape)
            by = written.get((memory, form)) if data in call.reads else None
            if by is not None and (self._apart or by in cleared):
                copies.append((self._place("copy", memory, form, stored=form.layout.room(shape)), held))
                held = copies[-1][0]
            placed[data] = backend.view(variant.layouts[data].room(shape), held)
        for name, layout in variant.layouts.items():
            if name not in placed and (not layout.data.of or name in variant.conversions):
                room = layout.room(layout.data.shape_for(sizes))
                key = "own", f"{name} of {call.step}", call.place, repr(layout)
                placed[name] = self._place(*key, stored=room)
        for name, layout in variant.layouts.items():
            if name not in placed and name not in variant.aliases:
                is_own = layout.data.converted
                room = layout.room(layout.data.shape_for(sizes)) if is_own else view_room(layout, sizes)
                placed[name] = backend.view(room, placed[layout.data.of])
        return _InPlace(backend, variant, module, placed, names), copies

    def _module(self, candidate: Runnable) -> Module:
        key = candidate.call.step, candidate.variant.source.key
        if key not in self._modules:
            self._modules[key] = compile_module(self.backend, self._cache, candidate.variant)
        return self._modules[key]

    def close(self) -> None:
        """Free all that it holds. Safe to call twice."""
        with suppress(DeviceError), self.backend.current():
            self._executions.clear()
            self._graphs.clear()
            self.converter.close()
            self._free(lambda _: True)
            for module in self._modules.values():
                module.unload()
            self._modules.clear()


def _run_each(actions: Sequence[Action]) -> None:
    for action in actions:
        action.run()

"""The whole program run beside the program as declared: compared after every step, and timed in turn."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Tolerance
from autotune.device import Placed
from autotune.errors import AutotuneError
from autotune.program.bound import BoundCall, BoundProgram
from autotune.program.candidates import Assignment
from autotune.program.machine import Machine
from autotune.program.schedule import Event, Segment


@dataclass
class WholeProof:
    """Holds assignments against the program as declared, which ``reference`` runs; ``compared`` counts the arrays that
    were compared."""

    reference: Machine
    control: Assignment
    compared: int = 0
    _largest: dict[tuple[int, str], float] = field(default_factory=dict)

    def refusal(self, machine: Machine, assignment: Assignment, listed: Sequence[Segment]) -> str:
        """Run both from the start, step by step; empty where they agree, else the step and the array that differ and by
        how much, or what failed."""
        bound, reference = machine.bound, self.reference
        reference.start()
        machine.start()
        ran = 0
        for event in (event for segment in listed for event in segment):
            mine = Event("call", event.names)
            try:
                reference.run(self.control, [(event,)])
                machine.run(assignment, [(event,)])
            except AutotuneError as problem:
                return f"{' '.join(event.names)}: {problem}"
            if event.kind != "call":
                continue
            ran += 1
            call = assignment.chosen[mine.names[0]].call
            for data, name in call.writes.items():
                if self._is_compared(bound, name) and (
                    found := self._differs(machine, call, data, name, ran)
                ):
                    return f"step {call.step}, run {ran}: array {name} {found}"
        return ""

    def _is_compared(self, bound: BoundProgram, name: str) -> bool:
        """What a step permutes is compared by what tells its elements apart; what only lies between steps, and has
        nothing of that kind, shows in the arrays that are made of it."""
        array = bound.program.arrays[name]
        return not bound.program.chosen_periods or array.role != "scratch" or bool(array.ordered_by)

    def _differs(self, machine: Machine, call: BoundCall, data: str, name: str, ran: int) -> str:
        self.compared += 1
        bound = machine.bound
        array, kind = bound.program.arrays[name], bound.data[name]
        tolerance = _tolerance(call, data)
        relative, absolute = array.tolerance or (tolerance.relative * ran, tolerance.absolute * ran)
        numbers = {field.type for field in kind.fields}
        on_device = len(numbers) == 1 and not array.ordered_by and not kind.element
        if (ran, name) not in self._largest:
            self._largest[ran, name] = _magnitude(self.reference.fetch(name))
        absolute += relative * self._largest[ran, name]
        allowed = tolerance.may_differ(math.prod(bound.shapes[name]) * len(kind.fields))
        if on_device:
            many = self._apart(machine, name, np.dtype(numbers.pop()), (0.0, absolute))
        else:
            many = _apart(self._ordered(machine, name), self._ordered(self.reference, name), absolute)
        if many <= allowed:
            return ""
        got, right = (self._ordered(one, name) for one in (machine, self.reference))
        size = math.prod(bound.shapes[name])
        far = _furthest(got, right)
        return f"differs in {many:,} of {size:,} elements by more than {absolute:.3g}, at most by {far:.3g}"

    def _apart(self, machine: Machine, name: str, kind: np.dtype[Any], within: tuple[float, float]) -> int:
        """How many elements are too far apart, counted on the device."""
        backend = machine.backend
        with _copies(machine, self.reference, name) as (got, right):
            return backend.apart(got, right, kind, within if kind.kind == "f" else (0.0, 0.0))

    def _ordered(self, machine: Machine, name: str) -> NDArray[Any]:
        """The array in the order of what tells its elements apart."""
        array, by = machine.fetch(name), machine.bound.program.arrays[name].ordered_by
        if not by:
            return array
        numbers = machine.fetch(by)
        axis = array.shape.index(len(numbers))
        return np.take(array, np.argsort(numbers, kind="stable"), axis=axis)


@contextmanager
def _copies(machine: Machine, reference: Machine, name: str) -> Iterator[tuple[Placed, Placed]]:
    with machine.backend.current():
        got = machine.plain_copy(name)
        try:
            right = reference.plain_copy(name)
            try:
                yield got, right
            finally:
                right.free()
        finally:
            got.free()


def _tolerance(call: BoundCall, data: str) -> Tolerance:
    """What the family allows of an output, the widest of its fields; nothing of its scratch arrays."""
    found = call.family.tolerances(call.inputs.names(call.family.space.control))
    mine = [one for key, one in found.items() if key.split(".")[0] == data]
    if not mine:
        return Tolerance()
    return Tolerance(
        relative=max(one.relative for one in mine), absolute=max(one.absolute for one in mine),
        share=max(one.share for one in mine),
    )  # fmt: skip


def _parts(array: NDArray[Any]) -> list[NDArray[Any]]:
    """Its fields, or itself."""
    return [array[name] for name in array.dtype.names] if array.dtype.names else [array]


def _magnitude(array: NDArray[Any]) -> float:
    """The largest finite number of an array of floating point numbers; 0 for others, which are compared exactly."""
    most = 0.0
    for part in _parts(array):
        if part.dtype.kind == "f":
            finite = np.abs(part[np.isfinite(part)])
            most = max(most, float(finite.max(initial=0)))
    return most


def _apart(got: NDArray[Any], right: NDArray[Any], within: float) -> int:
    many = 0
    for one, other in zip(_parts(got), _parts(right), strict=True):
        is_float = other.dtype.kind == "f"
        near = np.isclose(one, other, 0, within, equal_nan=True) if is_float else one == other
        many += int(np.count_nonzero(~near))
    return many


def _furthest(got: NDArray[Any], right: NDArray[Any]) -> float:
    apart = [
        np.abs(one.astype(np.float64) - other.astype(np.float64))
        for one, other in zip(_parts(got), _parts(right), strict=True)
    ]
    return max(float(np.nanmax(one, initial=0)) for one in apart)


# -- timed whole, in turn


def time_in_turn(
    machine: Machine, assignments: Mapping[str, Assignment], listed: Sequence[Segment], rounds: int
) -> dict[str, list[float]]:
    """Milliseconds of the segments under each assignment, ``rounds`` times each, one after the other, so that drift
    hits all of them; what the host reads is read."""
    times: dict[str, list[float]] = {name: [] for name in assignments}
    backend = machine.backend
    with backend.current():
        for _ in range(rounds):
            for name, assignment in assignments.items():
                machine.start()
                for _ in range(3):  # once step by step, once to record graphs, once as it is timed
                    machine.run(assignment, listed, _drop)
                backend.synchronize()
                times[name] += backend.sample(partial(machine.run, assignment, listed, _drop), 1, False)
                if machine.nbytes > 0.5 * backend.device.limits.memory_bytes:
                    machine.trim()
    return times


def _drop(_arrays: Mapping[str, NDArray[Any]]) -> None:
    """What the host reads is looked at by nobody."""


def typical(times: Sequence[float]) -> float:
    return float(median(times))

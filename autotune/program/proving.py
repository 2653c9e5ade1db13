"""The whole program run with the program as declared: compared after every step, and timed in turn."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Tolerance
from autotune.errors import AutotuneError
from autotune.program.bound import BoundCall
from autotune.program.candidates import Assignment
from autotune.program.machine import Machine
from autotune.program.schedule import Segment


@dataclass
class WholeProof:
    """Holds assignments against the program as declared, which ``reference`` runs; ``compared`` counts the arrays that
    were compared."""

    reference: Machine
    control: Assignment
    compared: int = 0
    _largest: dict[tuple[int, str], float] = field(default_factory=dict)

    def find_difference(self, machine: Machine, assignment: Assignment, listed: Sequence[Segment]) -> str:
        """Run both from the start, and compare what each step wrote in its first two runs and its last; empty where
        both agree, else the step and the array that differ and by how much, or what failed."""
        events = [event for segment in listed for event in segment]
        last = {event.names: at for at, event in enumerate(events) if event.kind == "call"}
        runs: Counter[str] = Counter()
        self.reference.start()
        machine.start()
        for at, event in enumerate(events):
            try:
                self.reference.run(self.control, [(event,)])
                machine.run(assignment, [(event,)])
            except AutotuneError as problem:
                return f"{' '.join(event.names)}: {problem}"
            if event.kind == "call":
                call = assignment.chosen[event.names[0]].call
                runs[call.step] += 1
                is_due = runs[call.step] <= 2 or at == last[event.names]
                for data, name in call.writes.items() if is_due else ():
                    if found := self._describe_difference(machine, call, data, name, runs.total()):
                        return f"step {call.step}, run {runs[call.step]}: array {name} {found}"
        return ""

    def _describe_difference(self, machine: Machine, call: BoundCall, data: str, name: str, ran: int) -> str:
        """How the array differs behind ``ran`` runs of steps; each of them widens the tolerance of its family."""
        bound, tolerance = machine.bound, _tolerance(call, data)
        array, kind, size = bound.program.arrays[name], bound.data[name], math.prod(bound.shapes[name])
        if bound.program.chosen_periods and array.role == "scratch" and not array.ordered_by:
            return ""  # in another order, and nothing tells its elements apart: what is made of it shows
        self.compared += 1
        relative, absolute = array.tolerance or (tolerance.relative * ran, tolerance.absolute * ran)
        if (ran, name) not in self._largest:
            self._largest[ran, name] = _magnitude(self.reference.fetch(name))
        within = absolute + relative * self._largest[ran, name]
        numbers = {member.type for member in kind.fields}
        if len(numbers) == 1 and not array.ordered_by and not kind.element:
            many = self._count_mismatches(machine, name, np.dtype(numbers.pop()), within)
        else:
            many = _compare(self._order(machine, name), self._order(self.reference, name), within)[0]
        if many <= tolerance.may_differ(size * len(kind.fields)):
            return ""
        far = _compare(self._order(machine, name), self._order(self.reference, name), within)[1]
        return f"differs in {many:,} of {size:,} elements by more than {within:.3g}, at most by {far:.3g}"

    def _count_mismatches(self, machine: Machine, name: str, kind: np.dtype[Any], within: float) -> int:
        """How many elements are too far apart, counted on the device."""
        with machine.backend.current(), ExitStack() as stack:
            got = machine.plain_copy(name)
            stack.callback(got.free)
            right = self.reference.plain_copy(name)
            stack.callback(right.free)
            far = (0.0, within if kind.kind == "f" else 0.0)
            return machine.backend.count_mismatches(got, right, kind, far)

    def _order(self, machine: Machine, name: str) -> NDArray[Any]:
        """The array in the order of what tells its elements apart."""
        array, by = machine.fetch(name), machine.bound.program.arrays[name].ordered_by
        if not by:
            return array
        numbers = machine.fetch(by)
        return np.take(array, np.argsort(numbers), axis=array.shape.index(len(numbers)))


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
    floats = [part for part in _parts(array) if part.dtype.kind == "f"]
    return max((float(np.abs(part[np.isfinite(part)]).max(initial=0)) for part in floats), default=0.0)


def _compare(got: NDArray[Any], right: NDArray[Any], within: float) -> tuple[int, float]:
    """How many numbers are further apart than floating point numbers may be, and how far the furthest are."""
    many, far = 0, 0.0
    for one, other in zip(_parts(got), _parts(right), strict=True):
        is_float = other.dtype.kind == "f"
        near = np.isclose(one, other, 0, within, equal_nan=True) if is_float else one == other
        many += int(np.count_nonzero(~near))
        far = max(far, float(np.nanmax(np.abs(one[~near].astype(np.float64) - other[~near]), initial=0)))
    return many, far


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
                for _ in range(1 if times[name] else 3):  # step by step, to record graphs, as it is timed
                    machine.run(assignment, listed, _drop)
                backend.synchronize()
                times[name] += backend.sample(partial(machine.run, assignment, listed, _drop), 1, False)
                if machine.nbytes > 0.5 * backend.device.limits.memory_bytes:
                    machine.trim()
    return times


def _drop(_arrays: Mapping[str, NDArray[Any]]) -> None:
    """What the host reads is looked at by nobody."""

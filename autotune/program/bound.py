"""A program on arrays of known shapes: each call with what it is given, and the checks that its steps fit together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.declaration import Family, Inputs
from autotune.errors import AutotuneError, UsageError, WorkloadError
from autotune.layout import Data, canonical, check_links
from autotune.program.declared import Given, Held, Program, parse_held
from autotune.program.steps import (
    NEVER,
    Choose,
    Either,
    KernelCall,
    Read,
    Repeat,
    Step,
    Swap,
    check_known,
    number,
    scalar,
    walk,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BoundCall:
    """A call with its sizes. ``place`` is its number among those that the step chooses from; ``arrays`` has the
    program's array for each of the family's that is not its own; ``inputs`` has the shapes of the arrays, and no
    content."""

    step: str
    place: int
    family: Family
    arrays: Mapping[str, str]
    inputs: Inputs = field(hash=False)
    held: Held = field(hash=False)

    @property
    def reads(self) -> Mapping[str, str]:
        """The arrays that it reads, by the family's names."""
        return {data: name for data, name in self.arrays.items() if self.family.data[data].role == "input"}

    @property
    def writes(self) -> Mapping[str, str]:
        """The arrays that it writes, by the family's names."""
        return {data: name for data, name in self.arrays.items() if self.family.data[data].role != "input"}

    def shape(self, data: str) -> tuple[int, ...]:
        return self.family.data[data].shape_for(self.inputs.sizes)

    @property
    def kind(self) -> tuple[Any, ...]:
        """Equal for calls of which the same is measured: of one family on the same sizes."""
        return self.family.folder, self.inputs.sizes, self.inputs.scalars, self.inputs.options, self.held


@dataclass(frozen=True, kw_only=True)
class BoundProgram:
    """A program on arrays of known shapes. ``data`` says of each array what its elements are, by the first step that
    has it; ``calls`` has what each step chooses from; ``given`` are canonical arrays."""

    program: Program
    given: Mapping[str, NDArray[Any]]
    scalars: Mapping[str, float]
    data: Mapping[str, Data]
    shapes: Mapping[str, tuple[int, ...]]
    calls: Mapping[str, tuple[BoundCall, ...]]

    @property
    def each_call(self) -> Iterator[BoundCall]:
        """Every call that some step may take."""
        return chain.from_iterable(self.calls.values())

    def count(self, step: Repeat) -> int:
        """The turns of a loop."""
        return number(step.count, self.scalars, f"program {self.program.name}: repeat")

    @property
    def nbytes(self) -> int:
        """What the arrays take as they are declared."""
        return sum(int(np.prod(self.shapes[name])) * data.dtype.itemsize for name, data in self.data.items())


def bind_program(program: Program, given: Given) -> BoundProgram:
    """``program`` on what is given. Raises UsageError, WorkloadError, UnknownName with the array and the step for what
    does not fit together."""
    return _Binding(program, given).bind()


class _Binding:
    """Goes through the steps in the order in which they run and notes what each array is."""

    def __init__(self, program: Program, given: Given) -> None:
        self._program, self._where = program, f"program {program.name}"
        self._scalars = {**program.scalars, **given.scalars}
        declared = sorted(name for name, array in program.arrays.items() if array.is_given)
        for name in given.scalars:
            check_known("scalar", name, program.scalars, self._where)
        for name in given.arrays:
            check_known("array to give", name, declared, self._where)
        for name in declared:
            if name not in given.arrays:
                role = program.arrays[name].role
                raise WorkloadError(f"{self._where}: array {name} is not given, and has role {role}")
        self._given = {name: np.asarray(array) for name, array in given.arrays.items()}
        self._data: dict[str, Data] = {}
        self._by: dict[str, str] = {}  # the first step that has the array
        self._shapes = {name: array.shape for name, array in self._given.items()}
        self._has_content = {*self._given}
        self._calls: dict[str, tuple[BoundCall, ...]] = {}
        self._read: set[str] = set()
        self._written: set[str] = set()

    def bind(self) -> BoundProgram:
        for step in walk(self._program.steps):
            self._visit(step)
        self._check_roles()
        self._check_presets()
        arrays = {n: canonical(replace(self._data[n], name=n), array) for n, array in self._given.items()}
        self._check_content(arrays)
        return BoundProgram(
            program=self._program, given=arrays, scalars=self._scalars, data=self._data, shapes=self._shapes,
            calls=self._calls,
        )  # fmt: skip

    def _visit(self, step: Step) -> None:
        if isinstance(step, Repeat):
            number(step.count, self._scalars, f"{self._where}: repeat")
        elif isinstance(step, Swap):
            self._swap(step)
        elif isinstance(step, Read):
            number(step.every, self._scalars, f"{self._where}: read: every")
            for name in step.arrays:
                self._reads(name, f"{self._where}: read")
        else:
            self._choice(step)

    def _choice(self, step: KernelCall | Either) -> None:
        """One call, or several that do the same."""
        place, before, made = f"{self._where}: step {step.name}", set(self._has_content), []
        if not isinstance(step.every, Choose):
            number(step.every, self._scalars, f"{place}: every")
        for at, call in enumerate(step.calls):
            self._has_content = set(before)
            made.append(self._call(step.name, at, call))
        self._calls[step.name] = tuple(made)
        written = set(made[0].writes.values())
        is_same = all(set(call.writes.values()) == written for call in made)
        _require(is_same, f"{place}: its calls do not write the same arrays")
        new = sorted(written - before)
        is_needed = isinstance(step.every, Choose) and NEVER in step.every.values and new
        told = f"{place}: array {''.join(new[:1])} has no content without it, and never is for a step that only changes"
        _require(not is_needed, f"{told} the order of what is there")
        self._has_content |= written

    def _swap(self, step: Swap) -> None:
        place, pair = f"{self._where}: swap {step.first}, {step.second}", step.arrays
        for name in pair:
            is_state = self._program.arrays[name].role != "input"
            _require(is_state, f"{place}: {name} has role input, which is never written: give it role state")
            _require(name in self._shapes, f"{place}: no step before it has made {name}")
        self._written |= {*pair}
        self._read |= {*pair}  # under the other name
        first, second = (self._shapes[name] for name in pair)
        kinds = {self._data[name].dtype for name in pair if name in self._data}
        told = f"{place}: they have shapes {first} and {second}; only arrays of one kind swap"
        _require(first == second and len(kinds) <= 1, told)

    def _call(self, step: str, at: int, call: KernelCall) -> BoundCall:
        place, family = f"{self._where}: step {step}", self._program.family(call)
        bound, shapes = self._arrays(family, call, place), {}
        for data in family.inputs:
            name = bound[data.name]
            self._reads(name, f"{place} ({data.name})")
            self._agrees(name, data, step, place)
            shape = self._shapes[name]
            many = f"{len(data.shape)} extents ({', '.join(data.shape)})"
            told = f"{place}: array {name} has shape {shape}, and {family.name} takes {data.name} with {many}"
            _require(len(shape) == len(data.shape), told)
            shapes[data.name] = np.broadcast_to(np.zeros((), data.dtype), shape)
        for name in call.scalars:
            check_known("scalar", name, family.callers_scalars, f"{place}, family {family.name}")
        scalars = {n: scalar(each, self._scalars, f"{place}: scalar {n}") for n, each in call.scalars.items()}
        try:
            inputs = Inputs.make(family, shapes, call.options, scalars)
            held = family.space.select_values(parse_held(call.held))
        except AutotuneError as problem:
            taken = ", ".join(f"{data} is {bound[data]} {shape.shape}" for data, shape in shapes.items())
            raise UsageError(f"{place}: {problem} ({taken})") from None
        made = BoundCall(step=step, place=at, family=family, arrays=bound, inputs=inputs, held=held)
        self._makes(made, place)
        return made

    def _arrays(self, family: Family, call: KernelCall, place: str) -> dict[str, str]:
        """The program's array for each of the family's."""
        mine, bound = self._program.arrays, dict(call.arrays)
        own = [data.name for data in family.data.values() if not data.of]
        for data, name in bound.items():
            check_known(f"array of family {family.name}", data, own, place)
            check_known("array", name, mine, place)
        for each in (*family.inputs, *family.outputs):
            same = each.name if each.name in mine else bound.get(family.beginnings.get(each.name, ""), "")
            told = f"{place}: no array is given for {each.name}, an {each.role} of {family.name}: name one in arrays"
            _require(bool(bound.setdefault(each.name, same)), f"{told} (the program has {', '.join(mine)})")
        return bound

    def _agrees(self, name: str, data: Data, step: str, place: str) -> None:
        """The step takes the array for what the first one took it."""
        first, by = self._data.setdefault(name, data), self._by.setdefault(name, step)
        told = f"{place}: array {name} holds {first.dtype} for step {by}, and {data.name} is {data.dtype}"
        _require(first.dtype == data.dtype, told)
        told = f"{place}: {data.name} is an image, which a program cannot share between kernels"
        _require(data.sampling is None, told)

    def _reads(self, name: str, place: str) -> None:
        self._read.add(name)
        role = self._program.arrays[name].role
        told = f"{place}: it reads array {name}, of role {role}, before a step has written it"
        _require(name in self._has_content, f"{told}: give it role state, or put a step that writes it first")

    def _makes(self, call: BoundCall, place: str) -> None:
        """What the call writes has the shape that it has elsewhere."""
        taken: dict[str, str] = {}
        for data, name in call.writes.items():
            other = taken.setdefault(name, data)
            told = f"{place}: {other} and {data} both go to array {name}; each needs its own"
            _require(other == data, told)
            told = f"{place}: it writes array {name} ({data}), which has role input: give it role state"
            _require(self._program.arrays[name].role != "input", told)
            self._agrees(name, call.family.data[data], call.step, place)
            shape = call.shape(data)
            there = self._shapes.setdefault(name, shape)
            by = "given" if name in self._given else self._by[name]
            told = f"{place}: array {name} has shape {there} ({by}), and {call.family.name} makes {data} with {shape}"
            _require(there == shape, told)
        self._written |= taken.keys()

    def _check_roles(self) -> None:
        for name, array in self._program.arrays.items():
            told, role = f"{self._where}: array {name}", array.role
            _require(name in self._data, f"{told} is in no step: name it in one, or delete it")
            is_kept = role != "state" or name in self._written
            _require(is_kept, f"{told} has role state, and no step writes it: give it role input")
            is_used = role != "scratch" or name in self._read
            _require(is_used, f"{told} has role scratch, and nothing reads it: give it role output")
            if array.ordered_by:
                key, shape = self._data[array.ordered_by].dtype, self._shapes[array.ordered_by]
                is_order = key.kind in "iu" and len(shape) == 1 and shape[0] in self._shapes[name]
                told += f" is ordered_by {array.ordered_by}, {key} of shape {shape}: whole numbers are needed, one for"
                _require(is_order, f"{told} each element along an extent of {self._shapes[name]}")

    def _check_presets(self) -> None:
        """What a preset holds, a call of the step has."""
        for preset in self._program.presets:
            for step, held in self._program.get_held(preset).items():
                spaces = [call.family.space for call in self._calls[step]]
                owned = [{policy.name for policy in space.policies} for space in spaces]
                known, where = sorted(set().union(*owned)), f"{self._where}: preset {preset}: {step}"
                for name in held:
                    check_known("policy", name, known, where)
                for space, own in zip(spaces, owned, strict=True):
                    space.select_values({name: values for name, values in held.items() if name in own})

    def _check_content(self, given: Mapping[str, NDArray[Any]]) -> None:
        """Links of given arrays lead to where there is something; numbers are what each step takes."""
        for call in chain.from_iterable(self._calls.values()):
            for data, name in call.reads.items():
                if name in given and name not in self._written:
                    try:
                        canonical(call.family.data[data], given[name])
                        check_links(call.family.data[data], given[name], call.inputs.sizes)
                    except WorkloadError as problem:
                        told = f"{self._where}: step {call.step}: array {name}: {problem}"
                        raise WorkloadError(told) from None


def _require(holds: bool, told: str) -> None:
    if not holds:
        raise UsageError(told)

"""What a step may run: the configurations of its families whose arrays a program can hold, by the forms that they ask
for; and an assignment, which chooses one for each step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from autotune.compile import Variant
from autotune.declaration import Configuration
from autotune.errors import UsageError
from autotune.hardware import Limits
from autotune.program.bound import BoundCall, BoundProgram
from autotune.program.declared import Held
from autotune.program.forms import Form, explain_unshareable


@dataclass(frozen=True)
class Runnable:
    """A call in one configuration of its family."""

    call: BoundCall
    configuration: Configuration

    @cached_property
    def variant(self) -> Variant:
        return Variant.make(self.call.family, self.configuration, self.call.inputs.options)

    @cached_property
    def forms(self) -> Mapping[str, Form]:
        """The form that it asks for, by the family's names of the arrays that it shares."""
        call, layouts = self.call, self.variant.layouts
        return {data: Form.make(layouts[data], call.shape(data)) for data in call.arrays}

    @property
    def stored(self) -> list[tuple[str, Form]]:
        """The form that it asks for, with each of the program's arrays that it has."""
        return [(name, self.forms[data]) for data, name in self.call.arrays.items()]

    @property
    def changes(self) -> int:
        """How many choices are not the family's control."""
        control = self.call.family.space.control
        return sum(self.configuration[name] != control[name] for name in control)

    @cached_property
    def key(self) -> tuple[int, tuple[Form, ...]]:
        """Equal for candidates that a program cannot tell apart but by their time."""
        return self.call.place, tuple(self.forms.values())

    @cached_property
    def own_bytes(self) -> int:
        """What the scratch arrays take that are the family's own."""
        family, sizes = self.call.family, self.call.inputs.sizes
        return sum(
            layout.room(layout.data.shape_for(sizes)).nbytes
            for name, layout in self.variant.layouts.items()
            if name not in self.call.arrays and (not family.data[name].of or name in self.variant.conversions)
        )

    def is_held(self, held: Held) -> bool:
        """Whether its configuration has one of the values of each policy."""
        told = self.configuration
        return all(name in told and str(told[name]) in map(str, values) for name, values in held.items())

    def explain_refusal(self, limits: Limits) -> str:
        """Why it cannot run in a program on a device with ``limits``; empty where it can."""
        in_place = set(self.call.reads.values()) & set(self.call.writes.values())
        for data, name in self.call.arrays.items():
            if reason := explain_unshareable(self.variant, data, name in in_place):
                return reason
        return self.variant.explain_exclusion(self.call.inputs.names(self.configuration), limits)


@dataclass(frozen=True)
class Assignment:
    """A candidate for each step, and how often those steps run whose ``every`` is the tuner's to choose."""

    chosen: Mapping[str, Runnable]
    periods: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def id(self) -> str:
        """Equal for equal assignments."""
        told = [f"{s}: {c.call.place} {c.configuration.id}" for s, c in self.chosen.items()]
        return "; ".join([*told, *(f"{step} every {k}" for step, k in self.periods.items())])


def control(bound: BoundProgram, periods: Mapping[str, int], limits: Limits) -> Assignment:
    """The program as declared: each step's first call in its family's control configuration, with what the step holds
    policies to. Raises UsageError where a program cannot hold its arrays so."""
    chosen = {}
    for step, (call, *_) in bound.calls.items():
        space, place = call.family.space, f"program {bound.program.name}: step {step}"
        values = {p.name: call.held.get(p.name, (p.default,)) for p in space.policies}
        first = next(space.possible.walk({name: told[:1] for name, told in values.items()}), None)
        first = first or next(space.possible.walk(values), None)
        if first is None:
            raise UsageError(f"{place}: set leaves no configuration of {call.family.name}")
        candidate = Runnable(call, first)
        if reason := candidate.explain_refusal(limits):
            raise UsageError(
                f"{place}: its control configuration {first.id} cannot run in a program: {reason}; hold that policy to "
                "another value with set"
            )
        chosen[step] = candidate
    return Assignment(chosen, dict(periods))


def candidates(
    call: BoundCall, limits: Limits, most: int, held: Held | None = None
) -> dict[Any, list[Runnable]]:
    """Return the configurations of ``call`` that can run in a program, among the first ``most`` of the space, in groups
    by the forms of their arrays; in every group the one nearest to control comes first. ``held`` restricts policies in
    addition to the step."""
    family, space = call.family, call.family.space
    held = {**call.held, **(held or {})}
    orders = (policy.name for policy in space.order_policies)  # the host makes them, which a program does not
    kept = {name: (space.policy(name).default,) for name in (*family.accuracy, *orders)}
    values = {p.name: tuple(held.get(p.name, kept.get(p.name, p.values))) for p in space.policies}
    groups: dict[Any, list[Runnable]] = {}
    for configuration in islice(space.walk(values), most):
        candidate = Runnable(call, configuration)
        if not candidate.explain_refusal(limits):
            groups.setdefault(candidate.key, []).append(candidate)
    for listed in groups.values():
        listed.sort(key=lambda one: one.changes)  # stable
    return groups

"""Constraints that follow from the layouts, so that nobody has to write them.

Each has a reason that names the arrays and numbers it follows from. They stand behind the family's own, whose reasons
come first. One that only leaves out what is pointless (another name for the same addresses) gives way where the
defaults or a preset of the family ask for that; one without which a configuration would be wrong does not.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autotune.declaration.expression import Expression
from autotune.declaration.space import Constraint, Policy, Space
from autotune.errors import AutotuneError
from autotune.layout import DIMENSIONS, SAME, Data, packing

_ACCESS_BYTES = 16  # that one access moves at most


@dataclass(frozen=True)
class _Choice:
    """What a layout dimension of an array may be: ``meaning`` in the layout library, where ``policy`` has ``value``;
    ``policy`` is empty for what nobody chooses."""

    meaning: Any
    policy: str = ""
    value: Any = None

    @property
    def term(self) -> str:
        return f"{self.policy} == {self.value!r}"


@dataclass(frozen=True)
class _Found:
    """``text`` has to hold. ``is_needed``: without it a configuration would be wrong, and not only pointless."""

    text: str
    reason: str
    is_needed: bool = False


@dataclass(frozen=True)
class _Declared:
    data: Mapping[str, Data]
    policies: Sequence[Policy]
    means: Mapping[str, Mapping[str, Any]]

    def choices(self, kind: str, name: str, usual: Any = None) -> list[_Choice]:
        """What the layout dimension ``kind`` of the array may be; where nothing says, it is ``usual``, or the
        dimension's usual value."""
        for policy in self.policies:
            if policy.layout == kind and name in policy.data:
                means = self.means[policy.name]
                return [_Choice(means.get(str(value), value), policy.name, value) for value in policy.values]
        data = self.data[name]
        return [_Choice(data.fixed.get(kind, usual or DIMENSIONS[kind].get_usual(data)))]

    def pairs(self, one: tuple[str, str], two: tuple[str, str]) -> Iterator[tuple[_Choice, _Choice]]:
        """What two (dimension, array) may be together."""
        return itertools.product(self.choices(*one), self.choices(*two))


def derive_constraints(
    data: Mapping[str, Data], space: Space, means: Mapping[str, Mapping[str, Any]]
) -> tuple[Constraint, ...]:
    """What follows from the declaration, beyond the constraints of ``space``. ``means`` has what each policy's values
    stand for."""
    declared = _Declared(data, space.policies, means)
    kept: list[Constraint] = []
    said = {constraint.require.text for constraint in space.constraints}
    for derived in (
        *_accesses(declared),
        *_planes(declared),
        *_images(declared),
        *_groups(declared),
        *_derive_converted(declared),
    ):
        constraint = Constraint(Expression(derived.text, "a constraint of its layouts"), derived.reason)
        if derived.text in said:
            continue
        if derived.is_needed or _leaves_presets(space, (*kept, constraint)):
            kept.append(constraint)
    return tuple(kept)


def _leaves_presets(space: Space, constraints: tuple[Constraint, ...]) -> bool:
    """Whether the defaults and every preset have a configuration still, as far as they had one."""
    try:
        replace(space, constraints=(*space.constraints, *constraints)).check()
    except AutotuneError:
        return False
    return True


def _describe_exclusion(*choices: _Choice) -> str:
    """What holds where not all of ``choices`` are made; empty where that cannot be, or where nobody chooses them."""
    made = {choice.policy: choice for choice in choices if choice.policy}
    if not made or any(made[c.policy].value != c.value for c in choices if c.policy):
        return ""
    return f"not ({' and '.join(choice.term for choice in made.values())})"


def _exclude(reason: str, *choices: _Choice, is_needed: bool = False) -> Iterator[_Found]:
    """Not all of ``choices`` may be made."""
    if text := _describe_exclusion(*choices):
        yield _Found(text, reason, is_needed)


def _accesses(declared: _Declared) -> Iterator[_Found]:
    """``vector`` is the words in one access, so no more than one access moves."""
    for name, array in declared.data.items():
        if not array.packed:
            continue
        for packed, wide in declared.pairs(("packing", name), ("vector", name)):
            size = packing(packed.meaning).word_bytes * int(wide.meaning) if packed.meaning else 0
            if size > _ACCESS_BYTES:
                words = f"{name}: {wide.meaning} words of {packed.meaning} are {size} bytes"
                yield from _exclude(f"{words}, and one access moves at most {_ACCESS_BYTES}", packed, wide)


def _planes(declared: _Declared) -> Iterator[_Found]:
    """A plane of single rows differs from a line for a texture alone; where a row of the array is one of the plane, it
    has to fit into one."""
    for name, array in declared.data.items():
        width, rows = array.plane
        memories = declared.choices("memory", name)
        planes = [c for c in declared.choices("dims", name) if c.meaning in ("2d", "2d_pitched")]
        if rows == 1 and any(c.meaning == "texture" for c in memories):
            for plane, memory in itertools.product(planes, memories):
                if memory.meaning != "texture":
                    rows_of = f"{name}: in {memory.meaning} memory a plane of single rows ({plane.meaning})"
                    yield from _exclude(f"{rows_of} has the addresses of a line", plane, memory)
        if len(array.shape) < 2 or array.packed:
            continue
        for plane, gap, axes in itertools.product(
            planes, declared.choices("padding", name), declared.choices("axes", name)
        ):
            if str(gap.meaning) == str(width) and (text := _describe_exclusion(plane, gap, axes)):
                row = axes.meaning[-1]
                yield _Found(
                    f"{text} or {row} <= {width}",
                    f"{name}: a row of {row} elements takes more than a row of the plane, which has {width} texels",
                )


def _images(declared: _Declared) -> Iterator[_Found]:
    """An input differs from a line by rows of its own in a texture alone; and whatever moves elements apart leaves no
    rows that a texture or a surface could have."""
    for name, array in declared.data.items():
        is_input, memories = array.role == "input", declared.choices("memory", name)
        for image in (c for c in declared.choices("dims", name) if DIMENSIONS["dims"].goes_beyond(c.meaning)):
            for memory in memories if is_input and any(c.meaning == "texture" for c in memories) else ():
                if memory.meaning != "texture":
                    line = f"{name}: in {memory.meaning} memory an {image.meaning} is a line"
                    yield from _exclude(line, image, memory)
            for memory, (kind, dimension) in itertools.product(memories, DIMENSIONS.items()):
                if is_input and memory.meaning != "texture":
                    continue
                for other in declared.choices(kind, name):
                    if not dimension.keeps_rows(other.meaning, array):
                        lost = f"{name}: {kind}: {other.meaning} leaves no rows that an {image.meaning} could have"
                        yield from _exclude(lost, image, memory, other, is_needed=True)


def _groups(declared: _Declared) -> Iterator[_Found]:
    """Arrays in one buffer are stored alike."""
    for policy in declared.policies:
        for merged in declared.choices("grouping", policy.data[0]) if policy.layout == "grouping" else ():
            if merged.meaning != "merged":
                continue
            first, *others = policy.data
            for other, (kind, dimension) in itertools.product(others, DIMENSIONS.items()):
                usual = [dimension.get_usual(declared.data[name]) for name in (first, other)]
                for one, two in declared.pairs((kind, first), (kind, other)):
                    is_usual = [one.meaning, two.meaning] == usual
                    if one.meaning != two.meaning and not is_usual:
                        reason = (
                            f"{first} and {other} are merged into one buffer, so their {kind} has to be the same, not "
                            f"{one.meaning or 'none'} and {two.meaning or 'none'}"
                        )
                        yield from _exclude(reason, merged, one, two, is_needed=True)


def _derive_converted(declared: _Declared) -> Iterator[_Found]:
    """A converted view that names what its array has is what ``same`` says already."""
    for name, view in declared.data.items():
        for kind, dimension in DIMENSIONS.items() if view.converted else ():
            own = declared.choices(kind, name, SAME)
            if not dimension.is_of_views or all(choice.meaning != SAME for choice in own):
                continue
            for mine, its in itertools.product(own, declared.choices(kind, view.of)):
                is_alike = mine.meaning == its.meaning and (kind != "memory" or its.meaning == "global")
                if is_alike:
                    told = f"{name}: its {kind} is what {view.of} has, which {SAME} says already"
                    yield from _exclude(told, mine, its)

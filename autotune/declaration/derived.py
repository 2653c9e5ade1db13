"""Constraints that follow from the layouts and from what a kernel is launched with, so that nobody has to write them.

Each has a reason that names the arrays and numbers it follows from. They stand behind the family's own, whose reasons
come first. One that only leaves out what is pointless (another name for the same addresses) gives way where the
defaults or a preset of the family ask for that; one without which a configuration would be wrong does not.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autotune.declaration.compile_options import MIN_BLOCKS
from autotune.declaration.expression import Expression
from autotune.declaration.space import Constraint, Policy, Space
from autotune.errors import AutotuneError
from autotune.layout import CONVERTED_KINDS, IMAGES, MAPPING_KINDS, SAME, Data, packing

_ACCESS_BYTES = 16  # that one access moves at most
_THREADS = 2048  # of a multiprocessor, where it holds most (Programming Guide, "Technical Specifications")
_TOGETHER = (  # of arrays in one buffer
    "memory", "dims", "axes", "packing", "vector", "records", *MAPPING_KINDS, "links",
)  # fmt: skip


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
        """What the layout dimension ``kind`` of the array may be; ``usual`` where nothing says."""
        for policy in self.policies:
            if policy.layout == kind and name in policy.data:
                means = self.means[policy.name]
                return [_Choice(means.get(str(value), value), policy.name, value) for value in policy.values]
        return [_Choice(self.data[name].fixed.get(kind, usual))]


def derived_constraints(
    data: Mapping[str, Data], blocks: Sequence[str], space: Space, means: Mapping[str, Mapping[str, Any]]
) -> tuple[Constraint, ...]:
    """What follows from the declaration, beyond the constraints of ``space``. ``blocks`` has the threads of each
    kernel's block as an expression, ``means`` what each policy's values stand for."""
    declared = _Declared(data, space.policies, means)
    kept: list[Constraint] = []
    said = {constraint.require.text for constraint in space.constraints}
    for found in (
        *_accesses(declared),
        *_planes(declared),
        *_images(declared),
        *_groups(declared),
        *_links(declared),
        *_converted(declared),
        *_min_blocks(declared, blocks),
    ):
        constraint = Constraint(Expression(found.text, "a constraint of its layouts"), found.reason)
        if found.text in said:
            continue
        if found.is_needed or _leaves_presets(space, (*kept, constraint)):
            kept.append(constraint)
    return tuple(kept)


def _leaves_presets(space: Space, constraints: tuple[Constraint, ...]) -> bool:
    """Whether the defaults and every preset have a configuration still, as far as they had one."""
    try:
        replace(space, constraints=(*space.constraints, *constraints)).check()
    except AutotuneError:
        return False
    return True


def _without(*choices: _Choice) -> str:
    """What holds where not all of ``choices`` are made; empty where that cannot be, or where nobody chooses them."""
    made = {choice.policy: choice for choice in choices if choice.policy}
    if not made or any(made[c.policy].value != c.value for c in choices if c.policy):
        return ""
    return f"not ({' and '.join(choice.term for choice in made.values())})"


def _accesses(declared: _Declared) -> Iterator[_Found]:
    """``vector`` is the words in one access, so no more than one access moves."""
    for name, array in declared.data.items():
        if not array.packed:
            continue
        for packed, wide in itertools.product(
            declared.choices("packing", name), declared.choices("vector", name, 1)
        ):
            size = packing(packed.meaning).word_bytes * int(wide.meaning) if packed.meaning else 0
            if size > _ACCESS_BYTES and (text := _without(packed, wide)):
                yield _Found(
                    text,
                    f"{name}: {wide.meaning} words of {packed.meaning} are {size} bytes, and one access moves at most "
                    f"{_ACCESS_BYTES}",
                )


def _planes(declared: _Declared) -> Iterator[_Found]:
    """A plane of single rows differs from a line for a texture alone; where a row of the array is one of the plane, it
    has to fit into one."""
    for name, array in declared.data.items():
        width, rows = array.plane
        memories = declared.choices("memory", name, "global")
        planes = [c for c in declared.choices("dims", name, "1d") if c.meaning in ("2d", "2d_pitched")]
        if rows == 1 and any(c.meaning == "texture" for c in memories):
            for plane, memory in itertools.product(planes, memories):
                if memory.meaning != "texture" and (text := _without(plane, memory)):
                    yield _Found(
                        text,
                        f"{name}: in {memory.meaning} memory a plane of single rows ({plane.meaning}) has the "
                        "addresses of a line",
                    )
        if len(array.shape) < 2 or array.packed:
            continue
        for plane, gap, axes in itertools.product(
            planes, declared.choices("padding", name, 1), declared.choices("axes", name, [*array.shape])
        ):
            if str(gap.meaning) == str(width) and (text := _without(plane, gap, axes)):
                row = axes.meaning[-1]
                yield _Found(
                    f"{text} or {row} <= {width}",
                    f"{name}: a row of {row} elements takes more than a row of the plane, which has {width} texels",
                )


def _images(declared: _Declared) -> Iterator[_Found]:
    """An input differs from a line by rows of its own in a texture alone; and whatever moves elements apart leaves no
    rows that a texture or a surface could have."""
    for name, array in declared.data.items():
        is_input, memories = array.role == "input", declared.choices("memory", name, "global")
        for image in (c for c in declared.choices("dims", name, "1d") if c.meaning in IMAGES):
            for memory in memories if is_input and any(c.meaning == "texture" for c in memories) else ():
                if memory.meaning != "texture" and (text := _without(image, memory)):
                    yield _Found(text, f"{name}: in {memory.meaning} memory an {image.meaning} is a line")
            for memory, (kind, usual) in itertools.product(memories, _OF_ROWS.items()):
                if is_input and memory.meaning != "texture":
                    continue
                for other in declared.choices(kind, name, usual):
                    if not _keeps_rows(array, kind, other.meaning) and (
                        text := _without(image, memory, other)
                    ):
                        yield _Found(
                            text,
                            f"{name}: {kind}: {other.meaning} leaves no rows that an {image.meaning} could have",
                            is_needed=True,
                        )


_OF_ROWS = {"records": "aos", "padding": 1, "packing": None, "grouping": "split", "storage": None}


def _keeps_rows(array: Data, kind: str, meaning: Any) -> bool:
    """Whether an element is one texel still, with its neighbours beside it."""
    if kind == "records":
        return meaning == "aos" or len(array.fields) == 1
    if kind == "storage":
        return meaning in (None, array.fields[0].type)
    return bool(meaning == _OF_ROWS[kind])


def _groups(declared: _Declared) -> Iterator[_Found]:
    """Arrays in one buffer are stored alike."""
    for policy in declared.policies:
        for merged in declared.choices("grouping", policy.data[0]) if policy.layout == "grouping" else ():
            if merged.meaning != "merged":
                continue
            first, *others = policy.data
            for other, kind in itertools.product(others, _TOGETHER):
                pairs = itertools.product(
                    declared.choices(kind, first, _USUAL.get(kind)), declared.choices(kind, other, _USUAL.get(kind))
                )  # fmt: skip
                for one, two in pairs:
                    if one.meaning != two.meaning and (text := _without(merged, one, two)):
                        yield _Found(
                            text,
                            f"{first} and {other} are merged into one buffer, so their {kind} has to be the same, not "
                            f"{one.meaning or 'none'} and {two.meaning or 'none'}",
                            is_needed=True,
                        )


def _links(declared: _Declared) -> Iterator[_Found]:
    """Fields lie together where their links are stored otherwise."""
    for name in declared.data:
        pairs = itertools.product(
            declared.choices("links", name, "absolute"), declared.choices("records", name, "aos")
        )
        for links, records in pairs:
            is_plain = links.meaning == "absolute" or records.meaning == "aos"
            if not is_plain and (text := _without(links, records)):
                yield _Found(
                    text,
                    f"{name}: links are stored as {links.meaning} in records: aos alone",
                    is_needed=True,
                )


_USUAL = {
    "memory": "global", "dims": "1d", "vector": 1, "records": "aos", "padding": 1, "tiles": "none", "curve": "none",
    "swizzle": "none", "links": "absolute",
}  # fmt: skip


def _converted(declared: _Declared) -> Iterator[_Found]:
    """A converted view that names what its array has is what ``same`` says already."""
    for name, view in declared.data.items():
        for kind in CONVERTED_KINDS if view.converted else ():
            own = declared.choices(kind, name, SAME)
            usual = {**_USUAL, "axes": [*view.shape], "storage": view.fields[0].type}.get(kind)
            if all(choice.meaning != SAME for choice in own):
                continue
            for mine, its in itertools.product(own, declared.choices(kind, view.of, usual)):
                is_alike = mine.meaning == its.meaning and (kind != "memory" or its.meaning == "global")
                if is_alike and (text := _without(mine, its)):
                    yield _Found(text, f"{name}: its {kind} is what {view.of} has, which {SAME} says already")


def _min_blocks(declared: _Declared, blocks: Sequence[str]) -> Iterator[_Found]:
    """So many blocks at a time are no more than a multiprocessor holds; of several kernels one may be meant."""
    smallest = f"min({', '.join(blocks)})" if len(blocks) > 1 else blocks[0]
    for policy in declared.policies:
        if policy.compile == MIN_BLOCKS:
            yield _Found(
                f"{policy.name} * ({smallest}) <= {_THREADS}",
                f"{policy.name} blocks of so many threads are more than the {_THREADS} that a multiprocessor holds",
            )

"""Layouts of the arrays that a function is given, where strides can say them: its text stays as it is.

A function that takes strides for what they are is right with each of them; one that takes an array for contiguous is
wrong with some. Which these are is found by proof, one value at a time, before the sweep.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from autotune.callables.declared import CallArray
from autotune.compile import Compiled, Variant
from autotune.declaration import Configuration
from autotune.device import LaunchError, Resident
from autotune.engine import SharedInputs
from autotune.errors import AutotuneError, UsageError, cause
from autotune.measure import GUARD_BYTES, Verifier

_MOST_AXES = 3  # of an array whose axes are put in every order
_ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Layouts:
    """What may be chosen about arrays, each by its name as an argument.

    Args:
        axes: arrays whose axes may lie in any order.
        padding: arrays whose rows may begin at multiples of 128 bytes, or one element further apart.
        together: groups of inputs of one axis and one size that may lie in turn, element by element (AoS), or apart.
        spaces: index spaces by name, each with the arrays whose first axis it is.
        links: arrays of whole numbers that are indices of a space.
        orders: by space, the orders that its indices may have besides the given one, as family.yaml declares an order:
            ``{"by_key": {"order": "sorted", "key": "x"}}``.
    """

    axes: tuple[str, ...] = ()
    padding: tuple[str, ...] = ()
    together: tuple[tuple[str, ...], ...] = ()
    spaces: Mapping[str, Sequence[str]] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    orders: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)

    @classmethod
    def read(cls, given: "Layouts | str | None", arrays: Mapping[str, CallArray]) -> "Layouts":
        """``all`` stands for axes and padding of every array of two or three axes, and for inputs of one shape
        together. Raises UsageError."""
        if given is None:
            return cls()
        if isinstance(given, Layouts):
            given.check(arrays)
            return given
        if given != _ALL:
            raise UsageError(f"layouts={given!r}: give {_ALL!r}, or autotune.callables.Layouts")
        several = tuple(
            n for n, one in arrays.items() if 2 <= len(one.shape) <= _MOST_AXES and one.role != "inout"
        )
        alike: dict[Any, list[str]] = {}
        for name, one in arrays.items():
            if one.role == "input" and len(one.shape) == 1:
                alike.setdefault((one.kind, one.shape), []).append(name)
        together = tuple(tuple(names) for names in alike.values() if len(names) > 1)
        return cls(axes=several, padding=several, together=together)

    def check(self, arrays: Mapping[str, CallArray]) -> None:
        """Raise UsageError for a name that is none."""
        named = [*self.axes, *self.padding, *(name for group in self.together for name in group)]
        named += [*self.links, *(name for names in self.spaces.values() for name in names)]
        if unknown := [name for name in named if name not in arrays]:
            raise UsageError(
                f"layouts= names {unknown[0]!r}, which is not an array of the call ({', '.join(arrays)})"
            )
        if kept := [name for name in (*self.axes, *self.padding) if arrays[name].role == "inout"]:
            raise UsageError(
                f"layouts= names {kept[0]!r}, which the function reads and writes (or leaves elements of as they are): "
                "such an array stays as it is"
            )
        for space in (*self.links.values(), *self.orders):
            if space not in self.spaces:
                raise UsageError(
                    f"layouts= names the space {space!r}: say in spaces= which arrays it is the first axis of"
                )

    @property
    def extents(self) -> dict[str, Sequence[str]]:
        """The spaces, and one for each group of arrays that has none."""
        spaced = {name for names in self.spaces.values() for name in names}
        groups = {f"{group[0]}_fields": group for group in self.together if not spaced & set(group)}
        return {**self.spaces, **groups}

    def policies(
        self, arrays: Mapping[str, CallArray], extents: Mapping[str, Sequence[str]]
    ) -> dict[str, dict[str, Any]]:
        """In the words of family.yaml; ``extents`` are those of each array."""
        policies: dict[str, dict[str, Any]] = {}
        for name in self.axes:
            array, own = arrays[name], list(extents[name])
            given = array.axes or tuple(range(len(array.shape)))
            every = [given, *(one for one in permutations(given) if one != given)]
            policies[f"{name}_axes"] = _policy(
                "axes", [name], {"_".join(map(str, one)): [own[axis] for axis in one] for one in every}
            )
        for name in self.padding:
            array = arrays[name]
            values = {"none": "1", "line": "128B", "odd": "1+1"}
            policies[f"{name}_padding"] = _policy("padding", [name], values)
        for group in self.together:
            policies["_".join((*group, "fields"))] = _policy(
                "grouping", list(group), {"apart": "split", "in_turn": "merged"}
            )
        for space, orders in self.orders.items():
            policies[f"{space}_order"] = {
                "values": ["given", *orders], "default": "given", "layout": "order", "data": [space],
                "means": {name: dict(one) for name, one in orders.items()},
            }  # fmt: skip
        return policies


def _policy(layout: str, data: Sequence[str], means: Mapping[str, Any]) -> dict[str, Any]:
    values = list(means)
    given = {"layout": layout, "data": list(data), "means": dict(means)}
    return {"values": values, "default": values[0], **given}


def prove(measuring: Any, given: SharedInputs, expected: Path, configuration: Configuration) -> str:
    """Why a configuration is wrong, or empty; asked of a measuring process, whose ``measuring`` has the device."""
    backend: Any = measuring.swept.backend
    family, inputs = given.load("the proof of layouts")
    right = {data.name: np.load(expected / f"{data.name}.npy") for data in family.outputs}
    verifier = Verifier(backend, family, right)
    with closing(Resident(backend, inputs, guard=GUARD_BYTES)) as resident, closing(verifier):
        try:
            variant = Variant.make(family, configuration, inputs.options)
            execution = resident.execution(variant, backend.load(Compiled("", Path(), {})))
            return verifier.run(execution, cold=False)[0]
        except (LaunchError, AutotuneError):
            raise
        except Exception as problem:  # noqa: BLE001 - whatever a function does with such an array
            return cause(problem)

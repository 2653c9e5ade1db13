"""A callable and its arguments as a family: what the engine, the record and a policy file know it by."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import yaml

from autotune.callables.choices import Alternatives
from autotune.callables.libraries import Kind
from autotune.declaration import Family, keep_files, load_family

_PLAN = '''"""Made by autotune.callables: the function is called in place of a kernel."""


def plan(execution):
    execution.backend.call(execution)
'''
CALL_FILE = "call.json"  # next to policy files: which arrays a function writes, and what it returns
_LONGEST = 48  # characters of a name
# How far sums in another order may differ, relative and absolute, by the bits of an element.
TOLERANCES = {
    "float64": (1e-9, 1e-9), "float32": (1e-4, 1e-3), "float16": (1e-2, 1e-2), "bfloat16": (3e-2, 3e-2),
}  # fmt: skip
_COARSE = (0.13, 0.13)


@dataclass(frozen=True)
class CallArray:
    """An array of a call: ``role`` is input, output (its content before does not matter) or inout. ``axes`` is the
    order in which it fills its memory."""

    kind: Kind
    shape: tuple[int, ...]
    role: str = "input"
    axes: tuple[int, ...] = ()

    @property
    def extents(self) -> tuple[int, ...]:
        """With one for what has none."""
        return self.shape or (1,)


@dataclass(frozen=True)
class Declared:
    """What a family is made from. ``numbers`` are those arguments that a policy file tells inputs apart by, ``key``
    names the arguments that do so, all where it is empty. ``digest`` is of the function's text and of the arguments
    that never change. ``layouts`` are policies in the words of family.yaml, ``links`` arrays whose elements are indices
    of an extent; ``spaces`` are extents that are the first of several arrays, ``excluded`` has why a policy's value
    (``POLICY=VALUE``) is none. ``returned`` are the arrays that the function gives back."""

    name: str
    arrays: Mapping[str, CallArray]
    numbers: Mapping[str, Any]
    choices: Alternatives
    key: tuple[str, ...] = ()
    digest: str = ""
    tolerance: Mapping[str, float] = field(default_factory=dict)
    layouts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    spaces: Mapping[str, Sequence[str]] = field(default_factory=dict)
    excluded: Mapping[str, str] = field(default_factory=dict)
    returned: tuple[str, ...] = ()

    @property
    def family(self) -> Family:
        """The family, in the user's cache. Raises FamilyError, StoreError."""
        texts = {"family.yaml": self._yaml, "family.py": _PLAN, "call.cu": self._source}
        return load_family(keep_files(self.name, texts))

    @property
    def _source(self) -> str:
        told = f"In place of a kernel: a call of {self.name}. Of its text and arguments:"
        return f"// {told}\n// {self.digest}\n"

    @property
    def _yaml(self) -> str:
        data: dict[str, Any] = {}
        extents: dict[str, Any] = {}
        whole = {name: isinstance(value, int | np.integer) for name, value in self.numbers.items()}
        scalars = {name: {"type": "int64" if is_whole else "float64"} for name, is_whole in whole.items()}
        for name, array in self.arrays.items():
            shape = self.extents(name)
            entry: dict[str, Any] = {"type": array.kind.name, "shape": list(shape), "index_bits": 64}
            if name in self.links:
                entry["link"] = self.links[name]
            is_chosen = any(name in one["data"] and one["layout"] == "axes" for one in self.layouts.values())
            if array.axes and array.axes != tuple(range(len(array.axes))) and not is_chosen:
                entry["layout"] = {"axes": [shape[axis] for axis in array.axes]}
            if array.role == "inout":
                data[name] = {**entry, "role": "input"}
                data[name_after(name)] = {**entry, "role": "output", "begins_as": name}
            else:
                data[name] = {**entry, "role": array.role}
            if array.role == "output":
                own = [extent for extent in shape if extent not in self.spaces]
                extents |= {extent: {"value": f"{extent}_given"} for extent in own}
                scalars |= {f"{extent}_given": {"type": "int64"} for extent in own}
        policies = {
            name: {"values": list(words), "default": words[0]} for name, words in self.choices.words.items()
        }
        content = {
            "schema": 1, "family": self.name, "source": "call.cu", "data": data,
            "kernels": {"call": {"arguments": [*data], "grid": ["1"], "block": [1]}},
            "policies": {**policies, **{name: dict(policy) for name, policy in self.layouts.items()}},
            "tolerance": self._tolerances(data), "reference": "itself", "extents": extents, "scalars": scalars,
            "constraints": [
                {"require": f"{name} != '{value}'", "reason": reason}
                for (name, _, value), reason in ((each.partition("="), why) for each, why in self.excluded.items())
            ],
            "features": {name: name for name in self._features},
        }  # fmt: skip
        plain = json.loads(json.dumps({key: each for key, each in content.items() if each}))  # each list once
        return yaml.safe_dump(plain, sort_keys=False, width=110)

    def extents(self, name: str) -> tuple[str, ...]:
        """The names of an array's extents."""
        own = [f"{name}_{axis}" for axis in range(len(self.arrays[name].extents))]
        space = next((space for space, names in self.spaces.items() if name in names), own[0])
        return (space, *own[1:])

    def _tolerances(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """An output's own, where it has floating point."""
        if self.tolerance:
            return dict(self.tolerance)
        outputs = {name: entry["type"] for name, entry in data.items() if entry["role"] == "output"}
        within = {name: TOLERANCES.get(of, _COARSE) for name, of in outputs.items() if "float" in of}
        return {name: {"relative": far[0], "absolute": far[1]} for name, far in within.items()}

    @property
    def _features(self) -> list[str]:
        """The extents and numbers that a policy file tells inputs apart by."""
        given = [name for name in (*self.arrays, *self.numbers) if name not in self.returned]
        chosen = [name for name in given if name in self.key] or given
        found = [one for name in chosen for one in (self.extents(name) if name in self.arrays else [name])]
        return list(dict.fromkeys(found))

    @property
    def given(self) -> dict[str, CallArray]:
        """The arrays that are arguments."""
        return {name: array for name, array in self.arrays.items() if name not in self.returned}

    @property
    def scalars(self) -> dict[str, Any]:
        """Of this call: the numbers, and the extents of what is only written."""
        written = {
            f"{extent}_given": size
            for name, array in self.arrays.items()
            if array.role == "output"
            for extent, size in zip(self.extents(name), array.extents, strict=True)
            if extent not in self.spaces
        }
        return {**self.numbers, **written}


def name_after(name: str) -> str:
    """What a family calls an array that is read and written, as it is afterwards."""
    return f"{name}_after"


def family_name(function: str, kinds: Mapping[str, Kind], told: Sequence[str] = ()) -> str:
    """``softmax_float16``: the function with the elements of its arrays, and what else tells its families apart."""
    last = re.sub(r"\W", "_", function.rsplit(".", maxsplit=1)[-1])
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last).lower().strip("_")
    plain = spaced if re.match(r"[a-z]", spaced) else f"call_{spaced}"
    parts = [plain, *dict.fromkeys(kind.own or kind.name for kind in kinds.values())]
    parts += [re.sub(r"[^a-z0-9]+", "_", one.lower()).strip("_") for one in told]
    name = "_".join(part for part in parts if part)
    if len(name) <= _LONGEST and not told:
        return name
    mark = hashlib.sha256(repr([*kinds.items(), *told]).encode()).hexdigest()[:6]
    return f"{name[:_LONGEST]}_{mark}"

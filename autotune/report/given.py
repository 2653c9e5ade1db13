"""Arrays that a program gives, kept as a workload: its name follows from what is in them, and its file can be swept,
profiled and renewed as any other."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from autotune.declaration import Family, Inputs, Workload
from autotune.errors import StoreError
from autotune.files import replaced, write_text

_LONGEST = 60  # characters that the sizes take of a name


def given_workload(
    family: Family, inputs: Inputs, scalars: Mapping[str, float], cold: bool, folder: Path
) -> Workload:
    """The workload of ``inputs``, written below ``folder`` where it is not there yet. ``scalars`` are those that were
    given. Raises StoreError."""
    name = f"given-{_sizes(family, inputs)}-{inputs.digest[:8]}"
    path = folder / "workloads" / f"{name}.yaml"
    arrays = {array: {"npy": f"{name}/{array}.npy"} for array in inputs.arrays}
    if not path.is_file():
        _write(path, inputs, arrays)
        write_text(path, _text(name, family, inputs, arrays, scalars, cold))
    return Workload(
        name=name, family=family.name, path=path, arrays=arrays, scalars=scalars, options=inputs.options, cold=cold
    )  # fmt: skip


def _sizes(family: Family, inputs: Inputs) -> str:
    """The sizes of the arrays, each extent once: ``112x512``."""
    extents = dict.fromkeys(extent for data in family.inputs for extent in data.shape)
    told = "x".join(str(inputs.sizes[extent]) for extent in extents if extent not in family.constants)
    return re.sub(r"x\d*$", "", told[:_LONGEST]) if len(told) > _LONGEST else told or "fixed"


def _write(path: Path, inputs: Inputs, arrays: Mapping[str, Mapping[str, str]]) -> None:
    try:
        for name, array in inputs.arrays.items():
            file = path.parent / arrays[name]["npy"]
            file.parent.mkdir(parents=True, exist_ok=True)
            with replaced(file) as temporary, temporary.open("wb") as opened:
                np.save(opened, array, allow_pickle=False)
    except OSError as problem:
        raise StoreError(
            f"cannot write the inputs to {path.parent}: {problem.strerror or problem}; name another folder with out="
        ) from None


def _text(
    name: str, family: Family, inputs: Inputs, arrays: Mapping[str, Any], scalars: Mapping[str, float], cold: bool
) -> str:  # fmt: skip
    content: dict[str, Any] = {
        "schema": 1,
        "workload": name,
        "family": family.name,
        "doc": "arrays that a program gave",
        "arrays": dict(arrays),
        "scalars": dict(scalars),
        "options": dict(inputs.options),
        "cache": "cold" if cold else "warm",
    }
    return yaml.safe_dump({key: value for key, value in content.items() if value}, sort_keys=False)

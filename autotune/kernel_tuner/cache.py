"""Kernel Tuner's cache files: a study written as one, for its simulation mode and its visualisers, and read from one.

The form is that of Kernel Tuner 1.5 (``kernel_tuner/util.py``, ``process_cache`` and ``store_cache``): a header, then
one line a configuration, keyed by its values. Times are in milliseconds.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotune.declaration import PolicyValue
from autotune.errors import StoreError
from autotune.files import read_packed, write_text
from autotune.hardware import Device
from autotune.kernel_tuner.exchange import FAILED, PHASES, Foreign, entry, reading
from autotune.record import Provenance, State, Study, Trial, describe_study

_STATES: Mapping[Any, State] = {**FAILED, "ErrorConfig": "launch_failed"}

# Names that Kernel Tuner forbids for a parameter or gives to its own figures.
_TAKEN = (
    "time", "times", "grid_size_x", "grid_size_y", "grid_size_z", "timestamp", *PHASES, "state", "reason",
    "minimum_ms", "spread_relative", "samples", "transfer_bytes", "footprint_bytes", "__error__",
)  # fmt: skip


def to_cache(study: Study) -> dict[str, Any]:
    """``study`` as the content of a cache file.

    ``time`` is the figure that autotune ranks by (a median; Kernel Tuner's own files hold means). Every recorded
    configuration is in it, failures too. A policy whose name Kernel Tuner uses itself is called ``policy_<name>``.
    What the form has no place for stands under ``autotune``, which Kernel Tuner ignores.
    """
    names = {name: f"policy_{name}" if name in _TAKEN else name for name in study.control}
    values: dict[str, list[PolicyValue]] = {}
    for name, column in names.items():
        found = dict.fromkeys(t.configuration[name] for t in study.trials)
        order = [v for v in study.about.policies.get(name, {}).get("values", ()) if v in found]
        values[column] = list(dict.fromkeys([*order, *found]))
    return {
        "device_name": study.about.device_name or study.device,
        "kernel_name": study.family,
        "problem_size": [1],  # a family's grid is its own affair, and a simulation launches nothing
        "tune_params_keys": list(values),
        "tune_params": values,
        "objective": "time",
        "autotune": describe_study(study),
        "cache": {
            ",".join(str(v) for v in t.configuration.values()): _entry(t, names)
            for t in study.trials
        },
    }  # fmt: skip


def write_cache(study: Study, path: str | Path) -> Path:
    """Write ``to_cache`` to ``path`` as Kernel Tuner writes its own, a line a configuration, closed. Raises
    StoreError."""
    content = to_cache(study)
    cache = content.pop("cache")
    head = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in content.items())
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in cache.items())
    return write_text(path, f'{{\n{head},\n"cache": {{\n{lines}}}\n}}')


def read_json(path: Path) -> Any:
    """What ``parse`` makes of a file, which may be packed. Raises StoreError."""
    try:
        return parse(read_packed(path))
    except (OSError, ValueError) as problem:
        raise StoreError(f"cannot read {path}: {problem}") from None


def parse(text: str) -> Any:
    """The JSON in ``text``; a cache file that was not closed (Kernel Tuner leaves it open while it runs) is read up to
    its last whole line. None where it is no JSON."""
    lines = text.strip().splitlines()
    for end in ("", "}\n}"):
        for cut in (len(lines), len(lines) - 1):
            try:
                return json.loads("\n".join(lines[:cut]).rstrip().removesuffix(",") + end)
            except ValueError:
                continue
            except RecursionError:
                return None
    return None


def read_cache(path: Path) -> dict[str, Any]:
    """The cache file ``path``, of Kernel Tuner or of autotune, for a simulation. Raises StoreError."""
    content = read_json(path)
    size = (int, float, str, list)
    wanted: dict[str, Any] = {"kernel_name": str, "problem_size": size, "tune_params": dict, "cache": dict}
    if not isinstance(content, dict) or not all(isinstance(content.get(k), of) for k, of in wanted.items()):
        raise StoreError(f"{path} is no cache file of Kernel Tuner: it needs {', '.join(wanted)}")
    return content


def from_cache(content: Mapping[str, Any], where: str) -> Study:
    """The study in a cache file that ``read_json`` read; ``where`` is named in messages.

    A time is the median of ``times`` where the samples are there, else ``time``. Policies are the parameters. In a
    file that autotune wrote, family, workload, device and presets are those of the record. Raises StoreError.
    """
    with reading(where, "a cache file of Kernel Tuner"):
        keys = [str(name) for name in content["tune_params_keys"]]
        lines = list(content["cache"].values())
        ours: Mapping[str, Any] = content.get("autotune", {})
        known = ours.get("control", {})
        names = {k: k.removeprefix("policy_") if k.removeprefix("policy_") in known else k for k in keys}
        size = content.get("problem_size", ())
        sizes = size if isinstance(size, list) else [size]
        device = Device(kind="cuda", name=str(content["device_name"]), arch="").slug
        workload = "x".join(str(one) for one in sizes) or "imported"
        study = Foreign(ours, str(content["kernel_name"]), workload, device)
        for line in lines:
            error = next((v for v in (line.get("__error__"), line.get("time")) if v in tuple(_STATES)), None)
            configuration = {policy: line[key] for key, policy in names.items()}
            study.add(configuration, line, _STATES.get(error, "measured"), f"Kernel Tuner: {error}")
        about = Provenance(device_name=str(content["device_name"]), title=f"imported from {Path(where).name}")
        order = {names[k]: list(v) for k, v in content.get("tune_params", {}).items() if k in names}
        return study.study(about, order)


def _entry(trial: Trial, names: Mapping[str, str]) -> dict[str, Any]:
    """One line, with a ``time`` that is the error's name where there is none."""
    told = entry(trial)
    policies = {names[policy]: value for policy, value in trial.configuration.items()}
    return {**policies, "time": told.get("__error__"), **told}

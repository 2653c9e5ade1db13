"""Records that other tuners wrote: cache files of Kernel Tuner, results in the T4 format."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from autotune.declaration import Policy, Space
from autotune.errors import StoreError, UsageError
from autotune.kernel_tuner.cache import from_cache, read_json
from autotune.kernel_tuner.t4 import from_t4
from autotune.record import Study

SUFFIXES = (".json", ".json.gz")  # gz as the benchmark hub keeps them


def read_study(path: Path) -> Study:
    """The study in a cache file of Kernel Tuner or in results of the T4 format. Raises StoreError."""
    content = read_json(path)
    if isinstance(content, dict) and "cache" in content:
        return from_cache(content, str(path))
    if isinstance(content, dict) and "results" in content:
        return from_t4(content, str(path))
    raise StoreError(
        f"{path} is neither a cache file of Kernel Tuner (a JSON object with a cache) nor results in the T4 format "
        f"(one with results), but {_kind(content)}"
    )


def _kind(content: object) -> str:
    if isinstance(content, dict):
        return f"an object with {', '.join(map(json.dumps, list(content)[:5])) or 'nothing'}"
    return "no JSON" if content is None else f"a {type(content).__name__}"


def import_files(
    files: Sequence[Path], *, family: str = "", workload: str = "", device: str = "", control: str = ""
) -> list[Study]:
    """The studies in Kernel Tuner's cache files and T4 results; names that are given replace the files'.

    ``control`` is ``policy=value,…`` of one configuration in every file; what it leaves out, or without it all, is
    what autotune wrote into the file, else every parameter's first value. Raises StoreError, UsageError, UnknownName.
    """
    studies = []
    for path in files:
        if not path.name.endswith(SUFFIXES):
            raise UsageError(
                f"cannot import {path}: name .json files of Kernel Tuner's cache or of T4 results"
            )
        named = _rename(read_study(path), family, workload, device)
        studies.append(_set_control(named, control) if control else named)
    if len({study.key for study in studies}) < len(studies):
        raise UsageError(
            "two of the files have the same family, workload and device: import them one by one, with names of "
            "their own (--workload, --device)"
        )
    return studies


def _rename(study: Study, family: str, workload: str, device: str) -> Study:
    family, workload, device = family or study.family, workload or study.workload, device or study.device
    trials = tuple(replace(t, family=family, workload=workload, device=device) for t in study.trials)
    return replace(study, family=family, workload=workload, device=device, trials=trials)


def _set_control(study: Study, control: str) -> Study:
    met = {name: tuple(dict.fromkeys(t.configuration[name] for t in study.trials)) for name in study.control}
    policies = tuple(Policy(name, values, study.control[name]) for name, values in met.items())
    chosen = Space(policies).configuration(control)
    if chosen not in {t.configuration for t in study.trials}:
        raise UsageError(f"--control {chosen.id} is not among the configurations of {study.family}")
    return replace(study, control=chosen, presets={**study.presets, "control": chosen})

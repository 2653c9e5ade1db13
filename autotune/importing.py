"""``autotune import``: other tuners' files as studies, under the names that the caller gives."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from autotune.errors import UnknownName, UsageError
from autotune.record import Study
from autotune.records import read_record
from autotune.space import Configuration

__all__ = ["import_files"]


def import_files(
    files: Sequence[Path], *, family: str = "", workload: str = "", device: str = "", control: str = ""
) -> list[Study]:
    """The studies in Kernel Tuner's cache files and T4 results; names that are given replace the files'.

    ``control`` is ``policy=value,…`` of one configuration in every file; without it every parameter's first value, or
    what autotune wrote into the file. Raises StoreError, UsageError, UnknownName.
    """
    studies = []
    for path in files:
        if path.suffix != ".json":
            raise UsageError(
                f"cannot import {path}: name .json files of Kernel Tuner's cache or of T4 results"
            )
        for study in read_record(str(path)):
            named = _named(study, family, workload, device)
            studies.append(_controlled(named, control) if control else named)
    keys = [(s.family, s.workload, s.device) for s in studies]
    if len(set(keys)) < len(keys):
        raise UsageError(
            "two of the files have the same family, workload and device: import them one by one, with names of "
            "their own (--workload, --device)"
        )
    return studies


def _named(study: Study, family: str, workload: str, device: str) -> Study:
    family, workload, device = family or study.family, workload or study.workload, device or study.device
    trials = tuple(replace(t, family=family, workload=workload, device=device) for t in study.trials)
    return replace(study, family=family, workload=workload, device=device, trials=trials)


def _controlled(study: Study, control: str) -> Study:
    asked = dict(pair.partition("=")[::2] for pair in control.split(","))
    known = {
        name: {str(t.configuration[name]): t.configuration[name] for t in study.trials}
        for name in study.control
    }
    for name, value in asked.items():
        if name not in known:
            raise UnknownName("policy", name, known, study.family)
        if value not in known[name]:
            raise UnknownName(f"value of {name}", value, known[name], study.family)
    if missing := [name for name in known if name not in asked]:
        raise UsageError(f"--control leaves out {', '.join(missing)}: name a value for every policy")
    chosen = Configuration({name: known[name][value] for name, value in asked.items()})
    if chosen not in {t.configuration for t in study.trials}:
        raise UsageError(f"--control {chosen.id} is not among the configurations of {study.family}")
    return replace(study, control=chosen, presets={**study.presets, "control": chosen})

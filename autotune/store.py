"""The record: every trial as it happens, in an Optuna study.

A study's name carries its identity, so an edited kernel, header, workload or another compiler or device is
another study and never a stale hit. A journal file serves one host; any Optuna storage URL serves many.
"""

import json
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from autotune.errors import StoreError
from autotune.measure import Samples
from autotune.record import Study
from autotune.space import Configuration, Policy
from autotune.trial import Trial

__all__ = ["Store", "StudyStore"]

_SCHEMA = 1


class StudyStore:
    """One study of a store: what is known, and where new trials go."""

    def __init__(self, study: optuna.Study, policies: Mapping[str, Policy]) -> None:
        self._study = study
        self._distributions = {
            name: optuna.distributions.CategoricalDistribution(policy.values)
            for name, policy in policies.items()
        }

    def known(self) -> dict[Configuration, Trial]:
        """Every recorded trial by configuration."""
        return {trial.configuration: trial for trial in _trials(self._study)}

    def record(self, trial: Trial) -> None:
        """Append one trial. Raises StoreError when it cannot be written; what was recorded before stays."""
        measured = trial.measurement is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # optuna remarks on large attributes and on experimental calls
            frozen = optuna.trial.create_trial(
                state=optuna.trial.TrialState.COMPLETE if measured else optuna.trial.TrialState.FAIL,
                value=trial.measurement.median_ms if trial.measurement else None,
                params=dict(trial.configuration),
                distributions=dict(self._distributions),
                user_attrs={"trial": trial.to_dict()},
            )
            try:
                self._study.add_trial(frozen)
            except OSError as problem:
                raise StoreError(
                    f"cannot write to the store: {problem.strerror or problem}; what was measured before is kept, "
                    "free space or name another --out and run the same command to go on"
                ) from None

    def about(self) -> dict[str, Any]:
        """The study's description as recorded."""
        found: dict[str, Any] = self._study.user_attrs.get("about", {})
        return found

    def annotate(self, about: Mapping[str, Any]) -> None:
        """Replace the study's description."""
        self._study.set_user_attr("about", json.loads(json.dumps(about)))


class Store:
    """All studies in one place. ``where`` is a folder (a journal file in it) or an Optuna storage URL."""

    def __init__(self, where: str | Path) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._storage = _storage(where)
        self.where = str(where)

    def open(self, study: Study, policies: Mapping[str, Policy]) -> StudyStore:
        """The study's part of the store, made when it is new."""
        name = f"{study.family}/{study.workload}/{study.device}/{study.identity[:16]}"
        made = optuna.create_study(
            study_name=name, storage=self._storage, load_if_exists=True, direction="minimize"
        )
        if "study" not in made.user_attrs:
            made.set_user_attr("study", _header(study))
            made.set_user_attr("about", json.loads(json.dumps(study.about)))
        return StudyStore(made, policies)

    def studies(self) -> list[Study]:
        """Every study with its trials; the latest identity of each family, workload and device comes last."""
        found = []
        for name in optuna.get_all_study_names(self._storage):
            study = optuna.load_study(study_name=name, storage=self._storage)
            header = study.user_attrs.get("study")
            if not header or header.get("schema") != _SCHEMA:
                continue
            found.append(_study(header, study.user_attrs.get("about", {}), tuple(_trials(study))))
        return found


def _storage(where: str | Path) -> Any:
    text = str(where)
    if "://" in text:
        try:
            return optuna.storages.get_storage(text)
        except Exception as problem:  # noqa: BLE001 - drivers raise what they like for a bad URL
            raise StoreError(f"cannot open the store {text}: {type(problem).__name__}: {problem}") from None
    folder = Path(where)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "store.journal"
        path.touch()
        lock = JournalFileOpenLock(str(path))
        _mend(path, lock)
        backend = JournalFileBackend(str(path), lock_obj=lock)
        return optuna.storages.JournalStorage(backend)
    except OSError as problem:
        raise StoreError(
            f"cannot write to {folder}: {problem.strerror or problem}; name a folder you may write with --out"
        ) from None


def _mend(path: Path, lock: JournalFileOpenLock) -> None:
    """Cut off a last line that has no end: what kill -9, power loss or a full disk leave. Under the journal's own
    lock, so that no writer is in the middle of one. Raises StoreError for a line that is no record."""
    lock.acquire()
    try:
        content = path.read_bytes()
        if content and not content.endswith(b"\n"):
            whole = content.rfind(b"\n") + 1
            warnings.warn(
                f"{path}: its last line was torn and is cut off; the trial in it is lost", stacklevel=5
            )
            with path.open("r+b") as file:
                file.truncate(whole)
            content = content[:whole]
    finally:
        lock.release()
    for number, line in enumerate(content.splitlines(), 1):
        try:
            json.loads(line)
        except ValueError:
            raise StoreError(
                f"{path} line {number} is not a record: the file is damaged; move it away, or name another --out"
            ) from None


def _header(study: Study) -> dict[str, Any]:
    return {
        "schema": _SCHEMA,
        "family": study.family,
        "workload": study.workload,
        "device": study.device,
        "identity": study.identity,
        "control": dict(study.control),
        "presets": {name: dict(configuration) for name, configuration in study.presets.items()},
    }


def _study(header: Mapping[str, Any], about: Mapping[str, Any], trials: tuple[Trial, ...]) -> Study:
    return Study(
        family=header["family"],
        workload=header["workload"],
        device=header["device"],
        identity=header["identity"],
        control=Configuration(header["control"]),
        presets={name: Configuration(values) for name, values in header["presets"].items()},
        about=about,
        trials=trials,
    )


def _trials(study: optuna.Study) -> list[Trial]:
    """Recorded trials, one a configuration: a later row of the same configuration (its re-timing) replaces the
    earlier one."""
    latest: dict[Configuration, Trial] = {}
    for frozen in study.get_trials(deepcopy=False):
        if "trial" in frozen.user_attrs:
            trial = Trial.from_dict(frozen.user_attrs["trial"])
            latest[trial.configuration] = trial
    return list(latest.values())


def retimed(trial: Trial, samples: Samples) -> Trial:
    """``trial`` with the figures of the interleaved re-timing in place of the first sampling's spread and count."""
    assert trial.measurement is not None
    measurement = replace(
        trial.measurement,
        retimed_ms=samples.median_ms,
        spread=samples.spread,
        samples=len(samples.times_ms),
    )
    return replace(trial, measurement=measurement)

"""The record: every trial as it happens, in an Optuna study.

A study's name carries its identity, so an edited kernel, header, workload or another compiler or device is
another study and never a stale hit. A journal file serves one host, PostgreSQL any number of them. Sweeps that
share a study divide its configurations by claims, which end with the process that made them.
"""

import json
import logging
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import optuna

from autotune.declaration import Configuration, Policy
from autotune.errors import StoreError
from autotune.record.exchange import added
from autotune.record.journal import journal_rows, open_journal
from autotune.record.optuna_log import quiet_optuna
from autotune.record.provenance import Provenance
from autotune.record.study import Study, why_new
from autotune.record.trial import Trial

T = TypeVar("T")
_SCHEMA = 1
_PATIENCE_S = 60.0  # how long a database may be away; a journal is on a disk, which does not come back
_log = logging.getLogger("autotune")


class Claims(Protocol):
    """What this process is trying, by name; a name is one process's at a time, and free when that process ends."""

    def take(self, name: str) -> bool: ...
    def drop(self, name: str) -> None: ...
    def close(self) -> None: ...


class StudyStore:
    """One study of a store: what is known, who tries what, and where new trials go. ``why_new`` says what differs from
    the studies recorded before, when this one was begun just now; empty for a study that goes on, and for the first.

    To share a study, ask ``claim`` before a configuration is tried, and ``record`` or ``release`` it afterwards. When
    only refused ones are left, others are trying those: ask again after a while, until ``known`` has them all."""

    def __init__(
        self, study: optuna.Study, policies: Mapping[str, Policy], store: "Store", why: str = ""
    ) -> None:
        self.why_new = why
        self._study, self._store = study, store
        self._id: int = store.tried(lambda: store.storage.get_study_id_from_name(study.study_name))
        # In a database each parameter is three queries more, and the trial holds them all the same.
        self._distributions = (
            {}
            if store.patience_s
            else {
                name: optuna.distributions.CategoricalDistribution(policy.values)
                for name, policy in policies.items()
            }
        )
        self._turn = threading.RLock()
        self._known: dict[Configuration, Trial] = {}
        self._new: set[Configuration] = set()  # recorded since this store was opened
        self._read = 0  # rows of the study, as the storage counts them
        self.refresh()
        self._new.clear()

    def known(self) -> dict[Configuration, Trial]:
        """Every recorded trial by configuration, others' too as of the last ``claim`` or ``refresh``."""
        with self._turn:
            return dict(self._known)

    def refresh(self) -> None:
        """Read what others have recorded since. Raises StoreError."""
        with self._turn:
            rows, self._read = self._store.tried(lambda: self._store.rows(self._id, self._read))
            for trial in filter(None, map(_trial, rows)):
                self._known[trial.configuration] = trial
                self._new.add(trial.configuration)

    def claim(self, configuration: Configuration, *, again: bool = False) -> bool:
        """Whether this process may try it: nobody has recorded it, and no living process has claimed it. With
        ``again`` what was recorded before this store was opened does not count. Raises StoreError."""
        with self._turn:
            if self._done(configuration, again):
                return False
            name = self._name(configuration)
            if not self._store.tried(lambda: self._store.claims.take(name)):
                return False
            # Whoever had it before may have recorded it just now: read again, behind the claim.
            self.refresh()
            if self._done(configuration, again):
                self.release(configuration)
                return False
            return True

    def release(self, configuration: Configuration) -> None:
        """Let others try it. Raises StoreError."""
        with self._turn:
            self._store.tried(lambda: self._store.claims.drop(self._name(configuration)))

    def record(self, trial: Trial) -> None:
        """Append one trial and end its claim. Raises StoreError when it cannot be written; what was recorded before
        stays."""
        measured = trial.measurement is not None
        with self._turn:
            frozen = optuna.trial.create_trial(
                state=optuna.trial.TrialState.COMPLETE if measured else optuna.trial.TrialState.FAIL,
                value=trial.measurement.median_ms if trial.measurement else None,
                params=dict(trial.configuration) if self._distributions else {},
                distributions=dict(self._distributions),
                user_attrs={"trial": trial.to_dict()},
            )
            self._store.tried(lambda: self._study.add_trial(frozen))
            self._known[trial.configuration] = trial
            self._new.add(trial.configuration)
            self.release(trial.configuration)

    def about(self) -> Provenance:
        """What the record says of the study's origin; nothing where that is damaged, until it is written anew."""
        plain = self._store.tried(lambda: self._study.user_attrs.get("about", {}))
        try:
            return Provenance.from_dict(plain)
        except (TypeError, ValueError):
            return Provenance()

    def annotate(self, about: Provenance) -> None:
        """Replace what the record says of the study's origin. Raises StoreError."""
        self._store.tried(lambda: self._study.set_user_attr("about", _plain(about)))

    def _done(self, configuration: Configuration, again: bool) -> bool:
        return configuration in (self._new if again else self._known)

    def _name(self, configuration: Configuration) -> str:
        return f"{self._study.study_name} {configuration.id}"


class Store:
    """All studies in one place. ``where`` is a folder (a journal file in it) or ``postgresql://…``."""

    def __init__(self, where: str | Path) -> None:
        text = str(where)
        self.claims: Claims
        self.rows: Callable[[int, int], tuple[list[dict[str, Any]], int]]
        if "://" in text:
            if not text.startswith(("postgresql://", "postgresql+psycopg://")):
                kind = text.split("://", maxsplit=1)[0]
                raise StoreError(
                    f"cannot keep a record in {kind}://…; allowed are postgresql://… and a folder"
                )
            from autotune.record.postgresql import PostgresClaims, open_storage

            database, self.where = open_storage(text)
            self.storage = optuna.storages.get_storage(database)
            session = PostgresClaims(database.engine.url)
            self.claims, self.rows, self.patience_s = session, session.rows, _PATIENCE_S
            weakref.finalize(self, database.engine.dispose)
        else:
            self.where = text
            self.storage, self.claims = open_journal(Path(where))
            self.rows, self.patience_s = partial(journal_rows, self.storage), 0.0
        weakref.finalize(self, self.claims.close)

    def open(self, study: Study, policies: Mapping[str, Policy]) -> StudyStore:
        """The study's part of the store, made when it is new; then the logger ``autotune`` says why it is. Raises
        StoreError."""
        name = f"{study.family}/{study.workload}/{study.device}/{study.identity[:16]}"
        before = list(self._headers().values())
        with quiet_optuna():
            made = self.tried(
                lambda: optuna.create_study(
                    study_name=name, storage=self.storage, load_if_exists=True, direction="minimize"
                )
            )
        why = ""
        if "study" not in self.tried(lambda: made.user_attrs):
            why = why_new(study, before)
            header = {"schema": _SCHEMA, **added(study), "parts": dict(study.parts)}
            self.tried(lambda: made.set_user_attr("study", header))
            self.tried(lambda: made.set_user_attr("about", _plain(study.about)))
        if why:
            _log.info("%s on %s: %s", study.family, study.workload, why)
        return StudyStore(made, policies, self, why)

    def studies(self) -> list[Study]:
        """Every study with its trials; the latest identity of each family, workload and device comes last."""
        return [
            replace(study, trials=tuple(self.tried(partial(self._recorded, name))))
            for name, study in self._headers().items()
        ]

    def tried(self, step: Callable[[], T]) -> T:
        """What ``step`` returns. While a database is away it is tried again for ``patience_s``; then, and for a
        disk at once, StoreError is raised."""
        began, pause = time.monotonic(), 0.5
        while True:
            try:
                return step()
            except OSError as problem:
                cause = str(problem.strerror or problem)
                if not self.patience_s and not Path(self.where, "store.journal").exists():
                    raise StoreError(
                        f"cannot write to the store: {cause}; its journal in {self.where} is gone, and what was "
                        "measured with it: put it back if you have it, then run the same command"
                    ) from None
                raise _unwritten(cause, "free space or name another --out and ") from None
            except optuna.exceptions.StorageInternalError as problem:
                cause = str(getattr(problem.__cause__, "orig", problem.__cause__ or problem)).strip()
                if time.monotonic() - began > self.patience_s:
                    raise _unwritten(cause.splitlines()[0], "") from None
                _log.warning("the store does not answer (%s); it is tried again", cause.splitlines()[0])
                time.sleep(pause)
                pause = min(2 * pause, 5.0)

    def _recorded(self, name: str) -> list[Trial]:
        """Recorded trials, one a configuration: a later row of the same configuration (its re-timing) replaces the
        earlier one."""
        rows, _ = self.rows(self.storage.get_study_id_from_name(name), 0)
        trials = filter(None, map(_trial, rows))
        return list({trial.configuration: trial for trial in trials}.values())

    def _headers(self) -> dict[str, Study]:
        """Every study without its trials, by name."""
        headers: dict[str, Study] = {}
        for found in self.tried(self.storage.get_all_studies):
            try:
                header = found.user_attrs.get("study")
                if header and header["schema"] == _SCHEMA:
                    headers[found.study_name] = _study(
                        header, Provenance.from_dict(found.user_attrs.get("about", {}))
                    )
            except (KeyError, TypeError, ValueError, AttributeError) as problem:
                warnings.warn(
                    f"the description of study {found.study_name} is damaged ({type(problem).__name__}: {problem}): "
                    "it is left out, with its trials",
                    stacklevel=2,
                )
        return headers


def _plain(about: Provenance) -> Any:
    return json.loads(json.dumps(about.to_dict()))


def _unwritten(cause: str, advice: str) -> StoreError:
    return StoreError(
        f"cannot write to the store: {cause}; what was measured before is kept, {advice}run the same command to go on"
    )


def _study(header: Mapping[str, Any], about: Provenance) -> Study:
    named = {name: header[name] for name in ("family", "workload", "device", "identity")}
    return Study(
        **named,
        control=Configuration(header["control"]),
        presets={name: Configuration(values) for name, values in header["presets"].items()},
        parts=header.get("parts", {}),
        about=about,
    )


def _trial(row: Mapping[str, Any]) -> Trial | None:
    """The trial that was recorded so; None, with a warning, for a row that is none."""
    try:
        return Trial.from_dict(row)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        warnings.warn(
            f"a recorded trial is damaged ({type(problem).__name__}: {problem}): it is left out", stacklevel=2
        )
        return None

"""The record: every trial as it happens, in a study.

A study's name carries its identity, so an edited kernel, header, workload or another compiler or device is
another study and never a stale hit. The record is in one of Optuna's storages: a journal in a folder, PostgreSQL,
Optuna's gRPC proxy; each serves any number of hosts that reach it. Sweeps that share a study divide its
configurations by claims, which end with the process that made them.
"""

import logging
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from optuna.trial import FrozenTrial, TrialState, create_trial

from autotune.declaration import Configuration, Policy
from autotune.errors import StoreError
from autotune.record.claims import SILENT_S, Claims, first_line, study_of
from autotune.record.provenance import Provenance
from autotune.record.storages import locate
from autotune.record.study import Study, describe_study, explain_new
from autotune.record.trial import Trial, require_types

T = TypeVar("T")
_SCHEMA = 1
_log = logging.getLogger("autotune")


class StudyStore:
    """One study of a store: its trials, the processes' claims, and where new trials go. If the study was begun just
    now, ``why_new`` says how it differs from those recorded before; it is empty for a continued study and the first.

    To share a study, call ``claim`` before you try a configuration, and ``record`` or ``release`` afterwards. If
    ``claim`` is False for all that are left, other processes try those: ask again later, until ``get_known`` has all.
    """

    def __init__(self, name: str, policies: Mapping[str, Policy], store: "Store") -> None:
        self.why_new, self.name = "", name
        self._store, self._policies = store, policies
        self._study: int = store.retry(lambda: study_of(store.storage, name))
        self._turn = threading.RLock()
        self._known: dict[Configuration, Trial] = {}
        self._new: set[Configuration] = set()  # recorded since this store was opened
        self._read = 0  # of the storage's trials
        self.refresh()
        self._new.clear()

    def get_known(self) -> dict[Configuration, Trial]:
        """Every recorded trial by configuration, others' too as of the last ``claim`` or ``refresh``."""
        with self._turn:
            return dict(self._known)

    def refresh(self) -> None:
        """Read what others have recorded since. Raises StoreError."""
        with self._turn:
            rows = self._store.rows(self._study, self._read)
            self._read += len(rows)
            for trial in _trials(rows, self._policies):
                self._known[trial.configuration] = trial
                self._new.add(trial.configuration)

    def claim(self, configuration: Configuration, *, again: bool = False) -> bool:
        """Whether this process may try it: nobody has recorded it, and no living process has claimed it. With
        ``again`` what was recorded before this store was opened does not count. Raises StoreError."""
        with self._turn:
            if self._is_done(configuration, again):
                return False
            if not self._store.retry(lambda: self._store.claims.take(self.name, configuration.id)):
                return False
            # The process that had it before may have recorded it just now: read again, behind the claim.
            self.refresh()
            if self._is_done(configuration, again):
                self.release(configuration)
                return False
            return True

    def release(self, configuration: Configuration) -> None:
        """Let others try it. Raises StoreError."""
        self._store.retry(lambda: self._store.claims.drop(self.name, configuration.id))

    def record(self, trial: Trial) -> bool:
        """Append one trial and end its claim. False, and nothing is recorded, where it was claimed and another process
        has taken the claim over, which it does from one that stood still for long. Raises StoreError when it cannot be
        written; what was recorded before stays."""
        configuration = trial.configuration
        with self._turn:
            if self._store.retry(lambda: self._store.claims.is_lost(self.name, configuration.id)):
                self.release(configuration)
                self.refresh()
                return False
            row = create_trial(
                state=TrialState.COMPLETE if trial.measurement else TrialState.FAIL,
                value=trial.time_ms if trial.measurement else None,
                user_attrs={"trial": trial.to_dict()},
            )
            self._store.retry(lambda: self._store.storage.create_new_trial(self._study, row))
            self._known[configuration] = trial
            self._new.add(configuration)
            self.release(configuration)
            return True

    def get_provenance(self) -> Provenance:
        """What the record says of the study's origin; nothing where that is damaged, until it is written again."""
        try:
            return Provenance.from_dict(self._read_attributes().get("about", {}))
        except (TypeError, ValueError):
            return Provenance()

    def annotate(self, about: Provenance) -> None:
        """Replace what the record says of the study's origin. Raises StoreError."""
        self._say("about", about.to_dict())

    def ask(self, asked: Mapping[str, Any]) -> None:
        """Keep what a sweep asks for, for those who join it. Raises StoreError."""
        if self._read_attributes().get("asked") != asked:
            self._say("asked", dict(asked))

    def describe(self, study: Study, before: Collection[Study]) -> None:
        """Keep what the study is, if the record does not know it yet; ``why_new`` then says what differs from those
        that were recorded ``before``. Raises StoreError."""
        if "study" not in self._read_attributes():
            self.why_new = explain_new(study, [*before])
            self._say("study", {"schema": _SCHEMA, **describe_study(study), "parts": dict(study.parts)})
            self.annotate(study.about)

    def _read_attributes(self) -> dict[str, Any]:
        return self._store.retry(lambda: self._store.storage.get_study_user_attrs(self._study))

    def _say(self, key: str, value: Any) -> None:
        self._store.retry(lambda: self._store.storage.set_study_user_attr(self._study, key, value))

    def _is_done(self, configuration: Configuration, again: bool) -> bool:
        return configuration in (self._new if again else self._known)


class Store:
    """All studies in one storage of Optuna's, at one of the addresses of storages.py. ``silent_s`` is how long a
    process may give no sign of life before its claims are taken over."""

    def __init__(self, where: str | Path, *, silent_s: float = SILENT_S) -> None:
        location = locate(str(where))
        self.where, self.storage = location.where, location.storage
        self.claims = Claims(location.claims, location.away, silent_s)
        self._away, self.patience_s = location.away, location.patience_s
        closing = ExitStack()
        closing.callback(location.close)
        closing.callback(self.claims.close)
        weakref.finalize(self, closing.close)

    def open(self, study: Study, policies: Mapping[str, Policy]) -> StudyStore:
        """The study's part of the store, made when it is new; then the logger ``autotune`` says why it is. Raises
        StoreError."""
        before = self._headers().values()
        opened = StudyStore(_name(study), policies, self)
        opened.describe(study, before)
        if opened.why_new:
            _log.info("%s on %s: %s", study.family, study.workload, opened.why_new)
        return opened

    def explain_unknown(self, study: Study) -> str:
        """Why there is no such study; empty where there is. Raises StoreError."""
        headers = self._headers()
        if _name(study) in headers:
            return ""
        of = [one for one in headers.values() if (one.family, one.workload) == (study.family, study.workload)]
        devices = list(dict.fromkeys(one.device for one in of))
        where = f"the record in {self.where} has no sweep of {study.family} on {study.workload}"
        if study.device not in devices:
            return f"{where} for this device, {study.device} (it has: {', '.join(devices) or 'none'})"
        return f"{where} as it is on this host: {explain_new(study, of).removeprefix('a new study: ')}"

    def list_requests(self) -> list[dict[str, Any]]:
        """What sweeps in this record asked for, each once, in the order in which they were begun. Raises
        StoreError."""
        studies = self.retry(self.storage.get_all_studies)
        found = [one.user_attrs["asked"] for one in studies if "asked" in one.user_attrs]
        return [one for number, one in enumerate(found) if one not in found[:number]]

    def studies(self) -> list[Study]:
        """Every study with its trials; the latest identity of each family, workload and device comes last."""
        return [
            replace(study, trials=tuple(self._read_recorded(name, study.control)))
            for name, study in self._headers().items()
        ]

    def rows(self, study: int, behind: int) -> list[FrozenTrial]:
        """Return the storage's trials of that study after the first ``behind``. Raises StoreError."""
        return self.retry(lambda: self.storage.get_all_trials(study, deepcopy=False))[behind:]

    def retry(self, step: Callable[[], T]) -> T:
        """What ``step`` returns. While a server is away it is tried again for as long as the place says; then, and for
        a disk at once, StoreError is raised."""
        began, pause = time.monotonic(), 0.5
        while True:
            try:
                return step()
            except OSError as problem:
                cause = str(problem.strerror or problem)
                if isinstance(problem, FileNotFoundError):
                    raise StoreError(
                        f"cannot write to the store: {cause}; its journal in {self.where} is gone, and what was "
                        "measured with it: put it back if you have it, then run the same command"
                    ) from None
                raise _make_write_error(cause, "free space or name another --out and ") from None
            except self._away as problem:
                cause = first_line(problem)
                if time.monotonic() - began > self.patience_s:
                    raise _make_write_error(cause, "") from None
                _log.warning("the store does not answer (%s); trying again", cause)
                time.sleep(pause)
                pause = min(2 * pause, 5.0)

    def _read_recorded(self, name: str, control: Configuration) -> list[Trial]:
        """Recorded trials, one a configuration: a later row of the same configuration (its re-timing) replaces the
        earlier one."""
        rows = self.rows(self.retry(lambda: study_of(self.storage, name)), 0)
        return list({trial.configuration: trial for trial in _trials(rows, control)}.values())

    def _headers(self) -> dict[str, Study]:
        """Every study without its trials, by name."""
        headers: dict[str, Study] = {}
        for study in self.retry(self.storage.get_all_studies):
            said = study.user_attrs
            try:
                header = said.get("study")
                if header and header["schema"] == _SCHEMA:
                    headers[study.study_name] = _study(header, Provenance.from_dict(said.get("about", {})))
            except (KeyError, TypeError, ValueError, AttributeError) as problem:
                warnings.warn(
                    f"the description of study {study.study_name} is damaged ({type(problem).__name__}: {problem}): "
                    "it is left out, with its trials",
                    stacklevel=2,
                )
        return headers


def _name(study: Study) -> str:
    return f"{study.family}/{study.workload}/{study.device}/{study.identity[:16]}"


def _make_write_error(cause: str, advice: str) -> StoreError:
    return StoreError(
        f"cannot write to the store: {cause}; what was measured before is kept, {advice}run the same command to resume"
    )


def _study(header: Mapping[str, Any], about: Provenance) -> Study:
    require_types(Study, header)
    named = {name: header[name] for name in ("family", "workload", "device", "identity")}
    return Study(
        **named,
        control=Configuration(header["control"]),
        presets={name: Configuration(values) for name, values in header["presets"].items()},
        parts=header.get("parts", {}),
        about=about,
    )


def _trials(rows: Iterable[FrozenTrial], policies: Collection[str]) -> Iterator[Trial]:
    """The trials that were recorded so, with a warning for each row that is none. Without ``policies`` any will do."""
    for row in rows:
        try:
            trial = Trial.from_dict(row.user_attrs["trial"])
            if policies and trial.configuration.keys() != set(policies):
                raise ValueError(f"the study has the policies {', '.join(policies)}, and it has others")
            yield trial
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            warnings.warn(
                f"a recorded trial is damaged ({type(problem).__name__}: {problem}): it is left out",
                stacklevel=2,
            )

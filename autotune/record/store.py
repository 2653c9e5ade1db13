"""The record: every trial as it happens, in a study.

A study's name carries its identity, so an edited kernel, header, workload or another compiler or device is
another study and never a stale hit. A journal file serves one host; a shared folder, PostgreSQL and Optuna's gRPC proxy
serve any number of them. Sweeps that share a study divide its configurations by claims, which end with the process
that made them.
"""

import json
import logging
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from autotune.declaration import Configuration, Policy
from autotune.errors import StoreError
from autotune.record.grpc_place import grpc_place
from autotune.record.optuna_place import journal_place
from autotune.record.place import Place
from autotune.record.provenance import Provenance
from autotune.record.pulse import SILENT_S
from autotune.record.shared_folder import SHARED, SharedFolder, is_shared
from autotune.record.study import Study, added, why_new
from autotune.record.trial import Trial
from autotune.record.typed import require_types

T = TypeVar("T")
_SCHEMA = 1
_ALLOWED = "postgresql://…, grpc://host:port, shared:FOLDER and a folder"
_log = logging.getLogger("autotune")


class StudyStore:
    """One study of a store: what is known, who tries what, and where new trials go. ``why_new`` says what differs from
    the studies recorded before, when this one was begun just now; empty for a study that goes on, and for the first.

    To share a study, ask ``claim`` before a configuration is tried, and ``record`` or ``release`` it afterwards. When
    only refused ones are left, others are trying those: ask again after a while, until ``known`` has them all."""

    def __init__(self, name: str, policies: Mapping[str, Policy], store: "Store", why: str = "") -> None:
        self.why_new, self.name = why, name
        self._store, self._place, self._policies = store, store.place, policies
        self._claimed: set[Configuration] = set()
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
            rows, self._read = self._store.tried(lambda: self._place.rows(self.name, self._read))
            for trial in _trials(rows, self._policies):
                self._known[trial.configuration] = trial
                self._new.add(trial.configuration)

    def claim(self, configuration: Configuration, *, again: bool = False) -> bool:
        """Whether this process may try it: nobody has recorded it, and no living process has claimed it. With
        ``again`` what was recorded before this store was opened does not count. Raises StoreError."""
        with self._turn:
            if self._done(configuration, again):
                return False
            name = self._name(configuration)
            if not self._store.tried(lambda: self._place.claims.take(name)):
                return False
            self._claimed.add(configuration)
            # Whoever had it before may have recorded it just now: read again, behind the claim.
            self.refresh()
            if self._done(configuration, again):
                self.release(configuration)
                return False
            return True

    def release(self, configuration: Configuration) -> None:
        """Let others try it. Raises StoreError."""
        with self._turn:
            self._claimed.discard(configuration)
            self._store.tried(lambda: self._place.claims.drop(self._name(configuration)))

    def record(self, trial: Trial) -> bool:
        """Append one trial and end its claim. False, and nothing is recorded, where it was claimed and another process
        has taken the claim over, which it does from one that stood still for long. Raises StoreError when it cannot be
        written; what was recorded before stays."""
        configuration = trial.configuration
        with self._turn:
            if configuration in self._claimed and not self._is_held(configuration):
                self.release(configuration)
                self.refresh()
                return False
            self._store.tried(lambda: self._place.add(self.name, trial.to_dict(), self._policies))
            self._known[configuration] = trial
            self._new.add(configuration)
            self.release(configuration)
            return True

    def _is_held(self, configuration: Configuration) -> bool:
        """Whether the claim is still this process's; not where another took it over, and then recorded the
        configuration and gave the claim back."""
        if not self._store.tried(lambda: self._place.claims.holds(self._name(configuration))):
            return False
        self.refresh()
        return configuration not in self._new

    def about(self) -> Provenance:
        """What the record says of the study's origin; nothing where that is damaged, until it is written anew."""
        plain = self._store.tried(lambda: self._place.said(self.name).get("about", {}))
        try:
            return Provenance.from_dict(plain)
        except (TypeError, ValueError):
            return Provenance()

    def annotate(self, about: Provenance) -> None:
        """Replace what the record says of the study's origin. Raises StoreError."""
        self._store.tried(lambda: self._place.say(self.name, "about", _plain(about)))

    def ask(self, asked: Mapping[str, Any]) -> None:
        """Keep what a sweep asks for, for those who join it. Raises StoreError."""
        if self._store.tried(lambda: self._place.said(self.name).get("asked")) != asked:
            self._store.tried(lambda: self._place.say(self.name, "asked", dict(asked)))

    def _done(self, configuration: Configuration, again: bool) -> bool:
        return configuration in (self._new if again else self._known)

    def _name(self, configuration: Configuration) -> str:
        return f"{self.name} {configuration.id}"


class Store:
    """All studies in one place. ``where`` is a folder (a journal file in it), ``shared:FOLDER`` (one that many hosts
    share), ``postgresql://…`` or ``grpc://host:port``; ``silent_s`` is how long a process of a shared folder or behind
    gRPC may give no sign of life before its claims are taken over."""

    def __init__(self, where: str | Path, *, silent_s: float = SILENT_S) -> None:
        self.place: Place = _place(str(where), silent_s)
        weakref.finalize(self, self.place.close)

    @property
    def where(self) -> str:
        return self.place.where

    def open(self, study: Study, policies: Mapping[str, Policy]) -> StudyStore:
        """The study's part of the store, made when it is new; then the logger ``autotune`` says why it is. Raises
        StoreError."""
        name = _name(study)
        before = list(self._headers().values())
        place, why = self.place, ""
        self.tried(lambda: place.begin(name))
        if "study" not in self.tried(lambda: place.said(name)):
            why = why_new(study, before)
            header = {"schema": _SCHEMA, **added(study), "parts": dict(study.parts)}
            self.tried(lambda: place.say(name, "study", header))
            self.tried(lambda: place.say(name, "about", _plain(study.about)))
        if why:
            _log.info("%s on %s: %s", study.family, study.workload, why)
        return StudyStore(name, policies, self, why)

    def why_unknown(self, study: Study) -> str:
        """Why there is no such study; empty where there is. Raises StoreError."""
        headers = self._headers()
        if _name(study) in headers:
            return ""
        of = [one for one in headers.values() if (one.family, one.workload) == (study.family, study.workload)]
        devices = list(dict.fromkeys(one.device for one in of))
        where = f"the record in {self.where} has no sweep of {study.family} on {study.workload}"
        if study.device not in devices:
            return f"{where} for this device, {study.device} (it has: {', '.join(devices) or 'none'})"
        return f"{where} as it is on this host: {why_new(study, of).removeprefix('a new study: ')}"

    def asked(self) -> list[dict[str, Any]]:
        """What sweeps in this record asked for, each once, in the order in which they were begun. Raises
        StoreError."""
        found = [said["asked"] for said in self.tried(self.place.studies).values() if "asked" in said]
        return [one for number, one in enumerate(found) if one not in found[:number]]

    def studies(self) -> list[Study]:
        """Every study with its trials; the latest identity of each family, workload and device comes last."""
        return [
            replace(study, trials=tuple(self.tried(partial(self._recorded, name, study.control))))
            for name, study in self._headers().items()
        ]

    def tried(self, step: Callable[[], T]) -> T:
        """What ``step`` returns. While a server is away it is tried again for as long as the place says; then, and for
        a disk at once, StoreError is raised."""
        began, pause = time.monotonic(), 0.5
        while True:
            try:
                return step()
            except OSError as problem:
                raise self._unwritten(problem) from None
            except self.place.away as problem:
                cause = _cause(problem)
                if time.monotonic() - began > self.place.patience_s:
                    raise _unwritten(cause, "") from None
                _log.warning("the store does not answer (%s); it is tried again", cause)
                time.sleep(pause)
                pause = min(2 * pause, 5.0)

    def _unwritten(self, problem: OSError) -> StoreError:
        cause = str(problem.strerror or problem)
        if isinstance(problem, FileNotFoundError):
            return StoreError(
                f"cannot write to the store: {cause}; its journal in {self.where} is gone, and what was "
                "measured with it: put it back if you have it, then run the same command"
            )
        return _unwritten(cause, "free space or name another --out and ")

    def _recorded(self, name: str, control: Configuration) -> list[Trial]:
        """Recorded trials, one a configuration: a later row of the same configuration (its re-timing) replaces the
        earlier one."""
        rows, _ = self.place.rows(name, 0)
        return list({trial.configuration: trial for trial in _trials(rows, control)}.values())

    def _headers(self) -> dict[str, Study]:
        """Every study without its trials, by name."""
        headers: dict[str, Study] = {}
        for name, said in self.tried(self.place.studies).items():
            try:
                header = said.get("study")
                if header and header["schema"] == _SCHEMA:
                    headers[name] = _study(header, Provenance.from_dict(said.get("about", {})))
            except (KeyError, TypeError, ValueError, AttributeError) as problem:
                warnings.warn(
                    f"the description of study {name} is damaged ({type(problem).__name__}: {problem}): "
                    "it is left out, with its trials",
                    stacklevel=2,
                )
        return headers


def _name(study: Study) -> str:
    return f"{study.family}/{study.workload}/{study.device}/{study.identity[:16]}"


def _place(where: str, silent_s: float) -> Place:
    """Where that address leads. Raises StoreError."""
    kind, separator, _ = where.partition("://")
    if where.startswith(SHARED):
        return SharedFolder(Path(where.removeprefix(SHARED)).expanduser(), silent_s=silent_s)
    if not separator:
        folder = Path(where)
        return SharedFolder(folder, silent_s=silent_s) if is_shared(folder) else journal_place(folder)
    if kind == "grpc":
        return grpc_place(where, silent_s)
    if kind not in ("postgresql", "postgresql+psycopg"):
        raise StoreError(f"cannot keep a record in {kind}://…; allowed are {_ALLOWED}")
    from autotune.record.postgresql import postgresql_place

    return postgresql_place(where)


def _cause(problem: Exception) -> str:
    """The first line of what a server said."""
    details = getattr(problem, "details", None)  # of gRPC
    if callable(details) and (told := details()):
        return str(told).splitlines()[0]
    cause = str(getattr(problem.__cause__, "orig", problem.__cause__ or problem)).strip()
    return cause.splitlines()[0] if cause else type(problem).__name__


def _plain(about: Provenance) -> Any:
    return json.loads(json.dumps(about.to_dict()))


def _unwritten(cause: str, advice: str) -> StoreError:
    return StoreError(
        f"cannot write to the store: {cause}; what was measured before is kept, {advice}run the same command to go on"
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


def _trials(rows: Iterable[Mapping[str, Any]], policies: Collection[str]) -> Iterator[Trial]:
    """The trials that were recorded so, with a warning for each row that is none. Without ``policies`` any will do."""
    for row in rows:
        try:
            trial = Trial.from_dict(row)
            if policies and trial.configuration.keys() != set(policies):
                raise ValueError(f"the study has the policies {', '.join(policies)}, and it has others")
            yield trial
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            warnings.warn(
                f"a recorded trial is damaged ({type(problem).__name__}: {problem}): it is left out",
                stacklevel=2,
            )

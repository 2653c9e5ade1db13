"""Who tries what, among processes that share a record.

A claim is a running trial of Optuna's. A storage numbers trials one after the other, so of the claims of one name the
lowest has it; and a trial is finished once, which gives a claim back or takes it away.

A process shows that it is alive by a number that it counts up. Another one takes it for dead when that number has
stayed the same while it counted its own up several times. So no clock is compared with another's, and a process that
was stopped (a paused virtual machine, a suspended host) or cannot reach the storage declares nobody dead. That a
process of the same host has ended is seen at once.
"""

import threading
from collections.abc import Callable
from contextlib import suppress

from optuna.exceptions import DuplicatedStudyError, UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import TrialState, create_trial

from autotune.errors import StoreError
from autotune.processes import has_ended, process_name, quiet_optuna

SILENT_S = 120.0  # after which a process is taken for dead
BEATS = 5  # in that time
_WORKERS = "autotune workers"  # the study whose attributes are the processes' numbers
_CLAIMS = "autotune claims of "  # and the name of a study


class Claims:
    """The claims of this process in the storage that ``opened`` returns, which is called with the first claim. ``away``
    is what the storage raises while it cannot be reached. Names are those of one study."""

    def __init__(
        self,
        opened: Callable[[], BaseStorage],
        away: tuple[type[Exception], ...] = (),
        silent_s: float = SILENT_S,
    ) -> None:
        self._opened, self._silent_s = opened, silent_s
        self._away = (*away, OSError, StoreError)
        self._owner = process_name()
        self._storage: BaseStorage | None = None
        self._studies: dict[str, int] = {}
        self._held: dict[tuple[str, str], int] = {}  # the trial of each
        self._refused: set[tuple[str, str]] = set()  # another process's when they were last asked for
        self._seen: dict[str, tuple[object, int]] = {}  # another process's number, and ours when it was new
        self._turn = threading.RLock()
        self._closed = threading.Event()
        self._heart: threading.Thread | None = None
        self.beats = 0

    def take(self, study: str, name: str) -> bool:
        """Claim the name, and return whether it was free."""
        with self._turn:
            if (study, name) in self._held:
                return False
            storage = self._begin()
            claims = self._study(_CLAIMS + study)
            # Before anything is written.
            if (study, name) in self._refused and self._is_anothers(claims, name):
                return False
            mine = storage.create_new_trial(
                claims, create_trial(state=TrialState.RUNNING, user_attrs={"claim": [name, self._owner]})
            )
            if self._is_anothers(claims, name, mine):
                self._finish(mine)
                self._refused.add((study, name))
                return False
            self._refused.discard((study, name))
            self._held[study, name] = mine
            return True

    def is_lost(self, study: str, name: str) -> bool:
        """Whether another process has taken the name over: one that was stopped for long may be taken for dead."""
        with self._turn:
            mine = self._held.get((study, name))
            return mine is not None and self._begin().get_trial(mine).state is not TrialState.RUNNING

    def drop(self, study: str, name: str) -> None:
        """Give the name back, if this process has it."""
        with self._turn:
            if (study, name) in self._held:
                self._finish(self._held[study, name])
                del self._held[study, name]

    def close(self) -> None:
        """Give everything back."""
        self._closed.set()
        if self._heart and self._heart is not threading.current_thread():
            self._heart.join(1.0)
        with self._turn, suppress(*self._away):
            for study, name in list(self._held):
                self.drop(study, name)
            if self._storage:
                self._show(None)

    def _is_anothers(self, claims: int, name: str, before: int | None = None) -> bool:
        """Whether a process that is alive has the name, by a lower trial than ``before``. Claims of the dead are taken
        away, and those of this process whose making was answered with an error."""
        for trial in self._begin().get_all_trials(claims, deepcopy=False, states=(TrialState.RUNNING,)):
            number = trial._trial_id  # noqa: SLF001 - Optuna has no other word for it
            if number == before:
                return False
            match trial.user_attrs.get("claim"):
                case [claimed, str(owner)] if claimed == name:
                    if owner != self._owner and not self._is_dead(owner):
                        return True
                    self._finish(number)
        return False

    def _is_dead(self, owner: str) -> bool:
        if has_ended(owner):
            return True
        number = self._begin().get_study_user_attrs(self._study(_WORKERS)).get(owner)
        before, since = self._seen.get(owner, (None, 0))
        if owner not in self._seen or number != before:
            self._seen[owner] = (number, self.beats)
            return False
        return self.beats - since > BEATS

    def _begin(self) -> BaseStorage:
        """The storage, in which this process shows itself from now on."""
        if self._storage is None:
            self._storage = self._opened()
            try:
                self._show(0)
            except BaseException:
                self._storage = None
                raise
            self._heart = threading.Thread(
                target=self._send_heartbeats, name="autotune-heartbeat", daemon=True
            )
            self._heart.start()
        return self._storage

    def _send_heartbeats(self) -> None:
        while not self._closed.wait(self._silent_s / BEATS):
            with suppress(*self._away):  # the next claim meets it and says so
                self._show(self.beats + 1)
                self.beats += 1

    def _show(self, number: int | None) -> None:
        self._begin().set_study_user_attr(self._study(_WORKERS), self._owner, number)

    def _study(self, name: str) -> int:
        if name not in self._studies:
            self._studies[name] = study_of(self._begin(), name)
        return self._studies[name]

    def _finish(self, trial: int) -> None:
        with suppress(UpdateFinishedTrialError):  # another process did
            self._begin().set_trial_state_values(trial, TrialState.FAIL)


def study_of(storage: BaseStorage, name: str) -> int:
    """The number of the study of that name, which is made when it is not there."""
    with suppress(KeyError):
        return storage.get_study_id_from_name(name)
    with quiet_optuna(), suppress(DuplicatedStudyError):  # another process made it just now
        return storage.create_new_study([StudyDirection.MINIMIZE], name)
    return storage.get_study_id_from_name(name)


def first_line(problem: BaseException) -> str:
    """The first line of what a server said."""
    details = getattr(problem, "details", None)  # of gRPC
    cause = problem.__cause__ or problem
    said = (callable(details) and details()) or getattr(cause, "orig", cause)  # of SQLAlchemy
    return next(iter(str(said).strip().splitlines()), type(problem).__name__)

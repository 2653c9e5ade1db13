"""A record behind Optuna's gRPC proxy: its storage from afar, and claims that need nothing but that storage.

Optuna's server hands one relational database to any number of hosts. It numbers trials one after the other, so a claim
is a running trial of a study of claims, and the lowest number that runs has the name; finishing such a trial, which a
storage lets happen once, gives it back or takes it away.
"""

import os
import platform
import secrets
import threading
import warnings
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import optuna
from optuna.storages import BaseStorage, GrpcStorageProxy
from optuna.trial import FrozenTrial, TrialState

from autotune.errors import StoreError
from autotune.files import pip_install
from autotune.record.optuna_place import OptunaPlace
from autotune.record.pulse import SILENT_S, Pulse

_CLAIMS = "autotune claims"  # the study of claims
_OPENING_S = 20.0  # for the server to answer


def grpc_place(address: str, silent_s: float = SILENT_S) -> OptunaPlace:
    """The record behind ``grpc://host:port``. Raises StoreError."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise StoreError(f"cannot read --store {address}: it looks like grpc://host:13000")
    try:
        import grpc
    except ImportError:
        raise StoreError(
            f"cannot open the store {address}: grpcio is not installed; {pip_install('grpc')}"
        ) from None
    away: tuple[type[Exception], ...] = (grpc.RpcError, optuna.exceptions.StorageInternalError)
    try:
        with warnings.catch_warnings(action="ignore", category=optuna.exceptions.ExperimentalWarning):
            storage = GrpcStorageProxy(host=host, port=port)
        storage.wait_server_ready(_OPENING_S)
        claims = StorageClaims(storage, away, silent_s)
    except ImportError as problem:
        raise StoreError(f"cannot open the store {address}: {problem}; {pip_install('grpc')}") from None
    except (ConnectionError, grpc.RpcError, optuna.exceptions.StorageInternalError) as problem:
        raise StoreError(
            f"cannot open the store {address}: no answer within {_OPENING_S:g} s ({problem}); is Optuna's server "
            "(optuna.storages.run_grpc_proxy_server) running there?"
        ) from None
    return OptunaPlace(address, storage, claims, away=away, closes=storage.close)


class StorageClaims:
    """A place.Claims in any storage of Optuna's. ``away`` is what it raises while it cannot be reached."""

    def __init__(
        self, storage: BaseStorage, away: tuple[type[Exception], ...], silent_s: float = SILENT_S
    ) -> None:
        self._storage, self._away = storage, away
        self._owner = f"{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._study = _study(storage)
        self._held: dict[str, int] = {}  # the trial of each
        self._turn = threading.RLock()
        self.pulse = Pulse(self._show, away, silent_s)

    def take(self, name: str) -> bool:
        """Whether the name was free and is now this process's."""
        with self._turn:
            if name in self._held:
                return False
            self.pulse.begin()
            if self._others(name):
                return False
            mine = self._storage.create_new_trial(self._study, _claim(name, self._owner))
            if self._others(name, mine):
                self._finish(mine)
                return False
            self._held[name] = mine
            return True

    def holds(self, name: str) -> bool:
        """Whether this process has the name, still."""
        with self._turn:
            mine = self._held.get(name)
            return mine is not None and self._storage.get_trial(mine).state is TrialState.RUNNING

    def drop(self, name: str) -> None:
        """Give the name back, if this process has it."""
        with self._turn:
            if name in self._held:
                self._finish(self._held[name])
                del self._held[name]

    def close(self) -> None:
        """Give everything back."""
        self.pulse.close()
        with self._turn, suppress(*self._away):
            for name in list(self._held):
                self.drop(name)
            if self.pulse.count:
                self._storage.set_study_user_attr(self._study, self._owner, None)

    def _others(self, name: str, before: int | None = None) -> bool:
        """Whether somebody who is alive has it, by a trial of a lower number than ``before``. Claims of the dead are
        taken away, and those of this process that a call was told an error of."""
        signs: dict[str, Any] | None = None
        for trial in self._storage.get_all_trials(self._study, deepcopy=False, states=(TrialState.RUNNING,)):
            if trial._trial_id == before:  # noqa: SLF001 - Optuna has no other word for it
                return False
            if trial.user_attrs.get("claim") != name:
                continue
            owner = str(trial.user_attrs.get("owner"))
            if owner != self._owner:
                signs = signs or self._storage.get_study_user_attrs(self._study)
                if not self.pulse.is_silent(owner, signs.get(owner)):
                    return True
            self._finish(trial._trial_id)  # noqa: SLF001
        return False

    def _finish(self, trial: int) -> None:
        with suppress(optuna.exceptions.UpdateFinishedTrialError):  # somebody else did
            self._storage.set_trial_state_values(trial, TrialState.FAIL)

    def _show(self, count: int) -> None:
        self._storage.set_study_user_attr(self._study, self._owner, count)


def _claim(name: str, owner: str) -> FrozenTrial:
    return FrozenTrial(
        number=-1, trial_id=-1, state=TrialState.RUNNING, value=None, values=None,
        datetime_start=datetime.now(UTC).replace(tzinfo=None), datetime_complete=None, params={}, distributions={},
        user_attrs={"claim": name, "owner": owner}, system_attrs={}, intermediate_values={},
    )  # fmt: skip


def _study(storage: BaseStorage) -> int:
    try:
        return storage.create_new_study([optuna.study.StudyDirection.MINIMIZE], _CLAIMS)
    except optuna.exceptions.DuplicatedStudyError:
        return storage.get_study_id_from_name(_CLAIMS)

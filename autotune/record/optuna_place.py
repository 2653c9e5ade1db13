"""Studies as Optuna's, in any of its storages."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.storages import BaseStorage

from autotune.declaration import Policy
from autotune.record.journal import open_journal
from autotune.record.optuna_log import quiet_optuna
from autotune.record.place import Claims

_PATIENCE_S = 60.0  # how long a server may be away; a journal is on a disk, which does not come back
Rows = Callable[[int, int], tuple[list[dict[str, Any]], int]]


class OptunaPlace:
    """A place.Place. ``with_parameters`` has trials' parameters kept as Optuna's own too, which its tools show; in a
    database each is three queries more, and the trial holds them all the same. ``close`` also calls ``closes``."""

    def __init__(
        self,
        where: str,
        storage: BaseStorage,
        claims: Claims,
        *,
        away: tuple[type[Exception], ...] = (optuna.exceptions.StorageInternalError,),
        patience_s: float = _PATIENCE_S,
        rows: Rows | None = None,
        with_parameters: bool = False,
        closes: Callable[[], None] = lambda: None,
    ) -> None:
        self.where, self.storage, self.claims = where, storage, claims
        self.away, self.patience_s = away, patience_s
        self._rows: Rows = rows or partial(storage_rows, storage)
        self._with_parameters, self._closes = with_parameters, closes
        self._studies: dict[str, optuna.Study] = {}

    def studies(self) -> dict[str, dict[str, Any]]:
        return {found.study_name: found.user_attrs for found in self.storage.get_all_studies()}

    def begin(self, name: str) -> None:
        with quiet_optuna():
            self._studies[name] = optuna.create_study(
                study_name=name, storage=self.storage, load_if_exists=True, direction="minimize"
            )

    def said(self, name: str) -> dict[str, Any]:
        return self._study(name).user_attrs

    def say(self, name: str, key: str, value: Any) -> None:
        self._study(name).set_user_attr(key, value)

    def add(self, name: str, trial: Mapping[str, Any], policies: Mapping[str, Policy]) -> None:
        measured, states = trial["measurement"], optuna.trial.TrialState
        shown = policies if self._with_parameters else {}
        frozen = optuna.trial.create_trial(
            state=states.COMPLETE if measured else states.FAIL,
            value=measured["median_ms"] if measured else None,
            params={policy: trial["configuration"][policy] for policy in shown},
            distributions={policy: CategoricalDistribution(one.values) for policy, one in shown.items()},
            user_attrs={"trial": trial},
        )
        self._study(name).add_trial(frozen)

    def rows(self, name: str, behind: int) -> tuple[list[dict[str, Any]], int]:
        return self._rows(self.storage.get_study_id_from_name(name), behind)

    def close(self) -> None:
        self.claims.close()
        self._closes()

    def _study(self, name: str) -> optuna.Study:
        if name not in self._studies:
            self._studies[name] = optuna.load_study(study_name=name, storage=self.storage)
        return self._studies[name]


def journal_place(folder: Path) -> OptunaPlace:
    """A journal file in ``folder``, for the processes of one host. Raises StoreError."""
    storage, claims = open_journal(folder)
    return OptunaPlace(str(folder), storage, claims, patience_s=0.0, with_parameters=True)


def storage_rows(storage: Any, study: int, behind: int) -> tuple[list[dict[str, Any]], int]:
    """The trials recorded in a study from that number on, and the next number. One by one: to ask for all of them
    costs time for each one that is recorded."""
    found = storage.get_all_trials(study, deepcopy=False) if behind == 0 else []
    number = len(found)
    if behind:
        number = behind
        with suppress(KeyError):  # raised for the number that is not there yet
            while True:
                found.append(
                    storage.get_trial(storage.get_trial_id_from_study_id_trial_number(study, number))
                )
                number += 1
    return [row.user_attrs["trial"] for row in found if "trial" in row.user_attrs], number

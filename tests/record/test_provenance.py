"""Where figures come from: typed here, and kept in the record."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from report_pages import fake_study

from autotune.declaration import Configuration
from autotune.device.clocks import POWER_OR_HEAT, reasons
from autotune.record import Provenance, Store, find_newest
from autotune.record.study import find_newest_of_each
from autotune.report.policy_effects import COLUMNS
from autotune.report.tables import EFFECTS

TOLD = Provenance(
    device_kind="cuda",
    date="2026-01-02",
    features={"n": 3},
    accuracy=("type",),
    beside=(),
    interrupted=True,
    counters={"a=1": {"k": {"bytes": 2.0}}},
    more={"nvml": "no GPU to watch"},
)


def test_it_is_the_same_after_it_was_written() -> None:
    plain = json.loads(json.dumps(TOLD.to_dict()))
    assert Provenance.from_dict(plain) == TOLD
    assert plain["accuracy"] == ["type"] and plain["nvml"] == "no GPU to watch"


def test_what_a_sweep_does_not_know_yet_is_not_written() -> None:
    plain = TOLD.to_dict()
    assert {"device_kind", "beside", "interrupted"} <= set(plain)
    assert not {"title", "operations", "lost", "floor_ms", "idle_policies", "sanitized", "more"} & set(plain)


def test_what_a_device_says_besides_is_read_and_kept() -> None:
    found = Provenance.from_dict({"date": "2025-01-01", "operations": None, "colour": "red", "more": 7})
    assert (found.date, found.operations, found.policies) == ("2025-01-01", None, {})
    assert found.update({"lost": "x"}).to_dict()["colour"] == "red"
    assert found.to_dict()["more"] == 7


@pytest.mark.parametrize("damaged", [{"features": 3}, {"policies": "all"}])
def test_what_is_no_provenance_is_refused(damaged: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises((TypeError, ValueError)):
        Provenance.from_dict(damaged)
    store, study = Store(tmp_path), fake_study()
    opened = store.open(study, {})
    (found,) = store.storage.get_all_studies()
    store.storage.set_study_user_attr(found._study_id, "about", damaged)
    with pytest.warns(UserWarning, match="is damaged"):
        assert Store(tmp_path).studies() == []
    assert opened.get_provenance() == Provenance()
    opened.annotate(study.about)
    (read,) = Store(tmp_path).studies()
    assert read.about == study.about


def test_the_newest_is_that_with_the_latest_date() -> None:
    study = fake_study()
    old, new = (replace(study, identity=d, about=Provenance(date=d)) for d in ("2026-01-01", "2026-01-02"))
    bare = replace(study, about=Provenance())
    assert find_newest([bare, new, old]) is new
    other = replace(bare, workload="another")
    assert find_newest_of_each([new, other, bare, old]) == [other, new]


def test_roles_are_said_once_and_in_order() -> None:
    study = fake_study()
    decision = study.decision
    assert decision and decision.runner_up
    common = Configuration(dict.fromkeys(study.control, "x"))
    assert list(study.roles(decision, common).items()) == [
        ("winner", decision.winner.configuration),
        ("runner-up", decision.runner_up.configuration),
        ("control", study.control),
        ("naive", study.control),
        ("texture", study.presets["texture"]),
        ("minimax", common),
    ]
    assert list(study.roles()) == ["control", "naive", "texture"]


def test_sync_boost_slows_and_is_neither_power_nor_heat() -> None:
    assert reasons(0x10) == "sync boost"
    assert POWER_OR_HEAT == 0x4 | 0x8 | 0x20 | 0x40 | 0x80


def test_the_columns_of_effects_are_those_of_the_frame() -> None:
    assert tuple(EFFECTS)[6:15] == COLUMNS

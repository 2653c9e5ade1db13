"""A trial written and read: whose figures it has is a value, in records from before, a note."""

from pathlib import Path
from typing import Any

import pytest
from report_pages import fake_study

from autotune.declaration.space import Configuration
from autotune.record.results_csv import read_results, write_results
from autotune.record.study import Study
from autotune.record.trial import Trial, parsed_remarks

FIRST = Configuration({"block": 64, "memory": "texture"})
OWN = Configuration({"block": 64, "memory": "readonly"})


def trial(**changes: Any) -> Trial:
    given: dict[str, Any] = {
        "family": "toy", "workload": "small", "device": "gpu", "configuration": OWN, "state": "crashed", "reason": "so",
    }  # fmt: skip
    return Trial(**{**given, **changes})


def test_what_was_not_measured_itself_names_what_was() -> None:
    alike = trial(same_as=FIRST, notes=("throttled",))
    assert alike.remarks == ("throttled", "same code as block=64,memory=texture")
    read = Trial.from_dict(alike.to_dict())
    assert read == alike and read.same_as == FIRST
    assert {name: type(value) for name, value in read.same_as.items()} == {"block": int, "memory": str}
    assert trial().remarks == () and Trial.from_dict(trial().to_dict()).same_as is None


@pytest.mark.parametrize("text", ["same code as", "same code as a=1", "same code as <b>", "same codes"])
def test_what_names_no_configuration_of_these_policies_stays_a_note(text: str) -> None:
    assert parsed_remarks([text], OWN) == ((text,), None)


def test_results_csv_has_it_among_the_notes_and_gives_it_back(tmp_path: Path) -> None:
    study = fake_study()
    first, second, *rest = study.trials
    alike = Trial(**{**vars(second), "same_as": first.configuration, "notes": ("throttled",)})
    path = write_results(
        [Study(**{**vars(study), "trials": (first, alike, *rest)})], tmp_path / "results.csv"
    )
    assert f"throttled | same code as {first.configuration.id}" in path.read_text()
    (read,) = read_results([path])
    (found,) = (t for t in read.trials if t.configuration == second.configuration)
    assert (found.notes, found.same_as) == (("throttled",), first.configuration)

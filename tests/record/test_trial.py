"""A trial written and read: whose figures it has is a value, in results.csv a note."""

from pathlib import Path
from typing import Any

from report_pages import fake_study

from autotune.declaration.space import Configuration
from autotune.record.results_csv import read_results, write_results
from autotune.record.study import Study
from autotune.record.trial import Trial

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


def test_results_csv_has_it_among_the_notes(tmp_path: Path) -> None:
    study = fake_study()
    first, second, *rest = study.trials
    alike = Trial(**{**vars(second), "same_as": first.configuration, "notes": ("throttled",)})
    path = write_results(
        [Study(**{**vars(study), "trials": (first, alike, *rest)})], tmp_path / "results.csv"
    )
    assert f"throttled | same code as {first.configuration.id}" in path.read_text()
    (read,) = read_results([path])
    (found,) = (t for t in read.trials if t.configuration == second.configuration)
    assert found.remarks == alike.remarks

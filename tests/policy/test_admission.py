"""Which accuracy classes a bound on the error admits, and which of them is taken."""

from dataclasses import replace
from pathlib import Path

import pytest
from fakes import FAMILY, FakeBackend, sweep, write_family

from autotune.declaration import family as families
from autotune.declaration.family import Family
from autotune.errors import UsageError
from autotune.policy.file import PolicyFile
from autotune.policy.merge import merge_winners
from autotune.policy.selection import Policies, admit, candidates

DEVICE = FakeBackend().device
ERRORS = {"global": 1e-7, "readonly": 4e-3, "texture": 2e-4}  # the fastest is off by most


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Family:
    text = FAMILY.replace("\ndata:", "\naccuracy: [memory]\ndata:")
    return families.load_family(write_family(tmp_path_factory.mktemp("classes") / "doubler", text))


@pytest.fixture(scope="module")
def file(family: Family, tmp_path_factory: pytest.TempPathFactory) -> PolicyFile:
    """With the fake times and made-up errors: global 3 ms, texture 2, readonly 1."""
    made = merge_winners(None, [sweep(family.folder, tmp_path_factory.mktemp("swept")).run()])
    entries = {
        key: replace(item, errors={"y": ERRORS[str(item.configuration["memory"])], "other": 1e-9})
        for key, item in made.entries.items()
    }
    return replace(made, entries=entries)


@pytest.mark.parametrize(
    ("bound", "classes", "taken"),
    [
        (1e-6, ["global"], "global"),
        (2e-4, ["global", "texture"], "texture"),
        (1.0, ["global", "readonly", "texture"], "readonly"),
    ],
)
def test_the_fastest_that_is_admitted_is_taken(
    family: Family, file: PolicyFile, bound: float, classes: list[str], taken: str
) -> None:
    policies = Policies(DEVICE, file)
    found = admit(family, policies, bound)
    assert found[0] == {"memory": "global"}  # the family's own first
    assert sorted(str(values["memory"]) for values in found) == classes
    for sizes in ({"n": 1000}, {"n": 77}):
        first = candidates(family, policies, sizes, {}, "cuda", accuracy=bound)
        standing = next(c for c in first if not c.refusal)
        assert standing.configuration is not None
        assert standing.configuration["memory"] == taken


def test_a_class_counts_by_the_worst_of_its_entries(family: Family, file: PolicyFile) -> None:
    name, item = next((n, e) for n, e in file.entries.items() if e.configuration["memory"] == "texture")
    worse = replace(item, name="other", workload="other", errors={"y": 0.5})
    both = replace(file, entries={**file.entries, "other": worse})
    assert {"memory": "texture"} not in admit(family, Policies(DEVICE, both), 1e-3)
    unknown = replace(file, entries={**file.entries, name: replace(item, errors={})})
    assert {"memory": "texture"} not in admit(family, Policies(DEVICE, unknown), 1.0)


def test_what_admits_nothing_says_what_is_allowed(family: Family, file: PolicyFile, tmp_path: Path) -> None:
    policies = Policies(DEVICE, file)
    told = (
        r"max_error=1e-09 admits nothing.*memory=global 1e-07, memory=readonly 0.004, memory=texture 0.0002"
    )
    with pytest.raises(UsageError, match=told):
        admit(family, policies, 1e-9)
    with pytest.raises(UsageError, match="a relative error above 0"):
        admit(family, policies, 0.0)
    plain = families.load_family(write_family(tmp_path / "doubler"))
    with pytest.raises(UsageError, match="names no accuracy policies"):
        admit(plain, None, 1e-3)
    assert admit(family, None, 1e-3) == [{"memory": "global"}]  # nothing is known of any

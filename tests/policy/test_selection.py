"""Which configuration is taken for an input, and that every other one says why not."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes import FAMILY, FakeBackend, sweep, write_family

from autotune.declaration import Configuration
from autotune.declaration import family as families
from autotune.declaration.family import Family
from autotune.errors import AutotuneError, FamilyError, UnknownName
from autotune.hardware import Device, Limits
from autotune.policy.acceptance import resolve_accuracy
from autotune.policy.file import PolicyFile
from autotune.policy.file import read_policy_file as read
from autotune.policy.merge import merge_winners, update
from autotune.policy.selection import Candidate, Policies, candidates, choose, find, rank_challengers
from autotune.record.store import Store
from autotune.record.study import Study

DEVICE = FakeBackend().device


@pytest.fixture
def study(folder: Path, tmp_path: Path) -> Study:
    return sweep(folder, tmp_path).run()


@pytest.fixture
def written(study: Study, tmp_path: Path) -> Path:
    return update(tmp_path / "policies", [study])


def known(path: Path, device: Device = DEVICE) -> Policies:
    return Policies(device, read(path))


def edited(path: Path, **changes: Any) -> Path:
    content = yaml.safe_load(path.read_text())
    content.update(changes)
    path.write_text(yaml.safe_dump(content))
    return path


def chain(family: Family, policies: Policies | None, n: int = 1000, **named: Any) -> list[tuple[str, str]]:
    return [(c.match, c.refusal) for c in candidates(family, policies, {"n": n}, {}, **named)]


def with_entries(file: PolicyFile, sizes: Mapping[str, int], **changes: Any) -> PolicyFile:
    """The file with one entry for each of ``sizes``, made like its first."""
    first = next(iter(file.entries.values()))
    entries = {
        name: replace(first, name=name, workload=name, features={"n": n}, **changes)
        for name, n in sizes.items()
    }
    return replace(file, entries=entries)


# -- the chain ----------------------------------------------------------------------------------------------


def test_exact_then_nearest_then_default_then_control(folder: Path, written: Path) -> None:
    family, policies = families.load_family(folder), known(written)
    assert [match for match, _ in chain(family, policies)] == ["exact", "default", "control"]
    assert [match for match, _ in chain(family, policies, n=77)] == ["nearest", "default", "control"]
    assert [match for match, _ in chain(family, None)] == ["control"]
    assert policies.own is not None
    found = candidates(family, policies, {"n": 1000}, {})
    assert [c.entry for c in found] == [policies.own.entries["small"], None, None]


def test_nearest_is_by_ratios_not_by_differences(folder: Path, written: Path) -> None:
    policies = Policies(DEVICE, with_entries(read(written), {"small": 10, "large": 1000}))
    first = candidates(families.load_family(folder), policies, {"n": 200}, {})[0]
    assert first.entry is not None and first.entry.features == {"n": 1000}
    assert first.origin.endswith(": large")  # 5 times, and not 20 times; 190 is less than 800 all the same


def test_only_declared_features_count(written: Path, tmp_path: Path) -> None:
    text = FAMILY.replace(
        "\ndata:", "\nscalars: {shortest: {type: int32, default: 1}}\nfeatures: {short: shortest}\ndata:"
    )
    family = families.load_family(write_family(tmp_path / "with", text))
    file = read(written)
    entry = replace(
        file.entries["small"], space_digest=family.space_digest, source_digest=family.source_digest
    )
    file = replace(file, entries={
        "a": replace(entry, name="a", features={"n": 1000, "shortest": 5}),
        "b": replace(entry, name="b", features={"n": 10, "shortest": 40}),
    })  # fmt: skip
    found = candidates(family, Policies(DEVICE, file), {"n": 1000, "shortest": 30}, {})
    assert [(c.match, c.origin.rpartition(": ")[2]) for c in found[:2]] == [
        ("nearest", "b"),
        ("nearest", "a"),
    ]
    exact = candidates(family, Policies(DEVICE, file), {"n": 77, "shortest": 5}, {})
    assert (exact[0].match, exact[0].refusal) == ("exact", "")


def test_declaring_features_makes_nothing_stale_and_a_wrong_name_is_an_error(
    folder: Path, tmp_path: Path
) -> None:
    plain = families.load_family(folder)
    assert {name: e.text for name, e in plain.features.items()} == {"n": "n"}
    with_features = families.load_family(
        write_family(
            tmp_path / "a", FAMILY.replace("\ndata:", "\nfeatures: {half: n / 2}\naccuracy: [memory]\ndata:")
        )
    )
    assert with_features.space_digest == plain.space_digest
    with pytest.raises(FamilyError, match="unknown name 'm'"):
        families.load_family(
            write_family(tmp_path / "b", FAMILY.replace("\ndata:", "\nfeatures: {half: m / 2}\ndata:"))
        )
    with pytest.raises(UnknownName, match=r"unknown policy 'memry'.*did you mean 'memory'"):
        families.load_family(
            write_family(tmp_path / "c", FAMILY.replace("\ndata:", "\naccuracy: [memry]\ndata:"))
        )


# -- what may not be taken ----------------------------------------------------------------------------------


def test_a_stale_entry_is_passed_over_with_its_reason(folder: Path, written: Path) -> None:
    source = folder / "doubler.cu"
    source.write_text(source.read_text() + "// edited\n")
    found = chain(families.load_family(folder), known(written))
    assert "kernel source changed" in found[0][1]
    assert "every entry" in found[1][1]
    assert found[2] == ("control", "")


@pytest.mark.parametrize("what", ["layouts", "space"])
def test_layouts_and_space_make_stale_too(folder: Path, written: Path, what: str) -> None:
    file = read(written)
    file = replace(file, entries={"small": replace(file.entries["small"], **{f"{what}_digest": "other"})})
    assert f"the {what} changed" in chain(families.load_family(folder), Policies(DEVICE, file))[0][1]


def test_a_value_that_is_no_more_is_passed_over(folder: Path, written: Path) -> None:
    edited(written, default={"memory": "surface"})
    found = chain(families.load_family(folder), known(written))
    assert "unknown value of policy memory 'surface'" in found[1][1]


def test_what_does_not_fit_gives_way_to_the_next(folder: Path, written: Path) -> None:
    listed = candidates(families.load_family(folder), known(written), {"n": 1000}, {})
    chosen, passed = choose(listed, lambda c: "too wide" if c["memory"] == "readonly" else "")
    assert chosen.match == "control"
    assert [p.refusal for p in passed] == ["too wide", "too wide"]
    with pytest.raises(AutotuneError, match="no configuration fits"):
        choose(listed, lambda c: "too wide")


@pytest.mark.parametrize(
    ("needs", "limits", "said"),
    [
        ({"block_size": 512}, {"threads_per_block": 256}, "blocks of 512 threads"),
        ({"shared_bytes": 90000}, {"shared_bytes_per_block": 65536}, "90000 bytes of shared memory"),
        ({"block_size": 1024, "registers": 200}, {}, "1024 threads of 200 registers do not fit"),
        ({"block_size": 1024, "registers": 64}, {}, ""),
    ],
)
def test_needs_that_pass_the_device_are_refused(
    folder: Path, written: Path, needs: dict[str, int], limits: dict[str, int], said: str
) -> None:
    file = with_entries(read(written), {"small": 1000}, needs={"doubler": needs})
    device = replace(DEVICE, limits=Limits(**limits))
    found = chain(families.load_family(folder), Policies(device, file))
    assert said in found[0][1]
    assert bool(found[0][1]) == bool(found[1][1]) == bool(said)  # the default is the same configuration


def test_other_options_are_refused(folder: Path, written: Path) -> None:
    file = with_entries(read(written), {"small": 1000}, options={"missing": "category"})
    found = candidates(
        families.load_family(folder), Policies(DEVICE, file), {"n": 1000}, {"missing": "masked"}
    )
    assert found[0].refusal == "measured with missing=category, not masked"


def test_accuracy_classes_are_never_crossed_unasked(tmp_path: Path) -> None:
    folder = write_family(tmp_path / "doubler", FAMILY.replace("\ndata:", "\naccuracy: [memory]\ndata:"))
    family = families.load_family(folder)
    file = merge_winners(None, [sweep(folder, tmp_path).run()])
    policies = Policies(DEVICE, file)

    def taken(asked: dict[str, str]) -> tuple[Candidate, list[Candidate]]:
        return choose(candidates(family, policies, {"n": 1000}, {}, accuracy=asked), lambda c: "")

    own, passed = taken({})
    assert own.configuration is not None
    assert own.configuration["memory"] == "global"
    other, refused = taken({"memory": "texture"})
    assert other.configuration is not None
    assert other.configuration["memory"] == "texture"
    assert other.match == "exact"
    assert {c.refusal for c in (*passed, *refused)} <= {
        "of accuracy class memory=global, and memory=texture is requested",
        "of accuracy class memory=readonly, and memory=texture is requested",
    }
    assert refused
    only = Policies(DEVICE, replace(file, entries={k: e for k, e in file.entries.items() if "readonly" in k}))
    found = candidates(family, only, {"n": 1000}, {}, accuracy={"memory": "texture"})
    last, _ = choose(found, lambda c: "")
    assert (last.match, last.configuration["memory"] if last.configuration else "") == ("control", "texture")
    with pytest.raises(UnknownName, match="accuracy policy 'precision'"):
        resolve_accuracy(family, {"precision": "half"})


# -- files --------------------------------------------------------------------------------------------------


def test_files_are_looked_for_in_order_and_a_foreign_one_is_a_miss(
    folder: Path, written: Path, tmp_path: Path
) -> None:
    family = families.load_family(folder)
    with pytest.warns(UserWarning, match=r"policies folder .*nowhere does not exist: .* is used instead"):
        found, passed = find(family, DEVICE, [tmp_path / "nowhere", tmp_path / "policies"])
    assert found is not None and found.own is not None
    assert found.own.path == written and not passed
    edited(written, family="other")
    found, passed = find(family, DEVICE, [tmp_path / "policies", tmp_path / "policies"])
    assert found is None
    assert len(passed) == 1
    assert "it is for other" in passed[0].refusal


def test_a_broken_file_gives_way_to_the_next_folder(folder: Path, study: Study, tmp_path: Path) -> None:
    broken, good = update(tmp_path / "a", [study]), update(tmp_path / "b", [study])
    for text in ("", "schema: [", "schema: 99", "x" * 5_000_000):
        broken.write_text(text)
        found, passed = find(families.load_family(folder), DEVICE, [tmp_path / "a", tmp_path / "b"])
        assert found is not None and found.own is not None
        assert found.own.path == good
        assert str(broken) in passed[0].refusal
    broken.unlink()
    broken.symlink_to(broken)
    assert "cannot read" in find(families.load_family(folder), DEVICE, [tmp_path / "a"])[1][0].refusal


def test_another_device_counts_only_with_the_same_compute_capability(
    folder: Path, written: Path, tmp_path: Path
) -> None:
    family = families.load_family(folder)
    alike = Device(kind="cuda", name="Fake Sister", arch="sm_90")
    found, passed = find(family, alike, [tmp_path / "policies"])
    assert found is not None and found.own is None and not passed
    listed = candidates(family, found, {"n": 1000}, {})
    assert [(c.match, c.refusal) for c in listed] == [("capability", ""), ("default", ""), ("control", "")]
    for other in (
        Device(kind="cuda", name="Fake Stranger", arch="sm_80"),
        Device(kind="cpu", name="Fake CPU", arch="x86_64"),
    ):
        assert find(family, other, [tmp_path / "policies"]) == (None, [])


def test_the_own_file_goes_before_one_of_the_same_capability(
    folder: Path, study: Study, written: Path, tmp_path: Path
) -> None:
    about = study.about.update({"device_name": "Fake Sister"})
    update(tmp_path / "policies", [replace(study, device="fake-sister", about=about)])
    found, _ = find(families.load_family(folder), DEVICE, [tmp_path / "policies"])
    assert found is not None
    matches = [c.match for c in candidates(families.load_family(folder), found, {"n": 1000}, {})]
    assert matches == ["exact", "capability", "default", "default", "control"]


# -- expected times -----------------------------------------------------------------------------------------


def test_an_exact_entry_is_expected_to_take_what_it_took(folder: Path, written: Path) -> None:
    family, policies = families.load_family(folder), known(written)
    assert candidates(family, policies, {"n": 1000}, {})[0].expected_ms == 1.0
    assert (
        candidates(family, policies, {"n": 3000}, {})[0].expected_ms == 0.0
    )  # the nearest, of another input


def test_the_store_is_not_needed_to_select(folder: Path, tmp_path: Path) -> None:
    few = families.load_family(folder).space.configurations(narrowed={"memory": ["texture"]})
    part = sweep(folder, tmp_path, configurations=few, store=Store(tmp_path / "part")).run()
    file = merge_winners(None, [part])
    assert file.entries["small"].margin_over_control == 2.25  # control was tried too
    assert chain(families.load_family(folder), Policies(DEVICE, file))[0] == ("exact", "")


def test_challengers_are_ranked_by_what_they_may_gain() -> None:
    def made(
        value: str, ms: float = 0.0, spread: float = 0.0, match: str = "predicted", **more: str
    ) -> Candidate:
        return Candidate(match, Configuration({"p": value}), "file", ms, spread=spread, **more)

    taken, alike = made("a", 1.0, 0.01), made("b", 1.02, 0.01)
    unsure, slow = made("c", 1.1, 0.2), made("d", 2.0, 0.01)
    refused, other = made("e", 1.0, 0.2, refusal="stale"), made("f", match="nearest")
    again = made("b", 1.02, 0.01)
    listed = [taken, alike, unsure, slow, refused, again, other]
    assert rank_challengers(taken, listed) == [unsure, alike, slow]
    near = [made(value, match="nearest") for value in "abcb"]
    assert rank_challengers(near[0], near) == [near[1], near[2]]

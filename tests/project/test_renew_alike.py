"""Policy entries are renewed without a GPU where the machine code of all that the file names stayed the same."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import renew_alike

from autotune.declaration import load_family
from autotune.files import find_bundled
from autotune.policy import read_policy_file
from autotune.policy.file import PolicyFile, write

DIGESTS = renew_alike.DIGESTS


@pytest.fixture
def stale(tmp_path: Path) -> Path:
    """allpairs' policy file with one entry, measured with other sources, and nothing to predict from."""
    path = tmp_path / "nvidia-h200.yaml"
    shutil.copy(find_bundled("policies") / "allpairs" / path.name, path)
    file = read_policy_file(path)
    name = "primer"
    swept = replace(file.entries[name], renewed="", renewed_from={})
    entry = replace(swept, source_digest="0" * 64, tie_set=[], runner_up="", break_even_with="")
    write(
        path,
        replace(
            file, entries={name: entry}, prediction=None, default=entry.configuration, default_over=[name]
        ),
    )
    return path


LOAD = 0xB82  # of a constant, at an offset in bits 38 to 53
POLICIES = tuple(policy.name for policy in load_family("allpairs").space.policies)


def code(
    *offsets: int, arguments: Mapping[str, tuple[int, int]] | None = None, **other: Any
) -> dict[str, Any]:
    """A kernel of loads of a launch's constants, of which an argument each may have (first, size)."""
    loads = b"".join((LOAD | offset << 38).to_bytes(16, "little") for offset in offsets or (0x210,))
    kernels = {"k": {"code": loads.hex(), "rest": ""}, **other.get("kernels", {})}
    places = arguments or {"a": (0x210, 8)}
    return {"layouts": {}, "launches": {"k": [1]}, "kernels": kernels, "arguments": {"k": places}} | {
        name: value for name, value in other.items() if name != "kernels"
    }


def described(
    file: PolicyFile, codes: Mapping[str, Any], policies: Sequence[str] = POLICIES, **digests: str
) -> dict[str, Any]:
    ((entry, item),) = file.entries.items()
    return {
        "digests": {name: getattr(item, name) for name in DIGESTS} | digests,
        "policies": policies,
        "needed": ["a"],
        "entries": {entry: ["a", *codes]},
        "code": codes,
    }


def test_an_entry_of_the_same_machine_code_is_renewed(stale: Path) -> None:
    before, family = read_policy_file(stale), load_family("allpairs")
    now = {"source_digest": family.source_digest, "space_digest": family.space_digest}
    codes = {"a": code(), "b": code(0x214)}
    assert renew_alike.renew(stale, described(before, codes), described(before, codes, **now))
    (old,), (new,) = before.entries.values(), read_policy_file(stale).entries.values()
    assert new.source_digest == family.source_digest
    assert new.renewed_from == {"date": old.date} | {name: getattr(old, name) for name in DIGESTS}
    assert replace(new, renewed="", renewed_from={}, source_digest=old.source_digest) == old
    assert not renew_alike.stale_entries(stale)


@pytest.mark.parametrize(
    "now", [{}, {"a": code(0x214)}, {"a": code(launches={"k": [2]})}, {"a": code(layouts={"x": "other"})}]
)
def test_an_entry_of_other_machine_code_stays(stale: Path, now: Mapping[str, Any]) -> None:
    before = read_policy_file(stale)
    then = described(before, {"a": code(layouts={"x": ""} if "a" in now and now["a"]["layouts"] else {})})
    assert not renew_alike.renew(stale, then, described(before, now))
    assert read_policy_file(stale) == before


def test_an_entry_is_renewed_beside_one_of_other_machine_code(stale: Path) -> None:
    file, family = read_policy_file(stale), load_family("allpairs")
    (item,) = file.entries.values()
    before = replace(file, entries={**file.entries, "other": replace(item, name="other", workload="other")})
    told = {"needed": ["a", "b"], "entries": {"primer": ["a"], "other": ["a", "b"]}}
    then = described(file, {"a": code(), "b": code()}) | told
    now = described(file, {"a": code(), "b": code(0x214)}, source_digest=family.source_digest) | told
    write(stale, before)
    assert not renew_alike.renew(stale, then, now)
    after = read_policy_file(stale)
    assert after.entries["other"] == before.entries["other"]
    assert after.entries["primer"].source_digest == family.source_digest


def test_an_entry_of_other_sources_than_the_base_stays(stale: Path) -> None:
    before = read_policy_file(stale)
    then = described(before, {"a": code()}, source_digest="1" * 64)
    assert not renew_alike.renew(stale, then, described(before, {"a": code()}))
    assert read_policy_file(stale) == before


def test_what_the_family_no_longer_has_leaves_the_file(stale: Path) -> None:
    file = read_policy_file(stale)
    (name,) = file.entries
    tied = ",".join(f"{k}={v}" for k, v in sorted(file.entries[name].configuration.items()))
    lost = tied.replace("tile=", "tile=9")
    needs = {"k": {"registers": 1}, "old": {"registers": 1}}
    item = replace(
        file.entries[name], tie_set=[tied, lost], runner_up=lost, runner_up_ms=1.0, break_even=5,
        break_even_with=lost, needs=needs,
    )  # fmt: skip
    write(stale, replace(file, entries={name: item}))
    kernels = {"old": {"code": "", "rest": ""}}
    then = described(file, {"a": code(kernels=kernels), f"{lost} {{}}": code()})
    now = described(file, {"a": code(), f"{lost} {{}}": code(0x214)}, [p for p in POLICIES if p != "tile"])
    assert not renew_alike.renew(stale, then, now)  # a kernel is gone, and nobody says that none launched it
    assert renew_alike.renew(stale, then, now, ["old"])
    made = read_policy_file(stale)
    (entry,) = made.entries.values()
    assert "tile" not in {*entry.configuration, *made.default}
    assert entry.tie_set == [",".join(f"{k}={v}" for k, v in sorted(entry.configuration.items()))]
    assert (entry.runner_up, entry.runner_up_ms, entry.break_even, entry.break_even_with) == ("", 0, 0, "")
    assert entry.needs == {"k": {"registers": 1}}


@pytest.mark.parametrize(("offset", "is_alike"), [(0x210, True), (0x214, False), (0x218, False)])
def test_arguments_may_lie_elsewhere_where_others_are_gone(offset: int, is_alike: bool) -> None:
    then = code(0x218, arguments={"gone": (0x210, 8), "left": (0x218, 8)})
    now = code(offset, arguments={"left": (0x210, 8)})
    assert (renew_alike.difference(then, now, ()) == "") == is_alike


@pytest.mark.parametrize(("width", "is_alike"), [(4, True), (5, False)])
def test_a_wide_load_reads_what_lies_behind_as_well(width: int, is_alike: bool) -> None:
    """Of a member alone, or of 8 bytes: the member behind it is another one now."""
    wide = (LOAD | 0xFF << 24 | 0x210 << 38 | width << 73).to_bytes(16, "little").hex()
    kernels = {"k": {"code": wide, "rest": ""}}
    then = code(
        kernels=kernels, arguments={"a.extents[0]": (0x210, 4), "a.strides[0]": (0x214, 4), "b": (0x218, 4)}
    )
    now = code(kernels=kernels, arguments={"a.extents[0]": (0x210, 4), "b": (0x214, 4)})
    assert (renew_alike.difference(then, now, ()) == "") == is_alike


@pytest.mark.nvrtc
def test_each_configuration_is_described_by_its_machine_code(stale: Path) -> None:
    told = renew_alike.describe(stale)
    family = load_family("allpairs")
    assert told["digests"]["source_digest"] == family.source_digest
    codes = list(told["code"].values())
    assert len(codes) == 2  # the winner and control
    assert codes[0] != codes[1]

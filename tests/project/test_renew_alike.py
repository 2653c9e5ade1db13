"""Policy entries are renewed without a GPU where the machine code of all that the file names stayed the same."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import renew_alike

from autotune.declaration import load_family
from autotune.files import bundled
from autotune.policy import read_policy_file
from autotune.policy.file import PolicyFile, write

DIGESTS = renew_alike.DIGESTS


@pytest.fixture
def stale(tmp_path: Path) -> Path:
    """allpairs' policy file with one entry, measured with other sources, and nothing to predict from."""
    path = tmp_path / "nvidia-h200.yaml"
    shutil.copy(bundled("policies") / "allpairs" / path.name, path)
    file = read_policy_file(path)
    name = "primer"
    entry = replace(file.entries[name], source_digest="0" * 64, tie_set=[], runner_up="", break_even_with="")
    write(
        path,
        replace(
            file, entries={name: entry}, prediction=None, default=entry.configuration, default_over=[name]
        ),
    )
    return path


def described(file: PolicyFile, code: Mapping[str, Any], **digests: str) -> dict[str, Any]:
    (item,) = file.entries.values()
    return {"digests": {name: getattr(item, name) for name in DIGESTS} | digests, "code": code}


def test_an_entry_of_the_same_machine_code_is_renewed(stale: Path) -> None:
    before, family = read_policy_file(stale), load_family("allpairs")
    now = {"source_digest": family.source_digest, "space_digest": family.space_digest}
    assert renew_alike.renew(
        stale, described(before, {"a": [1]}), described(before, {"a": [1], "b": [2]}, **now)
    )
    (old,), (new,) = before.entries.values(), read_policy_file(stale).entries.values()
    assert new.source_digest == family.source_digest
    assert new.renewed_from == {"date": old.date} | {name: getattr(old, name) for name in DIGESTS}
    assert replace(new, renewed="", renewed_from={}, source_digest=old.source_digest) == old
    assert not renew_alike.stale_entries(stale)


@pytest.mark.parametrize("code", [{}, {"a": [2]}])
def test_an_entry_of_other_machine_code_stays(stale: Path, code: Mapping[str, Any]) -> None:
    before = read_policy_file(stale)
    assert not renew_alike.renew(stale, described(before, {"a": [1]}), described(before, code))
    assert read_policy_file(stale) == before


def test_an_entry_of_other_sources_than_the_base_stays(stale: Path) -> None:
    before = read_policy_file(stale)
    then = described(before, {"a": [1]}, source_digest="1" * 64)
    assert not renew_alike.renew(stale, then, described(before, {"a": [1]}))
    assert read_policy_file(stale) == before


@pytest.mark.nvrtc
def test_each_configuration_is_described_by_its_machine_code(stale: Path) -> None:
    told = renew_alike.describe(stale)
    family = load_family("allpairs")
    assert told["digests"]["source_digest"] == family.source_digest
    codes = list(told["code"].values())
    assert len(codes) == 2  # the winner and control
    assert codes[0] != codes[1]

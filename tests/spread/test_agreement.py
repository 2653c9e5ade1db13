"""Ranks that choose alike: one decides for all, and what has to be equal is compared."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import sweep, write_family
from ranks import run_ranks

from autotune.declaration import Family, load_family
from autotune.errors import UnknownName, UsageError
from autotune.policy.file import PolicyFile, read_policy_file, write
from autotune.policy.merge import update
from autotune.spread.agreement import Agreement, compare_digests, digest_choices, digest_code, digest_file

Gather = Callable[[Any], Sequence[Any]]


@pytest.fixture
def family(folder: Path) -> Family:
    return load_family(folder)


@pytest.fixture
def file(folder: Path, tmp_path: Path) -> PolicyFile:
    return read_policy_file(update(tmp_path / "policies", [sweep(folder, tmp_path).run()]))


def test_the_first_rank_decides_and_its_error_is_everyones() -> None:
    asked: list[int] = []

    def body(rank: int, gather: Gather) -> Any:
        assert Agreement(gather).rank == rank

        def decide() -> str:
            asked.append(rank)
            return "taken"

        return Agreement(gather).decide(decide)

    assert run_ranks(4, body) == ["taken"] * 4
    assert asked == [0]

    def failing(_rank: int, gather: Gather) -> Any:
        def decide() -> None:
            raise UnknownName("policy", "axis", ["axes"])

        return Agreement(gather).decide(decide)

    found = run_ranks(3, failing)
    assert {type(one) for one in found} == {UsageError}
    assert {str(one) for one in found} == {str(UnknownName("policy", "axis", ["axes"]))}


def test_what_differs_is_named_with_the_ranks_that_have_it() -> None:
    of_ranks = [{"a": "1", "b": "2"}, {"a": "1", "b": "3"}, {"a": "1", "b": "2"}, {"a": "1"}]
    assert compare_digests(of_ranks) == ["b: 2 on rank 0, 2; 3 on rank 1; nothing on rank 3"]
    assert compare_digests(of_ranks[::2]) == []

    def body(rank: int, gather: Gather) -> None:
        Agreement(gather).require_equal({"kernel source": "new" if rank == 2 else "old"}, "doubler")

    for problem in run_ranks(3, body):
        assert isinstance(problem, UsageError)
        assert "doubler is not the same on all ranks: kernel source: old on rank 0, 1; new on rank 2" in str(
            problem
        )


def test_digests_tell_what_changes_a_choice_and_nothing_else(
    family: Family, file: PolicyFile, folder: Path, tmp_path: Path
) -> None:
    assert file.path is not None
    moved = tmp_path / "elsewhere" / "mine.yaml"
    moved.parent.mkdir()
    write(moved, file)
    moved.write_text("# copied by hand\n" + moved.read_text())
    copied = read_policy_file(moved)
    assert (digest_file(copied), digest_choices(family, copied)) == (
        digest_file(file), digest_choices(family, file),
    )  # fmt: skip
    (item,) = file.entries.values()
    slower = replace(file, entries={item.name: replace(item, median_ms=2 * item.median_ms)})
    assert digest_file(slower) != digest_file(file)
    assert digest_choices(family, slower) == digest_choices(family, file)
    other = replace(item, name="other", workload="other", features={"n": 2000}, configuration=dict(
        item.configuration, memory="texture"))  # fmt: skip
    more = replace(file, entries={item.name: item, "other": other})
    assert digest_choices(family, more) != digest_choices(family, file)
    edited = write_family(tmp_path / "edited" / "doubler")
    (edited / "doubler.cu").write_text((folder / "doubler.cu").read_text() + "// edited\n")
    before, now = digest_code(family), digest_code(load_family(edited))
    assert [name for name in before if before[name] != now[name]] == ["kernel source"]

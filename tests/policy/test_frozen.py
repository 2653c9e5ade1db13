"""Frozen policies, ties that are broken alike everywhere, and configurations that repeat their bits."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes import FakeBackend, sweep
from hypothesis import given
from hypothesis import strategies as st

from autotune.declaration import Configuration
from autotune.declaration import family as families
from autotune.errors import NothingMeasured, PolicyFileError, UsageError
from autotune.policy.file import read_policy_file, write
from autotune.policy.frozen import resolve_frozen
from autotune.policy.merge import update
from autotune.policy.prediction import Taught, rank_by_distance
from autotune.policy.refined import refined_path
from autotune.policy.selection import candidates, choose, find

DEVICE = FakeBackend().device
BEST = "block_size=64,memory=readonly"


@pytest.fixture
def written(folder: Path, tmp_path: Path) -> Path:
    return update(tmp_path / "policies", [sweep(folder, tmp_path).run()])


def chosen(folder: Path, tmp_path: Path, n: int, frozen: Any = None, **named: Any) -> tuple[str, str]:
    family = families.load_family(folder)
    policies, _ = find(family, DEVICE, [tmp_path / "policies"], frozen=frozen)
    taken, _ = choose(candidates(family, policies, {"n": n}, {}, **named), lambda _: "")
    assert taken.configuration is not None
    return taken.match, taken.configuration.id


def test_frozen_takes_what_was_measured_and_exact_takes_no_guess(
    folder: Path, tmp_path: Path, written: Path
) -> None:
    assert chosen(folder, tmp_path, 1000, "exact") == ("exact", BEST)
    assert chosen(folder, tmp_path, 77, True) == ("nearest", BEST)
    with pytest.raises(NothingMeasured, match="frozen to measured inputs, and no entry is of this one"):
        chosen(folder, tmp_path, 77, "exact")
    write(written, replace(read_policy_file(written), entries={}))  # by hand: a default alone
    assert chosen(folder, tmp_path, 77, True)[0] == "default"


def test_frozen_refuses_what_no_policy_file_names(folder: Path, tmp_path: Path, written: Path) -> None:
    family = families.load_family(folder)
    content = yaml.safe_load(written.read_text())
    for item in content["entries"].values():
        item["options"] = {"exactness": "other"}
    policies, _ = find(family, DEVICE, [tmp_path / "policies"], frozen=True)
    listed = candidates(family, policies, {"n": 77}, {})
    assert listed[-1].match == "control"
    assert "frozen, and nobody measured it" in listed[-1].refusal
    with pytest.raises(NothingMeasured, match="nothing may run"):
        choose([replace(c, refusal=c.refusal or "too large") for c in listed], lambda _: "")


def test_the_caller_then_the_environment_then_the_file_says_whether_it_is_frozen(
    folder: Path, tmp_path: Path, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written.write_text(written.read_text().replace("entries:", "frozen: true\nentries:"))
    file = read_policy_file(written)
    assert file.frozen
    assert [resolve_frozen(asked, file) for asked in (None, False, "exact")] == [True, False, "exact"]
    for word, frozen in (("0", False), ("1", True), ("exact", "exact")):
        monkeypatch.setenv("AUTOTUNE_FROZEN", word)
        assert resolve_frozen(None, file) == frozen
        assert resolve_frozen(None) == frozen
        assert resolve_frozen(True, file) is True
    monkeypatch.delenv("AUTOTUNE_FROZEN")
    assert not resolve_frozen(None)
    with pytest.raises(UsageError, match="frozen='never': True, False or 'exact'"):
        resolve_frozen("never")  # type: ignore[arg-type]
    update(tmp_path / "policies", [sweep(folder, tmp_path).run()])
    assert read_policy_file(written).frozen, "a sweep leaves it"


@pytest.mark.parametrize("value", ["exact", "1", "null", "[]"])
def test_in_a_file_it_is_true_or_false(written: Path, value: str) -> None:
    written.write_text(written.read_text().replace("entries:", f"frozen: {value}\nentries:"))
    with pytest.raises(PolicyFileError, match="frozen"):
        read_policy_file(written)


def test_what_this_machine_refined_is_left_out_where_it_is_frozen(
    folder: Path, tmp_path: Path, written: Path
) -> None:
    file = read_policy_file(written)
    (item,) = file.entries.values()
    other = dict(item.configuration, memory="texture")
    refined = replace(
        item, name="refined 77", features={"n": 77}, configuration=other,
        refined={"calls": 3, "times_ms": {}, "from": "x"},
    )  # fmt: skip
    path = refined_path(tmp_path / "policies", "doubler", DEVICE)
    path.parent.mkdir(parents=True)
    write(path, replace(file, entries={"refined 77": refined}))
    assert chosen(folder, tmp_path, 77)[1] == "block_size=64,memory=texture"
    assert chosen(folder, tmp_path, 77, True)[1] == BEST


# -- ties -----------------------------------------------------------------------------------------------------


@given(st.permutations([0.1, 0.7, 1.3, 2.9, 3.1, 0.37]), st.permutations("uvwxyz"))
def test_entries_that_are_equally_near_come_by_name(apart: list[float], order: list[str]) -> None:
    """As far as arithmetic goes they are equal, but not to the last bit: sums of floats depend on their order."""
    asked = dict.fromkeys("uvwxyz", 100.0)
    one = {name: 100 * math.exp(d) for name, d in zip("uvwxyz", apart, strict=True)}
    two = {name: 100 * math.exp(-d) for name, d in zip(order, apart, strict=True)}
    assert rank_by_distance({"b": one, "a": two}, asked) == ["a", "b"]
    assert rank_by_distance({"b": two, "a": one}, asked) == ["a", "b"]


@given(st.lists(st.sampled_from((-1, 0, 1)), min_size=24, max_size=24))
def test_the_last_bits_of_times_decide_nothing(noise: list[int]) -> None:
    """Three configurations that are alike, and one that is exactly as far behind as a tie may be: on every processor,
    whose logarithms differ in the last bits, the same one is taken."""
    configurations = [Configuration({"p": value}) for value in "dcba"]
    far = dict(zip(configurations, (1.01, 1.0, 1.0, 1.0), strict=True))
    bits = itertools.cycle(noise)
    rows = {
        f"n{n}": {c: n * far[c] * (1 + 1e-14 * next(bits)) for c in configurations}
        for n in (1, 2, 4, 8, 16, 32)
    }
    taught = Taught({f"n{n}": {"n": float(n)} for n in (1, 2, 4, 8, 16, 32)}, rows)
    found = [one.configuration["p"] for one in taught.predict({"n": 5.0})]
    assert found == ["a", "b", "c", "d"]


# -- the same bits ----------------------------------------------------------------------------------------------


class Noisy(FakeBackend):
    """The last bit of each result is another after each launch of what ``varies``."""

    varies: str = ""

    def launch(self, module: Any, kernel: str, geometry: Any, arguments: Any) -> None:
        super().launch(module, kernel, geometry, arguments)
        configuration: Mapping[str, Any] = self.configurations[module.compiled.key]
        if Configuration(configuration).id == self.varies:
            self._placed[arguments[1]].buffer[::4] ^= len(self.launched) % 2


def test_an_entry_says_whether_repeated_runs_gave_the_same_bits(folder: Path, tmp_path: Path) -> None:
    path = folder / "family.yaml"
    path.write_text(path.read_text() + "tolerance: {relative: 0.001}\n")
    backend = Noisy()
    backend.varies = BEST
    for made, repeats in ((backend, False), (FakeBackend(), True)):
        study = sweep(folder, tmp_path / str(repeats), made).run()
        file = read_policy_file(update(tmp_path / str(repeats) / "policies", [study]))
        (item,) = file.entries.values()
        assert (Configuration(item.configuration).id, item.reproducible) == (BEST, repeats)
        text = (tmp_path / str(repeats) / "policies" / "doubler" / f"{DEVICE.slug}.yaml").read_text()
        assert ("reproducible: true" in text) is repeats


def test_only_what_repeats_its_bits_is_taken_where_that_is_wanted(
    folder: Path, tmp_path: Path, written: Path
) -> None:
    assert chosen(folder, tmp_path, 1000, reproducible=True) == ("exact", BEST)
    assert chosen(folder, tmp_path, 77, reproducible=True) == ("nearest", BEST)
    file = read_policy_file(written)
    (item,) = file.entries.values()
    other = replace(
        item, name="other", workload="other", features={"n": 70}, reproducible=False,
        configuration={"memory": "global", "block_size": 32},
    )  # fmt: skip
    write(written, replace(file, entries={**file.entries, "other": other}))
    assert chosen(folder, tmp_path, 70)[1] == "block_size=32,memory=global"
    assert chosen(folder, tmp_path, 70, reproducible=True) == ("nearest", BEST)
    write(written, replace(file, entries={"other": other}))
    with pytest.raises(NothingMeasured, match="no sweep found that it gives the same bits each time"):
        chosen(folder, tmp_path, 70, reproducible=True)

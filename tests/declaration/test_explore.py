"""What is possible, what is explored of that, and policies that are inert."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from demo_family import at, load, refusal

from autotune.declaration import Space
from autotune.errors import UsageError
from autotune.search import Unlisted, list_configurations, narrow
from autotune.search.completions import Completions

POLICIES = {
    "memory": {"layout": "memory", "data": ["x"], "values": ["global", "texture"], "default": "global"},
    "block": {"values": [64, 128], "default": 128},
    "staging": {"values": ["none", "shared"], "default": "none"},
    "stages": {"values": [1, 2], "default": 1, "when": "staging == 'shared'"},
    "width": {"values": [1, 2, 4], "default": 1, "when": {4: "block == 64", "2": "staging == 'none'"}},
}
RULES = [{"require": "memory == 'global' or width == 1", "reason": "textures are tried with one width"}]


def declared(content: dict[str, Any]) -> None:
    content["policies"] = POLICIES
    content["explore"] = RULES
    content["presets"]["lifted"] = {
        "explore": "all",
        "set": {"memory": "texture", "block": 64},
        "all": ["width"],
    }
    content["presets"]["parts"] = {"explore": "all", "presets": ["tex", "wide"]}


@pytest.fixture
def space(tmp_path: Path) -> Space:
    return load(tmp_path, declared).space


def test_an_inert_policy_has_its_default_alone(space: Space) -> None:
    stages = {(c["staging"], c["stages"]) for c in space.possible.configurations()}
    assert stages == {("none", 1), ("shared", 1), ("shared", 2)}
    assert space.find_inert({**space.control, "staging": "none"}) == ("stages",)
    assert space.find_inert({**space.control, "staging": "shared"}) == ()
    with pytest.raises(UsageError, match="stages stays at 1 unless staging == 'shared'"):
        space.configuration("stages=2")


def test_a_value_has_a_condition(space: Space) -> None:
    widths = {(c["width"], c["block"], c["staging"]) for c in space.possible.configurations()}
    assert {key for key in widths if key[0] == 4} == {(4, 64, "none"), (4, 64, "shared")}
    assert {key for key in widths if key[0] == 2} == {(2, 64, "none"), (2, 128, "none")}
    with pytest.raises(UsageError, match="width=4 needs block == 64"):
        space.configuration("width=4")


def test_what_is_explored_is_a_part_of_what_is_possible(space: Space) -> None:
    possible, explored = set(space.possible.configurations()), set(space.configurations())
    assert set(space.configurations("possible")) == possible
    assert explored == {c for c in possible if c["memory"] == "global" or c["width"] == 1} < possible
    assert explored == set(list_configurations(space) or ())
    rng = np.random.default_rng(1)
    assert set(Completions(space).walk(rng)) == explored
    members = Unlisted(space)
    assert {c for c in possible if c in members} == explored


def test_what_is_not_explored_is_accepted_where_it_is_named(space: Space) -> None:
    chosen = space.configuration("memory=texture,block=64,width=4")
    assert not space.explain_exclusion(chosen)
    assert space.explain_unexplored(chosen) == "textures are tried with one width"
    held = {"memory": ["texture"], "width": ["4"]}
    assert {c["block"] for c in space.configurations(narrowed=held)} == {64}
    assert set(list_configurations(narrow(space, dict(held))) or ()) == set(
        space.configurations(narrowed=held)
    )
    some_left = {"width": ["1", "2"], "memory": ["texture"]}
    assert {c["width"] for c in space.configurations(narrowed=some_left)} == {1}


def test_a_preset_lifts_the_rules(space: Space) -> None:
    assert {c["width"] for c in space.configurations("lifted")} == {1, 2, 4}
    assert {c["width"] for c in space.configurations("lifted", {"staging": ["shared"]})} == {1, 4}
    assert len(space.configurations("parts")) == 3
    assert space.preset_names == ("control", "full", "possible", "tex", "wide", "lifted", "parts")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (at("policies", "block", "when", value="mod == 1"), "policy block: when: unknown name 'mod'"),
        (
            at("policies", "block", "when", value={"65": "mode == 'fast'"}),
            "unknown value '65' in family demo: policy",
        ),
        (
            at("policies", "block", "when", value={"128": "memory == 'texture'"}),
            "block=128 needs memory == 'texture'",
        ),
        (
            at("explore", value=[{"require": "n > 4", "reason": "r"}]),
            "family demo: explore: unknown name 'n'",
        ),
        (at("explore", value=[{"require": "block == 64", "reason": "small"}]), "break a constraint: small"),
        (
            at("explore", value=[{"require": "memory == 'global'", "reason": "no textures"}]),
            "preset 'tex': no configuration is left: every combination breaks a constraint (no textures | textures",
        ),
        (at("presets", "possible", value={"set": {}}), "every family has one of that name"),
        (at("presets", "tex", "explore", value="some"), "presets.tex.explore: 'all' was expected"),
    ],
)
def test_mistakes(tmp_path: Path, change: Any, told: str) -> None:
    assert told in refusal(tmp_path, change)


def test_what_is_explored_is_no_part_of_a_measurement(tmp_path: Path) -> None:
    before = load(tmp_path, declared).space_digest

    def other(content: dict[str, Any]) -> None:
        declared(content)
        content["explore"] = []
        content["constraints"] = [{**content["constraints"][0], "reason": "another text"}]

    def more(content: dict[str, Any]) -> None:
        declared(content)
        content["policies"] = {**POLICIES, "stages": {"values": [1, 2], "default": 1}}

    assert load(tmp_path, other).space_digest == before != load(tmp_path, more).space_digest

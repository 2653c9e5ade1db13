"""The search space: enumeration against brute force, presets, narrowing, and configurations from text."""

import itertools
import pickle
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.declaration.expression import Expression
from autotune.declaration.space import Configuration, Constraint, Policy, Preset, Space
from autotune.errors import FamilyError, UnknownName, UsageError

MEMORY = Policy("memory", ("global", "readonly", "texture"), "global")
BLOCK = Policy("block", (64, 128, 256), 128)
TILE = Policy("tile", (1, 2), 1)


def constraint(text: str, reason: str = "because") -> Constraint:
    return Constraint(Expression(text), reason)


@pytest.fixture
def space() -> Space:
    presets = {
        "one": Preset("one", {"memory": ("texture",)}),
        "blocks": Preset("blocks", {"block": (64, 128, 256), "memory": ("global", "texture")}),
        "both": Preset("both", {}, ("one", "blocks")),
    }
    return Space(
        (MEMORY, BLOCK, TILE),
        (
            constraint("memory != 'texture' or block <= 128", "a texture block is small"),
            constraint("tile == 1 or block == 64", "tiles need 64 threads"),
        ),
        presets,
    )


def ids(configurations: tuple[Configuration, ...]) -> list[str]:
    return [configuration.id for configuration in configurations]


# -- configurations ---------------------------------------------------------------------------------------


def test_configuration_is_sorted_hashable_and_immutable() -> None:
    one, two = Configuration({"b": 1, "a": "x"}), Configuration({"a": "x", "b": 1})
    assert one.id == two.id == "a=x,b=1"
    assert one == two
    assert len({one, two}) == 1
    assert (list(one), len(one), one["b"], dict(one)) == (["a", "b"], 2, 1, {"a": "x", "b": 1})
    assert repr(one) == "Configuration(a=x,b=1)"
    assert one != {"a": "x", "b": 1}  # a mapping has no id to be looked up by
    with pytest.raises(TypeError):
        one["a"] = "y"  # type: ignore[index]
    with pytest.raises(TypeError):
        one._values["a"] = "y"  # type: ignore[index]


def test_configuration_pickles() -> None:
    configuration = Configuration({"b": 1, "a": "x"})
    copy = pickle.loads(pickle.dumps(configuration))
    assert copy == configuration
    assert dict(copy) == {"a": "x", "b": 1}
    assert type(copy["b"]) is int


def test_control(space: Space) -> None:
    assert space.control.id == "block=128,memory=global,tile=1"
    assert space.configurations("control") == (space.control,)


# -- enumeration ------------------------------------------------------------------------------------------


def test_full_space_by_hand(space: Space) -> None:
    assert ids(space.configurations()) == [
        "block=64,memory=global,tile=1",
        "block=64,memory=global,tile=2",
        "block=128,memory=global,tile=1",
        "block=256,memory=global,tile=1",
        "block=64,memory=readonly,tile=1",
        "block=64,memory=readonly,tile=2",
        "block=128,memory=readonly,tile=1",
        "block=256,memory=readonly,tile=1",
        "block=64,memory=texture,tile=1",
        "block=64,memory=texture,tile=2",
        "block=128,memory=texture,tile=1",
    ]
    assert space.configurations() == space.configurations("full")


def _constraint_texts(count: int) -> st.SearchStrategy[str]:
    name = st.sampled_from([f"p{i}" for i in range(count)])
    number = st.integers(0, 3)
    compare = st.sampled_from(["<=", "==", "!=", ">"])
    return st.one_of(
        st.builds("{} {} {}".format, name, compare, number),
        st.builds("{} + {} {} {}".format, name, name, compare, number),
        st.builds("{} == {} or {} != {}".format, name, number, name, number),
        st.builds("{0} == 0 or {1} % max(1, {0}) == 0".format, name, name),
        st.sampled_from(["1 == 1", "1 == 2"]),
        st.builds("{} < extent".format, name),  # about sizes: decides nothing before they are known
    )


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    count = draw(st.integers(1, 4))
    values = st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True)
    policies = []
    for i in range(count):
        chosen = draw(values)
        policies.append(Policy(f"p{i}", tuple(chosen), draw(st.sampled_from(chosen))))
    texts = draw(st.lists(_constraint_texts(count), max_size=4))
    return Space(tuple(policies), tuple(constraint(text) for text in texts))


def _by_brute_force(space: Space, held: Mapping[str, Any]) -> list[Configuration]:
    axes = [held.get(policy.name, policy.values) for policy in space.policies]
    found = []
    for values in itertools.product(*axes):
        names = {policy.name: value for policy, value in zip(space.policies, values, strict=True)}
        texts = [c.require.text for c in space.constraints if "extent" not in c.require.text]
        if all(eval(text, {"max": max}, names) for text in texts):
            found.append(Configuration(names))
    return found


@settings(max_examples=200, deadline=None)
@given(spaces(), st.data())
def test_enumeration_is_the_filtered_product(space: Space, data: st.DataObject) -> None:
    policy = data.draw(st.sampled_from(space.policies))
    held = {policy.name: (data.draw(st.sampled_from(policy.values)),)} if data.draw(st.booleans()) else {}
    expected = _by_brute_force(space, held)
    if expected:
        assert list(space.configurations(narrowed=held)) == expected
        assert not any(space.explain_exclusion(configuration) for configuration in expected)
    else:
        with pytest.raises(UsageError, match="no configuration is left"):
            space.configurations(narrowed=held)


def test_constraints_prune_early() -> None:
    # 2**40 combinations, two of which are left: only enumeration that stops at a broken prefix ends.
    policies = tuple(Policy(f"p{i}", (0, 1), 0) for i in range(40))
    equal = tuple(constraint(f"p{i} == p{i + 1}") for i in range(39))
    assert len(Space(policies, equal).configurations()) == 2


# -- presets and narrowing --------------------------------------------------------------------------------


def test_presets(space: Space) -> None:
    assert space.preset_names == ("control", "full", "one", "blocks", "both")
    assert ids(space.configurations("one")) == ["block=128,memory=texture,tile=1"]
    assert ids(space.configurations("blocks")) == [
        "block=64,memory=global,tile=1",
        "block=128,memory=global,tile=1",
        "block=256,memory=global,tile=1",
        "block=64,memory=texture,tile=1",
        "block=128,memory=texture,tile=1",
    ]


def test_union_of_presets_has_no_repeats(space: Space) -> None:
    union = ids(space.configurations("both"))
    assert union[0] == "block=128,memory=texture,tile=1"
    assert sorted(union) == sorted(ids(space.configurations("blocks")))


def test_narrowing_takes_text_and_overrides_the_preset(space: Space) -> None:
    assert ids(space.configurations("one", {"block": ["64", 128]})) == [
        "block=64,memory=texture,tile=1",
        "block=128,memory=texture,tile=1",
    ]


def test_narrowing_to_nothing_names_what_was_held_and_why(space: Space) -> None:
    with pytest.raises(UsageError) as caught:
        space.configurations(narrowed={"memory": ["texture"], "block": ["256"]})
    assert "preset 'full' with memory=texture; block=256" in str(caught.value)
    assert "a texture block is small" in str(caught.value)


@pytest.mark.parametrize(
    ("preset", "narrowed", "message"),
    [
        ("ful", {}, "unknown preset 'ful'; did you mean 'full'? (allowed: control, full, one, blocks, both)"),
        (
            "full",
            {"blok": [64]},
            "unknown policy 'blok'; did you mean 'block'? (allowed: memory, block, tile)",
        ),
        ("full", {"block": [65]}, "unknown value of policy block '65' (allowed: 64, 128, 256)"),
    ],
)
def test_unknown(space: Space, preset: str, narrowed: dict[str, list[int]], message: str) -> None:
    with pytest.raises(UnknownName) as caught:
        space.configurations(preset, narrowed)
    assert str(caught.value) == message


# -- one configuration from text --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ("control", "block=128,memory=global,tile=1"),
        ("one", "block=128,memory=texture,tile=1"),
        ("block=64", "block=64,memory=global,tile=1"),
        ("tile=2, block=64 , memory = readonly", "block=64,memory=readonly,tile=2"),
    ],
)
def test_configuration_from_text(space: Space, text: str, identity: str) -> None:
    assert space.configuration(text).id == identity


def test_every_id_reads_back(space: Space) -> None:
    for configuration in space.configurations():
        copy = space.configuration(configuration.id)
        assert copy == configuration
        assert dict(copy) == dict(configuration)  # values with their types, not their texts


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "unknown preset ''"),
        ("contrl", "unknown preset 'contrl'; did you mean 'control'?"),
        ("blocks", "preset 'blocks' holds 5 configurations; name one as policy=value"),
        ("block=64,", "cannot read '' in 'block=64,'"),
        ("block=64,texture", "cannot read 'texture' in"),
        (
            "block=64,block=128",
            "cannot read 'block=128' in 'block=64,block=128'; write each policy=value once",
        ),
        ("blok=64", "unknown policy 'blok'; did you mean 'block'?"),
        ("memory=textur", "unknown value of policy memory 'textur'; did you mean 'texture'?"),
        ("block=", "unknown value of policy block ''"),
        ("memory=texture,block=256", "is outside the space: a texture block is small"),
    ],
)
def test_configuration_refused(space: Space, text: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        space.configuration(text)
    assert problem in str(caught.value)


# -- checks when a family is read -------------------------------------------------------------------------


def test_check_passes(space: Space) -> None:
    space.check()


def test_control_excluded() -> None:
    with pytest.raises(FamilyError) as caught:
        Space((BLOCK,), (constraint("block == 64", "only 64 fits"),)).check()
    assert str(caught.value) == "the defaults (block=128) break a constraint: only 64 fits; change a default"


def test_preset_excluded() -> None:
    empty = {"tex": Preset("tex", {"memory": ("texture",)})}
    with pytest.raises(FamilyError, match=r"^preset 'tex': no configuration is left.*no textures here"):
        Space((MEMORY,), (constraint("memory != 'texture'", "no textures here"),), empty).check()


def test_exclusion_waits_for_sizes() -> None:
    sized = Space((BLOCK,), (constraint("block <= n", "a block is larger than the input"),))
    assert sized.explain_exclusion({"block": 128}) == ""
    assert sized.explain_exclusion({"block": 128, "n": 128}) == ""
    assert sized.explain_exclusion({"block": 128, "n": 127}) == "a block is larger than the input"

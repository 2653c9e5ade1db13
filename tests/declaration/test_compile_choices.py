"""Policies that choose an option of the compiler by its name: what each value adds, and what is kept from changing a
result that has to be exact."""

from pathlib import Path
from typing import Any

import pytest
from demo_family import Change, at, load, refusal

from autotune.cli.lint import lint
from autotune.compile.variant import Variant


def chosen(kind: str, values: list[Any], *more: Change, tolerance: bool = True) -> Change:
    def change(content: dict[str, Any]) -> None:
        content["policies"]["asked"] = {"compile": kind, "values": values, "default": values[0]}
        if tolerance:
            content["tolerance"] = {"relative": 0.001}
        for each in more:
            each(content)

    return change


ADDS: list[tuple[str, list[Any], list[tuple[str, ...]]]] = [
    ("maxrregcount", ["none", 32, 64], [(), ("-maxrregcount=32",), ("-maxrregcount=64",)]),
    ("prec_div", ["exact", "fast"], [(), ("--prec-div=false",)]),
    ("prec_sqrt", ["exact", "fast"], [(), ("--prec-sqrt=false",)]),
    ("ftz", ["exact", "fast"], [(), ("--ftz=true",)]),
    ("fmad", ["fast", "exact"], [(), ("--fmad=false",)]),
    ("use_fast_math", ["exact", "fast"], [(), ("-use_fast_math",)]),
]


@pytest.mark.parametrize(("kind", "values", "options"), ADDS, ids=[each[0] for each in ADDS])
def test_each_value_adds_its_option_and_the_source_does_not_know_it(
    kind: str, values: list[Any], options: list[tuple[str, ...]], tmp_path: Path
) -> None:
    family = load(tmp_path, chosen(kind, values))
    variants = [
        Variant.of(family, family.space.configuration(f"asked={value}"), {"mode": "fast"}) for value in values
    ]
    assert [variant.compile_options for variant in variants] == options
    assert all("asked" not in variant.members for variant in variants)
    assert len({variant.source.key for variant in variants}) == len(values)


def test_the_fewest_blocks_are_a_constant(tmp_path: Path) -> None:
    family = load(tmp_path, chosen("min_blocks", [1, 4], tolerance=False))
    variant = Variant.of(family, family.space.configuration("asked=4"), {"mode": "fast"})
    assert variant.compile_options == ()
    assert "static constexpr int asked = 4;" in variant.members
    told = [f.message for f in lint(str(tmp_path)) if f.rule == "unread-policy"]
    assert any("no kernel reads policy 'asked'" in message for message in told)


def also(kind: str, values: list[Any]) -> Change:
    return at("policies", "other", value={"compile": kind, "values": values, "default": values[0]})


EXACT = ["exact", "fast"]
MISTAKES: list[tuple[str, Change, str]] = [
    (
        "no tolerance",
        chosen("use_fast_math", EXACT, tolerance=False),
        "use_fast_math may change results, and y has no tolerance: declare how far it may be off (tolerance: {y: {rel",
    ),
    (
        "a tolerance of another output",
        chosen(
            "prec_div", EXACT,
            at("data", "z", value={"role": "output", "type": "float32", "shape": ["half"]}),
            at("tolerance", value={"z": {"relative": 0.1}}),
        ),
        "prec_div may change results, and y has no tolerance",
    ),
    (
        "integers without one",
        chosen("ftz", EXACT, at("data", "y", "type", value="int32"), tolerance=False),
        "ftz may change results, and y has no tolerance",
    ),
    ("an unknown option", chosen("O3", [1, 2]), "'O3' is not one of ['maxrregcount', 'min_blocks'"),
    ("too many registers", chosen("maxrregcount", ["none", 256]), "whole numbers from 16 to 255, or none, and not 256"),
    ("a word for blocks", chosen("min_blocks", ["few"]), "min_blocks takes whole numbers from 1 to 32, and not 'few'"),
    ("another word", chosen("ftz", ["exact", "true"]), "unknown value of compile: ftz 'true'"),
    (
        "said for all",
        chosen("prec_div", EXACT, at("compile_options", value=["--prec-div=true"])),
        "compile: prec_div chooses what compile_options of the family says for all (--prec-div=true)",
    ),
    (
        "said by fast math for all",
        chosen("use_fast_math", EXACT, at("compile_options", value=["--ftz=true"])),
        "compile: use_fast_math chooses what compile_options of the family says for all (--ftz=true)",
    ),
    ("twice", chosen("ftz", EXACT, also("ftz", EXACT)), "policies asked and other both choose compile: ftz"),
    (
        "fast math beside a part of it",
        chosen("use_fast_math", EXACT, also("fmad", EXACT)),
        "policy asked chooses use_fast_math, which says what policy other chooses",
    ),
    (
        "with means",
        chosen("ftz", EXACT, at("policies", "asked", "means", value={"fast": "-O3"})),
        "compile: ftz says what its values add; means goes with compile_option: true",
    ),
    (
        "with a layout",
        chosen(
            "maxrregcount", [32, 64],
            at("policies", "asked", "layout", value="padding"), at("policies", "asked", "data", value=["y"]),
        ),
        "policy asked: it either chooses a layout or a compile option; make two policies of it",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_what_cannot_be_is_refused(change: Change, message: str, tmp_path: Path) -> None:
    assert message in refusal(tmp_path, change)

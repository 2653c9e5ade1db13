"""Family declarations: the shipped one reads, and every mistake is named with its place and what is allowed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from autotune import family
from autotune.data import Data, Field
from autotune.errors import AutotuneError, FamilyError, UnknownName

DECLARATION: dict[str, Any] = {
    "schema": 1,
    "family": "demo",
    "source": "demo.cu",
    "extents": {"half": {"value": "n // 2"}},
    "scalars": {"limit": {"type": "int32", "default": 3}, "double": {"type": "int32", "value": "2 * limit"}},
    "options": {"mode": {"values": ["fast", "exact"], "default": "fast"}},
    "data": {
        "x": {"role": "input", "type": "int32", "shape": ["n", "m"], "packed": "m", "range": [0, 3]},
        "tree": {
            "role": "input",
            "record": "Node",
            "fields": {"next": {"type": "int32", "link": "n"}, "score": "float32"},
            "shape": ["n"],
        },
        "y": {"role": "output", "type": "float32", "shape": ["half"]},
    },
    "kernels": {
        "demo": {"arguments": ["x", "tree", "y", "limit"], "grid": ["ceil_div(n, block)"], "block": ["block"]}
    },
    "policies": {
        "memory": {"layout": "memory", "data": ["x"], "values": ["global", "texture"], "default": "global"},
        "block": {"values": [64, 128], "default": 128},
    },
    "constraints": [{"require": "memory == 'global' or block == 64", "reason": "textures want small blocks"}],
    "presets": {"tex": {"set": {"memory": "texture", "block": 64}}, "wide": {"all": ["block"]}},
}

PACKING = {"layout": "packing", "data": ["x"], "values": ["int32", "int8"], "default": "int32"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "demo.cu").touch()
    return tmp_path


def load(folder: Path, change: Callable[[dict[str, Any]], object] = dict, check: bool = True) -> family.Family:
    """The declaration above with ``change`` made to it, written down and read."""
    content = yaml.safe_load(yaml.safe_dump(DECLARATION))
    change(content)
    (folder / "family.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return family.load(folder, check)


def refusal(folder: Path, change: Callable[[dict[str, Any]], object]) -> str:
    with pytest.raises(AutotuneError) as caught:
        load(folder, change)
    assert caught.value.exit_code in (2, 3)
    return str(caught.value)


def at(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """The change that puts ``value`` at ``path``."""

    def change(content: dict[str, Any]) -> None:
        for key in path[:-1]:
            content = content.setdefault(key, {})
        content[path[-1]] = value

    return change


# -- what is read -----------------------------------------------------------------------------------------


def test_allpairs() -> None:
    allpairs = family.load("allpairs")
    assert allpairs.name == "allpairs"
    assert allpairs.source.name == "allpairs.cu"
    assert [d.name for d in allpairs.inputs] == ["genotypes"]
    assert [d.name for d in allpairs.outputs] == ["distance"]
    assert allpairs.extents == {"attributes": None, "instances": None}
    assert allpairs.data["distance"].index_bits == 64
    assert allpairs.chosen_options({}) == {"missing": "category"}
    assert allpairs.chosen_options({"missing": "masked"}) == {"missing": "masked"}
    assert len(allpairs.space.configurations("ladder")) == 6
    assert allpairs.module is not None
    assert callable(allpairs.module.reference)


def test_every_shipped_family_loads() -> None:
    found = family.families()
    assert "allpairs" in found
    for name in found:
        assert family.load(name).name == name


def test_declaration(folder: Path) -> None:
    demo = load(folder)
    assert demo.data["x"] == Data(
        name="x",
        role="input",
        fields=(Field("", "int32"),),
        shape=("n", "m"),
        packed="m",
        low=0,
        high=3,
    )
    assert demo.data["tree"].fields == (Field("next", "int32", "n"), Field("score", "float32"))
    assert demo.sizes({"x": (9, 5), "tree": (9,)}) == {"n": 9, "m": 5, "half": 4}
    assert demo.space.preset_names == ("control", "full", "tex", "wide")
    assert [c.id for c in demo.space.configurations("wide")] == ["block=64,memory=global", "block=128,memory=global"]
    assert demo.module is None


def test_names_give_everything_an_expression_may_read(folder: Path) -> None:
    names = load(folder).names({"block": 64}, {"n": 9}, {"mode": "fast"}, {"limit": 3})
    assert names == {"block": 64, "n": 9, "mode": "fast", "limit": 3}


def test_families_in_a_second_root(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "family.yaml").touch()
    assert family.families(tmp_path)["mine"] == tmp_path / "mine"


# -- one mistake each -------------------------------------------------------------------------------------

MISTAKES: list[tuple[str, Callable[[dict[str, Any]], Any], list[str]]] = [
    (
        "unknown argument",
        at("kernels", "demo", "arguments", value=["x", "tre"]),
        ["unknown argument 'tre' in family demo: kernel demo; did you mean 'tree'?", "x, tree, y, limit"],
    ),
    (
        "unknown extent",
        at("data", "y", "shape", value=["halv"]),
        ["unknown extent 'halv' in family demo: data y; did you mean 'half'?"],
    ),
    (
        "extent bound by nothing",
        at("extents", "k", value="what it counts"),
        ["extent k is in no input's shape: give it a value"],
    ),
    (
        "unknown name in an extent",
        at("extents", "half", value={"value": "nn // 2"}),
        ["family demo: extent half: unknown name 'nn' in 'nn // 2'; did you mean 'n'?"],
    ),
    (
        "link to an unknown extent",
        at("data", "tree", "fields", "next", value={"type": "int32", "link": "nodes"}),
        ["unknown extent 'nodes' in family demo: data tree", "allowed: m, n, half"],
    ),
    (
        "misspelt policy in a constraint",
        at("constraints", value=[{"require": "memroy == 'global'", "reason": "r"}]),
        ["family demo: constraint: unknown name 'memroy'", "did you mean 'memory'?", "allowed: block, double"],
    ),
    (
        "misspelt name in a grid",
        at("kernels", "demo", "grid", value=["ceil_div(n, blok)"]),
        ["family demo: kernel demo: grid: unknown name 'blok'", "did you mean 'block'?"],
    ),
    (
        "misspelt name in zero",
        at("data", "y", "zero", value="mod == 'fast'"),
        ["family demo: data y: zero: unknown name 'mod'", "did you mean 'mode'?"],
    ),
    (
        "misspelt name in a scalar",
        at("scalars", "double", "value", value="2 * limt"),
        ["family demo: scalar double: unknown name 'limt'", "did you mean 'limit'?"],
    ),
    (
        "misspelt name in bytes",
        at("bytes", value="4 * nn"),
        ["family demo: bytes: unknown name 'nn'"],
    ),
    (
        "default not in values",
        at("policies", "block", "default", value=96),
        ["unknown default '96' in family demo: policy block (allowed: 64, 128)"],
    ),
    (
        "option default not in values",
        at("options", "mode", "default", value="exat"),
        ["unknown default 'exat' in family demo: option mode; did you mean 'exact'?"],
    ),
    (
        "values that print alike",
        at("policies", "block", value={"values": [64, "64"], "default": 64}),
        ["family demo: policy block: values ['64', '64'] must be distinct words"],
    ),
    (
        "value that an id cannot hold",
        at("policies", "block", value={"values": ["a,b"], "default": "a,b"}),
        ["family demo: policy block: values ['a,b'] must be distinct words (letters, digits, _ . + -)"],
    ),
    (
        "duplicate name across groups",
        at("scalars", "block", value={"type": "int32", "default": 1}),
        ["family demo: the name 'block' is used twice; extents, options, scalars, data and policies share one"],
    ),
    (
        "preset with an unknown policy",
        at("presets", "tex", "set", value={"memry": "texture"}),
        ["family demo: preset tex: unknown policy 'memry'; did you mean 'memory'? (allowed: memory, block)"],
    ),
    (
        "preset with an unknown value",
        at("presets", "tex", "set", value={"block": 65}),
        ["family demo: preset tex: unknown value of policy block '65' (allowed: 64, 128)"],
    ),
    (
        "preset of an unknown preset",
        at("presets", "both", value={"presets": ["tex", "wid"]}),
        ["unknown preset 'wid' in family demo: preset both; did you mean 'wide'? (allowed: tex, wide)"],
    ),
    (
        "preset that nothing would read",
        at("presets", "full", value={"set": {"block": 64}}),
        ["family demo: preset full: every family has one of that name"],
    ),
    (
        "preset that is two things",
        at("presets", "both", value={"presets": ["tex"], "set": {"block": 64}}),
        ["family demo: preset both: give either presets, or set and all"],
    ),
    (
        "excluded preset",
        at("presets", "tex", "set", value={"memory": "texture"}),
        ["family demo: preset 'tex': no configuration is left", "textures want small blocks"],
    ),
    (
        "excluded defaults",
        at("policies", "memory", "default", value="texture"),
        ["family demo: the defaults (block=128,memory=texture) break a constraint: textures want small blocks"],
    ),
    (
        "reference that is no configuration",
        at("reference", value="contrl"),
        ["family demo: unknown preset 'contrl'; did you mean 'control'?"],
    ),
    ("missing source file", at("source", value="dem.cu"), ["family demo: its source", "dem.cu is not there"]),
    (
        "unknown key",
        at("polices", value={}),
        ["family.yaml: top level: unknown key 'polices'; did you mean 'policies'?"],
    ),
    (
        "schema of another version",
        at("schema", value=2),
        ["family.yaml: schema: 1 was expected"],
    ),
]


@pytest.mark.parametrize(("change", "parts"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_mistake(folder: Path, change: Callable[[dict[str, Any]], Any], parts: list[str]) -> None:
    message = refusal(folder, change)
    for part in parts:
        assert part in message


@pytest.mark.parametrize(("change", "parts"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_mistake_reads_alike_at_run_time(folder: Path, change: Callable[[dict[str, Any]], Any], parts: list[str]) -> None:
    # Without the schema's check a key that is not asked for is not missed, and all else is as with it.
    checked = refusal(folder, change)
    try:
        load(folder, change, check=False)
    except AutotuneError as problem:
        assert str(problem) == checked
    else:
        assert "unknown key" in checked or "was expected" in checked

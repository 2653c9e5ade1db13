"""A configuration made concrete: its layouts, the struct's text, and what the key depends on."""

import re
import shutil
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from demo_family import at
from demo_family import load as load_demo

from autotune.compile import variant
from autotune.compile.variant import Variant
from autotune.declaration import family, family_folder
from autotune.declaration.family import Family
from autotune.files import include_dir
from autotune.hardware import Limits
from autotune.layout.bit_packing import packing
from autotune.layout.layout import Layout

ALLPAIRS = family.load_family("allpairs")

SHARED = """\
struct V {
  static constexpr Accumulate accumulate = Accumulate::shared_memory;
  static constexpr int block_size = 128;
  static constexpr int tile = 1;
  static constexpr Pairs pairs = Pairs::all;
  static constexpr Missing missing = Missing::category;
  using genotypes = autotune::Array<autotune::Packed<autotune::Bits<8>, 1>, \
autotune::Global<const autotune::Texel<4>>, \
autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 0, 1>>, \
autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
  using distance = autotune::Array<int, autotune::Global<autotune::Texel<4>>, \
autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned long long, 0, 1>>, \
autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>;
};
"""
ROWS = "autotune::Extents<0, 0>, autotune::Strides<unsigned, 0, 1>"


def made(of: Family, text: str = "control", **options: str) -> Variant:
    return Variant.make(of, of.space.configuration(text), of.choose_options(options))


def test_a_variant_of_inputs_has_their_options_in_order() -> None:
    control = ALLPAIRS.space.control
    assert Variant.make(ALLPAIRS, control, {"missing": "skip"}) == Variant(
        ALLPAIRS, control, (("missing", "skip"),)
    )


# -- the struct -------------------------------------------------------------------------------------------


def test_struct() -> None:
    source = made(ALLPAIRS, "shared").source
    assert source.struct.replace(source.name, "V") == SHARED
    assert re.fullmatch(r"[0-9a-f]{64}", source.key)
    assert source.name == f"V{source.key[:16]}"
    assert source.kernels == ("allpairs",)


@pytest.mark.parametrize(
    ("choice", "cpp"),
    [
        ({}, f"int, autotune::Global<const autotune::Texel<4>>, autotune::Strided<{ROWS}>, autotune::Dims1D"),
        (
            {"axes": ["m", "n"]},
            "autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 1, 0>>, autotune::Dims1D",
        ),
        ({"memory": "readonly"}, "int, autotune::ReadOnly<autotune::Texel<4>>, "),
        ({"memory": "constant"}, "int, autotune::Constant<autotune::Texel<4>, 0>, "),
        ({"memory": "texture"}, "int, autotune::Texture1D<autotune::Texel<4>>, "),
        (
            {"memory": "texture", "dims": "2d"},
            f"autotune::Texture2D<autotune::Texel<4>>, autotune::Strided<{ROWS}>, ",
        ),
        ({"dims": "2d"}, f"autotune::Strided<{ROWS}>, autotune::Dims2D<12, 0>, autotune::Aos"),
        ({"records": "aosoa32"}, "autotune::Dims1D, autotune::Aosoa<32>, autotune::Merged<1, 0>>"),
        ({"records": "soa"}, "autotune::Dims1D, autotune::Soa, "),
        (
            {"packing": "int8", "vector": 4},
            "autotune::Packed<autotune::Bits<8>, 4>, autotune::Global<const autotune::Texel<16>>",
        ),
        (
            {"packing": "planes2"},
            "autotune::Packed<autotune::Planes<2>, 1>, autotune::Global<const autotune::Texel<8>>",
        ),
    ],
)
def test_accessor_type(tmp_path: Path, choice: dict[str, Any], cpp: str) -> None:
    def fix(content: dict[str, Any]) -> None:
        content["data"]["x"]["layout"] = choice
        content["policies"] = {"block": content["policies"]["block"]}
        content["constraints"], content["presets"] = [], {}

    assert cpp in made(load_demo(tmp_path, fix)).layouts["x"].cpp


@pytest.mark.parametrize(
    ("shape", "choice", "extents", "strides"),
    [
        (["n", 3], {}, "0, 3", "3, 1"),
        (["n", 3], {"axes": ["3", "n"]}, "0, 3", "1, 0"),
        (["n", 3], {"padding": 4}, "0, 3", "4, 1"),
        ([2, 3], {}, "2, 3", "3, 1"),
        ([2, "n"], {}, "2, 0", "0, 1"),
    ],
)
def test_a_declared_size_is_a_constant_of_the_accessor(
    tmp_path: Path, shape: list[Any], choice: dict[str, Any], extents: str, strides: str
) -> None:
    def fix(content: dict[str, Any]) -> None:
        named = {str(n): n if isinstance(n, str) else f"extent_{n}" for n in shape}
        del content["data"]["x"]["packed"]
        content["data"]["x"]["shape"] = shape
        content["data"]["x"]["layout"] = {
            key: [named[n] for n in value] if key == "axes" else value for key, value in choice.items()
        }
        content["policies"] = {"block": content["policies"]["block"]}
        content["constraints"], content["presets"] = [], {}

    layout = made(load_demo(tmp_path, fix)).layouts["x"]
    assert (
        f"autotune::Strided<autotune::Extents<{extents}>, autotune::Strides<unsigned, {strides}>>"
        in layout.cpp
    )


def test_record_type(tmp_path: Path) -> None:
    layouts = made(
        load_demo(tmp_path, at("data", "tree", "plane", value={"width": 65536, "rows": 4}))
    ).layouts
    assert layouts["tree"].cpp.startswith(
        "autotune::Array<Node, autotune::Global<const autotune::Texel<8>>, "
    )
    assert layouts["tree"].data.plane == (65536, 4)


def policy(layout: str, *values: object, data: tuple[str, ...] = ("tree",), **more: object) -> dict[str, Any]:
    return {"layout": layout, "data": [*data], "values": [*values], "default": values[0], **more}


def test_policies_become_layouts(tmp_path: Path) -> None:
    def add(content: dict[str, Any]) -> None:
        at("policies", "runs", value=policy("records", "aos", "soa"))(content)
        at(
            "policies",
            "axes",
            value=policy("axes", "by_n", "by_m", data=("x",), means={"by_n": ["m", "n"], "by_m": ["n", "m"]}),
        )(content)
        at("policies", "pad", value=policy("padding", 1, 32, data=("x",)))(content)
        at("policies", "pack", value=policy("packing", "int32", "int8", data=("x",)))(content)
        at("policies", "width", value=policy("vector", 1, 4, data=("x",)))(content)

    demo = load_demo(tmp_path, add)
    assert made(demo).layouts["x"] == Layout(data=demo.data["x"], axes=(1, 0), packing=packing("int32"))
    chosen = made(demo, "runs=soa,axes=by_m,pad=32,pack=int8,width=4,memory=texture,block=64").layouts
    assert chosen["x"] == Layout(
        data=demo.data["x"],
        memory="texture",
        axes=(0, 1),
        packing=packing("int8"),
        vector=4,
        padding=32,
    )
    assert chosen["tree"].records == "soa"
    assert chosen["y"] == Layout(data=demo.data["y"])


def test_meaning_of_a_number(tmp_path: Path) -> None:
    change = at("policies", "width", value=policy("records", 1, 2, means={1: "aos", 2: "soa"}))
    assert made(load_demo(tmp_path, change), "width=2").layouts["tree"].records == "soa"


def test_grouping(tmp_path: Path) -> None:
    def add(content: dict[str, Any]) -> None:
        content["data"]["more"] = deepcopy(content["data"]["tree"])
        content["policies"]["group"] = policy("grouping", "split", "merged", data=("more", "tree"))

    demo = load_demo(tmp_path, add)
    assert {name: layout.group for name, layout in made(demo).layouts.items()} == dict.fromkeys(
        demo.data, (1, 0)
    )
    merged = made(demo, "group=merged").layouts
    assert (merged["more"].group, merged["tree"].group, merged["x"].group) == ((2, 0), (2, 1), (1, 0))


def test_constant_windows_lie_side_by_side(tmp_path: Path) -> None:
    def fix(content: dict[str, Any]) -> None:
        content["data"]["tree"].update(layout={"memory": "constant"}, constant_bytes=100)
        content["data"]["z"] = {
            "role": "input",
            "type": "int32",
            "shape": ["n"],
            "layout": {"memory": "constant"},
        }

    demo = load_demo(tmp_path, fix)
    layouts = made(demo).layouts
    assert [layouts[name].constant_offset for name in ("x", "tree", "z")] == [
        0,
        0,
        112,
    ]  # whole texels of 16 bytes
    names = {**demo.sizes({"x": (20, 5), "tree": (20,), "z": (20,)}), "limit": 1, "double": 2, "mode": "fast"}
    small = made(demo).explain_exclusion({**names, **demo.space.control}, Limits())
    assert small == (
        "tree: 160 bytes do not fit in 100 bytes of constant memory, its part of it: constant_bytes in family.yaml "
        "says the most that each array there takes"
    )


def test_constant_memory_is_divided_where_nothing_is_declared(tmp_path: Path) -> None:
    """By the sizes that are known, else evenly: none of several arrays has to do with nothing."""
    place = {"role": "input", "type": "int32", "layout": {"memory": "constant"}}

    def fix(content: dict[str, Any]) -> None:
        content["extents"]["levels"] = {"value": 250}
        shapes = {"a": ["n"], "b": ["n"], "c": ["levels"]}
        content["data"] |= {name: deepcopy(place) | {"shape": shape} for name, shape in shapes.items()}

    demo = load_demo(tmp_path, fix)
    layouts = made(demo).layouts
    places = [(layouts[name].constant_offset, layouts[name].data.constant_bytes) for name in "abc"]
    assert places == [(0, 32256), (32256, 32272), (64528, 1000)]
    sizes = demo.sizes({"x": (8000, 5), "tree": (8000,), "a": (8000,), "b": (8000,), "c": (250,)})
    names = {**sizes, "limit": 1, "double": 2, "mode": "fast", **demo.space.control}
    assert made(demo).explain_exclusion(names, Limits()) == ""
    assert "b: 34000 bytes do not fit in 32272 bytes" in layouts["b"].room((8500,)).explain_refusal(
        layouts["b"].data, Limits()
    )


def test_constant_memory_is_divided_by_sizes_that_options_give(tmp_path: Path) -> None:
    """A table that an option sizes takes what it needs, and leaves the rest to others."""

    def fix(content: dict[str, Any]) -> None:
        content["options"]["radius"] = {"values": [1, 50], "default": 1}
        content["extents"]["side"] = {"value": "2 * radius + 1"}
        for name, shape in (("a", ["side", "side"]), ("b", ["n"])):
            content["data"][name] = {
                "role": "input", "type": "int32", "shape": shape, "layout": {"memory": "constant"},
            }  # fmt: skip

    demo = load_demo(tmp_path, fix)
    for radius, taken in ((1, 48), (50, 40816)):
        layouts = Variant.make(demo, demo.space.control, demo.choose_options({"radius": radius})).layouts
        assert layouts["a"].data.constant_bytes == 4 * (2 * radius + 1) ** 2
        assert (layouts["b"].constant_offset, layouts["b"].data.constant_bytes) == (taken, 65536 - taken)


def test_what_is_declared_of_constant_memory_stands_where_it_fits(tmp_path: Path) -> None:
    def fix(content: dict[str, Any]) -> None:
        content["extents"]["levels"] = {"value": 250}
        for name, most in (("a", 49152), ("b", 15360)):
            content["data"][name] = {
                "role": "input", "type": "int32", "shape": ["levels"], "layout": {"memory": "constant"},
                "constant_bytes": most,
            }  # fmt: skip

    layouts = made(load_demo(tmp_path, fix)).layouts
    assert [layouts[name].constant_offset for name in "ab"] == [0, 49152]
    assert [layouts[name].data.constant_bytes for name in "ab"] == [49152, 15360]


# -- the key ----------------------------------------------------------------------------------------------


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All-pairs and the layout library, copied to be changed."""
    shutil.copytree(ALLPAIRS.folder, tmp_path / "allpairs")
    shutil.copytree(include_dir(), tmp_path / "include")
    monkeypatch.setattr(family_folder, "include_dir", lambda: tmp_path / "include")
    (tmp_path / "allpairs" / "near.cuh").write_text("// near\n")
    return tmp_path


def key(copy: Path, text: str = "control", **options: str) -> str:
    return made(family.load_family(copy / "allpairs"), text, **options).source.key


def test_key_follows_policies_and_options(copy: Path) -> None:
    texts = (
        "control",
        "tile=2,accumulate=register_tile",
        "axes=instance_major",
        "memory=texture",
        "packing=int8",
    )
    keys = {key(copy, text) for text in texts}
    assert len(keys | {key(copy, missing="masked")}) == 6


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


@pytest.mark.parametrize("name", ["allpairs/allpairs.cu", "allpairs/near.cuh", "include/autotune/dims.cuh"])
def test_key_follows_sources(copy: Path, name: str) -> None:
    before = key(copy)
    append(copy / name, "\n")
    assert key(copy) != before


def test_key_follows_a_new_or_renamed_header(copy: Path) -> None:
    before = key(copy)
    (copy / "allpairs" / "near.cuh").rename(copy / "allpairs" / "far.cuh")
    renamed = key(copy)
    (copy / "allpairs" / "new.cuh").touch()
    assert len({before, renamed, key(copy)}) == 3


def test_key_follows_compile_options(copy: Path) -> None:
    before = key(copy)
    append(copy / "allpairs" / "family.yaml", "compile_options: [--use_fast_math]\n")
    assert key(copy) != before


def _documented(copy: Path) -> None:
    append(copy / "allpairs" / "family.yaml", "# a remark\n")


def _noted(copy: Path) -> None:
    (copy / "allpairs" / "notes.md").write_text("unrelated")


def _python(copy: Path) -> None:
    append(copy / "allpairs" / "family.py", "# a remark\n")


@pytest.mark.parametrize("change", [_documented, _noted, _python])
def test_key_ignores_the_rest(copy: Path, change: Callable[[Path], None]) -> None:
    before = key(copy)
    change(copy)
    assert key(copy) == before


def test_batch() -> None:
    variants = (made(ALLPAIRS), made(ALLPAIRS, "shared"))
    batch = variant.batch(ALLPAIRS, variants)
    assert batch.source == ALLPAIRS.source
    assert batch.include_dirs == (include_dir(), ALLPAIRS.folder)
    assert batch.variants == tuple(v.source for v in variants)

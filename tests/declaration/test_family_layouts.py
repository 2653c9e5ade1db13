"""Layout choices that cannot be: made by a policy, or by the data's own layout."""

from pathlib import Path

import pytest
from demo_family import Change, at, load, refusal

from autotune.cli.commands import main
from autotune.errors import FamilyError


def policy(layout: str, data: str, *values: object, **more: object) -> Change:
    """The change that adds policy p, which drives ``layout`` of ``data``."""
    default = values[0]
    return at(
        "policies",
        "p",
        value={"layout": layout, "data": [data], "values": [*values], "default": default, **more},
    )


MERGING = {"layout": "grouping", "data": ["tree", "x"], "values": ["split"], "default": "split"}

CHOICES: list[tuple[str, Change, str]] = [
    (
        "unknown memory",
        policy("memory", "tree", "global", "textur"),
        "unknown memory layout 'textur' in family demo: policy p; did you mean 'texture'? (allowed: global, ",
    ),
    (
        "unknown dims",
        policy("dims", "x", "1d", "3d"),
        "unknown dims layout '3d' in family demo: policy p (allowed: 1d, 2d, 2d_pitched, image, image_pitched)",
    ),
    (
        "unknown packing",
        policy("packing", "x", "int32", "int4"),
        "unknown packing layout 'int4' in family demo: policy p; did you mean",
    ),
    (
        "unknown records",
        policy("records", "tree", "aos", "aosoa0"),
        "policy p; did you mean 'soa'? (allowed: aos, soa, aosoa<lanes>, <field>+<field>-<field>)",
    ),
    (
        "unknown grouping",
        at("policies", "p", value={**MERGING, "values": ["split", "mergd"]}),
        "unknown grouping layout 'mergd' in family demo: policy p; did you mean 'merged'? (allowed: split, merged)",
    ),
    (
        "unknown storage",
        policy("storage", "y", "float32", "half"),
        "unknown storage layout 'half' in family demo: policy p (allowed: declared, float64, float32, ",
    ),
    (
        "a storage that is wider than declared",
        policy("storage", "y", "float32", "float64"),
        "unknown storage of float32 'float64' in family demo: policy p",
    ),
    (
        "a storage of whole numbers",
        policy("storage", "x", "float16"),
        "family demo: policy p: data x holds int32, and a storage is for float32 or float64 alone",
    ),
    (
        "a storage of some fields",
        policy("storage", "tree", "float16"),
        "a storage is for float32 or float64 alone, plain or as all fields of a record",
    ),
    (
        "a scale of what is not there yet",
        policy("storage", "y", "float32", "scaled_int8"),
        "family demo: policy p: y has role output, and what a kernel writes as scaled_int8 needs a scale before",
    ),
    (
        "a storage of an element that has one",
        lambda content: (
            at("data", "y", "type", value="float16")(content),
            policy("storage", "y", "float32")(content),
        ),
        "family demo: policy p and its own layout both choose the storage of y",
    ),
    (
        "a storage of what may be merged",
        lambda content: (
            at("data", "v", value={"role": "input", "type": "float32", "shape": ["n"]})(content),
            at("data", "w", value={"role": "input", "type": "float32", "shape": ["n"]})(content),
            at("policies", "q", value={**MERGING, "data": ["v", "w"]})(content),
            policy("storage", "v", "float32", "float16")(content),
        ),
        "family demo: policy p sets the storage of v, and policy q may merge it with others",
    ),
    (
        "vector width that is no number",
        policy("vector", "x", "two"),
        "family demo: policy p: vector 'two' is not a whole number of at least 1",
    ),
    (
        "padding to multiples of nothing",
        policy("padding", "x", 1, 0),
        "family demo: policy p: padding 0 is not a whole number of at least 1",
    ),
    (
        "texture on an output",
        policy("memory", "y", "global", "texture"),
        "family demo: policy p: texture memory cannot be written, and y has role output; only global can",
    ),
    (
        "packing without a packed extent",
        policy("packing", "y", "int32", "int8"),
        "family demo: policy p: data y names no packed extent to join elements along",
    ),
    (
        "packing of fractions",
        lambda content: (
            at("data", "x", "type", value="float32")(content),
            policy("packing", "x", "int8")(content),
        ),
        "family demo: policy p: data x holds float32, and only whole numbers can be packed",
    ),
    (
        "vector width without packing",
        policy("vector", "x", 1, 2),
        "family demo: policy p sets the vector of x, which has no packing",
    ),
    (
        "axes by an unknown name",
        policy("axes", "x", "natural", means={"natural": ["n", "k"]}),
        "unknown axes layout \"['n', 'k']\" in family demo: policy p; did you mean \"['n', 'm']\"?",
    ),
    (
        "axes without a meaning",
        policy("axes", "x", "natural"),
        "unknown axes layout 'natural' in family demo: policy p (allowed: ['n', 'm'], in any order)",
    ),
    (
        "meaning of a value that is not there",
        policy("axes", "x", "natural", means={"natral": ["n", "m"]}),
        "unknown value 'natral' in family demo: policy p: means; did you mean 'natural'? (allowed: natural)",
    ),
    (
        "axes of extents that repeat",
        lambda content: (
            at("data", "z", value={"role": "input", "type": "int32", "shape": ["n", "n"]})(content),
            policy("axes", "z", "a", means={"a": ["n"]})(content),
        ),
        "family demo: policy p: the extents of z repeat",
    ),
    (
        "policy on unknown data",
        policy("memory", "z", "global"),
        "unknown data 'z' in family demo: policy p (allowed: x, tree, y)",
    ),
    (
        "order of an unknown extent",
        policy("order", "k", "none"),
        "unknown extent 'k' in family demo: policy p (allowed: half, m, n)",
    ),
    (
        "layout without data",
        at("policies", "p", value={"layout": "memory", "values": ["global"], "default": "global"}),
        "family demo: policy p: layout and data go together",
    ),
    (
        "two policies for one choice",
        policy("memory", "x", "global", "readonly"),
        "family demo: policy p and policy memory both choose the memory of x",
    ),
    (
        "a policy for what the data fixes",
        at("data", "x", "layout", value={"memory": "readonly"}),
        "family demo: policy memory and its own layout both choose the memory of x",
    ),
    (
        "unlike arrays merged",
        at("policies", "p", value=MERGING),
        "family demo: policy p: tree, x differ in shape or element size, so they cannot be merged",
    ),
    (
        "one array merged",
        policy("grouping", "tree", "split", "merged"),
        "family demo: policy p: grouping merges two or more inputs; data names tree",
    ),
    (
        "unknown value of a fixed layout",
        at("data", "x", "layout", value={"dims": "3d"}),
        "unknown dims layout '3d' in family demo: data x",
    ),
    (
        "fixed texture on an output",
        at("data", "y", "layout", value={"memory": "constant"}),
        "family demo: data y: constant memory cannot be written, and y has role output",
    ),
    (
        "fixed packing without a packed extent",
        at("data", "y", "layout", value={"packing": "int8"}),
        "family demo: data y: data y names no packed extent",
    ),
    (
        "unknown packed extent",
        at("data", "x", "packed", value="mm"),
        "unknown extent 'mm' in family demo: data x: packed; did you mean 'm'? (allowed: n, m)",
    ),
    (
        "both type and record",
        at("data", "tree", "type", value="int32"),
        "family demo: data tree: give either type, or record with fields",
    ),
    (
        "record without fields",
        at("data", "tree", value={"role": "input", "record": "Node", "shape": ["n"]}),
        "family demo: data tree: give either type, or record with fields",
    ),
    (
        "range of a record of several types",
        at("data", "tree", "range", value=[0, 1]),
        "family demo: data tree: its fields are of several types, and a range is for numbers of one",
    ),
    (
        "record that C++ pads",
        at("data", "tree", "fields", value={"small": "int8", "large": "int32"}),
        "family demo: data tree: a C++ compiler would pad this record",
    ),
]


@pytest.mark.parametrize(("change", "message"), [c[1:] for c in CHOICES], ids=[c[0] for c in CHOICES])
def test_layout_mistake(tmp_path: Path, change: Change, message: str) -> None:
    assert message in refusal(tmp_path, change)


def test_a_misspelt_order_is_no_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sweep would measure it as an order of its own, and the arrays would lie as given."""
    change = policy("order", "n", "unsorted", "given", "by_scor")
    demo = load(tmp_path, change)
    (tmp_path / "family.py").write_text(
        "import numpy as np\norders = {'by_score': lambda arrays: np.arange(4)}\n"
    )
    with pytest.raises(FamilyError, match=r"unknown order 'by_scor'; did you mean 'by_score'\?") as raised:
        demo.orders  # noqa: B018
    assert "family demo: policy p: " in str(raised.value)
    assert "write it in orders of family.py, or call the value given" in str(raised.value)
    assert main(["sweep", str(tmp_path), "--device", "cpu", "--out", str(tmp_path / "out")]) == 3
    assert "did you mean 'by_score'?" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()

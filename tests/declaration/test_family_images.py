"""Images in family.yaml: what is read from it, and what is rejected with which remedy."""

from pathlib import Path

import pytest
from demo_family import at, load, refusal

from autotune.layout import Sampling

IMAGE = {"role": "input", "type": "uint8", "shape": ["n", "m"]}


def said(**more: object) -> dict[str, object]:
    return {**IMAGE, **more}


def test_what_is_declared(tmp_path: Path) -> None:
    image = {"edge": "wrap", "read": "normalised", "filter": "linear"}
    family = load(tmp_path, at("data", "x", value=said(image=image)))
    assert family.data["x"].sampling == Sampling("wrap", "normalised", "linear")
    plain = load(tmp_path, at("data", "x", value=said(image={})))
    assert plain.data["x"].sampling == Sampling("clamp", "element", "nearest")
    none = load(tmp_path, at("data", "x", value=said()))
    assert none.data["x"].sampling is None
    assert len({family.space_digest, plain.space_digest, none.space_digest}) == 3


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (said(role="output", image={}), "an output becomes a surface by its layout, dims: image"),
        (said(shape=["n"], image={}), "an image has two or three extents, and this has 1"),
        (said(packed="m", image={}), "an image cannot be packed; remove image or packed"),
        (said(type="int32", image={"read": "normalised"}),
         "read: normalised is for int8, uint8, int16, uint16, and this holds int32"),
        (said(image={"filter": "linear"}),
         "filter: linear is for float32, or for integers with read: normalised, and this holds uint8"),
        (said(image={"edge": "repeat"}), "image.edge: 'repeat' is not one of"),
        (said(access="pointer", image={}), "image needs access: accessor"),
        (said(shape=["n"], layout={"memory": "texture", "dims": "image"}), "x has 1 extents, and an image"),
        (said(role="output", layout={"dims": "image_pitched"}), "a surface is a CUDA array; take dims: image"),
        (said(role="view", of="y", image={}), "image is not for views"),
    ],
)  # fmt: skip
def test_mistakes(value: dict[str, object], message: str, tmp_path: Path) -> None:
    assert message in refusal(tmp_path, at("data", "x", value=value))

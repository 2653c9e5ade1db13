"""Constraints that nobody wrote: what follows from the layouts is excluded with its reason, and what a family relies on
is left alone."""

from pathlib import Path
from typing import Any

import pytest
from demo_family import Change, at, load, refusal

from autotune.declaration.family import Family


def changed(*changes: Change) -> Change:
    def every(content: dict[str, Any]) -> None:
        content.pop("constraints", None)
        content["presets"] = {}
        for change in changes:
            change(content)

    return every


def policy(name: str, **value: Any) -> Change:
    return at("policies", name, value={"default": value["values"][0], **value})


def layout(kind: str, values: list[Any], data: tuple[str, ...] = ("x",), **more: Any) -> Change:
    return policy(f"{'_'.join(data)}_{kind}", layout=kind, data=list(data), values=values, **more)


def excluded(family: Family, **chosen: Any) -> str:
    return family.space.explain_exclusion({**family.space.control, **chosen})


def test_words_that_are_wider_than_an_access(tmp_path: Path) -> None:
    family = load(
        tmp_path, changed(layout("packing", ["int8", "planes2", "planes4"]), layout("vector", [1, 2, 4]))
    )
    reasons = {
        (packed, wide): excluded(family, x_packing=packed, x_vector=wide)
        for packed in ("int8", "planes2", "planes4")
        for wide in (1, 2, 4)
    }
    assert {pair for pair, reason in reasons.items() if reason} == {
        ("planes2", 4), ("planes4", 2), ("planes4", 4),
    }  # fmt: skip
    assert reasons["planes2", 4] == "x: 4 words of planes2 are 32 bytes, and one access moves at most 16"


def test_one_that_is_written_by_hand_is_not_said_twice(tmp_path: Path) -> None:
    by_hand = {"require": "not (x_packing == 'planes4' and x_vector == 2)", "reason": "mine"}
    family = load(
        tmp_path,
        changed(
            layout("packing", ["int8", "planes4"]),
            layout("vector", [1, 2]),
            at("constraints", value=[by_hand]),
        ),
    )
    assert [constraint.reason for constraint in family.space.constraints] == ["mine"]


PLANES = (
    layout("memory", ["global", "readonly", "texture"]),
    layout("dims", ["line", "2d", "2d_pitched"], means={"line": "1d"}),
    layout("padding", [1, 128]),
    at("policies", "memory", value={"values": [0], "default": 0}),
    at("data", "y", value={"role": "output", "type": "float32", "shape": ["half"]}),
)


def pictures(width: int, **more: Any) -> Change:
    return at(
        "data",
        "x",
        value={"role": "input", "type": "float32", "shape": ["n", "m"], "plane": {"width": width, **more}},
    )


def test_planes_that_only_a_texture_tells_from_a_line(tmp_path: Path) -> None:
    family = load(tmp_path, changed(*PLANES, pictures(128)))
    assert excluded(family, x_dims="2d", x_memory="readonly") == (
        "x: in readonly memory a plane of single rows (2d) has the addresses of a line"
    )
    assert not excluded(family, x_dims="2d", x_memory="texture")
    assert not excluded(family, x_dims="line", x_memory="readonly")
    blocks = load(tmp_path, changed(*PLANES, pictures(128, rows=4)))
    assert not excluded(blocks, x_dims="2d", x_memory="readonly")


@pytest.mark.parametrize("asked", ["a default", "a preset"])
def test_what_a_family_asks_for_is_left(asked: str, tmp_path: Path) -> None:
    ask = (
        at("policies", "x_dims", "default", value="2d")
        if asked == "a default"
        else at("presets", value={"flat": {"set": {"x_dims": "2d"}}})
    )
    family = load(tmp_path, changed(*PLANES, pictures(128), ask))
    assert not excluded(family, x_dims="2d", x_memory="global")
    assert excluded(family, x_dims="2d", x_memory="readonly")


def test_rows_that_are_wider_than_the_plane(tmp_path: Path) -> None:
    family = load(tmp_path, changed(*PLANES, pictures(128)))
    image = {"x_dims": "2d", "x_memory": "texture", "x_padding": 128}
    assert not excluded(family, **image, m=128)
    assert excluded(family, **image, m=129) == (
        "x: a row of m elements takes more than a row of the plane, which has 128 texels"
    )
    assert not excluded(family, **{**image, "x_padding": 1}, m=129)
    turned = layout("axes", ["rows", "columns"], means={"rows": ["n", "m"], "columns": ["m", "n"]})
    family = load(tmp_path, changed(*PLANES, pictures(128), turned))
    assert not excluded(family, **image, x_axes="columns", m=129, n=128)
    assert "a row of n elements" in excluded(family, **image, x_axes="columns", m=7, n=129)


IMAGES = (
    layout("memory", ["texture", "readonly"]),
    layout("dims", ["line", "image"], means={"line": "1d"}),
    layout("padding", [1, 8]),
    at("policies", "memory", value={"values": [0], "default": 0}),
)


def test_an_image_that_only_a_texture_tells_from_a_line(tmp_path: Path) -> None:
    family = load(tmp_path, changed(*IMAGES, pictures(128)))
    assert excluded(family, x_dims="image", x_memory="readonly") == "x: in readonly memory an image is a line"
    assert not excluded(family, x_dims="image")
    assert not excluded(family, x_memory="readonly")


def test_what_leaves_no_rows_for_an_image(tmp_path: Path) -> None:
    """Needed: a texture has no padding, so the configuration would be none of those that were asked for."""
    pixels = at("data", "x", value={"role": "input", "record": "Pixel", "shape": ["n", "m"],
                                    "fields": {"r": "uint16", "g": "uint16"}})  # fmt: skip
    family = load(tmp_path, changed(*IMAGES, pixels, layout("records", ["aos", "soa"])))
    assert excluded(family, x_dims="image", x_padding=8) == (
        "x: padding: 8 leaves no rows that an image could have"
    )
    assert "records: soa leaves no rows" in excluded(family, x_dims="image", x_records="soa")
    assert not excluded(family, x_dims="image")
    assert not excluded(family, x_padding=8, x_records="soa")
    surface = at(
        "data",
        "y",
        value={"role": "output", "type": "float32", "shape": ["n", "m"], "layout": {"padding": 8}},
    )
    family = load(tmp_path, changed(surface, layout("dims", ["1d", "image"], ("y",))))
    assert "y: padding: 8 leaves no rows" in excluded(family, y_dims="image")


def test_merged_arrays_that_are_stored_otherwise(tmp_path: Path) -> None:
    second = at("data", "z", value={"role": "input", "type": "int32", "shape": ["n", "m"]})
    merged = layout("grouping", ["split", "merged"], ("x", "z"))
    own = (layout("memory", ["global", "texture"]), layout("memory", ["global", "texture"], ("z",)))
    free = at("policies", "memory", value={"values": [0], "default": 0})
    family = load(tmp_path, changed(second, merged, free, *own))
    assert not excluded(family, x_memory="texture", z_memory="global")
    assert not excluded(family, x_z_grouping="merged", x_memory="texture", z_memory="texture")
    assert excluded(family, x_z_grouping="merged", x_memory="texture") == (
        "x and z are merged into one buffer, so their memory has to be the same, not texture and global"
    )
    always = at("policies", "x_z_grouping", "default", value="merged")
    apart = at("policies", "z_memory", "default", value="texture")
    assert "break a constraint: x and z are merged" in refusal(
        tmp_path, changed(second, merged, free, *own, always, apart)
    )

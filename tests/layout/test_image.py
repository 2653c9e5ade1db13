"""Images by hand: which layouts have rows of their own, their sizes and types, and what is rejected."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import data, random_array, record

from autotune.hardware import Limits
from autotune.layout import Sampling
from autotune.layout.image import EDGES, FILTERS, READS
from autotune.layout.layout import IMAGES, Layout

MIRRORED = Sampling("mirror", "normalised", "linear")


@pytest.mark.parametrize(
    ("axes", "size", "words"),
    [((0, 1), (3, 2), [0, 1, 2, 3, 4, 5]), ((1, 0), (2, 3), [0, 3, 1, 4, 2, 5])],
)
def test_rows_are_the_arrays_own(axes: tuple[int, int], size: tuple[int, int], words: list[int]) -> None:
    layout = Layout(data=data(rank=2), memory="texture", dims="image", axes=axes)
    stored = layout.apply(np.arange(6, dtype=np.int32).reshape(2, 3))
    assert stored.raster is not None and stored.buffer is not None
    assert (stored.raster.size, stored.raster.element, stored.plane) == (size, "int32", None)
    assert (stored.raster.is_surface, stored.raster.is_pitched, stored.extents) == (False, False, (2, 3))
    assert stored.buffer.view(np.int32).tolist() == words
    assert not layout.is_canonical((2, 3))  # a kernel cannot read a caller's linear memory by it


def test_a_volume_has_a_depth() -> None:
    room = Layout(data=data("float32", rank=3), memory="texture", dims="image").room((4, 5, 6))
    assert room.raster is not None and room.raster.size == (6, 5, 4)


TEXTURE = "autotune::TextureImage<float, autotune::Extents<0, 0>, autotune::Edge::"


@pytest.mark.parametrize(
    ("sampling", "choice", "cpp"),
    [
        (None, {"memory": "texture", "dims": "image"},
         f"{TEXTURE}clamp, autotune::Elements, autotune::Nearest, 0, 1>"),
        (Sampling("wrap", filter="linear"), {"memory": "texture", "dims": "image_pitched", "axes": (1, 0)},
         f"{TEXTURE}wrap, autotune::Elements, autotune::Linear, 1, 0>"),
        (MIRRORED, {"memory": "readonly", "dims": "image"},
         ("autotune::Image<autotune::Array<float, autotune::ReadOnly<autotune::Texel<4>>, "
         "autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned, 0, 1>>, "
         "autotune::Dims1D, autotune::Aos, autotune::Merged<1, 0>>, 2, autotune::Edge::mirror, autotune::Normalised, "
         "autotune::Linear>")),
    ],
)  # fmt: skip
def test_types(sampling: Sampling | None, choice: dict[str, Any], cpp: str) -> None:
    assert Layout(data=data("float32", rank=2, sampling=sampling), **choice).cpp == cpp


def test_an_output_is_a_surface() -> None:
    layout = Layout(data=replace(record("int16", "int16", rank=2), role="output"), dims="image")
    assert layout.cpp == "autotune::SurfaceImage<Record, autotune::Extents<0, 0>, 0, 1>"
    room = layout.room((2, 3))
    assert room.raster is not None and room.raster.is_surface and room.raster.element == ""


@pytest.mark.parametrize("memory", ["global", "readonly", "constant"])
@pytest.mark.parametrize("dims", IMAGES)
def test_elsewhere_an_image_is_a_line(memory: str, dims: str) -> None:
    image, line = (Layout(data=data(rank=2), memory=memory, dims=each) for each in (dims, "1d"))
    assert image.cpp == line.cpp
    assert image.room((4, 5)) == line.room((4, 5))


@pytest.mark.parametrize(
    ("declared", "choice", "shape", "reason"),
    [
        (data(rank=1), {}, (9,), "a has 1 extents, and an image has two or three"),
        (record(*["float32"] * 3, rank=2), {}, (2, 2), "1, 2, 4, 8 or 16 bytes for each element, not 3 of 4"),
        (record(*["float32"] * 2, rank=2), {"records": "soa"}, (2, 2), "not 2 of 4"),
        (data(rank=2), {"padding": 8}, (2, 2), "a: padding: 8 leaves no rows that an image could have"),
        (data(rank=2), {"tiles": (2, 2)}, (2, 2), "a: tiles leaves no rows that an image could have"),
        (data(rank=2), {"group": (2, 1)}, (2, 2), "grouping: merged leaves no rows"),
        (data(rank=3), {"dims": "image_pitched"}, (2, 2, 2), "image_pitched of three extents"),
        (data(rank=2), {}, (2, 131073), "image of (131073, 2) texels passes the 2D texture limit of (131072, 65536)"),
        (data(rank=2), {"dims": "image_pitched"}, (65001, 2), "passes the pitched texture limit of (131072, 65000)"),
        (data(rank=3), {}, (2, 16385, 2), "passes the 3D texture limit of (16384, 16384, 16384)"),
    ],
)  # fmt: skip
def test_refused(declared: Any, choice: dict[str, Any], shape: tuple[int, ...], reason: str) -> None:
    layout = Layout(data=declared, memory="texture", **{"dims": "image", **choice})
    assert reason in layout.room(shape).explain_refusal(declared, Limits())
    elsewhere = replace(layout, memory="global")
    assert elsewhere.room(shape).explain_refusal(declared, Limits()) == ""


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_restore_inverts_apply(drawn: st.DataObject) -> None:
    shape = tuple(drawn.draw(st.lists(st.integers(1, 6), min_size=2, max_size=3)))
    declared = data(drawn.draw(st.sampled_from(["uint8", "int16", "float32", "float64"])), rank=len(shape))
    axes = tuple(drawn.draw(st.permutations(range(len(shape)))))
    layout = Layout(data=declared, memory="texture", dims="image", axes=axes)
    array = random_array(declared, shape, None, seed=1)
    stored = layout.apply(array)
    assert stored.raster is not None and stored.buffer is not None
    assert layout.restore(stored, shape).tobytes() == array.tobytes()
    texels = stored.buffer.view(f"V{stored.texel_bytes}").reshape(stored.raster.size[::-1])
    for index in np.ndindex(
        shape
    ):  # texel (x, y, z) is the element whose indices these are, contiguous first
        assert texels[tuple(index[axis] for axis in axes)].tobytes() == array[index].tobytes()


def test_every_choice_has_a_type_of_its_own() -> None:
    said = {Sampling(edge, read, way).cpp for edge in EDGES for read in READS for way in FILTERS}
    assert len(said) == len(EDGES) * len(READS) * len(FILTERS)

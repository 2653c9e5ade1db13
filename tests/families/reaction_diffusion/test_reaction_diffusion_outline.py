"""The outlines of cells and the schedules of launches of the reaction-diffusion family."""

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from autotune.declaration import family as families
from autotune.errors import WorkloadError

FAMILY = families.load_family("reaction_diffusion")
MODULE: Any = FAMILY.module
OUTLINE: Any = importlib.import_module(f"{MODULE.__name__}.outline")
SCHEDULE: Any = importlib.import_module(f"{MODULE.__name__}.schedule")


# ---- outlines


@given(arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, max_side=9)))
def test_sides_are_open_between_inside_points_alone(inside: np.ndarray) -> None:
    sides = OUTLINE.open_sides(inside)
    around = np.pad(inside, 1)
    for bit, (dy, dx) in {1: (-1, 0), 2: (1, 0), 4: (0, -1), 8: (0, 1)}.items():
        neighbour = np.roll(around, (-dy, -dx), (0, 1))[1:-1, 1:-1]
        np.testing.assert_array_equal((sides & bit) != 0, inside & neighbour)
    MODULE.reference(
        {"initial": inside, "beam": inside * 0, "detector": inside, "open_sides": sides},
        {
            "diffusion": 0.1,
            "bleaching": 0,
            "steps": 1,
            "interval": 1,
            "beam_shape": "any",
            "walls": "outline",
        },
    )  # accepts them; it refuses sides that contradict each other


def test_the_reference_refuses_sides_that_contradict_each_other() -> None:
    arrays_ = {name: np.ones((2, 2)) for name in ("initial", "beam", "detector")}
    options = {
        "diffusion": 0.1,
        "bleaching": 0,
        "steps": 1,
        "interval": 1,
        "beam_shape": "any",
        "walls": "outline",
    }
    for sides, message in (([[2, 0], [0, 0]], "from the other"), ([[1, 0], [0, 0]], "out of the lattice")):
        with pytest.raises(WorkloadError, match=message):
            MODULE.reference({**arrays_, "open_sides": np.array(sides, np.uint8)}, options)


@settings(deadline=None)
@given(arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, max_side=20)).filter(lambda a: bool(a.any())))
def test_outlines_of_all_formats_are_read_alike(
    tmp_path_factory: pytest.TempPathFactory, inside: np.ndarray
) -> None:
    from PIL import Image

    folder = tmp_path_factory.mktemp("outline")
    rows, columns = inside.shape
    size = f"{columns} {rows}".encode()
    packed = np.packbits(inside, axis=1).tobytes()
    grey = np.where(inside, 200, 90).astype(np.uint8)
    plain = "\n".join(" ".join(map(str, row)) for row in grey).encode()
    contents = {
        "raw.pbm": b"P4 # by hand\n" + size + b"\n" + packed,
        "plain.pbm": b"P1\n" + size + b"\n" + b"\n".join(bytes(48 + row) for row in inside.astype(np.uint8)),
        "raw.pgm": b"P5\n#\n" + size + b" 255\n" + grey.tobytes(),
        "plain.pgm": b"P2 " + size + b" 255\n" + plain,
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    np.save(folder / "array.npy", inside)
    Image.fromarray(inside.astype(np.uint8) * 255).save(folder / "image.png")
    for path in sorted(folder.iterdir()):
        np.testing.assert_array_equal(OUTLINE.read_outline(path), inside, err_msg=path.name)


@settings(deadline=None)
@given(
    st.sampled_from([b"P1", b"P2", b"P4", b"P5", b"\x89PNG\r\n\x1a\n", b""]),
    st.binary(max_size=60),
    st.sampled_from([".pgm", ".png", ".npy"]),
)
def test_a_broken_image_is_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, magic: bytes, rest: bytes, suffix: str
) -> None:
    path = tmp_path_factory.mktemp("broken") / f"image{suffix}"
    path.write_bytes(magic + rest)
    try:
        inside = OUTLINE.read_outline(path)
    except WorkloadError as refused:
        assert str(path) in str(refused)
    else:
        assert inside.any()


@pytest.mark.parametrize("values", [np.zeros((3, 3)), np.ones(3), np.ones((0, 3)), np.array([[np.nan, 1.0]])])
def test_arrays_that_are_no_outline_are_refused(values: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(WorkloadError, match=re.escape("a.npy")):
        OUTLINE.read_outline(tmp_path / "a.npy")


# ---- schedules


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3000), st.integers(1, 700), st.integers(1, 24))
def test_a_schedule_takes_every_step_and_every_sample(steps: int, interval: int, time_block: int) -> None:
    made = SCHEDULE.schedule(steps, interval, time_block)
    done, taken, source = 0, [0], 0
    for launches in (*[made.cycle] * made.repeats, made.rest):
        base = taken[-1]
        for block in launches:
            assert 1 <= block.steps <= time_block
            assert block.source == source
            done, source = done + block.steps, 1 - source
            assert bool(block.sample) == (done % interval == 0)
            if block.sample:
                taken.append(base + block.sample)
                assert taken[-1] * interval == done
        if launches is made.cycle:
            assert source == 0
    assert done == steps
    assert taken == list(range(steps // interval + 1))
    assert source == made.source
    # A persistent launch cuts its time blocks in the same way, so it ends in the same field.
    assert source == len(SCHEDULE.blocks(steps, interval, time_block)) % 2
    assert not made.repeats or len(made.cycle) <= 2 * max(1000, -(-interval // time_block))

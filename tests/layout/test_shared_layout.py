"""Arrays in shared memory whose layouts policies choose: their bank conflicts, and a family on the cpu device."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from cpu_results import backend, compiled, results
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.cli.commands import main
from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.toolchain import Compiled
from autotune.compile.variant import Variant, batch
from autotune.declaration import family as families
from autotune.declaration.family_folder import Family
from autotune.declaration.workload import bind
from autotune.device.cpu.backend import CpuBackend
from autotune.errors import AutotuneError
from autotune.layout.arrays import Data, Field
from autotune.layout.dimensions import layout_of
from autotune.layout.shared_layout import SharedLayout

__all__ = ["backend"]


def shared(sizes: tuple[int, ...], kind: str = "float32", **choices: Any) -> SharedLayout:
    names = ("plane", "row", "column")[-len(sizes) :]
    data = Data(name="tile", role="shared", fields=(Field("", kind),), shape=names)
    return SharedLayout(replace(layout_of(data, choices), sizes=sizes))


# -- bank conflicts -----------------------------------------------------------------------------------------


def test_rows_of_32_words_meet_in_one_bank_and_swizzled_ones_do_not() -> None:
    assert shared((32, 32)).wavefronts() == {
        "along row": (32, 1), "along column": (1, 1), "along column by 2": (2, 2), "along column by 4": (4, 4),
    }  # fmt: skip
    assert shared((32, 32), padding="1+1").wavefronts()["along row"] == (1, 1)
    assert shared((32, 32), swizzle="xor32").wavefronts()["along row"] == (1, 1)
    assert shared((32, 32), swizzle="xor8").wavefronts()["along row"] == (4, 1)
    assert shared((32, 32), swizzle="xor32", padding="1+1").wavefronts()["along row"] == (32, 1)
    assert shared((32, 32), axes=["column", "row"]).wavefronts()["along column"] == (32, 1)


def test_a_swizzle_by_groups_leaves_vectors_whole() -> None:
    assert shared((8, 32), swizzle="xor8").wavefronts()["along column by 4"] is None
    by_groups = shared((8, 32), swizzle="xor8x4").wavefronts()
    assert by_groups["along column by 4"] == (4, 4)
    assert by_groups["along row"] == (1, 1)
    assert shared((32, 32), swizzle="xor8x4").wavefronts()["along row"] == (4, 1)


def test_short_and_long_elements_share_words_and_take_two() -> None:
    assert shared((32, 32), "uint8").wavefronts()["along column"] == (1, 1)
    assert shared((32, 32), "uint8").wavefronts()["along row"] == (8, 1)
    assert shared((16, 16), "float64").wavefronts() == {
        "along row": (32, 2), "along column": (2, 2), "along column by 2": (4, 4),
    }  # fmt: skip
    assert shared((16, 16), "float64", swizzle="xor16").wavefronts()["along row"] == (2, 2)


@st.composite
def arrays(draw: st.DrawFn) -> SharedLayout:
    sizes = draw(
        st.sampled_from([(40,), (5, 12), (8, 32), (32, 32), (33, 17), (3, 4, 10), (2, 8, 16), (7, 64)])
    )
    choices: dict[str, Any] = {"padding": draw(st.sampled_from([1, 8, "1+1", "16+4"]))}
    names = ["plane", "row", "column"][-len(sizes) :]
    choices["axes"] = draw(st.permutations(names))
    if len(sizes) > 1:
        groups, width = (2 ** draw(st.integers(0, 5)) for _ in range(2))
        choices["swizzle"] = f"xor{groups}x{width}"
    if draw(st.booleans()):
        choices["tiles"] = {name: draw(st.sampled_from([1, 2, 4, 5])) for name in names}
    return shared(sizes, draw(st.sampled_from(["uint8", "int16", "float32", "float64"])), **choices)


@settings(max_examples=60, deadline=None)
@given(arrays())
def test_elements_lie_apart_and_come_back(array: SharedLayout) -> None:
    layout, sizes = array.layout, array.layout.sizes
    places = layout.mapping.element(list(np.indices(sizes)), sizes)
    assert len(np.unique(places)) == places.size
    assert 0 <= places.min() <= places.max() < array.elements
    numbers = np.arange(places.size).reshape(sizes)
    stored = layout.mapping.arrange(numbers)
    np.testing.assert_array_equal(stored[places], numbers)
    np.testing.assert_array_equal(layout.mapping.restore(stored, sizes), numbers)


@settings(max_examples=60, deadline=None)
@given(arrays())
def test_wavefronts_are_those_of_a_count_by_hand(array: SharedLayout) -> None:
    """Thread by thread: threads are dealt with together while their bytes are no more than the banks give."""
    layout, sizes, size = array.layout, array.layout.sizes, array.layout.value_bytes
    found = array.wavefronts()
    for axis, name in enumerate(layout.data.shape):
        order = sorted(np.ndindex(*sizes), key=lambda at: (*at[:axis], *at[axis + 1 :], at[axis]))
        bytes_of = [size * int(layout.mapping.element(at, sizes)) for at in order]
        together = min(32, 128 // size)
        most = 0
        for warp in range(0, len(bytes_of), 32):
            lanes = bytes_of[warp : warp + 32]
            passes = 0
            for first in range(0, 32, together):
                banks: dict[int, set[int]] = {}
                for begin in lanes[first : first + together] or lanes[-1:]:
                    for word in range(begin // 4, (begin + size - 1) // 4 + 1):
                        banks.setdefault(word % 32, set()).add(word)
                passes += max(map(len, banks.values()))
            most = max(most, passes)
        assert found[f"along {name}"] == (most, 32 // together)


# -- a family -----------------------------------------------------------------------------------------------

DECLARATION = """
schema: 1
family: around
source: around.cu
reference: control
extents: {reach: {value: 2}}
data:
  x: {role: input, type: float64, shape: [row, column]}
  y: {role: output, type: float64, shape: [row, column]}
shared:
  tile: {type: float64, shape: [height, width + 2 * reach], layout: {swizzle: xor4x2}}
  turned: {type: float64, shape: [width, height]}
kernels:
  around: {arguments: [x, y], grid: ["ceil_div(column, width)", "ceil_div(row, height)"], block: [width, height]}
policies:
  width: {values: [8, 12], default: 8}
  height: {values: [5, 8], default: 5}
  tile_gap: {layout: padding, data: [tile], values: [1, 1+1], default: 1}
  turned_axes:
    layout: axes
    data: [turned]
    values: [rows, columns]
    means: {rows: [row, column], columns: [column, row]}
    default: rows
  turned_swizzle: {layout: swizzle, data: [turned], values: [none, xor8, xor2x4], default: none}
  turned_tiles: {layout: tiles, data: [turned], values: [none, 4x2], default: none}
"""
SOURCE = """
#include "autotune/array.cuh"

template <class Policy>
__global__ void around(typename Policy::x x, typename Policy::y y) {
  __shared__ typename Policy::tile tile;
  __shared__ typename Policy::turned turned;
  static_assert(Policy::tile::extent(1) == Policy::width + 4);
  const int left = blockIdx.x * Policy::width, row = blockIdx.y * Policy::height + threadIdx.y;
  const int rows = x.extent(0), columns = x.extent(1), column = left + threadIdx.x;
  for (int k = threadIdx.x; k < Policy::width + 4; k += Policy::width)
    tile(threadIdx.y, k) = x.load(min(row, rows - 1), min(max(left + k - 2, 0), columns - 1));
  __syncthreads();
  turned(threadIdx.x, threadIdx.y) = tile(threadIdx.y, threadIdx.x) + tile(threadIdx.y, threadIdx.x + 4);
  __syncthreads();
  if (row < rows && column < columns) y.store(turned(threadIdx.x, threadIdx.y), row, column);
}
"""


def around(folder: Path, text: str = DECLARATION) -> Family:
    (folder / "family.yaml").write_text(text)
    (folder / "around.cu").write_text(SOURCE)
    return families.load_family(str(folder))


def test_each_layout_of_shared_arrays_gives_what_numpy_gives(tmp_path: Path, backend: CpuBackend) -> None:
    family = around(tmp_path)
    x = np.random.default_rng(7).normal(size=(13, 31))
    padded = np.pad(x, ((0, 0), (2, 2)), mode="edge")
    variants = [Variant(family, c) for c in family.space.configurations()[::5]]
    for policy in family.space.policies:
        assert {variant.configuration[policy.name] for variant in variants} == set(policy.values), policy.name
    binaries = compiled(backend, variants, 10, optimize="-Og")
    for variant, found in results(backend, binaries, bind(family, {"x": x}, {}, {})):
        np.testing.assert_array_equal(
            found["y"], padded[:, :-4] + padded[:, 4:], err_msg=variant.configuration.id
        )


@pytest.mark.nvrtc
def test_a_gpu_s_compiler_takes_them(tmp_path: Path) -> None:
    family = around(tmp_path)
    variants = tuple(Variant(family, c) for c in family.space.configurations()[::13])
    for variant, made in zip(
        variants,
        compile_batch(batch(family, variants), Nvrtc("sm_90"), Cache(tmp_path / "cache")),
        strict=True,
    ):
        assert isinstance(made, Compiled), made
        figures = made.figures["around"]
        assert figures["static_shared_bytes"] == sum(array.nbytes for array in variant.shared.values())
        assert figures["local_bytes"] == 0


def test_show_counts_conflicts_of_each_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    around(tmp_path)
    assert main(["show", str(tmp_path), "height=8,turned_swizzle=xor8"]) == 0
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "turned, in shared memory: wavefronts of a request / the fewest possible" in shown
    assert "turned_axes=rows, turned_swizzle=none, turned_tiles=none 512 8 / 2 2 / 2 4 / 4" in shown
    assert "turned_axes=rows, turned_swizzle=xor8, turned_tiles=none* 512 2 / 2 2 / 2 no vector" in shown
    assert "tile_gap=1*" in " ".join(shown)


def test_lint_takes_shared_arrays_as_read(tmp_path: Path) -> None:
    lint = pytest.importorskip("autotune.authoring.lint").lint
    around(tmp_path)
    assert "unread-policy" not in {found.rule for found in lint(str(tmp_path))}


def test_an_extent_that_is_empty_is_no_configuration(tmp_path: Path) -> None:
    family = around(tmp_path, DECLARATION.replace("shape: [width, height]", "shape: [12 - width, height]"))
    with pytest.raises(AutotuneError, match="turned: extent row, 12 - width, is at least 1"):
        family.space.configuration("width=12,height=5")


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("type: float64, shape: [height,", "type: float16, shape: [height,", "float16"),
        ("[width, height]", "[width, rows]", "rows"),
        ("[width, height]", "[0, height]", "shared turned: an extent of 0: each is a whole number of at least 1"),
        ("{swizzle: xor4x2}", "{records: soa}", "layout of an array in shared memory"),
        ("{swizzle: xor4x2}", "{swizzle: xor3}", "3 is not a power of two"),
        ("layout: padding, data: [tile], values: [1, 1+1], default: 1",
         "layout: swizzle, data: [tile], values: [none], default: none", "both choose the swizzle of tile"),
        ("layout: padding, data: [tile]", "layout: memory, data: [tile]", "layout of an array in shared memory"),
        ("reach: {value: 2}", "reach: {value: 2}, tile: {value: 2}", "the name 'tile' is used twice"),
        ("data: [turned]\n    values: [rows", "data: [twisted]\n    values: [rows", "twisted"),
        ("source: around.cu", "source: around.cu\nchoices: macros", "shared: these are members of Policy"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(tmp_path: Path, right: str, wrong: str, message: str) -> None:
    assert right in DECLARATION
    with pytest.raises(AutotuneError, match=message):
        around(tmp_path, DECLARATION.replace(right, wrong))


def test_other_rows_are_another_space(tmp_path: Path) -> None:
    digest = around(tmp_path).space_digest
    turned = DECLARATION.replace("[width, height]", "[height, width]")
    assert around(tmp_path, turned).space_digest != digest
    assert yaml.safe_load(turned)["shared"]["turned"]["shape"] == ["height", "width"]

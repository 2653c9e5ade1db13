"""Converted views: an array that another kernel reads in a layout of its own, by a copy that the plan makes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from demo_family import Change, at, load, refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import data, record

import autotune
from autotune.cli.commands import main
from autotune.compile.batches import compile_batch, compile_many
from autotune.compile.cache import Cache, default_root
from autotune.compile.conversion import Conversion, order_launches
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.toolchain import Compiled
from autotune.compile.variant import Variant, batch
from autotune.declaration import family as families
from autotune.declaration.workload import bind
from autotune.device.backend import Backend
from autotune.device.cpu.backend import CpuBackend
from autotune.device.resident import Resident, compile_module
from autotune.errors import FamilyError, UnknownName
from autotune.layout.layout import Layout
from autotune.layout.views import ALIAS, COPIED, SEEN, convert_layout, relation, tile_edge

FAMILY = """\
schema: 1
family: turning
source: turning.cu
data:
  x: {role: input, type: float32, shape: [frame, row, column]}
  x_turned: {role: view, of: x, converted: true, type: float32, shape: [frame, row, column]}
  pairs: {role: scratch, record: Pair, fields: {a: float32, b: float32, c: float32}, shape: [frame, row, column]}
  seen:
    {role: view, of: pairs, converted: true, record: Pair, fields: {a: float32, b: float32, c: float32},
     shape: [frame, row, column]}
  y: {role: output, type: float32, shape: [frame, row, column]}
kernels:
  first: {arguments: [x, pairs], grid: [frame * row], block: [32]}
  look: {arguments: [x_turned, seen, y], grid: [frame * row], block: [32]}
  second: {arguments: [x, pairs], grid: [frame * row], block: [32]}
  again: {arguments: [x_turned, seen, y], grid: [frame * row], block: [32]}
policies:
  x_axes:
    {layout: axes, data: [x_turned], values: [same, turned], means: {turned: [column, frame, row]}, default: same}
  x_memory: {layout: memory, data: [x_turned], values: [same, readonly, texture], default: same}
  seen_axes: {layout: axes, data: [seen], values: [same, turned], means: {turned: [row, column, frame]}, default: same}
  seen_records:
    {layout: records, data: [seen], values: [same, soa, aosoa4, apart], means: {apart: a+b-c}, default: same}
  seen_memory: {layout: memory, data: [seen], values: [global, texture], default: global}
  pairs_records: {layout: records, data: [pairs], values: [aos, soa], default: aos}
  x_storage: {layout: storage, data: [x_turned], values: [same, float16, bfloat16], default: same}
  seen_tiles: {layout: tiles, data: [seen], values: [same, small], means: {small: {row: 4, column: 8}}, default: same}
  own_storage: {layout: storage, data: [x], values: [float32, scaled_int8], default: float32}
"""
# y = x + (1 + 10 + 100) x, and then y += x + (2 + 20 + 200) x
SOURCE = """\
#include "autotune/array.cuh"
struct Pair { float a, b, c; };
template <class Policy, class Pairs>
AUTOTUNE_DEVICE void fill(typename Policy::x x, Pairs pairs, float factor) {
  const unsigned i = blockIdx.x / x.extent(1), j = blockIdx.x % x.extent(1);
  for (unsigned k = threadIdx.x; k < x.extent(2); k += 32) {
    const float value = factor * x.load(i, j, k);
    pairs.store(Pair{value, 10 * value, 100 * value}, i, j, k);
  }
}
template <class Policy>
AUTOTUNE_DEVICE void sum(typename Policy::x_turned x, typename Policy::seen seen, typename Policy::y y, bool adds) {
  const unsigned i = blockIdx.x / y.extent(1), j = blockIdx.x % y.extent(1);
  for (unsigned k = threadIdx.x; k < y.extent(2); k += 32) {
    const Pair pair = seen.load(i, j, k);
    const float before = adds ? y.load(i, j, k) : 0.0f;
    y.store(before + x.load(i, j, k) + pair.a + pair.b + pair.c, i, j, k);
  }
}
template <class Policy>
__global__ void first(typename Policy::x x, typename Policy::pairs pairs) { fill<Policy>(x, pairs, 1); }
template <class Policy>
__global__ void second(typename Policy::x x, typename Policy::pairs pairs) { fill<Policy>(x, pairs, 2); }
template <class Policy>
__global__ void look(typename Policy::x_turned x, typename Policy::seen seen, typename Policy::y y) {
  sum<Policy>(x, seen, y, false);
}
template <class Policy>
__global__ void again(typename Policy::x_turned x, typename Policy::seen seen, typename Policy::y y) {
  sum<Policy>(x, seen, y, true);
}
"""
CHOSEN = (
    "x_axes=same",
    "x_memory=readonly",
    "x_memory=texture",
    "x_axes=turned",
    "x_axes=turned,x_memory=texture",
    "seen_axes=turned",
    "seen_records=soa",
    "seen_records=apart,seen_axes=turned",
    "pairs_records=soa",
    "seen_memory=texture",
    "x_storage=float16,x_memory=texture",
    "own_storage=scaled_int8,x_axes=turned",
    "seen_tiles=small,x_axes=turned",
    "seen_axes=turned,seen_records=aosoa4,x_storage=bfloat16,seen_memory=texture,x_axes=turned,x_memory=readonly",
)


def turning(folder: Path) -> families.Family:
    (folder / "family.yaml").write_text(FAMILY)
    (folder / "turning.cu").write_text(SOURCE)
    return families.load_family(folder)


def check(backend: Backend, folder: Path) -> None:
    """On several shapes, run after run, over copies that hold something else before."""
    family = turning(folder)
    variants = tuple(Variant.make(family, family.space.configuration(text), {}) for text in CHOSEN)
    chunks = compile_many(
        batch(family, variants), backend.toolchain(), Cache(default_root()), 1, len(CHOSEN), early=False
    )
    binaries = [binary for chunk in chunks for binary in chunk]
    for shape in ((2, 33, 40), (1, 1, 1), (3, 5, 65)):
        x = np.random.default_rng(5).integers(0, 8, shape).astype(np.float32)
        resident = Resident(backend, bind(family, {"x": x}, {}, {}))
        for variant, binary in zip(variants, binaries, strict=True):
            assert isinstance(binary, Compiled), binary
            execution = resident.execution(variant, backend.load(binary))
            off = 335 / 32 if variant.configuration["own_storage"] == "scaled_int8" else 0.0
            for byte in (0xFF, 0xA5):
                for name in ("pairs", "y", *variant.conversions):
                    backend.fill(execution.placed[name], byte)
                execution.run()
                found = execution.restore("y", shape)
                np.testing.assert_allclose(found, x * 335, rtol=0, atol=off, err_msg=variant.configuration.id)
        resident.close()


def test_every_layout_gives_the_same_on_the_cpu(tmp_path: Path) -> None:
    with CpuBackend(1) as backend:
        check(backend, tmp_path)


@pytest.mark.gpu
def test_every_layout_gives_the_same_on_a_gpu(tmp_path: Path) -> None:
    from autotune.device.cuda.backend import CudaBackend

    with CudaBackend(0) as backend:
        check(backend, tmp_path)


@pytest.mark.nvrtc
def test_the_copies_compile_for_a_gpu(tmp_path: Path) -> None:
    family = turning(tmp_path)
    variants = tuple(
        Variant.make(family, family.space.configuration(text), {}) for text in (CHOSEN[0], CHOSEN[-1])
    )
    built = compile_batch(batch(family, variants), Nvrtc("sm_90"), Cache(tmp_path / "cache"))
    assert all(isinstance(each, Compiled) for each in built)
    assert {"convert_seen", "convert_x_turned"} <= built[1].figures.keys() - built[0].figures.keys()


def test_what_is_launched_and_what_takes_memory(tmp_path: Path) -> None:
    family = turning(tmp_path)
    inputs = bind(family, {"x": np.ones((2, 3, 4), np.float32)}, {}, {})
    own = ("first", "look", "second", "again")
    with CpuBackend(1) as backend:
        resident = Resident(backend, inputs)
        footprints = {}
        for text in ("x_axes=same", "seen_memory=texture", "x_axes=turned", "seen_axes=turned"):
            variant = Variant.make(family, family.space.configuration(text), {})
            execution = resident.execution(variant, compile_module(backend, Cache(default_root()), variant))
            footprints[text] = execution.footprint_bytes
            times = backend.kernel_times(execution.run)
            if text == "x_axes=same":
                assert variant.turns == own and set(times) == set(own)
            if text == "x_axes=turned":  # an input is not written
                assert variant.turns == ("first", "convert_x_turned", *own[1:])
            if text == "seen_axes=turned":
                assert variant.turns == ("first", "convert_seen", "look", "second", "convert_seen", "again")
                assert times["convert_seen"] > 0
                assert execution.restore("seen", (2, 3, 4))["a"].tolist() == np.full((2, 3, 4), 2.0).tolist()
                execution.convert("x_turned")  # nothing to do
                with pytest.raises(UnknownName, match="unknown converted view 'pairs'"):
                    execution.convert("pairs")
            else:
                with pytest.raises(FamilyError, match="seen is a view of pairs: restore that"):
                    execution.restore("seen", (2, 3, 4))
        resident.close()
    assert footprints["x_axes=same"] == footprints["seen_memory=texture"]
    assert footprints["x_axes=turned"] == footprints["x_axes=same"] + 4 * 24
    assert footprints["seen_axes=turned"] == footprints["x_axes=same"] + 12 * 24


DEFAULTS = {"its own array": "same", "a copy": "turned"}


@pytest.mark.parametrize("default", DEFAULTS.values(), ids=DEFAULTS)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_call_converts_the_arrays_that_come_with_it(device: str, default: str, tmp_path: Path) -> None:
    turning(tmp_path)
    file = tmp_path / "family.yaml"
    file.write_text(file.read_text().replace("]}, default: same", f"]}}, default: {default}"))
    library = pytest.importorskip("cupy") if device == "cuda" else np
    with (
        pytest.warns(UserWarning, match="no usable policy file"),
        autotune.load(tmp_path, device=device, policies="/nowhere") as kernel,
    ):
        for seed in range(4):
            x = np.random.default_rng(seed).integers(0, 9, (2, 5, 7)).astype(np.float32)
            given = library.asarray(x)
            out = library.empty_like(given)
            for made in (kernel(given), kernel(given, out=out), kernel.prepare(given)()):
                np.testing.assert_array_equal(np.asarray(made.get() if device == "cuda" else made), x * 335)


# -- the rules by themselves ------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_block_for_every_value(drawn: st.DataObject) -> None:
    rank = drawn.draw(st.integers(1, 6))
    shape = drawn.draw(st.lists(st.integers(1, 70), min_size=rank, max_size=rank))
    fields = drawn.draw(st.sampled_from([("float32",), ("float64",) * 3, ("float64",) * 40]))
    declared = record(*fields, rank=rank)
    axes = tuple(drawn.draw(st.permutations(range(rank))))
    own = tuple(drawn.draw(st.permutations(range(rank))))
    made = Conversion(Layout(data=declared, axes=axes), Layout(data=declared, axes=own))
    edge = tile_edge(made.view)
    assert edge * (edge + 1) * declared.dtype.itemsize <= 48 << 10
    blocks = made.kernel.grid[0].integer(dict(zip(declared.shape, shape, strict=True)))
    if axes[-1] == own[-1]:
        assert (blocks - 1) * edge * edge < np.prod(shape, dtype=np.int64) <= blocks * edge * edge
        return
    tiles = [-(-n // edge) if i in (axes[-1], own[-1]) else n for i, n in enumerate(shape)]
    assert blocks == np.prod(tiles, dtype=np.int64)


def test_when_a_view_is_its_array() -> None:
    plain = data("float32", rank=2)
    scratch = Layout(data=replace(plain, role="scratch"))
    turned, wide = {"axes": (1, 0)}, {"padding": 4}
    for of, own, memory, expected in [
        (Layout(data=plain), {}, "", ALIAS),
        (Layout(data=plain), {"axes": (0, 1)}, "readonly", ALIAS),
        (Layout(data=plain), turned, "", COPIED),
        (Layout(data=plain, **turned), turned, "", ALIAS),
        (Layout(data=plain), wide, "", COPIED),
        (Layout(data=plain), {"tiles": (4, 4)}, "", COPIED),
        (Layout(data=plain), {}, "texture", COPIED),
        (scratch, {}, "texture", SEEN),
        (Layout(data=plain, memory="texture", dims="2d"), {}, "", ALIAS),
        (Layout(data=plain, memory="constant", constant_offset=64), {}, "", ALIAS),
        (Layout(data=plain, memory="constant"), {}, "global", COPIED),
        (Layout(data=plain, group=(2, 1)), {}, "", ALIAS),
        (Layout(data=plain, group=(2, 1)), turned, "", COPIED),
    ]:
        alike = replace(of, group=(1, 0), constant_offset=0, **own)
        assert relation(convert_layout(of, alike, memory), of) == expected, (of, own, memory)
    of = Layout(data=plain, memory="texture", dims="2d", group=(2, 1))
    copy = convert_layout(of, replace(of, group=(1, 0), **turned))
    assert (copy.memory, copy.dims, copy.group, copy.axes) == ("global", "1d", (1, 0), (1, 0))


def test_show_and_explain_name_the_copies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turning(tmp_path)
    (tmp_path / "workloads").mkdir()
    made = "schema: 1\nworkload: small\nfamily: turning\narrays: {x: {random: uniform, shape: [2, 3, 4]}}\n"
    (tmp_path / "workloads" / "small.yaml").write_text(made)
    told = "seen is a copy of pairs, made by convert_seen\n"
    assert main(["show", str(tmp_path), "seen_axes=turned"]) == 0
    assert told in capsys.readouterr().out
    file = tmp_path / "family.yaml"
    file.write_text(file.read_text().replace("frame]}, default: same", "frame]}, default: turned"))
    assert main(["explain", str(tmp_path), "-w", "small", "--device", "cpu", "--policies", "/nowhere"]) == 0
    assert told in capsys.readouterr().out


KEPT = {"role": "scratch", "type": "float32", "shape": ["n", "m"]}
VIEW = {"role": "view", "of": "kept", "converted": True, "type": "float32", "shape": ["n", "m"]}


def viewing(*changes: Change) -> Change:
    def change(content: dict[str, Any]) -> None:
        content["data"]["kept"] = dict(KEPT)
        content["data"]["seen"] = dict(VIEW)
        content["kernels"]["demo"]["arguments"] += ["kept", "seen"]
        for each in changes:
            each(content)

    return change


def layout(kind: str, values: list[Any]) -> Change:
    return at(
        "policies", "own", value={"layout": kind, "data": ["seen"], "values": values, "default": values[0]}
    )


REFUSED: list[tuple[str, Change, str]] = [
    ("of an output", at("data", "seen", "of", value="y"), "unknown input or scratch array 'y'"),
    ("another shape", at("data", "seen", "shape", value=["n"]), "kept has float32 of [n, m]"),
    ("other elements", at("data", "seen", "type", value="int32"), "has the elements and the shape of its array"),
    ("its own packing", layout("packing", ["int8"]), "records, storage, padding (not"),
    ("constant memory", layout("memory", ["same", "constant"]), "(not constant), each also same"),
    ("no layout of that name", layout("records", ["same", "soap"]), "unknown records layout 'soap'"),
    ("a pitch", at("data", "seen", "pitch", value="m"), "pitch is not for views"),
    ("of nothing", at("data", "y", "converted", value=True), "converted is for views: of names the array"),
    ("same of an array", at("policies", "memory", "values", value=["global", "same"]), "unknown memory layout 'same'"),
    ("the name of a kernel", at("kernels", "convert_seen", value={"arguments": ["kept"], "grid": ["n"], "block": [1]}),
     "the kernel that converts it is called convert_seen"),
    ("of an array in windows", at("data", "kept", value={**KEPT, "role": "input", "windowed": "n"}),
     "it is windowed, and seen is a converted view of all of it"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_what_cannot_be_converted_is_refused(change: Change, message: str, tmp_path: Path) -> None:
    assert message in refusal(tmp_path, viewing(change))


def test_a_family_with_conversions_is_not_exported(tmp_path: Path) -> None:
    chosen = pytest.importorskip("autotune.export.choices").select_entries
    with pytest.raises(FamilyError, match="seen is a converted view of kept, whose copy a kernel makes"):
        chosen(load(tmp_path, viewing()), [], "kernel")


def test_an_array_that_nobody_writes_again_is_converted_once(tmp_path: Path) -> None:
    family = turning(tmp_path)
    variant = Variant.make(family, family.space.configuration("seen_axes=turned"), {})
    kernels = {name: family.kernels[name] for name in ("look", "again")}
    assert list(order_launches(kernels, variant.conversions)) == ["convert_seen", "look", "again"]

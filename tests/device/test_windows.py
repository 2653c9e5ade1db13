"""Arrays walked through in windows of constant memory: the host's side, what is rejected, and a family that does it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import walker
from demo_family import at, refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache, default_root
from autotune.compile.nvrtc import Nvrtc
from autotune.compile.toolchain import CompileFailure
from autotune.compile.variant import Variant, batch
from autotune.declaration import family, workload
from autotune.device.cpu.backend import CpuBackend
from autotune.device.execution import Execution
from autotune.device.resident import run_once
from autotune.errors import FamilyError, UnknownName
from autotune.hardware import Limits
from autotune.layout.arrays import Data, Field
from autotune.layout.layout import Layout
from autotune.layout.window import cut, limit_shape, steps

ATOMS = Data(
    name="atoms",
    role="input",
    fields=tuple(Field(name, "float32") for name in "xyzq"),
    record="Atom",
    shape=("atoms",),
)


@pytest.mark.parametrize(
    ("layout", "most"),
    [
        (Layout(data=ATOMS, memory="constant"), 4096),
        (Layout(data=ATOMS, memory="constant", records="soa"), 4096),
        (Layout(data=ATOMS, memory="constant", constant_offset=65536 - 160), 10),
        (Layout(data=replace(ATOMS, constant_bytes=64000), memory="constant"), 4000),
        (Layout(data=ATOMS, memory="constant", padding=64, constant_offset=64), 4032),
        (Layout(data=ATOMS, memory="global"), 10000),
    ],
)
def test_a_window_is_what_fits(layout: Layout, most: int) -> None:
    assert limit_shape(layout, "atoms", (10000,), Limits()) == (most,)
    assert limit_shape(layout, "", (10000,), Limits()) == (10000,)


def test_arrays_over_one_extent_are_cut_alike() -> None:
    radii = Data(
        name="radii", role="input", fields=(Field("", "float64"),), shape=("atoms",), constant_bytes=8000,
    )  # fmt: skip
    windowed = {"atoms": "atoms", "radii": "atoms"}
    layouts = {
        "atoms": Layout(data=replace(ATOMS, constant_bytes=48000), memory="constant"),
        "radii": Layout(data=radii, memory="constant", constant_offset=48000),
    }
    assert steps(layouts, windowed, {"atoms": 10000}, Limits()) == {"atoms": 1000}
    layouts["radii"] = Layout(data=radii, memory="texture")
    assert steps(layouts, windowed, {"atoms": 10000}, Limits()) == {"atoms": 3000}


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_is_cut_can_be_put_together(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 40), st.integers(1, 5)))
    axis = data.draw(st.integers(0, 1))
    described = replace(ATOMS, shape=("n", "m"))
    layout = Layout(
        data=described,
        memory="constant",
        axes=data.draw(st.sampled_from([(0, 1), (1, 0)])),
        records=data.draw(st.sampled_from(["aos", "soa", "aosoa4"])),
        padding=data.draw(st.sampled_from([1, 8])),
    )
    step = data.draw(st.integers(1, shape[axis] + 1))
    array = np.arange(shape[0] * shape[1] * 4, dtype=np.float32).view(described.dtype).reshape(shape)
    everything, windows = cut(layout, "nm"[axis], array, step)
    assert everything.buffer is not None and everything.nbytes == everything.buffer.size
    pieces = []
    for window in windows:
        whole = (*shape[:axis], step, *shape[axis + 1 :])
        buffer = everything.buffer[window.begin : window.begin + window.stored.nbytes]
        stored = replace(window.stored, buffer=buffer, extents=layout.extents(whole))
        piece = layout.restore(stored, whole)
        assert window.stored.extents[axis] == window.count <= step
        pieces.append(np.take(piece, np.arange(window.count), axis))
        assert window.begin % 256 == 0
    assert [window.first for window in windows] == list(range(0, shape[axis], step))
    np.testing.assert_array_equal(np.concatenate(pieces, axis), array)


def bound(folder: Path) -> tuple[family.Family, workload.Inputs]:
    loaded = family.load_family(folder)
    return loaded, workload.prepare(loaded, workload.load_workload(loaded, "small"), folder)


def test_every_configuration_walks_through_its_windows(tmp_path: Path) -> None:
    loaded, inputs = bound(walker.write(tmp_path / "walker", items=9001))
    expected = loaded.module.reference(inputs.arrays, {})  # type: ignore[union-attr]
    with CpuBackend(2) as backend:
        for configuration in loaded.space.configurations(narrowed={"rows_at_once": ["4"]}):
            outputs = run_once(loaded, configuration, inputs, backend, Cache(default_root()))
            for name, array in outputs.items():
                np.testing.assert_array_equal(array, expected[name], configuration.id)


def opened(folder: Path, items: int, change: str = "") -> tuple[Execution, Any]:
    """A bound execution of the constant variant, its plan replaced by ``change``."""
    made = walker.write(folder, items=items)
    if change:
        (made / "family.py").write_text(walker.PYTHON + change)
    loaded, inputs = bound(made)
    from autotune.device.resident import Resident

    backend = CpuBackend(2)
    configuration = loaded.space.configuration("memory=constant")
    variant = Variant(loaded, configuration)
    execution = Resident(backend, inputs).execution(variant, walker.module(backend, variant))
    return execution, loaded.module.reference(inputs.arrays, {})  # type: ignore[union-attr]


def test_windows_are_announced_and_what_they_end_is_forgotten(tmp_path: Path) -> None:
    execution, expected = opened(tmp_path / "walker", 9001)
    assert list(execution.windows("items")) == [(0, 4096), (4096, 4096), (8192, 809)]
    for _ in execution.windows("items"):
        break  # a plan that leaves its loop
    with pytest.raises(UnknownName, match=r"'atoms'.*items"):
        next(execution.windows("atoms"))
    for _ in range(2):
        execution.run()
    np.testing.assert_array_equal(execution.restore("y", (10, 37)), expected["y"])
    assert execution.footprint_bytes > 9001 * 12


def test_a_launch_outside_of_the_loop_is_refused(tmp_path: Path) -> None:
    execution, _ = opened(
        tmp_path / "outside", 9001, "\n\ndef plan(execution):\n    execution.launch('walk')\n"
    )
    with pytest.raises(
        FamilyError, match=r"walk is launched with x, which is in 3 windows.*windows\(\"items\"\)"
    ):
        execution.run()
    execution, _ = opened(tmp_path / "none", 9001, "\n\ndel plan\n")
    with pytest.raises(FamilyError, match="in 3 windows"):
        execution.run()


def test_one_window_needs_no_loop_and_stays(tmp_path: Path) -> None:
    execution, expected = opened(
        tmp_path / "walker", 4096, "\n\ndef plan(execution):\n    execution.launch('walk')\n"
    )
    execution.run()
    np.testing.assert_array_equal(execution.restore("y", (10, 37)), expected["y"])
    execution.module.window[:] = 0  # another variant of the same binary  # type: ignore[attr-defined]
    execution.prepare()
    execution.run()
    np.testing.assert_array_equal(execution.restore("y", (10, 37)), expected["y"])


def test_outputs_padded_differently_do_not_share_their_room(tmp_path: Path) -> None:
    from autotune.device.resident import Resident

    loaded, inputs = bound(walker.write(tmp_path / "walker"))
    with CpuBackend(2) as backend:
        resident = Resident(backend, inputs)
        for padding in (1, 8):
            variant = Variant(loaded, loaded.space.configuration(f"padding={padding}"))
            execution = resident.execution(variant, walker.module(backend, variant))
            assert execution.placed["y"].stored.nbytes == 10 * (37 if padding == 1 else 40) * 4


def test_an_element_too_large_for_its_share_is_excluded(tmp_path: Path) -> None:
    made = walker.write(tmp_path / "walker")
    text = walker.FAMILY.replace("shape: [items], windowed: items, constant_bytes: 16384", "{}")
    text = text.replace("{}", "shape: [items, wide], windowed: items, constant_bytes: 64")
    (made / "family.yaml").write_text(text)
    loaded = family.load_family(made)
    variant = Variant(loaded, loaded.space.configuration("memory=constant"))
    sizes = {"items": 5, "wide": 17, "rows": 1, "width": 1}
    names = {**sizes, "rows_now": 1, **variant.configuration}
    assert "w: 68 bytes do not fit in 64 bytes of constant memory" in variant.explain_exclusion(
        names, Limits()
    )
    names["wide"] = 16
    assert variant.explain_exclusion(names, Limits()) == ""


def test_mistakes_are_refused(tmp_path: Path) -> None:
    assert "unknown extent 'k' in family demo: data x: windowed" in refusal(
        tmp_path, at("data", "x", "windowed", value="k")
    )
    assert "y: windowed is for inputs" in refusal(tmp_path, at("data", "y", "windowed", value="half"))

    def merged(content: dict[str, Any]) -> None:
        content["data"]["a"] = {"role": "input", "type": "int32", "shape": ["n"], "windowed": "n"}
        content["data"]["b"] = {"role": "input", "type": "int32", "shape": ["n"]}
        content["policies"]["group"] = {
            "layout": "grouping", "data": ["a", "b"], "values": ["split", "merged"], "default": "split",
        }  # fmt: skip

    assert "a is windowed" in refusal(tmp_path, merged)


@pytest.mark.nvrtc
def test_every_configuration_compiles_for_a_gpu(tmp_path: Path) -> None:
    loaded = family.load_family(walker.write(tmp_path / "walker"))
    variants = tuple(Variant(loaded, configuration) for configuration in loaded.space.configurations())
    built = compile_batch(batch(loaded, variants), Nvrtc("sm_90"), Cache(default_root()))
    assert len(built) == 24
    assert not [failure for failure in built if isinstance(failure, CompileFailure)]

"""The reaction-diffusion family on the cpu device: all ways to take a step give the same bits, and those are right."""

import importlib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import compiled, executions, outputs, results
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from autotune.compile.batches import compile_many
from autotune.compile.cache import Cache
from autotune.compile.toolchain import Compiled
from autotune.compile.variant import Variant, batch
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.workload import Inputs, bind
from autotune.device.backend import Backend
from autotune.device.cpu.backend import CpuBackend
from autotune.dispatch.target import Choosing
from autotune.dispatch.tuned_kernel import TunedKernel
from autotune.errors import AutotuneError, UsageError, WorkloadError
from autotune.hardware import Limits

FAMILY = families.load_family("reaction_diffusion")
MODULE: Any = FAMILY.module
OUTLINES: Any = importlib.import_module(f"{FAMILY.module.__name__}.outline")  # type: ignore[union-attr]
Outputs = dict[str, NDArray[np.float64]]

WAVE = (
    "field_memory=register_wave,boundary=clamp,coefficient=separable,strip=4,time_block=4,vector_width=2,"
    "block_size=128,block_rows=256"
)
# Every kind of field memory, coefficient, boundary and launch, time blocks that divide neither the steps nor the
# interval, tiles with and without whole vectors. Small tiles: a compiler for a cpu takes seconds over large ones.
RECTANGLE = [
    "field_memory=readonly,boundary=clamp,vector_width=4,strip=2",
    "field_memory=readonly,boundary=branch,vector_width=2,coefficient=recomputed,launch=each",
    "field_memory=texture,boundary=clamp,vector_width=4,strip=2",
    "field_memory=texture,boundary=branch,vector_width=1,launch=each,coefficient=recomputed",
    "field_memory=global,boundary=ghost,vector_width=4,strip=4,block_size=128,coefficient=separable,factor_memory=constant",
    "field_memory=global,boundary=ghost,launch=persistent",
    "field_memory=register_tile,boundary=mask,strip=4,time_block=1,coefficient=recomputed,block_size=128",
    "field_memory=register_tile,boundary=clamp,strip=6,time_block=4,vector_width=2,block_size=128",
    "field_memory=register_tile,boundary=mask,strip=1,time_block=2,block_size=256,coefficient=separable,launch=persistent",
    "field_memory=register_tile,boundary=clamp,coefficient=separable,strip=12,time_block=4,vector_width=4,block_size=256,launch=persistent",
    WAVE,
    *(
        text + ",field_padding=32+8"
        for text in (
            WAVE.replace("strip=4", "strip=2"),
            "field_memory=readonly,boundary=clamp,vector_width=4,strip=2",
        )
    ),
    "field_memory=register_tile,boundary=clamp,strip=4,time_block=4,vector_width=2,block_size=128,field_padding=32",
    "field_memory=global,boundary=ghost,field_axes=columns,field_padding=32+8,strip=2",
    "field_memory=global,boundary=clamp,field_axes=columns,coefficient=separable,launch=persistent",
]
GAPS = ("1", "32", "32+8")
OUTLINE = [
    "field_axes=columns,field_padding=32,strip=4",
    "field_memory=texture,vector_width=2,strip=4",
    "field_memory=register_tile,strip=4,time_block=4,vector_width=1,block_size=128",
    "field_memory=register_tile,strip=4,time_block=2,vector_width=2,block_size=128,coefficient=separable",
]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TunedKernel]:
    with pytest.warns(UserWarning, match="no usable policy file"):
        opened = TunedKernel(FAMILY, "cpu", Choosing(folders=[tmp_path_factory.mktemp("none")]))
    yield opened
    opened.close()


def inputs(inside: NDArray[np.bool_], options: dict[str, str], **experiment: float) -> Inputs:
    made = MODULE.Experiment(**{"seed": 5, "beam_radius": 1.0, "detector_radius": 3.0, **experiment}).inputs(
        inside
    )
    walls = "rectangle" if inside.all() else "outline"
    return bind(FAMILY, made, {"walls": walls, "beam_shape": "gaussian", **options}, {})


def run_all(backend: Backend, bound: Inputs, texts: list[str]) -> Iterator[tuple[str, Outputs]]:
    """The outputs of each configuration, every array but the inputs poisoned before."""
    configurations = [FAMILY.space.configuration(text) for text in ("control", *texts)]
    binaries = compiled(backend, [Variant.make(FAMILY, c, bound.options) for c in configurations], 24, "-Og")
    for variant, found in results(backend, binaries, bound, poison=0xFF):  # NaN
        yield variant.configuration.id, found


def check(backend: CpuBackend, bound: Inputs, texts: list[str], tolerance: float) -> None:
    """The first configuration against the reference, the others against the first, to the bit."""
    expected = MODULE.reference(dict(bound.arrays), {**bound.options, **bound.scalars})
    first: Outputs | None = None
    for name, found in run_all(backend, bound, texts):
        if first is None:
            first = found
            for output, values in expected.items():
                np.testing.assert_allclose(found[output], values, rtol=tolerance, atol=tolerance)
        for output, values in first.items():
            different = np.count_nonzero(found[output].view(np.uint64) != values.view(np.uint64))
            assert not different, f"{name}: {different} of {output} differ in a bit"


@pytest.mark.parametrize("columns", [131, 132])  # rows that are whole accesses are found without comparisons
def test_configurations_are_bit_equal_in_a_rectangle(backend: CpuBackend, columns: int) -> None:
    bound = inputs(np.ones((37, columns), np.bool_), {}, seconds=0.0047, sample_seconds=0.001)
    check(backend, bound, RECTANGLE, 2e-6)


@pytest.mark.parametrize("shape", [(300, 9), (2, 64), (4, 64), (5, 130), (9, 130)])
def test_a_wave_ends_in_any_row(backend: CpuBackend, shape: tuple[int, int]) -> None:
    # Two blocks one below the other, the second with fewer rows than the first; and fields lower than a halo, where a
    # row behind a wall is the mirror image of one behind the other.
    bound = inputs(np.ones(shape, np.bool_), {}, seconds=0.0013, sample_seconds=0.0005)
    check(backend, bound, [WAVE, WAVE.replace("time_block=4", "time_block=8")], 2e-6)


@pytest.mark.parametrize("shape", [(21, 51), (24, 56), (45, 51), (45, 107), (48, 112), (70, 160), (72, 168)])
def test_a_tile_that_stays_finds_its_halo_in_what_was_stored_of_rims(shape: tuple[int, int]) -> None:
    # One tile with walls on all sides, then up to nine, without marks in rims and with them. A tile has a block.
    tile = "field_memory=register_tile,boundary=clamp,strip=4,block_size=256,vector_width=2,time_block=4"
    bound = inputs(np.ones(shape, np.bool_), {}, seconds=0.0019, sample_seconds=0.0007)
    texts = [f"{tile},launch={launch}" for launch in ("persistent", "neighbours")]
    with CpuBackend(9) as backend:
        for seed in (0, 1):  # blocks in their order, and in one that is drawn
            with backend.shuffle(seed) if seed else nullcontext():
                check(backend, bound, texts, 2e-6)


@pytest.mark.parametrize(
    ("share", "more"),
    [(0.8, {}), (2, {}), (2, {"seed": -1, "beam_radius": 0.1})],
    ids=["outline", "whole", "mostly still"],
)
def test_the_reference_has_the_same_bits_in_blocks_of_any_size(
    monkeypatch: pytest.MonkeyPatch, share: float, more: dict[str, float]
) -> None:
    inside = np.random.default_rng(1).random((37, 23)) < share
    bound = inputs(inside, {}, seconds=0.0013, sample_seconds=0.0005, **more)

    def of_blocks(points: int) -> Outputs:
        monkeypatch.setattr(MODULE, "_BLOCK", points)
        return MODULE.reference(dict(bound.arrays), {**bound.options, **bound.scalars})

    whole = of_blocks(37 * 23)
    for points in (1, 5 * 23, 36 * 23):  # a row, some, all but one
        for output, values in of_blocks(points).items():
            np.testing.assert_array_equal(values, whole[output])


@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_that_meet_at_the_grids_barrier_take_turns_at_tiles(threads: int) -> None:
    bound = inputs(np.ones((48, 112), np.bool_), {}, seconds=0.0043, sample_seconds=0.0009)
    texts = [text for text in RECTANGLE if "launch=persistent" in text]
    with CpuBackend(threads) as backend:
        check(backend, bound, texts, 2e-6)


def test_configurations_are_bit_equal_in_an_outline(backend: CpuBackend) -> None:
    y, x = np.ogrid[:41, :70]
    inside = ((y - 20) ** 2 + (x / 1.7 - 20) ** 2 < 400) & ((x + 2 * y) % 23 > 1)
    check(backend, inputs(inside, {}, seconds=0.0031, sample_seconds=0.0007), OUTLINE, 2e-6)


def test_configurations_are_bit_equal_in_float64(backend: CpuBackend) -> None:
    bound = inputs(
        np.ones((19, 70), np.bool_), {"precision": "float64"}, seconds=0.0023, sample_seconds=0.0005
    )
    texts = [
        "field_memory=register_tile,boundary=clamp,strip=4,time_block=4,vector_width=1,block_size=128",
        "field_axes=columns,field_padding=32+8,boundary=branch",
    ]
    check(backend, bound, texts, 1e-13)


def test_a_field_of_float64_may_be_stored_as_float32(backend: CpuBackend) -> None:
    bound = inputs(
        np.ones((19, 70), np.bool_), {"precision": "float64"}, seconds=0.0023, sample_seconds=0.0005
    )
    expected = MODULE.reference(dict(bound.arrays), {**bound.options, **bound.scalars})["concentration"]
    texts = [f"field_storage=float32,field_axes={axes}" for axes in ("rows", "columns")]
    wide, *narrow = (found["concentration"] for _, found in run_all(backend, bound, texts))
    np.testing.assert_allclose(wide, expected, rtol=1e-13)
    for found in narrow:  # rounded once a step, and the same whatever the axes are
        np.testing.assert_array_equal(found, narrow[0])
        np.testing.assert_allclose(found, expected, rtol=23 * 2.0**-24)
        assert np.abs(found - expected).max() > 1e-9


@pytest.mark.parametrize(
    "text",
    ["control", RECTANGLE[0] + ",field_padding=32+8", "boundary=ghost,field_axes=columns,field_padding=32+8"],
)
def test_a_point_is_where_the_fields_layout_has_it(backend: CpuBackend, text: str) -> None:
    bound = inputs(np.ones((37, 131), np.bool_), {}, seconds=0.0002, sample_seconds=0.0002)
    variant = Variant.make(FAMILY, FAMILY.space.configuration(text), bound.options)
    for execution in executions(backend, compiled(backend, [variant], 1, "-Og"), bound):
        found = outputs(execution, bound, poison=0xFF)
        even = execution.restore("field_even", [39, 152])  # two steps: it has the last
        np.testing.assert_array_equal(even[1:-1, 8 : 8 + 131], found["concentration"].astype(np.float32))


@pytest.mark.parametrize(("precision", "item_bytes"), [("float32", 4), ("float64", 8)])
def test_a_field_takes_what_its_precision_needs(precision: str, item_bytes: int) -> None:
    bound = inputs(np.ones((5, 6), np.bool_), {"precision": precision})
    for text, row_points in (("control", 24), ("field_padding=32", 32), ("field_padding=32+8", 40)):
        configuration = FAMILY.space.configuration(text)
        layout = Variant.make(FAMILY, configuration, bound.options).layouts["field_even"]
        assert layout.room((7, 24)).nbytes == 7 * row_points * item_bytes


def test_a_wave_of_single_rows_is_refused() -> None:
    with pytest.raises(UsageError, match="the two last rows of the chunk above"):
        FAMILY.space.configuration(WAVE.replace("strip=4", "strip=1"))


@pytest.mark.parametrize(
    ("text", "precision", "reason"),
    [
        ("field_storage=float32", "float32", "stored as one already"),
        ("field_storage=float32", "float64", ""),
        ("field_axes=columns,field_padding=32", "float32", ""),
    ],
)
def test_a_layout_of_the_field_is_excluded_where_it_changes_nothing(
    text: str, precision: str, reason: str
) -> None:
    bound = inputs(np.ones((5, 6), np.bool_), {"precision": precision})
    configuration = FAMILY.space.configuration(text)
    names = bound.names(configuration)
    found = Variant.make(FAMILY, configuration, bound.options).explain_exclusion(names, Limits())
    assert reason in found
    assert bool(found) == bool(reason)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(211, 333), (300, 532)])
def test_a_gpu_gives_the_bits_of_a_cpu(backend: CpuBackend, shape: tuple[int, int]) -> None:
    from autotune.device.open import open_backend

    bound = inputs(np.ones(shape, np.bool_), {}, seconds=0.0097, sample_seconds=0.0023)
    ((_, expected),) = run_all(backend, bound, [])
    resident = "field_memory=register_tile,boundary=clamp,vector_width=4,launch"
    wave = "field_memory=register_wave,boundary=clamp,coefficient=separable,min_blocks=2,block_rows=256"
    texts = [
        *RECTANGLE,
        f"{resident}=persistent,strip=6,block_size=640,time_block=16",
        f"{resident}=persistent,strip=8,block_size=256,time_block=12",
        f"{resident}=neighbours,strip=9,block_size=384,time_block=12",
        f"{resident}=neighbours,strip=8,block_size=256,time_block=12,coefficient=recomputed",
        f"{resident}=neighbours,strip=6,block_size=512,time_block=8,coefficient=separable",
        f"{resident}=graph,strip=16,block_size=256,time_block=12,coefficient=separable",
        f"{wave},strip=16,time_block=12,vector_width=4",
        f"{wave},strip=8,time_block=20,vector_width=8,block_size=128",
    ]
    with open_backend("cuda") as gpu:
        for name, found in run_all(gpu, bound, texts):
            for output, values in expected.items():
                different = np.count_nonzero(found[output].view(np.uint64) != values.view(np.uint64))
                assert not different, f"{name}: {different} of {output} differ in a bit"


def eigenmode(
    shape: tuple[int, int], modes: tuple[int, int], steps: int, diffusion: float
) -> NDArray[np.float64]:
    """1 + half of cos(pi m (i + 1/2) / N) in both directions, times its closed form's factor after ``steps``."""
    waves = [np.cos(np.pi * m * (np.arange(n) + 0.5) / n) for m, n in zip(modes, shape, strict=True)]
    sines = sum(np.sin(np.pi * m / (2 * n)) ** 2 for m, n in zip(modes, shape, strict=True))
    return 1 + np.outer(*waves) / 2 * (1 - 4 * diffusion * sines) ** steps


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 3e-6), ("float64", 3e-8)])
def test_an_eigenmode_follows_its_closed_form(kernel: TunedKernel, precision: str, tolerance: float) -> None:
    shape, modes, steps = (24, 40), (2, 3), 400
    made = MODULE.Experiment(k=0.0, seconds=steps * 1e-4, D=60.0).inputs(np.ones(shape, np.bool_))
    made["initial"] = eigenmode(shape, modes, 0, made["diffusion"]).astype(np.float32)
    found = kernel.run(kernel.bind(**made, walls="rectangle", beam_shape="gaussian", precision=precision))
    exact = eigenmode(shape, modes, steps, made["diffusion"])
    assert np.abs(exact - 1).max() < 0.4  # the mode has visibly decayed
    np.testing.assert_allclose(found["concentration"], exact, rtol=tolerance)


masks = st.tuples(st.integers(1, 9), st.integers(1, 11), st.integers(0, 2**32 - 1), st.floats(0, 1))


@settings(max_examples=25, deadline=None)
@given(masks, st.integers(1, 30), st.floats(0, 90), st.floats(0, 900))
def test_mass_stays_or_sinks_and_no_new_extremes_appear(
    kernel: TunedKernel, mask: tuple[int, int, int, float], steps: int, diffusion: float, bleaching: float
) -> None:
    rows, columns, seed, share = mask
    inside = np.random.default_rng(seed).random((rows, columns)) <= share
    made = MODULE.Experiment(
        D=diffusion,
        k=bleaching,
        seconds=steps * 1e-4,
        sample_seconds=1e-4,
        precision="float64",
        seed=seed,
        detector_radius=0.0,
        beam_radius=0.5,
    ).inputs(inside)
    found = kernel.run(kernel.bind(**made, beam_shape="gaussian", precision="float64"))
    c, fluorescence = found["concentration"], found["fluorescence"]
    assert fluorescence.size == steps + 1
    assert fluorescence[-1] == pytest.approx(c.sum(), rel=1e-12)
    assert (np.diff(fluorescence) <= 1e-12 * (1 + fluorescence[0])).all()
    assert c.min() >= 0
    assert c.max() <= float(made["initial"].max(initial=0)) * (1 + 1e-14)
    assert not c[~inside].any()
    unbleached = kernel.run(kernel.bind(**{**made, "bleaching": 0.0}, beam_shape="gaussian"))  # float32
    assert unbleached["fluorescence"] == pytest.approx(unbleached["fluorescence"][0], rel=1e-5)


@settings(max_examples=15, deadline=None)
@given(masks, st.integers(1, 12))
def test_x_and_y_are_treated_alike_to_the_bit(
    kernel: TunedKernel, mask: tuple[int, int, int, float], steps: int
) -> None:
    rows, columns, seed, share = mask
    inside = np.random.default_rng(seed).random((rows, columns)) <= share
    made = MODULE.Experiment(seconds=steps * 1e-4, seed=seed, k=500.0, D=50.0, beam_radius=0.5).inputs(inside)
    made["beam"] = np.random.default_rng(seed).random(
        (rows, columns), np.float32
    )  # of no shape that could be factored
    there = kernel.run(kernel.bind(**made))
    turned = {name: np.ascontiguousarray(made[name].T) for name in ("initial", "beam", "detector")}
    turned |= {"open_sides": OUTLINES.open_sides(inside.T)}
    turned |= {"beam_rows": made["beam_columns"], "beam_columns": made["beam_rows"]}
    back = kernel.run(kernel.bind(**{**made, **turned}))
    np.testing.assert_array_equal(there["concentration"], back["concentration"].T)
    np.testing.assert_array_equal(there["fluorescence"], back["fluorescence"])


def test_a_uniform_field_stays_uniform_to_the_bit(kernel: TunedKernel) -> None:
    made = MODULE.Experiment(k=0.0, seconds=0.02, D=33.3).inputs(np.ones((7, 9), np.bool_))
    made["initial"] *= np.float32(0.7)
    found = kernel.run(kernel.bind(**made))
    assert (found["concentration"] == np.float64(np.float32(0.7))).all()
    assert len(set(found["fluorescence"])) == 1


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("initial", -1.0, "outside the allowed"),
        ("initial", np.nan, "outside the allowed"),
        ("beam", 1.5, "outside the allowed"),
        ("detector", 2, "outside the allowed"),
    ],
)
def test_inputs_outside_their_range_are_refused(
    kernel: TunedKernel, name: str, values: float, message: str
) -> None:
    made = MODULE.Experiment().inputs(np.ones((3, 4), np.bool_))
    made[name] = np.full_like(made[name], values, dtype=np.float64)
    with pytest.raises(WorkloadError, match=message):
        kernel.bind(**made)


def test_an_unstable_step_runs_nowhere(kernel: TunedKernel) -> None:
    made = MODULE.Experiment(seconds=1e-3).inputs(np.ones((3, 4), np.bool_))
    with pytest.raises(AutotuneError, match="too long to be stable"):
        kernel.run(kernel.bind(**{**made, "diffusion": 0.2501}))


@pytest.mark.parametrize(
    ("rows", "precision", "reason"),
    [
        (1000, "float32", ""),
        (1000, "float64", "texels of float32"),
        (65001, "float32", "even_view: a plane of (10, 65001) texels passes the 2D texture limit"),
    ],
)
def test_a_texture_is_refused_where_none_can_be(rows: int, precision: str, reason: str) -> None:
    made = MODULE.Experiment(seconds=1e-3).inputs(np.ones((rows, 10), np.bool_))
    bound = bind(FAMILY, made, {"precision": precision}, {})
    for memory in ("global", "texture"):
        configuration = FAMILY.space.configuration(f"field_memory={memory}")
        names = bound.names(configuration)
        found = Variant.make(FAMILY, configuration, bound.options).explain_exclusion(names, Limits())
        assert bool(found) == (memory == "texture" and bool(reason))
        assert memory == "global" or reason in found


@pytest.mark.parametrize("name", ["experiment", "large", "huge", "ragged", "cell"])
def test_workloads_are_declared_as_they_are(name: str) -> None:
    workload = workloads.load_workload(FAMILY, name)
    if name not in ("large", "huge"):
        bound = workloads.prepare(FAMILY, workload, Path())
        assert (bound.options["walls"] == "rectangle") == bool(bound.arrays["initial"].all())
    assert workload.options["beam_shape"] == "gaussian"


def test_presets_cover_what_the_family_is_about() -> None:
    fast = [dict(c) for c in FAMILY.space.configurations("fast")]
    assert len(fast) <= 80
    assert {c["launch"] for c in fast} == {"graph", "persistent", "neighbours"}
    large = [dict(c) for c in FAMILY.space.configurations("large")]
    assert {(c["field_memory"], c["min_blocks"]) for c in large} == {
        ("register_tile", 1),
        ("register_wave", 2),
    }
    layouts = [dict(c) for c in FAMILY.space.configurations("layouts")]
    assert {(c["field_memory"], c["field_axes"], c["field_padding"]) for c in layouts} == {
        ("global", "columns", "1"),
        *((memory, "rows", gap) for memory in ("global", "register_tile", "register_wave") for gap in GAPS),
    }
    textbook = [dict(c) for c in FAMILY.space.configurations("textbook")]
    assert {c["boundary"] for c in textbook} == {"branch", "ghost", "clamp", "mask"}
    assert {c["boundary"] for c in textbook if c["field_memory"] == "texture"} == {"branch", "clamp", "mask"}


@pytest.mark.nvrtc
def test_the_tile_in_registers_does_not_spill(tmp_path: Path) -> None:
    from autotune.compile.nvrtc import Nvrtc

    text = "field_memory=register_tile,boundary=clamp,strip=8,time_block=16,vector_width=4,block_size=512"
    options = FAMILY.choose_options({"walls": "rectangle", "beam_shape": "gaussian"})
    variant = Variant.make(FAMILY, FAMILY.space.configuration(text), options)
    ((built,),) = compile_many(batch(FAMILY, (variant,)), Nvrtc("sm_90"), Cache(tmp_path), 1, 1)
    assert isinstance(built, Compiled), built
    figures = built.figures["advance"]
    assert figures["spill_store_bytes"] == figures["spill_load_bytes"] == 0
    assert figures["registers"] <= 128

"""Granularity `tile` of the eri family: its arithmetic, J and K of every path, and what screening may leave out."""

from pathlib import Path

import numpy as np
import pytest
from eri_helpers import FAMILY, MODULE, inputs, libcint, part, results
from hypothesis import given, settings
from hypothesis import strategies as st
from screening import check_screened

from autotune.declaration.workload import bind
from autotune.device.cpu.backend import CpuBackend
from autotune.errors import UsageError

expansion, tiles = part("expansion"), part("tiles")

TILE = "granularity=tile,pair_table=device,boys=loaded_rational,quotient_memory=constant"
WAYS = [
    f"{TILE},order=place,roots=inverse,bras=16",
    f"{TILE},order=subclass,roots=computed,bras=4,split=8",
    f"{TILE},order=place,roots=computed,bras=16,block_size=64,unroll=2",
    f"{TILE},order=decade,screening=schwarz,roots=inverse,split=2",
]


def test_a_tile_has_as_many_kets_as_bras() -> None:
    with pytest.raises(UsageError, match="as many kets as bras"):
        FAMILY.space.configuration(f"{TILE},order=subclass,bras=16,split=8,block_size=64")
    for one in FAMILY.space.configurations("tiles"):
        assert one["bras"] <= one["block_size"] // one["split"]


def walked(shape: object, run: object) -> list[tuple[int, int]]:
    """(bra, ket) of every work-unit of a run, tile by tile as tiles.cuh has them."""
    each, width = shape.each(run), shape.width  # type: ignore[attr-defined]
    bras, kets = run.bras, run.kets  # type: ignore[attr-defined]
    found = []
    for tile in range(shape.tiles(run)):  # type: ignore[attr-defined]
        if kets:
            row, chunk = divmod(tile, -(-kets // width))
        else:
            together, group = width // each, 0
            while together * ((group + 1) * (group + 2) // 2) <= tile:
                group += 1
            row, chunk = divmod(tile - together * (group * (group + 1) // 2), group + 1)
            row += group * together
        for bra in range(row * each, min((row + 1) * each, bras)):
            found += [(bra, ket) for ket in range(chunk * width, min((chunk + 1) * width, kets or bra + 1))]
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 70),
    st.integers(0, 50),
    st.sampled_from([1, 6, 36, 200]),
    st.sampled_from([(128, 8), (64, 1), (256, 1)]),
    st.sampled_from([4, 8, 16]),
)
def test_tiles_have_every_work_unit_of_a_run_once(
    bras: int, kets: int, count: int, threads: tuple[int, int], most: int
) -> None:
    run = expansion.Run(0, 0, kets, bras * kets if kets else bras * (bras + 1) // 2, 9 * count, count)
    found = walked(tiles.Shape(*threads, most), run)
    assert len(found) == run.units
    assert set(found) == {(bra, ket) for bra in range(bras) for ket in range(kets or bra + 1)}


def test_runs_are_those_of_sorted_pairs_with_the_most_components_first() -> None:
    water1 = inputs({"waters": 1, "basis": "6-31g"})
    runs, counts = water1.arrays["runs"], np.sort(water1.arrays["pairs"]["count"]).astype(int)
    units = [run.units for run in expansion.runs_of(counts)]
    assert sum(units) == water1.scalars["work_units"]
    each = []
    for run, number in zip(runs, units, strict=True):
        bras = np.arange(run["bras"]) + run["first_bra"]
        kets = np.arange(run["kets"] or run["bras"]) + run["first_ket"]
        assert (counts[bras] == run["count"]).all()
        assert number == (len(bras) * len(kets) if run["kets"] else len(bras) * (len(bras) + 1) // 2)
        each.append(int(counts[bras[0]]) * int(counts[kets[0]]))
    assert each == sorted(each, reverse=True)


@pytest.mark.parametrize("molecule", [{"waters": 1, "basis": "6-31g"}, {"waters": 3, "basis": "sto-3g"}])
def test_matrices_from_tiles_equal_pyscfs(backend: CpuBackend, molecule: dict[str, object]) -> None:
    given_ = inputs({**molecule, "output": "coulomb_exchange", "seed": 5})
    coulomb, exchange = libcint.matrices(libcint.mole(given_.arrays), given_.arrays["density"])
    for configuration, _, found in results(backend, [*map(FAMILY.space.configuration, WAYS)], [given_]):
        assert np.abs(found["coulomb"] - coulomb).max() < 1e-11, configuration.id
        assert np.abs(found["exchange"] - exchange).max() < 1e-11, configuration.id


@pytest.mark.parametrize(
    "way", [WAYS[3], "granularity=block,order=schwarz,screening=schwarz,pair_table=device,boys=rational"]
)
def test_screening_leaves_out_no_more_than_schwarzs_inequality_says(backend: CpuBackend, way: str) -> None:
    """Here at a threshold of 1e-3, where it shows."""
    made = MODULE.inputs({"waters": 3, "basis": "6-31g", "output": "coulomb_exchange", "seed": 1}, Path())
    given_ = bind(FAMILY, made, {"output": "coulomb_exchange"}, {"threshold": 1e-3})
    pairs = given_.arrays["pairs"]
    bounds = np.zeros_like(given_.arrays["density"])
    bounds[pairs["i"], pairs["j"]] = bounds[pairs["j"], pairs["i"]] = pairs["bound"]
    ((_, _, found),) = results(backend, [FAMILY.space.configuration(way)], [given_])
    check_screened(given_.arrays, bounds, found, 1e-3)

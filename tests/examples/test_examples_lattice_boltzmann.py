"""The lattice Boltzmann example on the cpu device: mass and momentum, and configurations with every value of every
policy against a step written another way."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_results import Binary, compiled, results
from numpy.typing import NDArray
from result_files import read_rows

from autotune.compile.variant import Variant
from autotune.declaration import family as families
from autotune.declaration import workload as workloads
from autotune.declaration.workload import Inputs, bind
from autotune.device.cpu.backend import CpuBackend
from autotune.errors import WorkloadError

FAMILY = families.load_family(str(Path(__file__).parents[2] / "examples" / "lattice_boltzmann"))
MADE: Any = FAMILY.module
CONFIGURATIONS = FAMILY.space.configurations()[::271]
WITHIN = {"float32": 2e-7, "float16": 2e-5, "bfloat16": 2e-4, "scaled_int16": 2e-5}


def of(rows: int, columns: int, omega: float = 1.2) -> Inputs:
    return bind(FAMILY, {"populations": MADE.flow(rows, columns, rows)}, {}, {"omega": omega})


def by_cells(populations: NDArray[Any], omega: float) -> NDArray[np.float64]:
    """A step cell by cell, with whole populations, as a textbook writes it."""
    whole = populations.astype(np.float64) + MADE.WEIGHT[:, None, None]
    after = np.empty_like(whole)
    _, rows, columns = whole.shape
    for y, x in np.ndindex(rows, columns):
        pulled = [whole[i, (y - MADE.DOWN[i]) % rows, (x - MADE.RIGHT[i]) % columns] for i in range(9)]
        density = sum(pulled)
        u, v = (np.dot(way, pulled) / density for way in (MADE.RIGHT, MADE.DOWN))
        for i in range(9):
            along = MADE.RIGHT[i] * u + MADE.DOWN[i] * v
            still = MADE.WEIGHT[i] * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * (u * u + v * v))
            after[i, y, x] = pulled[i] + omega * (still - pulled[i]) - MADE.WEIGHT[i]
    return after


def test_the_reference_is_the_textbook_s_step() -> None:
    populations = MADE.flow(5, 7, 3)
    np.testing.assert_allclose(MADE.step(populations, 0.8), by_cells(populations, 0.8), atol=1e-15)


@pytest.mark.parametrize("omega", [0.0, 1.2, 1.9])
def test_a_step_keeps_mass_and_momentum(omega: float) -> None:
    populations = MADE.flow(12, 20, 1)
    after = MADE.step(populations, omega)
    for way in (np.ones(9), MADE.RIGHT, MADE.DOWN):
        assert np.isclose(
            np.tensordot(way, after, 1).sum(), np.tensordot(way, populations.astype(float), 1).sum()
        )
    if omega == 0:  # nothing but moved
        np.testing.assert_allclose(np.sort(after[5], axis=None), np.sort(populations[5], axis=None))


@pytest.fixture(scope="module")
def binaries(backend: CpuBackend) -> list[Binary]:
    return compiled(backend, [Variant(FAMILY, c) for c in CONFIGURATIONS], 16, optimize="-Og")


def test_the_configurations_have_every_value() -> None:
    for policy in FAMILY.space.policies:
        assert {c[policy.name] for c in CONFIGURATIONS} == set(policy.values), policy.name


@pytest.mark.parametrize("shape", [(1, 2), (19, 41)])
def test_each_gives_the_reference_s_step(
    backend: CpuBackend, binaries: list[Binary], shape: tuple[int, int]
) -> None:
    inputs = of(*shape)
    expected = MADE.step(inputs.arrays["populations"], inputs.scalars["omega"])
    for variant, found in results(backend, binaries, inputs):
        within = WITHIN[str(variant.configuration["storage"])]
        np.testing.assert_allclose(
            found["streamed"], expected, rtol=0.01, atol=within, err_msg=variant.configuration.id
        )


def test_ragged_lattices_and_the_workloads_can_be_made() -> None:
    for parameters in MADE.ragged({}):
        assert MADE.inputs(parameters, Path())["populations"].shape == (
            9,
            parameters["rows"],
            parameters["columns"],
        )
    inputs = workloads.prepare(FAMILY, workloads.load_workload(FAMILY, "ragged"), Path())
    assert inputs.sizes == {"direction": 9, "row": 37, "column": 203}
    assert np.abs(inputs.arrays["populations"]).max() < 0.125  # half of the range
    with pytest.raises(WorkloadError, match="give rows"):
        MADE.inputs({"rows": 3}, Path())


RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
ORDERS = ("rows", "morton", "hilbert", "hilbert16")
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "scaled_int16": 2}


def measured(name: str) -> list[dict[str, str]]:
    return [row for row in read_rows(RESULTS / name) if row["state"] == "measured"]


def entry(rows: list[dict[str, str]]) -> str:
    """The shortest time, and how much of the copy's bandwidth 18 numbers a cell are in it."""
    if not rows:
        return "-"
    ceiling = json.loads((RESULTS / "lattice_boltzmann-h200-limits.json").read_text())["ceilings"][
        "bytes_per_s"
    ]
    best = min(rows, key=lambda row: float(row["time_ms"]))
    moved = 18 * 1024 * 2048 * BYTES[best["storage"]]
    return f"{float(best['time_ms']) * 1e3:.1f} µs, {moved / float(best['time_ms']) * 1e3 / ceiling:.0%}"


def arrangements() -> list[str]:
    rows = measured("lattice_boltzmann-h200.csv")
    lines = ["| `tiles` | " + " | ".join(f"`{order}`" for order in ORDERS) + " |", "|---" * 5 + "|"]
    for tiles in dict.fromkeys(row["tiles"] for row in rows):
        cells = [
            entry([row for row in rows if (row["tiles"], row["curve"]) == (tiles, order)]) for order in ORDERS
        ]
        lines.append(f"| `{tiles}` | {' | '.join(cells)} |")
    return lines


def storages() -> list[str]:
    rows = [row for row in measured("lattice_boltzmann-h200-storages.csv") if row["block_x"] == "32"]
    lines = ["| `storage` | `soa` | `nodes_8x8` | largest error |", "|---" * 4 + "|"]
    for storage in dict.fromkeys(row["storage"] for row in rows):
        mine = [row for row in rows if row["storage"] == storage]
        cells = [entry([row for row in mine if row["tiles"] == tiles]) for tiles in ("soa", "nodes_8x8")]
        error = max(float(row["error_streamed"]) for row in mine)
        lines.append(f"| `{storage}` | {' | '.join(cells)} | {error:.1e} |")
    return lines


@pytest.mark.parametrize("table", [arrangements, storages])
def test_the_readmes_tables_are_those_of_the_csvs(table: Callable[[], list[str]]) -> None:
    assert "\n".join(table()) in (FAMILY.folder / "README.md").read_text(encoding="utf-8"), "\n".join(table())

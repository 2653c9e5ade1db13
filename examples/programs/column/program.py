"""The air that columns begin with, and the same physics by numpy."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

POINTS, PRESSURES, TEMPERATURES = 16, 32, 12  # of the table of absorption
LOG_TOP, LOG_STEP, COLD, WARM_STEP = 4.6, 0.25, 160.0, 15.0  # defaults of family optics
SURFACE, GRAVITY = 1e5, 9.81
STEFAN_BOLTZMANN, HEAT_CAPACITY, MIXING, SLANT = 5.670374e-8, 1004.0, 0.00005, 1.66


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, NDArray[Any]]:
    """``columns`` of ``levels`` layers of one mass: ground of 270 to 305 K, air that cools by 6.5 K a kilometre up to
    210 K, moisture that falls off with height, by ``seed``; and a table of absorption that is made up, with the spread
    of a real one: some points see through the air, some do not."""
    generator = np.random.default_rng(int(parameters.get("seed", 0)))
    columns, levels = int(parameters["columns"]), int(parameters["levels"])
    pressure = SURFACE * (1 - (np.arange(levels) + 0.5) / levels) * np.ones((columns, 1))
    height = -7500 * np.log(pressure / SURFACE)
    ground = generator.uniform(270, 305, columns)
    temperature = np.maximum(ground[:, None] - 0.0065 * height, 210) + generator.normal(size=pressure.shape)
    moist = generator.uniform(0.3, 1, (columns, 1)) * 0.015 * np.exp(-height / 2000) + 3e-6
    strengths = np.logspace(-3, 1.5, POINTS)[:, None, None]
    high = np.exp(LOG_TOP + LOG_STEP * np.arange(PRESSURES))[:, None] / SURFACE
    warm = (COLD + WARM_STEP * np.arange(TEMPERATURES)) / 260
    made = {
        "pressure": pressure,
        "path": moist * SURFACE / GRAVITY / levels,
        "table": strengths * high**0.5 * warm**1.5,
        "weights": np.full(POINTS, 1 / POINTS),
        "ground": ground,
        "temperature": temperature,
    }
    return {name: array.astype(np.float32) for name, array in made.items()}


def run(arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, float]) -> dict[str, NDArray[np.float64]]:
    """``temperature`` and ``flux`` in float64 after the program's steps."""
    given = {name: array.astype(np.float64) for name, array in arrays.items()}
    temperature: NDArray[Any] = given["temperature"]
    levels, dt = temperature.shape[1], scalars["dt"]
    mixed = dt * MIXING
    matrix = np.eye(levels) * (1 + 2 * mixed) - mixed * (np.eye(levels, k=1) + np.eye(levels, k=-1))
    matrix[-1, -1] -= mixed
    flux = np.zeros((len(temperature), levels + 1))
    for step in range(int(scalars["steps"])):
        if step % int(scalars["radiation"]) == 0:
            flux = _net_flux(given, temperature)
        heated = temperature + dt * (flux[:, :-1] - flux[:, 1:]) / (HEAT_CAPACITY * scalars["layer_mass"])
        heated[:, 0] += mixed * given["ground"]
        temperature = np.linalg.solve(matrix, heated.T).T
    return {"temperature": temperature, "flux": flux}


def _net_flux(
    given: Mapping[str, NDArray[np.float64]], temperature: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Upwards at the boundaries of layers, (columns, levels + 1)."""
    row = ((np.log(given["pressure"]) - LOG_TOP) / LOG_STEP).clip(0, PRESSURES - 1.001)
    entry = ((temperature - COLD) / WARM_STEP).clip(0, TEMPERATURES - 1.001)
    absorbed: Any = 0
    for down in (0, 1):
        for along in (0, 1):
            share = abs(1 - down - row % 1) * abs(1 - along - entry % 1)
            absorbed = absorbed + share * given["table"][:, row.astype(int) + down, entry.astype(int) + along]
    passed = np.exp(-SLANT * absorbed * given["path"])
    weights = given["weights"][:, None]
    source = STEFAN_BOLTZMANN * temperature**4
    columns, levels = temperature.shape
    flux = np.zeros((columns, levels + 1))
    down_going = np.zeros((POINTS, columns))
    up_going = weights * STEFAN_BOLTZMANN * given["ground"] ** 4
    flux[:, 0] += up_going.sum(axis=0)
    for level in range(levels):
        top = levels - 1 - level
        emitted = weights * source[:, top] * (1 - passed[:, :, top])
        down_going = down_going * passed[:, :, top] + emitted
        flux[:, top] -= down_going.sum(axis=0)
        up_going = up_going * passed[:, :, level] + weights * source[:, level] * (1 - passed[:, :, level])
        flux[:, level + 1] += up_going.sum(axis=0)
    return flux

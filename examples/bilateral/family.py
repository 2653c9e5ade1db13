"""Images, tables of weights and reference of the bilateral example."""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.family import WorkloadError

_KNOWN = {"height": 1080, "width": 1920, "seed": 0, "radius": 4, "sigma_space": 3.0, "sigma_range": 30.0}
_SHAPES = 60  # on a picture
_NOISE = 12.0  # its standard deviation, of 256 levels


def picture(height: int, width: int, seed: int) -> NDArray[np.uint8]:
    """Rectangles of all sizes and shades on a slope, with noise: edges to be kept, and something to be smoothed."""
    generator = np.random.default_rng(seed)
    made = (
        np.linspace(60, 180, width, dtype=np.float32)
        + np.linspace(-30, 30, height, dtype=np.float32)[:, None]
    )
    for _ in range(_SHAPES):
        tall, wide = (max(1, int(side * generator.uniform(0.02, 0.3))) for side in (height, width))
        top, left = (int(generator.integers(0, side)) for side in (height, width))
        made[top : top + tall, left : left + wide] += generator.uniform(-90, 90)
    made += generator.normal(0, _NOISE, made.shape)
    levels: NDArray[np.uint8] = np.clip(made, 0, 255).astype(np.uint8)
    return levels


def space_weights(radius: int, sigma: float) -> NDArray[np.float32]:
    """exp(-d^2 / (2 sigma^2)) by the distance d from the centre, in pixels; 0 outside of the circle."""
    offset = np.arange(-radius, radius + 1)
    squares = offset[:, None] ** 2 + offset**2
    return np.where(squares <= radius**2, np.exp(-squares / (2 * sigma**2)), 0).astype(np.float32)


def range_weights(sigma: float) -> NDArray[np.float32]:
    """exp(-d^2 / (2 sigma^2)) by the distance d of two pixels' values."""
    return np.exp(-(np.arange(256.0) ** 2) / (2 * sigma**2)).astype(np.float32)


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, NDArray[Any]]:
    """A picture of ``height`` x ``width`` pixels from ``seed``, and the tables: ``radius`` (the option's) and
    ``sigma_space`` in pixels, ``sigma_range`` in levels. Raises WorkloadError."""
    chosen = {**_KNOWN, **parameters}
    if unknown := chosen.keys() - _KNOWN.keys():
        raise WorkloadError(f"unknown parameters {sorted(unknown)}; known are {', '.join(_KNOWN)}")
    if min(chosen["height"], chosen["width"], chosen["sigma_space"], chosen["sigma_range"]) <= 0:
        raise WorkloadError("height, width, sigma_space and sigma_range must be above 0")
    return {
        "image": picture(int(chosen["height"]), int(chosen["width"]), int(chosen["seed"])),
        "space": space_weights(int(chosen["radius"]), float(chosen["sigma_space"])),
        "range": range_weights(float(chosen["sigma_range"])),
    }


def ragged(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of small pictures, around the sizes of blocks, with the circle of ``parameters``."""
    for height, width in ((1, 1), (17, 33), (3, 130), (61, 15)):
        yield {**parameters, "height": height, "width": width, "seed": height}


def reference(
    arrays: Mapping[str, NDArray[Any]], _options: Mapping[str, Any]
) -> dict[str, NDArray[np.uint8]]:
    """The sum in float64, a band of rows by each thread."""
    image = arrays["image"]
    space, likeness = arrays["space"].astype(np.float64), arrays["range"].astype(np.float64)
    radius, smooth = len(space) // 2, np.empty_like(image)
    far = np.pad(image, radius, "edge").astype(np.int32)
    width = image.shape[1]

    def band(rows: slice) -> None:
        centre = image[rows].astype(np.int32)
        weights, total = np.zeros(centre.shape), np.zeros(centre.shape)
        for dy, dx in np.argwhere(space > 0):
            pixel = far[rows.start + dy : rows.stop + dy, dx : dx + width]
            weight = space[dy, dx] * likeness[np.abs(pixel - centre)]
            weights += weight
            total += weight * pixel
        smooth[rows] = np.floor(total / weights + 0.5)

    threads = len(os.sched_getaffinity(0))
    step = max(1, min(64, -(-len(image) // threads)))
    bands = [slice(first, min(first + step, len(image))) for first in range(0, len(image), step)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(band, bands))
    return {"smooth": smooth}

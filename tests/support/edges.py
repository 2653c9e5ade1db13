"""A small family of images: it reads with each rule for indices beyond the edge, up to two extents beyond it to every
side, and samples a volume between its elements. This file is its family.py, too."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FAMILY = """\
schema: 1
family: edges
source: edges.cu
data:
  clamped: {role: input, type: uint8, shape: [height, width], image: {}}
  mirrored: {role: input, type: int32, shape: [height, width], image: {edge: mirror}}
  wrapped: {role: input, type: float32, shape: [height, width], image: {edge: wrap}}
  bordered: {role: input, record: Pair, fields: {a: float32, b: int32}, shape: [height, width], image: {edge: border}}
  solid: {role: input, type: uint16, shape: [depth, height, width],
          image: {edge: mirror, read: normalised, filter: linear}}
  places: {role: input, type: float32, shape: [points, three]}
  seen: {role: output, type: float32, shape: [rows, columns]}
  between: {role: output, type: float32, shape: [points]}
extents:
  three: {value: 3}
  rows: {value: "5 * height"}
  columns: {value: "20 * width"}
kernels:
  beyond:
    arguments: [clamped, mirrored, wrapped, bordered, seen]
    grid: ["ceil_div(rows * columns, 64)"]
    block: [64]
  between: {arguments: [solid, places, between], grid: ["ceil_div(points, 64)"], block: [64]}
policies:
  memory: {layout: memory, data: [clamped, mirrored, wrapped, bordered, solid],
           values: [global, readonly, constant, texture], default: global}
  dims: {layout: dims, data: [clamped, mirrored, wrapped, bordered], values: [1d, image, image_pitched], default: 1d}
  solid_dims: {layout: dims, data: [solid], values: [1d, image], default: 1d}
  axes: {layout: axes, data: [clamped, mirrored, wrapped, bordered], values: [rows, columns], default: rows,
         means: {rows: [height, width], columns: [width, height]}}
  seen_dims: {layout: dims, data: [seen], values: [1d, image], default: 1d}
constraints:
  - require: memory == 'texture' or (dims == '1d' and solid_dims == '1d')
    reason: in other memory an image is a line
tolerance: {relative: 0.00001, absolute: 0.00001, between: {absolute: 0.012}}
"""
SOURCE = """\
#include "autotune/array.cuh"

struct Pair {
  float a;
  int b;
};

template <class Policy>
__global__ void beyond(typename Policy::clamped clamped, typename Policy::mirrored mirrored,
                       typename Policy::wrapped wrapped, typename Policy::bordered bordered,
                       typename Policy::seen seen) {
  const int height = clamped.extent(0), width = clamped.extent(1), columns = 20 * width;
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread >= 5 * height * columns) return;
  const int row = thread / columns, column = thread % columns, array = column / (5 * width);
  const int i = row - 2 * height, j = column % (5 * width) - 2 * width;
  float value = 0;
  if (array == 0) value = clamped.load(i, j);
  if (array == 1) value = mirrored.load(i, j);
  if (array == 2) value = wrapped.load(i, j);
  if (array == 3) {
    const Pair pair = bordered.load(i, j);
    value = pair.a + pair.b;
  }
  seen.store(value, row, column);
}

template <class Policy>
__global__ void between(typename Policy::solid solid, typename Policy::places places,
                        typename Policy::between between) {
  const unsigned point = blockIdx.x * blockDim.x + threadIdx.x;
  if (point >= between.extent(0)) return;
  between.store(solid.sample(places.load(point, 0), places.load(point, 1), places.load(point, 2)), point);
}
"""


WORKLOAD = """\
schema: 1
workload: small
family: edges
parameters: {height: 19, width: 33, depth: 5, points: 2000}
"""


def write(folder: Path) -> Path:
    """The family in ``folder``."""
    (folder / "workloads").mkdir(parents=True)
    (folder / "family.yaml").write_text(FAMILY)
    (folder / "edges.cu").write_text(SOURCE)
    (folder / "family.py").write_text(Path(__file__).read_text())
    (folder / "workloads" / "small.yaml").write_text(WORKLOAD)
    return folder


def inputs(parameters: Mapping[str, Any], _root: Path) -> dict[str, NDArray[Any]]:
    return arrays(**parameters)


def reference(given: dict[str, NDArray[Any]], _options: Mapping[str, Any]) -> dict[str, NDArray[np.float32]]:
    return {"seen": seen(given), "between": between(given).astype(np.float32)}


def arrays(height: int = 5, width: int = 7, depth: int = 3, points: int = 500) -> dict[str, NDArray[Any]]:
    """Inputs; the places are up to one extent beyond the volume."""
    generator = np.random.default_rng(1)
    pair = np.zeros((height, width), [("a", np.float32), ("b", np.int32)])
    pair["a"], pair["b"] = generator.integers(0, 99, (2, height, width))
    extents = np.array([depth, height, width])
    return {
        "clamped": generator.integers(0, 256, (height, width)).astype(np.uint8),
        "mirrored": generator.integers(-99, 99, (height, width)).astype(np.int32),
        "wrapped": generator.random((height, width), np.float32),
        "bordered": pair,
        "solid": generator.integers(0, 65536, (depth, height, width)).astype(np.uint16),
        "places": (generator.random((points, 3)) * 3 * extents - extents).astype(np.float32),
    }


def seen(given: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
    """Return the images extended by two extents on each side, by numpy's own rules of padding."""
    height, width = given["clamped"].shape
    beyond = ((2 * height, 2 * height), (2 * width, 2 * width))
    pair = given["bordered"]
    parts = [
        np.pad(given["clamped"], beyond, "edge"),
        np.pad(given["mirrored"], beyond, "symmetric"),
        np.pad(given["wrapped"], beyond, "wrap"),
        np.pad(pair["a"] + pair["b"], beyond),
    ]
    return np.concatenate([part.astype(np.float32) for part in parts], axis=1)


def between(given: dict[str, NDArray[Any]], bits: int = 8) -> NDArray[np.float64]:
    """Trilinear interpolation of the mirrored volume, the weights rounded to ``bits`` of fraction."""
    solid, at = given["solid"] / 65535.0, given["places"].astype(np.float64)
    below = np.floor(at).astype(int)
    share = np.floor((at - below) * 2**bits + 0.5) / 2**bits
    total = np.zeros(len(at))
    for corner in np.ndindex(2, 2, 2):
        index = []
        for axis, extent in enumerate(solid.shape):
            i = (below[:, axis] + corner[axis]) % (2 * extent)
            index.append(np.where(i < extent, i, 2 * extent - 1 - i))
        total += np.where(corner, share, 1 - share).prod(axis=1) * solid[tuple(index)]
    return total

"""A family with what allpairs has not, made to be exported: records, a group, scalars, constant memory, planes, an
order, a constraint on sizes. Its numbers are small whole ones, so that every sum is exact."""

from pathlib import Path

from autotune.declaration import family as families
from autotune.declaration.family import Family
from autotune.hardware import Device
from autotune.layout.digest import layouts_digest
from autotune.policy.file import Entry, PolicyFile, file_name, write

DECLARATION = """\
schema: 1
family: shifted
title: points moved by offsets and steps
source: shifted.cu
default_workload: few
scalars:
  factor: {type: float32, default: 2.0}
  twice: {type: int32, value: "2 * count"}
options:
  sign: {values: [plus, minus], default: plus}
data:
  points: {role: input, record: Point, fields: {x: float32, y: float32}, shape: [count], plane: {width: 32, rows: 4}}
  offsets:
    {role: input, record: Point, fields: {x: float32, y: float32}, shape: [count], plane: {width: 32, rows: 4},
     range: [-1000000, 1000000]}
  steps:
    role: input
    type: uint8
    shape: [count]
    range: [0, 15]
    packed: count
    layout: {packing: bits4}
  table: {role: input, type: float32, shape: [size], constant_bytes: 1024}
  moved: {role: output, record: Point, fields: {x: float32, y: float32}, shape: [count]}
  touched: {role: output, type: uint32, shape: [one], zero: "count > 0"}
extents:
  one: {value: "1"}
kernels:
  shift:
    arguments: [points, offsets, steps, table, moved, touched, factor, twice]
    grid: ["ceil_div(count, block_size)"]
    block: [block_size]
    shared_bytes: "block_size * 4 if shared == 'yes' else 0"
policies:
  memory: {layout: memory, data: [points, offsets], values: [global, readonly, texture], default: global}
  dims: {layout: dims, data: [points, offsets], values: [1d, 2d, 2d_pitched], default: 1d}
  records: {layout: records, data: [points, offsets, moved], values: [aos, soa, aosoa4], default: aos}
  grouping: {layout: grouping, data: [points, offsets], values: [split, merged], default: split}
  point_order: {layout: order, data: [count], values: [given, backwards], default: given}
  table_memory: {layout: memory, data: [table], values: [global, constant], default: global}
  table_storage: {layout: storage, data: [table], values: [float32, float16, scaled_int8], default: float32}
  moved_storage: {layout: storage, data: [moved], values: [float32, float16], default: float32}
  shared: {values: ["no", "yes"], default: "no"}
  block_size: {values: [32, 64], default: 32}
constraints:
  - {require: "memory != 'texture' or count >= 4", reason: "a texture for so few points"}
features: {points: count, filled: "size / 16"}
operations: {unit: points, count: count}
"""
SOURCE = """\
#include "autotune/array.cuh"
#include "autotune/shared.cuh"
#include "point.cuh"

enum class Sign { plus, minus };
enum class Shared { no, yes };

template <class Policy>
__global__ void shift(typename Policy::points points, typename Policy::offsets offsets, typename Policy::steps steps,
                      typename Policy::table table, typename Policy::moved moved, typename Policy::touched touched,
                      float factor, int twice) {
  using Packing = typename Policy::steps::value_type::packing;
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i >= points.extent(0)) return;
  const auto word = steps.load(i / Packing::elements);
  float step = table.load(Packing::element(word.word[0], i % Packing::elements)) * factor;
  if constexpr (Policy::shared == Shared::yes) {
    float* kept = autotune::dynamic_shared<float>();
    kept[threadIdx.x] = step;
    step = kept[threadIdx.x];
  }
  if constexpr (Policy::sign == Sign::minus) step = -step;
  const Point point = points.load(i), offset = offsets.load(i);
  moved.store(Point{point.x + offset.x + step, point.y + offset.y + twice}, i);
  touched.add(1u, 0);
}
"""
HEADER = """\
#pragma once
struct Point {
  float x, y;
};
"""
PYTHON = """\
import numpy as np

POINT = np.dtype([("x", np.float32), ("y", np.float32)])


def _points(count, seed):
    made = np.zeros(count, POINT)
    generator = np.random.default_rng(seed)
    for name in POINT.names:
        made[name] = generator.integers(-99, 99, count)
    return made


def inputs(parameters, root):
    count = int(parameters["count"])
    return {
        "points": _points(count, 1),
        "offsets": _points(count, 2),
        "steps": np.random.default_rng(3).integers(0, 16, count, dtype=np.uint8),
        "table": np.arange(16, dtype=np.float32) * 3,
    }


def reference(arrays, options):
    step = arrays["table"][arrays["steps"]] * options["factor"]
    moved = np.zeros_like(arrays["points"])
    moved["x"] = arrays["points"]["x"] + arrays["offsets"]["x"] + (step if options["sign"] == "plus" else -step)
    moved["y"] = arrays["points"]["y"] + arrays["offsets"]["y"] + options["twice"]
    return {"moved": moved, "touched": np.array([len(moved)], np.uint32)}


orders = {"backwards": lambda arrays: np.arange(len(arrays["points"]))[::-1]}
"""
WORKLOAD = "schema: 1\nworkload: few\nfamily: shifted\nparameters: {count: 301}\n"
_PLAIN = {
    "block_size": 32,
    "shared": "no",
    "dims": "1d",
    "grouping": "split",
    "records": "aos",
    "point_order": "given",
    "table_memory": "global",
    "table_storage": "float32",
    "moved_storage": "float32",
}
ENTRIES = {
    "few": {
        "memory": "texture",
        "dims": "2d",
        "grouping": "merged",
        "table_memory": "constant",
        "table_storage": "float16",
        "shared": "yes",
    },
    "some": {"memory": "readonly", "records": "soa", "point_order": "backwards", "moved_storage": "float16"},
    "many": {"memory": "texture", "dims": "2d_pitched", "records": "aosoa4", "block_size": 64},
    "most": {"memory": "texture", "grouping": "merged", "dims": "1d", "records": "soa"},
}
COUNTS = {"few": 300, "some": 3000, "many": 30000, "most": 300000}


def write_shifted(folder: Path) -> Family:
    (folder / "workloads").mkdir(parents=True)
    for name, text in {
        "family.yaml": DECLARATION, "shifted.cu": SOURCE, "point.cuh": HEADER, "family.py": PYTHON,
        "workloads/few.yaml": WORKLOAD,
    }.items():  # fmt: skip
        (folder / name).write_text(text)
    return families.load_family(folder)


def write_policies(family: Family, policies: Path) -> Path:
    """A policy file of fake times for a GPU of compute capability 9.0."""
    entries = {
        name: Entry(
            name=name, workload=name, features={"count": COUNTS[name], "size": 16, "one": 1},
            options={"sign": "plus"}, configuration={**_PLAIN, **chosen}, median_ms=COUNTS[name] / 1e5, spread=0.01,
            samples=9, source_digest=family.source_digest, layouts_digest=layouts_digest(),
            space_digest=family.space_digest, date="2026-01-02T03:04:05+00:00",
        )
        for name, chosen in ENTRIES.items()
    }  # fmt: skip
    path = policies / file_name(family.name, "fake-gpu")
    path.parent.mkdir(parents=True)
    device = Device(kind="cuda", name="Fake GPU", arch="sm_90")
    default = {**_PLAIN, "memory": "global", "grouping": "merged"}
    write(path, PolicyFile(family=family.name, device=device, entries=entries, default=default))
    return path

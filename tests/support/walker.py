"""A small family that walks through arrays in windows, and is spread over devices.

y[row, column] = scale[row, column] * sum of a * w + b over all items; total is the sum of the rows of y. A unit is a
row.
"""

from pathlib import Path
from typing import Any

from autotune.compile.batches import compile_batch
from autotune.compile.cache import Cache, default_root
from autotune.compile.toolchain import CompileFailure
from autotune.compile.variant import Variant, batch
from autotune.device.backend import Backend

FAMILY = """\
schema: 1
family: walker
source: walker.cu
scalars:
  first: {type: int32, default: 0}
  count: {type: int32, value: items}
  row: {type: int32, default: 0}
  rows_now: {type: int32, value: rows}
data:
  x: {role: input, record: Item, fields: {a: float32, b: float32}, shape: [items], windowed: items,
      constant_bytes: 32768}
  w: {role: input, type: int32, shape: [items], windowed: items, constant_bytes: 16384}
  scale: {role: input, type: int32, shape: [rows, width]}
  y: {role: output, type: int32, shape: [rows, width]}
  total: {role: output, type: int32, shape: [width]}
kernels:
  walk:
    arguments: [x, w, scale, y, first, count, row]
    grid: ["ceil_div(width, 32)", rows_now]
    block: [32]
  add:
    arguments: [y, total, row, rows_now]
    grid: ["ceil_div(width, 32)"]
    block: [32]
policies:
  memory: {layout: memory, data: [x, w], values: [global, constant], default: global}
  records: {layout: records, data: [x], values: [aos, soa, aosoa4], default: aos}
  padding: {layout: padding, data: [y], values: [1, 8], default: 1}
  rows_at_once: {values: [1, 4], default: 4}
"""
SOURCE = """\
#include "autotune/array.cuh"
struct Item {
  float a, b;
};
// y[row][column] = scale * sum of a * w + b over all items: the first window stores, the others add.
template <class Policy>
__global__ void walk(typename Policy::x x, typename Policy::w w, typename Policy::scale scale, typename Policy::y y,
                     int first, int count, int row) {
  const int column = blockIdx.x * 32 + threadIdx.x;
  row += blockIdx.y;
  if (column >= static_cast<int>(y.extent(1))) return;
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    const Item item = x.load(i);
    sum += static_cast<int>(item.a) * w.load(i) + static_cast<int>(item.b);
  }
  if (count != static_cast<int>(x.extent(0)) || count != static_cast<int>(w.extent(0))) sum = -1;
  sum *= scale.load(row, column);
  y.store(first == 0 ? sum : y.load(row, column) + sum, row, column);
}
template <class Policy>
__global__ void add(typename Policy::y y, typename Policy::total total, int row, int rows_now) {
  const int column = blockIdx.x * 32 + threadIdx.x;
  if (column >= static_cast<int>(y.extent(1))) return;
  for (int i = row; i < row + rows_now; ++i) total.add(y.load(i, column), column);
}
"""
PYTHON = """\
import numpy as np

from autotune.spread.plan import Units


def run(execution, first, count):
    for start, items in execution.windows("items"):
        execution.launch("walk", first=start, count=items, row=first, rows_now=count)
    execution.launch("add", row=first, rows_now=count)


def plan(execution):
    execution.zero("total")
    run(execution, 0, execution.names["rows"])


def units(arrays, names):
    rows, width = names["rows"], names["width"]
    return Units(
        costs=np.full(rows, float(width * names["items"])),
        run=run,
        batch=names["rows_at_once"],
        parts={"y": np.arange(rows + 1) * width},
        sums=("total",),
    )


def reference(arrays, options):
    x, w = arrays["x"], arrays["w"]
    y = arrays["scale"] * int((x["a"].astype(int) * w + x["b"].astype(int)).sum())
    return {"y": y.astype(np.int32), "total": y.sum(0).astype(np.int32)}


def inputs(parameters, root):
    random = np.random.default_rng(1)
    items = random.integers(-3, 4, (parameters["items"], 2)).astype(np.float32)
    return {
        "x": items.view([("a", "f4"), ("b", "f4")])[:, 0],
        "w": random.integers(-5, 6, parameters["items"]).astype(np.int32),
        "scale": random.integers(1, 9, (parameters["rows"], parameters["width"])).astype(np.int32),
    }
"""
WORKLOAD = """\
schema: 1
workload: {name}
family: walker
parameters: {{items: {items}, rows: {rows}, width: {width}}}
"""


def write(folder: Path, items: int = 9000, rows: int = 10, width: int = 37) -> Path:
    """The family in ``folder``, with a workload ``small``."""
    (folder / "workloads").mkdir(parents=True)
    (folder / "family.yaml").write_text(FAMILY)
    (folder / "walker.cu").write_text(SOURCE)
    (folder / "family.py").write_text(PYTHON)
    text = WORKLOAD.format(name="small", items=items, rows=rows, width=width)
    (folder / "workloads" / "small.yaml").write_text(text)
    return folder


def module(backend: Backend, variant: Variant) -> Any:
    """The variant, compiled and loaded."""
    (compiled,) = compile_batch(batch(variant.family, (variant,)), backend.toolchain(), Cache(default_root()))
    assert not isinstance(compiled, CompileFailure)
    return backend.load(compiled)

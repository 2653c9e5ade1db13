"""What does each layout cost, and where does it win?

    python benchmarks/layout_costs.py --device cuda --out layout-costs-h200.csv

One array at a time, in one layout after the other, is read in the ways that kernels read arrays: along rows, along
columns, in squares, at random; whole records, three of their fields, one of them; packed numbers one after the other.
Caches are cold. A row is the median time of the runs, its ratio to control's in the same way of reading, and the bytes
that the array takes. The values read are compared with those that control reads.
"""

import itertools
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import arguments, variants_of
from numpy.typing import NDArray
from result_files import write_rows

from autotune.compile import Cache, Compiled, Variant, batch, compile_many, default_root
from autotune.declaration import Family, bind, load_family
from autotune.device import Execution, LayoutTransform, Resident, open_backend
from autotune.measure import spread

NUMBERS = """
schema: 1
family: numbers
source: numbers.cu
reference: control
extents: {sum: {value: "row * column // 8"}}
data:
  x: {role: input, type: float32, shape: [row, column]}
  y: {role: output, type: float32, shape: [sum]}
kernels:
  numbers: {arguments: [x, y], grid: ["row * column // 2048"], block: [256]}
policies:
  read: {values: [rows, columns, squares, chance], default: rows}
  memory: {layout: memory, data: [x], values: [global, readonly, texture], default: global}
  dims: {layout: dims, data: [x], values: [1d, 2d, image], default: 1d}
  axes:
    layout: axes
    data: [x]
    values: [rows, columns]
    means: {rows: [row, column], columns: [column, row]}
    default: rows
  padding: {layout: padding, data: [x], values: [1, 32+8], default: 1}
  tiles: {layout: tiles, data: [x], values: [none, 4x8, 8x8, 16x16], default: none}
  curve: {layout: curve, data: [x], values: [none, morton, hilbert], default: none}
  swizzle: {layout: swizzle, data: [x], values: [none, xor8x4], default: none}
  storage:
    layout: storage
    data: [x]
    values: [float32, float16, bfloat16, float8_e4m3, scaled_int16, scaled_int8, scaled_int8_by_row]
    default: float32
"""
NUMBERS_SOURCE = """
#include "autotune/image.cuh"

enum class Read { rows, columns, squares, chance };

template <class Policy>
__global__ void numbers(typename Policy::x x, typename Policy::y y) {
  const unsigned rows = x.extent(0), columns = x.extent(1);
  float sum = 0;
#pragma unroll
  for (unsigned k = 0; k < 8; ++k) {
    const unsigned at = (blockIdx.x * 8 + k) * 256 + threadIdx.x;
    if constexpr (Policy::read == Read::rows) {
      sum += x.load(at / columns, at % columns);
    } else if constexpr (Policy::read == Read::columns) {
      sum += x.load(at % rows, at / rows);
    } else if constexpr (Policy::read == Read::squares) {
      const unsigned square = at / 256, across = columns / 16;
      const unsigned row = square / across * 16 + threadIdx.x / 16, column = square % across * 16 + threadIdx.x % 16;
#pragma unroll
      for (unsigned i = 0; i < 3; ++i)
#pragma unroll
        for (unsigned j = 0; j < 3; ++j) sum += x.load((row + i) % rows, (column + j) % columns);
    } else {
      const unsigned drawn = at * 2654435761u;
      sum += x.load((drawn >> 18) % rows, (drawn >> 4) % columns);
    }
  }
  y.store(sum, blockIdx.x * 256 + threadIdx.x);
}
"""
RECORDS = """
schema: 1
family: records
source: records.cu
reference: control
extents: {sum: {value: "element // 4"}}
data:
  x:
    role: input
    record: Record
    fields: {a: float32, b: float32, c: float32, d: float32, e: float32, f: float32, g: float32, h: float32}
    shape: [element]
  y: {role: output, type: float32, shape: [sum]}
kernels:
  records: {arguments: [x, y], grid: ["element // 1024"], block: [256]}
policies:
  read: {values: [whole, three, one, whole_by_chance, three_by_chance, one_by_chance], default: whole}
  memory: {layout: memory, data: [x], values: [global, readonly, texture], default: global}
  records:
    layout: records
    data: [x]
    values: [aos, three_apart, four_and_four, aosoa4, aosoa32, soa]
    means: {three_apart: a+b+c-d+e+f+g+h, four_and_four: a+b+c+d-e+f+g+h}
    default: aos
"""
RECORDS_SOURCE = """
#include "autotune/field_access.cuh"

enum class Read { whole, three, one, whole_by_chance, three_by_chance, one_by_chance };

struct Record {
  float a, b, c, d, e, f, g, h;
};

template <class Policy>
__global__ void records(typename Policy::x x, typename Policy::y y) {
  constexpr bool by_chance = Policy::read >= Read::whole_by_chance;
  float sum = 0;
#pragma unroll
  for (unsigned k = 0; k < 4; ++k) {
    const unsigned at = (blockIdx.x * 4 + k) * 256 + threadIdx.x;
    const unsigned i = by_chance ? (at * 2654435761u >> 4) % x.extent(0) : at;
    if constexpr (Policy::read == Read::one || Policy::read == Read::one_by_chance) {
      sum += autotune::load_field<&Record::a>(x, i);
    } else {
      const Record r = x.load(i);
      sum += r.a + r.b + r.c;
      constexpr bool is_whole = Policy::read == Read::whole || Policy::read == Read::whole_by_chance;
      if constexpr (is_whole) sum += r.d + r.e + r.f + r.g + r.h;
    }
  }
  y.store(sum, blockIdx.x * 256 + threadIdx.x);
}
"""
PACKED = """
schema: 1
family: packed
source: packed.cu
reference: control
data:
  x: {role: input, type: int32, shape: [row, element], range: [0, 3], packed: element}
  y: {role: output, type: int32, shape: [row]}
kernels:
  packed: {arguments: [x, y], grid: [row], block: [256]}
policies:
  packing: {layout: packing, data: [x], values: [int32, int16, int8, bits4, bits2, planes2], default: int32}
  vector: {layout: vector, data: [x], values: [1, 2, 4], default: 1}
"""
PACKED_SOURCE = """
#include "autotune/array.cuh"

template <class Policy>
__global__ void packed(typename Policy::x x, typename Policy::y y) {
  using Words = typename Policy::x::value_type;
  using Packing = typename Words::packing;
  __shared__ int sums[256];
  int sum = 0;
  for (unsigned at = threadIdx.x; at < x.extent(1); at += 256) {
    const Words words = x.load(blockIdx.x, at);
#pragma unroll
    for (int w = 0; w < Words::words; ++w)
#pragma unroll
      for (int k = 0; k < Packing::elements; ++k) sum += Packing::element(words.word[w], k);
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int t = 1; t < 256; ++t) sum += sums[t];
  y.store(sum, blockIdx.x);
}
"""


@dataclass(frozen=True)
class Case:
    """A family and its input; ``layouts`` are what each row changes of control, in each way of reading."""

    name: str
    declaration: str
    source: str
    layouts: tuple[str, ...]

    def family(self, folder: Path) -> Family:
        place = folder / self.name
        place.mkdir(parents=True)
        (place / "family.yaml").write_text(self.declaration)
        (place / f"{self.name}.cu").write_text(self.source)
        return load_family(place)

    def array(self, scale: int) -> NDArray[Any]:
        """With a side, or a count, of 2**scale."""
        draw = np.random.default_rng(1)
        if self.name == "records":
            fields = np.dtype([(name, np.float32) for name in "abcdefgh"])
            return draw.integers(0, 16, 8 << 2 * scale - 2).astype(np.float32).view(fields)
        if self.name == "packed":
            return draw.integers(0, 4, (1 << scale - 2, 1 << scale + 2), np.int32)
        return draw.integers(0, 16, (1 << scale, 1 << scale)).astype(np.float32)


CASES = (
    Case(
        "numbers", NUMBERS, NUMBERS_SOURCE,
        ("", "memory=readonly", "memory=texture", "memory=texture,dims=2d", "memory=texture,dims=image", "axes=columns",
         "padding=32+8", "tiles=4x8", "tiles=8x8", "tiles=16x16", "curve=morton", "curve=hilbert", "swizzle=xor8x4",
         "storage=float16", "storage=bfloat16", "storage=float8_e4m3", "storage=scaled_int16", "storage=scaled_int8",
         "storage=scaled_int8_by_row"),
    ),
    Case(
        "records", RECORDS, RECORDS_SOURCE,
        ("", "memory=readonly", "memory=texture", "records=three_apart", "records=four_and_four", "records=aosoa4",
         "records=aosoa32", "records=soa"),
    ),
    Case(
        "packed", PACKED, PACKED_SOURCE,
        ("packing=int32", "packing=int32,vector=4", "packing=int16", "packing=int16,vector=4", "packing=int8",
         "packing=int8,vector=4", "packing=bits4", "packing=bits4,vector=4", "packing=bits2", "packing=bits2,vector=4",
         "packing=planes2", "packing=planes2,vector=2"),
    ),
)  # fmt: skip


def configurations(case: Case, family: Family) -> Iterator[tuple[str, str, str]]:
    """(way of reading, layout, configuration): control first in each way of reading."""
    ways = family.space.policy("read").values if case.name != "packed" else ("all",)
    for way in ways:
        for layout in case.layouts:
            named = [*([] if case.name == "packed" else [f"read={way}"]), *filter(None, [layout])]
            yield str(way), layout or "control", ",".join(named)


def executions(resident: Resident, variants: Sequence[Variant]) -> Iterator[Execution]:
    """Of each variant: compiled in several processes, its layouts applied when it is its turn."""
    backend, processes = resident.backend, len(os.sched_getaffinity(0))
    together = batch(variants[0].family, tuple(variants))
    made = compile_many(together, backend.toolchain(), Cache(default_root()), processes, 4, early=False)
    for variant, compiled in zip(variants, itertools.chain(*made), strict=True):
        assert isinstance(compiled, Compiled), f"{variant.configuration.id}: {compiled}"
        yield resident.execution(variant, backend.load(compiled))


def rows_of(backend: Any, case: Case, family: Family, scale: int, samples: int) -> Iterator[dict[str, Any]]:
    resident = Resident(
        backend,
        bind(family, {"x": case.array(scale)}, {}, {}),
        layout_transform=LayoutTransform(backend, Cache(default_root()))
        if backend.device.kind == "cuda"
        else None,
    )
    asked = [*configurations(case, family)]
    variants = variants_of(family, [text for *_, text in asked], {})
    reference: dict[str, tuple[float, NDArray[Any]]] = {}
    for (way, layout, _), execution in zip(asked, executions(resident, variants), strict=True):
        execution.run()
        (output,) = family.outputs
        found = execution.restore(output.name, output.shape_for(resident.inputs.sizes))
        times = backend.sample(execution.run, samples, cold=True)
        control, expected = reference.setdefault(way, (median(times), found))
        assert np.allclose(found, expected, rtol=0.05), f"{case.name}, {way}, {layout}: another result"
        yield {
            "array": case.name, "read": way, "layout": layout, "milliseconds": f"{median(times):.5g}",
            "spread": f"{spread(times):.3f}", "of_control": f"{median(times) / control:.3f}",
            "bytes": execution.placed["x"].stored.nbytes,
        }  # fmt: skip
    resident.close()


def main(words: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__, "layout-costs.csv")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--scale", type=int, default=12, help="of the arrays: a side of 2**SCALE")
    parser.add_argument("--samples", type=int, default=15)
    given = parser.parse_args(words)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="autotune-layouts-") as place:
        families = [(case, case.family(Path(place))) for case in CASES]
        if given.check:
            print(sum(len([*configurations(case, family)]) for case, family in families), "configurations")
            return 0
        backend = open_backend(given.device)
        with backend.current():
            for case, family in families:
                for row in rows_of(backend, case, family, given.scale, given.samples):
                    rows.append(row)
                    write_rows(given.out, rows)
                print(f"{case.name}: {len(rows)} rows", flush=True)
        backend.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

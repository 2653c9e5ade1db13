"""A family with views: what one kernel keeps, another reads through a texture."""

from pathlib import Path

from autotune.declaration import family as families

FAMILY = """\
schema: 1
family: lens
source: lens.cu
extents:
  pitch: {value: "round_up(column, 32)"}
  flat: {value: row * pitch}
scalars:
  factor: {type: int32, default: 1}
data:
  x: {role: input, type: KIND, shape: [row, column]}
  seen: {role: view, of: kept, type: KIND, shape: [row, column], pitch: pitch}
  line: {role: view, of: kept, type: KIND, shape: [flat], index_bits: 64}
  kept: {role: scratch, type: KIND, shape: [row, pitch]}
  y: {role: output, type: KIND, shape: [row, column]}
kernels:
  keep: {arguments: [x, kept, factor], grid: [row], block: [32]}
  look: {arguments: [x, seen, line, y, factor], grid: [row], block: [32]}
policies:
  memory: {layout: memory, data: [seen, line], values: [global, readonly, texture], default: global, constant: true}
"""
# kept = factor x; then y is its neighbour above and to the right, at the edges the nearest one, plus the point itself
# by way of the line, added to the y of the round before.
SOURCE = """\
#include "autotune/array.cuh"
enum class Memory { global, readonly, texture };
template <class Policy>
__global__ void keep(typename Policy::x x, typename Policy::kept kept, int factor) {
  using Value = typename Policy::x::value_type;
  const unsigned i = blockIdx.x;
  for (unsigned j = threadIdx.x; j < x.extent(1); j += 32) kept.store(static_cast<Value>(factor * x.load(i, j)), i, j);
}
template <class Policy>
__global__ void look(typename Policy::x x, typename Policy::seen seen, typename Policy::line line,
                     typename Policy::y y, int factor) {
  using Value = typename Policy::x::value_type;
  const int i = static_cast<int>(blockIdx.x), columns = static_cast<int>(x.extent(1));
  const unsigned pitch = line.extent(0) / x.extent(0);
  for (int j = static_cast<int>(threadIdx.x); j < columns; j += 32) {
    int above = i - 1, right = j + 1;
    if constexpr (Policy::memory != Memory::texture) {
      above = above < 0 ? 0 : above;
      right = right < columns ? right : columns - 1;
    }
    const Value sum = static_cast<Value>(seen.load(above, right) + line.load(i * pitch + j));
    y.store(static_cast<Value>((factor > 1 ? y.load(i, j) : Value{}) + sum), i, j);
  }
}
"""
PYTHON = """\
def plan(execution):
    def rounds():
        for factor in (1, 2):
            execution.launch("keep", factor=factor)
            execution.launch("look", factor=factor)
    execution.graph("rounds", rounds)
"""


def lens(folder: Path, kind: str) -> families.Family:
    (folder / "family.yaml").write_text(FAMILY.replace("KIND", kind))
    (folder / "lens.cu").write_text(SOURCE)
    (folder / "family.py").write_text(PYTHON)
    return families.load_family(folder)

// The kernels of counting by a transform: marks in an empty field, columns and rows forward, squared, and back.
#pragma once
#include "transform.cuh"

// 32 columns of a field in shared memory: a warp has a row of them.
struct Columns {
  static constexpr unsigned width = 32;
  unsigned* base;
  AUTOTUNE_DEVICE unsigned& at(unsigned row, unsigned column) const { return base[row * width + column]; }
};

// The table of roots, or its beginning, in shared memory.
struct Table {
  const unsigned* base;
  AUTOTUNE_DEVICE unsigned load(unsigned place) const { return base[place]; }
};

// Rows one behind the other; a word is left out after every 32, so that threads a power of two apart meet other banks.
struct Rows {
  static constexpr unsigned width = 1;
  unsigned* base;
  AUTOTUNE_DEVICE unsigned& at(unsigned place, unsigned = 0) const { return base[place + place / 32]; }
};

// Empties the half of the field that the positions lie in, and makes the table of roots.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    empty_field(typename Policy::field field, typename Policy::roots roots, unsigned filled) {
  if constexpr (Policy::count_by == CountBy::transform) {
    const unsigned first = blockIdx.x * Policy::block_size + threadIdx.x, step = gridDim.x * Policy::block_size;
    for (unsigned place = first; place < filled; place += step) field.store(0, place);
    for (unsigned place = first; place < table_size; place += step) roots.store(table_entry(place), place);
  }
}

// Adds 1 to the field at the place of every prefix sum on the ring. A block has 4096 of them, and adds up all before.
template <class Policy>
__global__ void __launch_bounds__(1024)
    mark(typename Policy::residues residues, typename Policy::field field, unsigned total) {
  if constexpr (Policy::count_by == CountBy::transform) {
    constexpr unsigned each = 4, tile = each * 1024;
    const unsigned n = residues.extent(0), first = blockIdx.x * tile + each * threadIdx.x;
    unsigned sum = 0, whole;
    for (unsigned i = threadIdx.x; i < blockIdx.x * tile; i += 1024) sum += residues.load(i);
    block_sum_before(sum, whole);
    const unsigned before_tile = whole;
    unsigned mass[each];
    sum = 0;
#pragma unroll
    for (unsigned k = 0; k < each; ++k) sum += mass[k] = first + k < n ? residues.load(first + k) : 0;
    unsigned before = before_tile + block_sum_before(sum, whole);
#pragma unroll
    for (unsigned k = 0; k < each; ++k) {
      if (first + k < n) field.add(1u, before < total ? before : 0);
      before += mass[k];
    }
  }
}

// A pass over columns of 2^stages elements, 2^(span - stages) apart, in each block of 2^span elements; and the factor
// between this pass and the rest of the transform: of element i of column j the root of order 2^span to the power j
// times the frequency that i has. A block of threads has 32 columns. Elements from `filled` on are 0 and not there yet,
// or of no interest any more.
template <class Policy, bool FORWARD>
AUTOTUNE_DEVICE void transform_columns(const typename Policy::field& field, const typename Policy::roots& roots,
                                       unsigned span, unsigned stages, unsigned filled) {
  const unsigned rows = 1u << stages, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  constexpr unsigned warps = Policy::block_size / 32;
  const unsigned tiles = span - stages - 5;  // bits; of tiles in a block of elements
  const unsigned column = (blockIdx.x & ((1u << tiles) - 1)) * 32 + lane;
  const unsigned first = (blockIdx.x >> tiles << span) + column, apart = span - stages;
  unsigned* const table = autotune::dynamic_shared<unsigned>();
  const Columns tile{table + rows};

  for (unsigned x = threadIdx.x; x < rows; x += Policy::block_size) table[x] = roots.load(x);
  for (unsigned row = warp; row < rows; row += warps) {
    const unsigned place = first + (row << apart);
    tile.at(row, lane) = !FORWARD || place < filled ? field.load(place) : 0;
  }
  __syncthreads();
  if constexpr (FORWARD) tile_transform<Policy, FORWARD>(tile, Table{table}, stages, stages);

  // Eight frequencies in a row at a time.
  const unsigned scale = 30 - span, next = root_power(roots, column << scale);
  for (unsigned group = warp * 8; group < rows; group += warps * 8) {
    unsigned factor = root_power(roots, column * group << scale);
    for (unsigned frequency = group; frequency < min(group + 8, rows); ++frequency) {
      unsigned& element = tile.at(reversed(frequency, stages), lane);
      element = prime::product(element, factor);
      factor = prime::product(factor, next);
    }
  }
  __syncthreads();
  if constexpr (!FORWARD) tile_transform<Policy, FORWARD>(tile, Table{table}, stages, stages);
  for (unsigned row = warp; row < rows; row += warps) {
    const unsigned place = first + (row << apart);
    if (FORWARD || place < filled) field.store(tile.at(row, lane), place);
  }
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    columns_forward(typename Policy::field field, typename Policy::roots roots, unsigned span, unsigned stages,
                    unsigned filled) {
  if constexpr (Policy::count_by == CountBy::transform)
    transform_columns<Policy, true>(field, roots, span, stages, filled);
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    columns_back(typename Policy::field field, typename Policy::roots roots, unsigned span, unsigned stages,
                 unsigned filled) {
  if constexpr (Policy::count_by == CountBy::transform)
    transform_columns<Policy, false>(field, roots, span, stages, filled);
}

// Two rows of 2^stages elements that have each other's opposite frequencies (rows 0 and 1: their own): forward, each
// times its opposite and `scale`, and back. Where the field is one row, that alone.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    square_rows(typename Policy::field field, typename Policy::roots roots, unsigned bits, unsigned stages,
                unsigned scale) {
  if constexpr (Policy::count_by == CountBy::transform) {
    const unsigned held = min(bits, stages + 1), row = 1u << stages;
    const unsigned highest = blockIdx.x ? 1u << (31 - __clz(blockIdx.x)) : 0;  // pairs of rows highest .. are alike
    const unsigned left = blockIdx.x + highest, right = blockIdx.x ? 5 * highest - 1 - blockIdx.x : 1;
    const Rows tile{autotune::dynamic_shared<unsigned>()};
    for (unsigned x = threadIdx.x; x < 1u << held; x += Policy::block_size)
      tile.at(x) = field.load(((x < row ? left : right) << stages) + x % row);
    __syncthreads();
    tile_transform<Policy, true>(tile, roots, held, stages);
    for (unsigned x = threadIdx.x; x < 1u << held; x += Policy::block_size) {
      const unsigned block = blockIdx.x ? row : x ? 1u << (31 - __clz(x)) : 0;
      const unsigned opposite = blockIdx.x ? 2 * row - 1 - x : x ? 3 * block - 1 - x : 0;
      if (x > opposite) continue;
      tile.at(x) = tile.at(opposite) = prime::product(prime::product(tile.at(x), tile.at(opposite)), scale);
    }
    __syncthreads();
    tile_transform<Policy, false>(tile, roots, held, stages);
    for (unsigned x = threadIdx.x; x < 1u << held; x += Policy::block_size)
      field.store(tile.at(x), ((x < row ? left : right) << stages) + x % row);
  }
}

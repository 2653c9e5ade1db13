// The kernels of counting by a transform: marks in an empty field, columns and rows forward, squared, and back.
#pragma once
#include "autotune/block.cuh"
#include "transform.cuh"

// The beginning of the table of roots, in shared memory.
struct Table {
  const unsigned* base;
  AUTOTUNE_DEVICE unsigned load(unsigned place) const { return base[place]; }
};

template <bool WIDE>
struct PrimeNamed {
  using type = WidePrime;
};
template <>
struct PrimeNamed<false> {
  using type = NarrowPrime;
};
template <class Policy>
using PrimeOf = typename PrimeNamed<Policy::prime_size == PrimeSize::wide>::type;

// Empties the half of the field that the positions lie in and the sums that blocks look back at, and makes the table of
// roots.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    empty_field(typename Policy::field field, typename Policy::roots roots, typename Policy::sums sums,
                unsigned filled) {
  if constexpr (Policy::count_by == CountBy::transform) {
    const unsigned first = blockIdx.x * Policy::block_size + threadIdx.x, step = gridDim.x * Policy::block_size;
    for (unsigned place = first; place < filled; place += step) field.store(0, place);
    for (unsigned place = first; place < sums.extent(0); place += step) sums.store(0, place);
    for (unsigned place = first; place < table_size; place += step)
      roots.store(table_entry<PrimeOf<Policy>>(place), place);
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
    autotune::block::exclusive_sum(sum, whole);
    const unsigned before_tile = whole;
    unsigned mass[each];
    sum = 0;
#pragma unroll
    for (unsigned k = 0; k < each; ++k) sum += mass[k] = first + k < n ? residues.load(first + k) : 0;
    unsigned before = before_tile + autotune::block::exclusive_sum(sum, whole);
#pragma unroll
    for (unsigned k = 0; k < each; ++k) {
      if (first + k < n) field.add(1u, before < total ? before : 0);
      before += mass[k];
    }
  }
}

constexpr unsigned most_stages = 9;  // of a pass over columns; transform.py has it, too

// A pass over columns of 2^stages elements (6 stages at least), 2^(span - stages) apart, in each block of 2^span
// elements; and the factor between this pass and the rest of the transform: of element i of column j the root of order
// 2^span to the power j times the frequency that i has. A block of threads has 32 columns. Elements from `filled` on
// are 0 and not there yet, or of no interest any more.
template <class Policy, bool FORWARD>
AUTOTUNE_DEVICE void transform_columns(const typename Policy::field& field, const typename Policy::roots& all_roots,
                                       unsigned span, unsigned stages, unsigned filled) {
  using Prime = PrimeOf<Policy>;
  constexpr unsigned warps = Policy::block_size / 32;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, apart = span - stages, tiles = apart - 5;
  const unsigned column = (blockIdx.x & ((1u << tiles) - 1)) * 32 + lane;
  const unsigned origin = (blockIdx.x >> tiles << span) + column;
  unsigned* const table = autotune::dynamic_shared<unsigned>();
  const Columns<Policy::block_size> tile{table + (1u << stages) + lane};
  const Table roots{table};
  for (unsigned x = threadIdx.x; x < 1u << stages; x += Policy::block_size) table[x] = all_roots.load(x);
  __syncthreads();

  // Elements 8 group + k have frequencies that are step 2^(stages - 3) apart: factors are powers of one root.
  const unsigned scale = Prime::order_bits - span;
  unsigned powers[8];
  powers[0] = Prime::one;
  powers[1] = root_power<Prime>(all_roots, column << (stages - 3 + scale));
#pragma unroll
  for (unsigned k = 2; k < 8; ++k) powers[k] = Prime::product(powers[k - 1], powers[1]);
  const auto factor = [=](unsigned group) {
    return root_power<Prime>(all_roots, column * reversed(group, stages - 3) << scale);
  };
  constexpr unsigned frequency[8] = {0, 4, 2, 6, 1, 5, 3, 7};

  if constexpr (FORWARD) {
    first_stages<Prime>(tile, roots, stages, stages, [=](unsigned first, unsigned more) {
      const unsigned place = origin + (first + more << apart);
      return place < filled ? field.load(place) : 0;
    });
    inner_stages<Prime, true>(tile, roots, stages, stages);
    for (unsigned group = warp; group < 1u << (stages - 3); group += warps) {
      unsigned v[8];
#pragma unroll
      for (unsigned k = 0; k < 8; ++k) v[k] = tile.at(8 * group, k);
      forward_eight<Prime>(v);
      const unsigned base = factor(group);
#pragma unroll
      for (unsigned k = 0; k < 8; ++k)
        field.store(Prime::product(v[k], Prime::product(powers[frequency[k]], base)),
                    origin + (8 * group + k << apart));
    }
  } else {
    for (unsigned group = warp; group < 1u << (stages - 3); group += warps) {
      unsigned v[8];
      const unsigned base = factor(group);
#pragma unroll
      for (unsigned k = 0; k < 8; ++k) {
        const unsigned element = field.load(origin + (8 * group + k << apart));
        v[k] = Prime::product(element, Prime::product(powers[frequency[k]], base));
      }
      back_eight<Prime>(v);
#pragma unroll
      for (unsigned k = 0; k < 8; ++k) tile.at(8 * group, k) = v[k];
    }
    __syncthreads();
    inner_stages<Prime, false>(tile, roots, stages, stages);
    last_stages<Prime>(tile, roots, stages, stages, [=](unsigned value, unsigned first, unsigned more) {
      const unsigned place = origin + (first + more << apart);
      if (place < filled) field.store(Prime::exact(value), place);
    });
  }
}

// Most passes have the most stages, and what the compiler knows it need not work out.
template <class Policy, bool FORWARD>
AUTOTUNE_DEVICE void columns(const typename Policy::field& field, const typename Policy::roots& roots, unsigned span,
                             unsigned stages, unsigned filled) {
  if (stages == most_stages)
    transform_columns<Policy, FORWARD>(field, roots, span, most_stages, filled);
  else
    transform_columns<Policy, FORWARD>(field, roots, span, stages, filled);
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    columns_forward(typename Policy::field field, typename Policy::roots roots, unsigned span, unsigned stages,
                    unsigned filled) {
  if constexpr (Policy::count_by == CountBy::transform) columns<Policy, true>(field, roots, span, stages, filled);
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    columns_back(typename Policy::field field, typename Policy::roots roots, unsigned span, unsigned stages,
                 unsigned filled) {
  if constexpr (Policy::count_by == CountBy::transform) columns<Policy, false>(field, roots, span, stages, filled);
}

// The last three stages of the groups of eight that have each other's opposite frequencies, each value times its
// opposite and `scale`, and the first three stages back.
template <class Prime, class Tile>
AUTOTUNE_DEVICE void square_groups(const Tile& tile, unsigned group, unsigned opposite, unsigned scale) {
  unsigned a[8], b[8];
#pragma unroll
  for (unsigned k = 0; k < 8; ++k) a[k] = tile.at(8 * group, k), b[k] = tile.at(8 * opposite, k);
  forward_eight<Prime>(a);
  forward_eight<Prime>(b);
  if (opposite == 0) {  // of the first eight, 0 and 1 are their own
    const unsigned own[8] = {a[4], a[5], a[6], a[7], a[2], a[3], a[1], a[0]};
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) b[k] = own[k];
  }
#pragma unroll
  for (unsigned k = 0; k < 8; ++k) a[k] = b[7 - k] = Prime::product(Prime::product(a[k], b[7 - k]), scale);
  back_eight<Prime>(a);
#pragma unroll
  for (unsigned k = 0; k < 8; ++k) tile.at(8 * group, k) = a[k];
  if (opposite == group) return;
  back_eight<Prime>(b);
#pragma unroll
  for (unsigned k = 0; k < 8; ++k) tile.at(8 * opposite, k) = b[k];
}

// Two rows of 2^stages elements (6 stages at least) that have each other's opposite frequencies (rows 0 and 1: their
// own): forward, squared, and back. Where the field is one row, that alone.
template <class Policy>
AUTOTUNE_DEVICE void square_two_rows(const typename Policy::field& field, const typename Policy::roots& roots,
                                     unsigned stages, unsigned scale, bool alone) {
  using Prime = PrimeOf<Policy>;
  const unsigned held = alone ? stages : stages + 1, row = 1u << stages, groups = row / 8;
  const unsigned highest = blockIdx.x ? 1u << (31 - __clz(blockIdx.x)) : 0;  // its rows: 2 highest .. 4 highest - 1
  const unsigned left = blockIdx.x + highest, right = blockIdx.x ? 5 * highest - 1 - blockIdx.x : 1;
  const auto place = [=](unsigned x) { return ((x < row ? left : right) << stages) + x % row; };
  const Rows<Policy::block_size> tile{autotune::dynamic_shared<unsigned>()};
  first_stages<Prime>(tile, roots, held, stages,
                      [=](unsigned first, unsigned more) { return field.load(place(first) + more); });
  inner_stages<Prime, true>(tile, roots, held, stages);
  if (blockIdx.x) {
    for (unsigned group = threadIdx.x; group < groups; group += Policy::block_size)
      square_groups<Prime>(tile, group, 2 * groups - 1 - group, scale);
  } else {
    for (unsigned group = threadIdx.x; group < 1u << (held - 3); group += Policy::block_size) {
      const unsigned opposite = group ? (3u << (31 - __clz(group))) - 1 - group : 0;
      if (group <= opposite) square_groups<Prime>(tile, group, opposite, scale);
    }
  }
  __syncthreads();
  inner_stages<Prime, false>(tile, roots, held, stages);
  last_stages<Prime>(tile, roots, held, stages, [=](unsigned value, unsigned first, unsigned more) {
    field.store(alone ? Prime::exact(value) : value, place(first) + more);
  });
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    square_rows(typename Policy::field field, typename Policy::roots roots, unsigned bits, unsigned stages,
                unsigned scale) {
  if constexpr (Policy::count_by == CountBy::transform) {
    if (stages == Policy::row_bits && bits > stages)
      square_two_rows<Policy>(field, roots, Policy::row_bits, scale, false);
    else
      square_two_rows<Policy>(field, roots, stages, scale, bits == stages);
  }
}

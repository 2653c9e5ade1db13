// A block owns a square of pairs and counts them on the tensor cores: two attributes differ where one has a value and
// the other has not, so D is the sum over values v of the bit products [a == v] . [b != v].
#pragma once
#include "bit_product.cuh"
#include "differ.cuh"
#include "store_tile.cuh"

// How the warps of a block share its square.
template <class Policy>
struct WarpTile {
  static constexpr int warps = Policy::block_size / 32, across = warps >= 4 ? 2 : 1, down = warps / across;
  static constexpr int side = 16 * Policy::tile, rows = side / down, columns = side / across;
  static constexpr int row_tiles = rows / 16, column_tiles = columns / 8;
  static_assert(row_tiles > 0 && column_tiles > 0, "a warp owns at least one product");
};

// The bits of one word of attributes that have the value.
template <class Packing>
AUTOTUNE_DEVICE unsigned with_value(const typename Packing::Word& word, unsigned value) {
  return ~Packing::differ(word, Packing::filled(value));
}

// Those that have another one, a missing one only where it counts as a value.
template <class Policy, class Packing>
AUTOTUNE_DEVICE unsigned without_value(const typename Packing::Word& word, unsigned value) {
  unsigned bits = Packing::differ(word, Packing::filled(value));
  if constexpr (Policy::missing == Missing::masked) bits &= Packing::differ(word, Packing::filled(missing_value));
  return bits;
}

// Counts the differences of four items of attributes, one of each lane in four: `a` of the lane's rows, `b` of its
// columns.
template <class Policy, class Value, class Tile = WarpTile<Policy>>
AUTOTUNE_DEVICE void add_item(BitSums (&sums)[Tile::row_tiles][Tile::column_tiles],
                              const Value (&a)[Tile::row_tiles][2], const Value (&b)[Tile::column_tiles], bool counts) {
  using Packing = typename Value::packing;
  constexpr unsigned values = Policy::missing == Missing::masked ? missing_value : missing_value + 1;
  constexpr unsigned planes = Value::words * values, products = (planes + 1) / 2;
#pragma unroll
  for (unsigned p = 0; p < products; ++p) {
    BitRows rows[Tile::row_tiles];
#pragma unroll
    for (int m = 0; m < Tile::row_tiles; ++m)
#pragma unroll
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned plane = 2 * p + half, w = plane / values, value = plane % values;
        const bool is_any = plane < planes && counts;
        rows[m].upper[half] = is_any ? with_value<Packing>(a[m][0].word[w % Value::words], value) : 0;
        rows[m].lower[half] = is_any ? with_value<Packing>(a[m][1].word[w % Value::words], value) : 0;
      }
#pragma unroll
    for (int n = 0; n < Tile::column_tiles; ++n) {
      BitColumns columns;
#pragma unroll
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned plane = 2 * p + half, w = plane / values, value = plane % values;
        columns.word[half] = without_value<Policy, Packing>(b[n].word[w % Value::words], value);
      }
#pragma unroll
      for (int m = 0; m < Tile::row_tiles; ++m) add_bit_product<Tile::warps>(sums[m][n], rows[m], columns);
    }
  }
}

template <class Policy>
AUTOTUNE_DEVICE void block_owns_square(typename Policy::genotypes genotypes, typename Policy::distance distance) {
  using Tile = WarpTile<Policy>;
  using Value = typename Policy::genotypes::value_type;
  using CountStrip = Strip<Tile::columns>;
  __shared__ __align__(16) int counts[Tile::warps * 16 * CountStrip::stride];
  const unsigned instances = genotypes.extent(0), items = genotypes.extent(1);
  const Square square = square_of<Policy>(blockIdx.x, (instances + Tile::side - 1) / Tile::side);
  const unsigned warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, quarter = threadIdx.x % 4;
  const unsigned row = warp / Tile::across * Tile::rows, column = warp % Tile::across * Tile::columns;
  const unsigned first_row = square.down * Tile::side + row, first_column = square.across * Tile::side + column;
  BitSums sums[Tile::row_tiles][Tile::column_tiles] = {};
  Value a[Tile::row_tiles][2], b[Tile::column_tiles];
  for (unsigned k = 0; k < items; k += 4) {
    const unsigned item = min(k + quarter, items - 1);
#pragma unroll
    for (int m = 0; m < Tile::row_tiles; ++m)
#pragma unroll
      for (unsigned half = 0; half < 2; ++half)
        a[m][half] = genotypes.load(min(first_row + m * 16 + half * 8 + group, instances - 1), item);
#pragma unroll
    for (int n = 0; n < Tile::column_tiles; ++n)
      b[n] = genotypes.load(min(first_column + n * 8 + group, instances - 1), item);
    add_item<Policy>(sums, a, b, k + quarter < items);
  }
  const CountStrip strip{counts + warp * 16 * CountStrip::stride};
#pragma unroll
  for (int m = 0; m < Tile::row_tiles; ++m) {
    __syncwarp();
#pragma unroll
    for (int n = 0; n < Tile::column_tiles; ++n)
#pragma unroll
      for (unsigned half = 0; half < 2; ++half) {
        strip.at(group, n * 8 + 2 * quarter + half) = sums[m][n].upper[half];
        strip.at(group + 8, n * 8 + 2 * quarter + half) = sums[m][n].lower[half];
      }
    __syncwarp();
    store_strip<Policy>(strip, distance, first_row + m * 16, first_column, square.is_mirrored());
  }
}

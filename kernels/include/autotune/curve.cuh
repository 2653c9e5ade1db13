// SPDX-License-Identifier: Apache-2.0
// curve: tiles one behind the other along a Morton or a Hilbert curve, through blocks of a power of two tiles.
#pragma once
#include "autotune/tile.cuh"

namespace autotune {

// The bits of a number RANK places apart: bit k goes to bit RANK * k.
template <int RANK>
AUTOTUNE_DEVICE unsigned long long spread(unsigned long long bits) {
  static_assert(RANK == 2 || RANK == 3, "curves run through two or three axes");
  if (RANK == 2) {
    bits = (bits | bits << 16) & 0x0000FFFF0000FFFFull;
    bits = (bits | bits << 8) & 0x00FF00FF00FF00FFull;
    bits = (bits | bits << 4) & 0x0F0F0F0F0F0F0F0Full;
    bits = (bits | bits << 2) & 0x3333333333333333ull;
    return (bits | bits << 1) & 0x5555555555555555ull;
  }
  bits = (bits | bits << 32) & 0x001F00000000FFFFull;
  bits = (bits | bits << 16) & 0x001F0000FF0000FFull;
  bits = (bits | bits << 8) & 0x100F00F00F00F00Full;
  bits = (bits | bits << 4) & 0x10C30C30C30C30C3ull;
  return (bits | bits << 2) & 0x1249249249249249ull;
}

// The same where the result has 32 bits.
template <int RANK>
AUTOTUNE_DEVICE unsigned spread(unsigned bits) {
  static_assert(RANK == 2 || RANK == 3, "curves run through two or three axes");
  if (RANK == 2) {
    bits = (bits | bits << 8) & 0x00FF00FFu;
    bits = (bits | bits << 4) & 0x0F0F0F0Fu;
    bits = (bits | bits << 2) & 0x33333333u;
    return (bits | bits << 1) & 0x55555555u;
  }
  bits = (bits | bits << 16) & 0x030000FFu;
  bits = (bits | bits << 8) & 0x0300F00Fu;
  bits = (bits | bits << 4) & 0x030C30C3u;
  return (bits | bits << 2) & 0x09249249u;
}

// The indices' bits by turns, that of the first, which is the slowest, highest.
struct Morton {
  template <int RANK, class Index>
  AUTOTUNE_DEVICE static Index place(const Index (&cell)[RANK], Index) {
    Index joined = 0;
#pragma unroll
    for (int axis = 0; axis < RANK; ++axis) joined = joined << 1 | spread<RANK>(cell[axis]);
    return joined;
  }
};

// J. Skilling, "Programming the Hilbert curve" (2004): the bits of the indices turned, from the highest to the lowest,
// so that Morton's order of them is Hilbert's.
struct Hilbert {
  template <int RANK, class Index>
  AUTOTUNE_DEVICE static Index place(const Index (&cell)[RANK], Index side) {
    Index turned[RANK];
#pragma unroll
    for (int axis = 0; axis < RANK; ++axis) turned[axis] = cell[axis];
    for (Index bit = side >> 1; bit > 1; bit >>= 1) {
      const Index lower = bit - 1;
#pragma unroll
      for (int axis = 0; axis < RANK; ++axis) {
        const Index swapped = (turned[0] ^ turned[axis]) & lower;
        const bool is_high = (turned[axis] & bit) != 0;
        turned[0] ^= is_high ? lower : swapped;
        if (axis > 0) turned[axis] ^= is_high ? 0 : swapped;
      }
    }
#pragma unroll
    for (int axis = 1; axis < RANK; ++axis) turned[axis] ^= turned[axis - 1];
    // Bit k of what all are turned by is the parity of the last one's bits above k.
    Index parity = turned[RANK - 1] >> 1;
#pragma unroll
    for (int shift = 1; shift < static_cast<int>(8 * sizeof(Index)); shift <<= 1) parity ^= parity >> shift;
#pragma unroll
    for (int axis = 0; axis < RANK; ++axis) turned[axis] ^= parity;
    return Morton::place(turned, side);
  }
};

// offset(i0, i1, …): each index is cut into a tile and a place within it; the tiles along the axes ALONG (slowest
// first) once more, into a block of `side` tiles and a place on the Curve through it. SIDE 0 is the smallest power of
// two that takes the fewest tiles along one of these axes. `strides` are those of blocks, or of tiles where no curve
// runs.
template <class Curve, unsigned SIDE, class Along, class Axes, class Tile, class ExtentsOf, class StridesOf>
struct Curved : Shape<ExtentsOf, StridesOf> {
  using typename Shape<ExtentsOf, StridesOf>::Offset;
  using typename Shape<ExtentsOf, StridesOf>::Stride;

  template <class... Indices>
  AUTOTUNE_DEVICE Offset offset(Indices... indices) const {
    constexpr int rank = Axes::count;
    static_assert(sizeof...(Indices) == rank, "one index for each axis");
    const Offset index[] = {static_cast<Offset>(indices)...};
    const unsigned last = side() - 1;
    const int bits = __popc(last);
    Stride cell[Along::count];
    Offset sum = 0;
#pragma unroll
    for (int axis = 0; axis < rank; ++axis) {
      const unsigned size = Tile::size(axis);
      Offset tile = index[axis] / size;
      const int place = Along::place(axis);
      if (place >= 0) {
        cell[place] = static_cast<Stride>(tile & last);
        tile >>= bits;
      }
      sum += tile * this->strides()[axis] + index[axis] % size * within_tile<Axes, Tile>(axis);
    }
    return sum + static_cast<Offset>(Curve::place(cell, static_cast<Stride>(last + 1))) * Tile::volume;
  }

 private:
  AUTOTUNE_DEVICE unsigned side() const {
    if (SIDE > 0) return SIDE;
    unsigned fewest = ~0u;
#pragma unroll
    for (int place = 0; place < Along::count; ++place) {
      const unsigned size = Tile::size(Along::axis(place));
      const unsigned tiles = (this->extents()[Along::axis(place)] - 1) / size + 1;  // an extent is at least 1
      fewest = tiles < fewest ? tiles : fewest;
    }
    unsigned lower = fewest - 1;
#pragma unroll
    for (int shift = 1; shift < 32; shift <<= 1) lower |= lower >> shift;
    return lower + 1;
  }
};

}  // namespace autotune

// SPDX-License-Identifier: Apache-2.0
// curve: elements or tiles one after the other along a Morton or a Hilbert curve, through blocks of a power of two.
#pragma once
#include "autotune/mapping.cuh"

namespace autotune {

namespace detail {

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

}  // namespace detail

// The indices' bits by turns, that of the first, which is the slowest, highest.
struct Morton {
  template <int RANK, class Index>
  AUTOTUNE_DEVICE static Index place(const Index (&cell)[RANK], Index) {
    Index joined = 0;
#pragma unroll
    for (int axis = 0; axis < RANK; ++axis) joined = joined << 1 | detail::spread<RANK>(cell[axis]);
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

// The mapping of blocks, Outer, composed with a Curve through `side` places along each of the axes ALONG (slowest
// first). SIDE 0 is the smallest power of two that takes the fewest places along one of these axes. A place has a whole
// Cell: Extents of a tile, whose number each index is then (tile.cuh), or 1 along each axis.
template <class Curve, unsigned SIDE, class Cell, class Outer, int... ALONG>
struct Curved : Outer {
  using typename Outer::Offset;
  using typename Outer::Stride;
  static constexpr bool is_strided = false;

  template <class... Indices>
  AUTOTUNE_DEVICE Offset offset(Indices... indices) const {
    Offset index[] = {static_cast<Offset>(indices)...};
    const unsigned last = side() - 1;
    const int bits = __popc(last);
    const Stride place[] = {static_cast<Stride>(index[ALONG] & last)...};
    ((index[ALONG] >>= bits), ...);
    return detail::offset_of<Outer>(*this, index, UpTo<sizeof...(Indices)>()) +
           static_cast<Offset>(Curve::place(place, static_cast<Stride>(last + 1))) * Cell::volume();
  }

 private:
  AUTOTUNE_DEVICE unsigned side() const {
    if (SIDE > 0) return SIDE;
    const unsigned places[] = {((this->extents()[ALONG] - 1) / Cell::known(ALONG) + 1)...};  // an extent is at least 1
    unsigned fewest = ~0u;
    for (const unsigned each : places) fewest = each < fewest ? each : fewest;
    unsigned lower = fewest - 1;
#pragma unroll
    for (int shift = 1; shift < 32; shift <<= 1) lower |= lower >> shift;
    return lower + 1;
  }
};

}  // namespace autotune

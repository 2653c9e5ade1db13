// SPDX-License-Identifier: Apache-2.0
// dims: how a linear texel offset becomes an address, in one dimension or two. `is_line`: they are the same.
#pragma once
#include "autotune/device.cuh"

namespace autotune {

struct Dims1D {
  static constexpr bool is_line = true;
  AUTOTUNE_DEVICE static unsigned x(unsigned offset) { return offset; }
  AUTOTUNE_DEVICE static unsigned y(unsigned) { return 0; }
  template <class Index>
  AUTOTUNE_DEVICE static Index linear(Index offset) {
    return offset;
  }
};

// A plane 2^LOG2_WIDTH texels wide, filled in blocks of 2^LOG2_ROWS rows: consecutive offsets lie in
// consecutive rows of a block. LOG2_ROWS = 0 is plain row-major. (MUMmerGPU 2.0's 2D tree is <12, 5>,
// its 2D reference <16, 2>.)
template <int LOG2_WIDTH, int LOG2_ROWS>
struct Dims2D {
  static constexpr bool is_line = false;
  static constexpr unsigned rows = 1u << LOG2_ROWS, width = 1u << LOG2_WIDTH;
  template <class Index>
  AUTOTUNE_DEVICE static unsigned x(Index offset) {
    return static_cast<unsigned>(offset >> LOG2_ROWS) & (width - 1);
  }
  template <class Index>
  AUTOTUNE_DEVICE static unsigned y(Index offset) {
    return static_cast<unsigned>(offset >> (LOG2_WIDTH + LOG2_ROWS)) * rows +
           (static_cast<unsigned>(offset) & (rows - 1));
  }
  template <class Index>
  AUTOTUNE_DEVICE static Index linear(Index offset) {
    // y of any size: a plane in memory may have more than 2^32 rows
    return ((offset >> (LOG2_WIDTH + LOG2_ROWS)) * rows + (offset & (rows - 1))) * width + x(offset);
  }
};

// The rows and columns of the array itself, as Coordinates has them; below zero where an index is.
struct DimsRows {
  static constexpr bool is_line = false;
  AUTOTUNE_DEVICE static int x(unsigned long long place) { return static_cast<int>(static_cast<unsigned>(place)); }
  AUTOTUNE_DEVICE static int y(unsigned long long place) { return static_cast<int>(place >> 32); }
};

}  // namespace autotune

// Which square of pairs a block owns, and how its counts go to D: as they are, and mirrored where only half of the
// pairs is computed.
#pragma once
#include "autotune/device.cuh"

enum class Pairs { all, triangle };

struct Square {  // in units of its side; row and column of D
  unsigned down, across;
  AUTOTUNE_DEVICE bool is_mirrored() const { return down != across; }
};

// D has `squares` x `squares` of them. Of a triangle those on and above the diagonal, column by column.
template <class Policy>
AUTOTUNE_DEVICE Square square_of(unsigned block, unsigned squares) {
  if constexpr (Policy::pairs == Pairs::triangle) {
    unsigned across = static_cast<unsigned>((sqrtf(8.0f * block + 1.0f) - 1.0f) * 0.5f);
    while (across * (across + 1) / 2 > block) --across;  // where the root was rounded
    while ((across + 1) * (across + 2) / 2 <= block) ++across;
    return {block - across * (across + 1) / 2, across};
  } else {
    return {block / squares, block % squares};
  }
}

// 16 rows of a warp's counts in shared memory, so that its lanes store neighbours whichever way they are read. Odd rows
// keep the reads of a column apart, and 9 also the writes of a product's shares, as far as one number can do both.
template <int COLUMNS>
struct Strip {
  static constexpr int columns = COLUMNS, stride = COLUMNS + 9;
  int* counts;
  AUTOTUNE_DEVICE int& at(unsigned row, unsigned column) const { return counts[row * stride + column]; }
};

template <class Policy, class Strip>
AUTOTUNE_DEVICE void store_strip(Strip strip, typename Policy::distance distance, unsigned first_row,
                                 unsigned first_column, bool is_mirrored) {
  const unsigned instances = distance.extent(0), lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned pair = lane; pair < 16 * Strip::columns; pair += 32) {
    const unsigned row = pair / Strip::columns, column = pair % Strip::columns;
    if (first_row + row < instances && first_column + column < instances)
      distance.store(strip.at(row, column), first_row + row, first_column + column);
  }
  if constexpr (Policy::pairs == Pairs::triangle) {
    if (!is_mirrored) return;
#pragma unroll
    for (unsigned pair = lane; pair < 16 * Strip::columns; pair += 32) {
      const unsigned row = pair % 16, column = pair / 16;
      if (first_row + row < instances && first_column + column < instances)
        distance.store(strip.at(row, column), first_column + column, first_row + row);
    }
  }
}

// Morton's and Hilbert's curves: where a cell of a block is on the curve. As kernels/autotune/curve.cuh has it.
#pragma once
#include <cstdint>
#include <vector>

namespace tuned {

enum class Curve { none, morton, hilbert };

// The bits of the indices by turns, that of the first highest.
inline std::int64_t morton(const std::vector<std::int64_t>& cell, std::int64_t side) {
  std::int64_t joined = 0;
  for (std::int64_t bit = side >> 1; bit > 0; bit >>= 1)
    for (const std::int64_t index : cell) joined = joined << 1 | ((index & bit) != 0);
  return joined;
}

// J. Skilling, "Programming the Hilbert curve" (2004).
inline std::int64_t hilbert(std::vector<std::int64_t> cell, std::int64_t side) {
  for (std::int64_t bit = side >> 1; bit > 1; bit >>= 1)
    for (std::int64_t& index : cell) {
      const std::int64_t lower = bit - 1;
      if ((index & bit) != 0) {
        cell.front() ^= lower;
      } else {
        const std::int64_t swapped = (cell.front() ^ index) & lower;
        cell.front() ^= swapped;
        index ^= swapped;
      }
    }
  for (std::size_t axis = 1; axis < cell.size(); ++axis) cell[axis] ^= cell[axis - 1];
  std::int64_t turned = 0;
  for (std::int64_t bit = side >> 1; bit > 1; bit >>= 1)
    if ((cell.back() & bit) != 0) turned ^= bit - 1;
  for (std::int64_t& index : cell) index ^= turned;
  return morton(cell, side);
}

}  // namespace tuned

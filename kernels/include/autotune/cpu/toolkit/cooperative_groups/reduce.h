// SPDX-License-Identifier: Apache-2.0
// Stands in for the toolkit's header on the cpu device.
#pragma once
#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class T>
struct plus {
  __device__ T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  __device__ T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  __device__ T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  __device__ T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  __device__ T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  __device__ T operator()(T a, T b) const { return a ^ b; }
};

// Every thread gets the whole, and the same bits: each pair of partners computes one sum.
template <unsigned SIZE, class PARENT, class T, class Operation>
__device__ inline T reduce(const thread_block_tile<SIZE, PARENT>& tile, T value, Operation operation) {
  for (unsigned step = SIZE / 2; step > 0; step /= 2) {
    const T other = tile.shfl_xor(value, step);
    value = tile.thread_rank() & step ? operation(other, value) : operation(value, other);
  }
  return value;
}
// In the order of the ranks.
template <class T, class Operation>
__device__ inline T reduce(const coalesced_group& group, T value, Operation operation) {
  T total = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.num_threads(); ++rank) total = operation(total, group.shfl(value, rank));
  return total;
}

}  // namespace cooperative_groups

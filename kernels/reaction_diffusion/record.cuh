// The observable F: the sum of c over the detector's points, at every sampling time.
//
// Each concentration is rounded to a whole number of quanta and the quanta are added as 64-bit integers. Integer sums
// do not care for order, so F has the same bits whatever the tiles and blocks are. The quantum follows from the largest
// initial concentration: by the maximum principle none is ever larger, so no sum can overflow.
#pragma once
#include "autotune/shared.cuh"
#include "field.cuh"

// The exponent of the quantum's inverse: points * peak * 2^exponent < 2^62. `peak_bits` are those of the peak as float.
AUTOTUNE_DEVICE int quantum_exponent(unsigned peak_bits, unsigned long long points) {
  const int peak_exponent = static_cast<int>(peak_bits >> 23) - 126;
  return 62 - peak_exponent - (64 - __clzll(static_cast<long long>(points)));
}
AUTOTUNE_DEVICE double power_of_two(int exponent) {
  return __longlong_as_double(static_cast<long long>(1023 + exponent) << 52);
}

template <class Number>
AUTOTUNE_DEVICE unsigned long long quanta(Number c, double per_unit) {
  return static_cast<unsigned long long>(static_cast<long long>(rint(static_cast<double>(c) * per_unit)));
}

// Adds `count` of every thread of the warp to sums[sample].
template <class Sums>
AUTOTUNE_DEVICE void add_of_warp(const Sums& sums, unsigned sample, unsigned long long count) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) count += __shfl_down_sync(0xffffffffu, count, lanes);
  if (threadIdx.x % 32 == 0 && count) sums.add(count, sample);
}

// The smallest rectangle with all points that the detector sees: how many rows from its first and up to its last,
// columns from its first and up to its last. 0 is none, and the larger of two numbers holds both.
struct Rectangle {
  unsigned most[4] = {};

  AUTOTUNE_DEVICE void add(int from_row, int to_row, int from_column, int to_column) {
    most[0] = max(most[0], static_cast<unsigned>(from_row));
    most[1] = max(most[1], static_cast<unsigned>(to_row));
    most[2] = max(most[2], static_cast<unsigned>(from_column));
    most[3] = max(most[3], static_cast<unsigned>(to_column));
  }
  // By all threads of a block.
  template <class All>
  AUTOTUNE_DEVICE void merge_into(const All& all) const {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const unsigned value = __reduce_max_sync(0xffffffffu, most[n]);
      if (threadIdx.x % 32 == 0 && value > all.load(n)) atomicMax(&autotune::element(all, n), value);
    }
  }
};

// Adds `count` of every thread of the block to sums[sample]. Between two barriers it uses the block's dynamic shared
// memory: a word a warp.
template <int BLOCK_SIZE, class Sums>
AUTOTUNE_DEVICE void add_to_sample(const Sums& sums, unsigned sample, unsigned long long count) {
  constexpr int warps = BLOCK_SIZE / 32;
  unsigned long long* const partial = autotune::dynamic_shared<unsigned long long>();
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) count += __shfl_down_sync(0xffffffffu, count, lanes);
  __syncthreads();
  if (thread % 32 == 0) partial[thread / 32] = count;
  __syncthreads();
  if (thread == 0) {
    for (int warp = 1; warp < warps; ++warp) count += partial[warp];
    if (count) sums.add(count, sample);
  }
  __syncthreads();
}

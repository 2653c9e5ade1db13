// SPDX-License-Identifier: Apache-2.0
// Sums and maxima over neighbouring lanes of a warp, and running sums: one shuffle and one operation for each doubling.
// Every lane of the warp calls them together.
#pragma once
#include "autotune/device.cuh"

namespace autotune::warp {

namespace detail {

// Combines the values of each LANES neighbouring lanes, a power of two; all of them get the result.
template <int LANES, class Number, class Combine>
AUTOTUNE_DEVICE Number reduce(Number value, Combine combine) {
  static_assert(LANES > 0 && LANES <= 32 && (LANES & (LANES - 1)) == 0, "LANES is a power of two, at most 32");
#pragma unroll
  for (int step = LANES / 2; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}

}  // namespace detail

// The sum over each LANES neighbouring lanes, in all of them.
template <int LANES = 32, class Number>
AUTOTUNE_DEVICE Number sum(Number value) {
  return detail::reduce<LANES>(value, [](Number own, Number other) { return own + other; });
}

// The largest value of each LANES neighbouring lanes, in all of them.
template <int LANES = 32, class Number>
AUTOTUNE_DEVICE Number max(Number value) {
  return detail::reduce<LANES>(value, [](Number own, Number other) { return ::max(own, other); });
}

// The smallest value of each LANES neighbouring lanes, in all of them.
template <int LANES = 32, class Number>
AUTOTUNE_DEVICE Number min(Number value) {
  return detail::reduce<LANES>(value, [](Number own, Number other) { return ::min(own, other); });
}

// The sum of this lane's value and those of the lanes before it. The threads of a block are in x.
template <class Number>
AUTOTUNE_DEVICE Number inclusive_sum(Number value) {
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) {
    const Number before = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step) value += before;
  }
  return value;
}

}  // namespace autotune::warp

// scores[i] = the sum over k of weights[k] * items[i, k]. One thread holds one item.
//
// This is CUDA C++ with two rules. An array is a parameter of type `typename Policy::<data>`, and is reached by
// its logical indices, whatever its layout: load(i, k), store(value, i), add(value, i) (atomic), extent(axis).
// A policy without a layout is a constant, Policy::<policy>. Anything else is yours: shared memory, registers,
// warp functions, helper functions, headers beside this file.
//
// From a kernel with pointers: `const float* items` becomes `typename Policy::items items`, and
// `items[i * fields + k]` becomes `items.load(i, k)`.
#include "autotune/array.cuh"

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    weighted_sum(typename Policy::items items, typename Policy::weights weights, typename Policy::scores scores) {
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i >= items.extent(0)) return;
  float sum = 0;
  for (unsigned k = 0; k < items.extent(1); ++k) sum += weights.load(k) * items.load(i, k);
  scores.store(sum, i);
}

// For editors, which want a configuration to look at; `autotune show FAMILY control --header` prints the file anew.
#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif

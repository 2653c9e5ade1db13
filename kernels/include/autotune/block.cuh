// SPDX-License-Identifier: Apache-2.0
// Sums over the threads of a block: two steps over warps, with 32 numbers of shared memory in between. A block is whole
// warps in x, at most 1024 threads, and all of them call these functions together. They may be called again at once.
#pragma once
#include "autotune/warp.cuh"

namespace autotune::block {

// The sum over the block, in all its threads. The order of additions depends on the block's size alone.
template <class Number>
AUTOTUNE_DEVICE Number sum(Number value) {
  __shared__ Number of_warp[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  value = warp::sum(value);
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  value = warp::sum(lane < warps ? of_warp[lane] : Number(0));
  __syncthreads();
  return value;
}

// The sum over the threads before this one; `total` becomes the sum over all.
template <class Number>
AUTOTUNE_DEVICE Number exclusive_sum(Number value, Number& total) {
  __shared__ Number of_warp[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const Number sum = warp::inclusive_sum(value);
  if (lane == 31) of_warp[warp] = sum;
  __syncthreads();
  if (warp == 0) of_warp[lane] = warp::inclusive_sum(lane < warps ? of_warp[lane] : Number(0));
  __syncthreads();
  total = of_warp[31];
  const Number before = sum - value + (warp ? of_warp[warp - 1] : Number(0));
  __syncthreads();
  return before;
}

}  // namespace autotune::block

// Sums over a block of whole warps.
#pragma once
#include "autotune/device.cuh"

// The sum of `value` over the threads before this one; `total` is that over all. A block's threads are in x, at most
// 1024, and all call it. May be called again at once.
AUTOTUNE_DEVICE unsigned block_sum_before(unsigned value, unsigned& total) {
  __shared__ unsigned warp_sum[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  unsigned sum = value;
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const unsigned before = __shfl_up_sync(0xffffffffu, sum, distance);
    if (lane >= distance) sum += before;
  }
  if (lane == 31) warp_sum[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    unsigned whole = lane < warps ? warp_sum[lane] : 0;
    for (unsigned distance = 1; distance < 32; distance *= 2) {
      const unsigned before = __shfl_up_sync(0xffffffffu, whole, distance);
      if (lane >= distance) whole += before;
    }
    warp_sum[lane] = whole;
  }
  __syncthreads();
  total = warp_sum[31];
  const unsigned before = sum - value + (warp ? warp_sum[warp - 1] : 0);
  __syncthreads();
  return before;
}

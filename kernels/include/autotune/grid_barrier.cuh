// SPDX-License-Identifier: Apache-2.0
// A barrier for all blocks of a cooperative launch (Execution.launch_cooperative: a grid in x alone).
#pragma once
#include "autotune/device.cuh"

namespace autotune {

// Returns when every thread of the grid is here; what they wrote before is seen after. `arrived` is 0 at the
// launch and only grows: it holds 2^32 arrivals of a block, and is never reset.
AUTOTUNE_DEVICE void grid_barrier(unsigned* arrived) {
  __syncthreads();
  if (gridDim.x > 1 && threadIdx.x == 0 && threadIdx.y == 0) {
    __threadfence();
    const unsigned last = (atomicAdd(arrived, 1u) / gridDim.x + 1) * gridDim.x;
    while (*static_cast<volatile unsigned*>(arrived) < last) {
    }
    __threadfence();
  }
  __syncthreads();
}

}  // namespace autotune

// The scalar product of each side of two vectors, in an order that never changes: a sum for each block, then their sum.
#include "autotune/array.cuh"

constexpr unsigned threads = 256;

// The sum over the block, in its first thread.
AUTOTUNE_DEVICE float over_block(float value) {
  __shared__ float sums[threads];
  sums[threadIdx.x] = value;
  for (unsigned apart = threads / 2; apart > 0; apart /= 2) {
    __syncthreads();
    if (threadIdx.x < apart) sums[threadIdx.x] += sums[threadIdx.x + apart];
  }
  return sums[threadIdx.x];
}

template <class Policy>
__global__ void __launch_bounds__(threads)
    sum_parts(typename Policy::first first, typename Policy::second second, typename Policy::parts parts) {
  const unsigned side = blockIdx.y;
  float sum = 0;
  for (unsigned row = blockIdx.x * threads + threadIdx.x; row < first.extent(0); row += gridDim.x * threads)
    sum += first.load(row, side) * second.load(row, side);
  const float all = over_block(sum);
  if (threadIdx.x == 0) parts.store(all, side, blockIdx.x);
}

template <class Policy>
__global__ void __launch_bounds__(threads) sum_all(typename Policy::parts parts, typename Policy::sums sums) {
  const unsigned side = blockIdx.x;
  const float all = over_block(threadIdx.x < parts.extent(1) ? parts.load(side, threadIdx.x) : 0);
  if (threadIdx.x == 0) sums.store(all, side);
}

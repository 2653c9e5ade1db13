// SPDX-License-Identifier: Apache-2.0
// Of the cpu device's own CUB: a reduction over the threads of a block. Thread 0 gets the result.
#pragma once
#include "../warp/warp_reduce.cuh"

namespace cub {

// The result is that of the last one whichever is asked for: warps by themselves, then their results in order.
enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS,
};

template <class T, int BLOCK_DIM_X, BlockReduceAlgorithm ALGORITHM = BLOCK_REDUCE_WARP_REDUCTIONS, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1, int LEGACY_PTX_ARCH = 0>
class BlockReduce {
  static constexpr int threads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z, warps = (threads + 31) / 32;

 public:
  struct TempStorage {
    Room<T, warps> totals;
  };
  __device__ BlockReduce() : storage_(own()) {}
  __device__ explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

  template <class Operation>
  __device__ T Reduce(T input, Operation operation, int num_valid = threads) {
    const int warp = static_cast<int>(WarpId());
    typename WarpReduce<T>::TempStorage none;
    const int here = threads - 32 * warp, valid = num_valid - 32 * warp;
    const T total = WarpReduce<T>(none).Reduce(input, operation, valid < here ? valid : here < 32 ? here : 32);
    if (LaneId() == 0) storage_.totals[warp] = total;
    __syncthreads();
    if (thread_in_block() != 0) return total;
    T all = storage_.totals[0];
    for (int other = 1; 32 * other < num_valid && other < warps; ++other) all = operation(all, storage_.totals[other]);
    return all;
  }
  template <class Operation, int ITEMS>
  __device__ T Reduce(T (&items)[ITEMS], Operation operation) {
    return Reduce(ThreadReduce(items, operation), operation);
  }
  __device__ T Sum(T input) { return Reduce(input, cub::Sum()); }
  __device__ T Sum(T input, int num_valid) { return Reduce(input, cub::Sum(), num_valid); }
  template <int ITEMS>
  __device__ T Sum(T (&items)[ITEMS]) {
    return Reduce(items, cub::Sum());
  }

 private:
  static __device__ TempStorage& own() {
    __shared__ TempStorage storage;
    return storage;
  }
  TempStorage& storage_;
};

}  // namespace cub

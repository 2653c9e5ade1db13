// SPDX-License-Identifier: Apache-2.0
// Of the cpu device's own CUB: a block's items to memory.
#pragma once
#include "../util.cuh"

namespace cub {

enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED,
};

template <class T, int ITEMS, class Iterator>
__device__ inline void StoreDirectBlocked(int thread, Iterator to, T (&items)[ITEMS]) {
  for (int i = 0; i < ITEMS; ++i) to[thread * ITEMS + i] = items[i];
}
template <class T, int ITEMS, class Iterator>
__device__ inline void StoreDirectBlocked(int thread, Iterator to, T (&items)[ITEMS], int valid) {
  for (int i = 0; i < ITEMS; ++i)
    if (thread * ITEMS + i < valid) to[thread * ITEMS + i] = items[i];
}
template <int THREADS, class T, int ITEMS, class Iterator>
__device__ inline void StoreDirectStriped(int thread, Iterator to, T (&items)[ITEMS]) {
  for (int i = 0; i < ITEMS; ++i) to[thread + i * THREADS] = items[i];
}
template <int THREADS, class T, int ITEMS, class Iterator>
__device__ inline void StoreDirectStriped(int thread, Iterator to, T (&items)[ITEMS], int valid) {
  for (int i = 0; i < ITEMS; ++i)
    if (thread + i * THREADS < valid) to[thread + i * THREADS] = items[i];
}

template <class T, int BLOCK_DIM_X, int ITEMS_PER_THREAD, BlockStoreAlgorithm ALGORITHM = BLOCK_STORE_DIRECT,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1, int LEGACY_PTX_ARCH = 0>
class BlockStore {
  static constexpr int threads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;

 public:
  struct TempStorage {};
  __device__ BlockStore() = default;
  __device__ explicit BlockStore(TempStorage&) {}
  template <class Iterator, class... Rest>
  __device__ void Store(Iterator to, T (&items)[ITEMS_PER_THREAD], Rest... rest) {
    if constexpr (ALGORITHM == BLOCK_STORE_STRIPED)
      StoreDirectStriped<threads>(thread_in_block(), to, items, rest...);
    else
      StoreDirectBlocked(thread_in_block(), to, items, rest...);
  }
};

}  // namespace cub

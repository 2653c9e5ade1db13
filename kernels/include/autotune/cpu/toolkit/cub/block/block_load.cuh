// SPDX-License-Identifier: Apache-2.0
// Of the cpu device's own CUB: a block's items from memory.
#pragma once
#include "../util.cuh"

namespace cub {

enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED,
};

template <class T, int ITEMS, class Iterator>
__device__ inline void LoadDirectBlocked(int thread, Iterator from, T (&items)[ITEMS]) {
  for (int i = 0; i < ITEMS; ++i) items[i] = from[thread * ITEMS + i];
}
template <class T, int ITEMS, class Iterator>
__device__ inline void LoadDirectBlocked(int thread, Iterator from, T (&items)[ITEMS], int valid) {
  for (int i = 0; i < ITEMS; ++i)
    if (thread * ITEMS + i < valid) items[i] = from[thread * ITEMS + i];
}
template <class T, int ITEMS, class Iterator, class Default>
__device__ inline void LoadDirectBlocked(int thread, Iterator from, T (&items)[ITEMS], int valid, Default otherwise) {
  for (int i = 0; i < ITEMS; ++i) items[i] = otherwise;
  LoadDirectBlocked(thread, from, items, valid);
}
template <int THREADS, class T, int ITEMS, class Iterator>
__device__ inline void LoadDirectStriped(int thread, Iterator from, T (&items)[ITEMS]) {
  for (int i = 0; i < ITEMS; ++i) items[i] = from[thread + i * THREADS];
}
template <int THREADS, class T, int ITEMS, class Iterator>
__device__ inline void LoadDirectStriped(int thread, Iterator from, T (&items)[ITEMS], int valid) {
  for (int i = 0; i < ITEMS; ++i)
    if (thread + i * THREADS < valid) items[i] = from[thread + i * THREADS];
}
template <int THREADS, class T, int ITEMS, class Iterator, class Default>
__device__ inline void LoadDirectStriped(int thread, Iterator from, T (&items)[ITEMS], int valid, Default otherwise) {
  for (int i = 0; i < ITEMS; ++i) items[i] = otherwise;
  LoadDirectStriped<THREADS>(thread, from, items, valid);
}

// Items of a thread follow each other, but where striped ones are asked for. How they come there is the device's
// matter.
template <class T, int BLOCK_DIM_X, int ITEMS_PER_THREAD, BlockLoadAlgorithm ALGORITHM = BLOCK_LOAD_DIRECT,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1, int LEGACY_PTX_ARCH = 0>
class BlockLoad {
  static constexpr int threads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;

 public:
  struct TempStorage {};
  __device__ BlockLoad() = default;
  __device__ explicit BlockLoad(TempStorage&) {}
  template <class Iterator, class... Rest>
  __device__ void Load(Iterator from, T (&items)[ITEMS_PER_THREAD], Rest... rest) {
    if constexpr (ALGORITHM == BLOCK_LOAD_STRIPED)
      LoadDirectStriped<threads>(thread_in_block(), from, items, rest...);
    else
      LoadDirectBlocked(thread_in_block(), from, items, rest...);
  }
};

}  // namespace cub

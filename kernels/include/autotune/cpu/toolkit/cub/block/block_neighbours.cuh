// SPDX-License-Identifier: Apache-2.0
// Of the cpu device's own CUB: a block's items beside those before and behind them. Items of a thread follow each
// other.
#pragma once
#include "../util.cuh"

namespace cub {

template <class T, int THREADS>
struct Neighbours {
  struct Storage {
    Room<T, THREADS> first, last;
  };
  // The item before a thread's first one, and that behind its last one; of the first and the last thread the others.
  template <int ITEMS>
  static __device__ void find(Storage& storage, const T (&items)[ITEMS], T& before, T& behind) {
    const int thread = thread_in_block();
    storage.first[thread] = items[0];
    storage.last[thread] = items[ITEMS - 1];
    __syncthreads();
    if (thread > 0) before = storage.last[thread - 1];
    if (thread + 1 < THREADS) behind = storage.first[thread + 1];
  }
};

}  // namespace cub

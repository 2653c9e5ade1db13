// SPDX-License-Identifier: Apache-2.0
// Of the cpu device's own CUB: what its sorts of a block's items have in common. Sorting is one thread's work here: the
// items are few, and threads of a block run one after the other anyway.
#pragma once
#include "block_exchange.cuh"

namespace cub {

template <class KeyT, class ValueT, int THREADS, int ITEMS>
struct BlockSorter {
  static constexpr bool has_values = !__is_same(ValueT, NullType);
  static constexpr int count = THREADS * ITEMS;
  struct Storage {
    Room<KeyT, count> keys;
    Room<ValueT, count> values;
    int place[2][count];
  };

  // `order` puts the numbers of the first `valid` keys into place[0], in their order. Items come and go as blocked, or
  // go as striped.
  template <class Order>
  static __device__ void sort(Storage& storage, KeyT (&keys)[ITEMS], ValueT* values, int valid, bool is_striped,
                              Order order) {
    const int thread = thread_in_block();
    for (int i = 0; i < ITEMS; ++i) {
      storage.keys[thread * ITEMS + i] = keys[i];
      if constexpr (has_values)
        if (values) storage.values[thread * ITEMS + i] = values[i];
    }
    __syncthreads();
    if (thread == 0) {
      for (int i = 0; i < count; ++i) storage.place[0][i] = i;
      order(valid);
    }
    __syncthreads();
    for (int i = 0; i < ITEMS; ++i) {
      const int from = storage.place[0][is_striped ? thread + i * THREADS : thread * ITEMS + i];
      keys[i] = storage.keys[from];
      if constexpr (has_values)
        if (values) values[i] = storage.values[from];
    }
  }
};

}  // namespace cub

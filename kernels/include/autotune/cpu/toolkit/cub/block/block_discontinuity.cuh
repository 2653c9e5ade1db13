// SPDX-License-Identifier: Apache-2.0
// Of the cpu device's own CUB: where a block's items differ from their neighbours. The first is a head, the last a
// tail.
#pragma once
#include "block_neighbours.cuh"

namespace cub {

template <class T, int BLOCK_DIM_X, int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1, int LEGACY_PTX_ARCH = 0>
class BlockDiscontinuity {
  static constexpr int threads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  using Found = Neighbours<T, threads>;

 public:
  struct TempStorage {
    typename Found::Storage neighbours;
  };
  __device__ BlockDiscontinuity() : storage_(own()) {}
  __device__ explicit BlockDiscontinuity(TempStorage& storage) : storage_(storage) {}

  template <int ITEMS, class Flag, class Differ>
  __device__ void FlagHeads(Flag (&heads)[ITEMS], T (&items)[ITEMS], Differ differ) {
    Flag tails[ITEMS];
    flag(heads, tails, items, differ, nullptr, nullptr);
  }
  template <int ITEMS, class Flag, class Differ>
  __device__ void FlagHeads(Flag (&heads)[ITEMS], T (&items)[ITEMS], Differ differ, T predecessor) {
    Flag tails[ITEMS];
    flag(heads, tails, items, differ, &predecessor, nullptr);
  }
  template <int ITEMS, class Flag, class Differ>
  __device__ void FlagTails(Flag (&tails)[ITEMS], T (&items)[ITEMS], Differ differ) {
    Flag heads[ITEMS];
    flag(heads, tails, items, differ, nullptr, nullptr);
  }
  template <int ITEMS, class Flag, class Differ>
  __device__ void FlagTails(Flag (&tails)[ITEMS], T (&items)[ITEMS], Differ differ, T successor) {
    Flag heads[ITEMS];
    flag(heads, tails, items, differ, nullptr, &successor);
  }
  template <int ITEMS, class Flag, class Differ>
  __device__ void FlagHeadsAndTails(Flag (&heads)[ITEMS], Flag (&tails)[ITEMS], T (&items)[ITEMS], Differ differ) {
    flag(heads, tails, items, differ, nullptr, nullptr);
  }

 private:
  template <class Flag, int ITEMS, class Differ>
  __device__ void flag(Flag (&heads)[ITEMS], Flag (&tails)[ITEMS], T (&items)[ITEMS], Differ differ,
                       const T* predecessor, const T* successor) {
    T before = items[0], behind = items[0];
    Found::find(storage_.neighbours, items, before, behind);
    const int thread = thread_in_block();
    if (thread == 0 && predecessor) before = *predecessor;
    if (thread == threads - 1 && successor) behind = *successor;
    for (int i = 0; i < ITEMS; ++i) {
      const bool is_first = thread == 0 && i == 0 && !predecessor;
      const bool is_last = thread == threads - 1 && i == ITEMS - 1 && !successor;
      heads[i] = is_first || differ(i > 0 ? items[i - 1] : before, items[i]);
      tails[i] = is_last || differ(items[i], i + 1 < ITEMS ? items[i + 1] : behind);
    }
  }
  static __device__ TempStorage& own() {
    __shared__ TempStorage storage;
    return storage;
  }
  TempStorage& storage_;
};

}  // namespace cub

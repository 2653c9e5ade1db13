// SPDX-License-Identifier: Apache-2.0
// Of the cpu device's own CUB: a block's keys in the order that a comparison says. Equal ones keep their order.
#pragma once
#include "block_sort.cuh"

namespace cub {

template <class KeyT, int BLOCK_DIM_X, int ITEMS_PER_THREAD, class ValueT = NullType, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1>
class BlockMergeSort {
  using Sorter = BlockSorter<KeyT, ValueT, BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z, ITEMS_PER_THREAD>;
  using Keys = KeyT[ITEMS_PER_THREAD];
  using Values = ValueT[ITEMS_PER_THREAD];
  static constexpr int threads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  static_assert((threads & (threads - 1)) == 0, "a block that merges has a power of two threads");

 public:
  struct TempStorage {
    typename Sorter::Storage sorter;
  };
  __device__ BlockMergeSort() : storage_(own()) {}
  __device__ explicit BlockMergeSort(TempStorage& storage) : storage_(storage) {}

  template <class Compare>
  __device__ void Sort(Keys& keys, Compare is_before) {
    sort(keys, nullptr, is_before, Sorter::count);
  }
  template <class Compare>
  __device__ void Sort(Keys& keys, Values& values, Compare is_before) {
    sort(keys, values, is_before, Sorter::count);
  }
  // Of the first `valid`; behind them lies `otherwise`.
  template <class Compare>
  __device__ void Sort(Keys& keys, Compare is_before, int valid, KeyT otherwise) {
    fill(keys, valid, otherwise);
    sort(keys, nullptr, is_before, valid);
  }
  template <class Compare>
  __device__ void Sort(Keys& keys, Values& values, Compare is_before, int valid, KeyT otherwise) {
    fill(keys, valid, otherwise);
    sort(keys, values, is_before, valid);
  }
  template <class... Arguments>
  __device__ void StableSort(Arguments&&... arguments) {
    Sort(arguments...);
  }

 private:
  static __device__ void fill(Keys& keys, int valid, const KeyT& otherwise) {
    for (int i = 0; i < ITEMS_PER_THREAD; ++i)
      if (thread_in_block() * ITEMS_PER_THREAD + i >= valid) keys[i] = otherwise;
  }
  template <class Compare>
  __device__ void sort(Keys& keys, ValueT* values, Compare is_before, int valid) {
    auto& storage = storage_.sorter;
    Sorter::sort(storage, keys, values, valid, false, [&](int count) {
      auto& [place, other] = storage.place;
      for (int width = 1; width < count; width *= 2) {
        for (int begin = 0; begin < count; begin += 2 * width) {
          const int middle = begin + width < count ? begin + width : count;
          const int end = begin + 2 * width < count ? begin + 2 * width : count;
          int left = begin, right = middle;
          for (int i = begin; i < end; ++i) {
            const bool is_right =
                left == middle || (right < end && is_before(storage.keys[place[right]], storage.keys[place[left]]));
            other[i] = place[is_right ? right++ : left++];
          }
        }
        for (int i = 0; i < count; ++i) place[i] = other[i];
      }
    });
  }
  static __device__ TempStorage& own() {
    __shared__ TempStorage storage;
    return storage;
  }
  TempStorage& storage_;
};

}  // namespace cub

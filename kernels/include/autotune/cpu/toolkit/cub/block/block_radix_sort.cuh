// SPDX-License-Identifier: Apache-2.0
// Of the cpu device's own CUB: a block's keys in the order of some of their bits. Equal ones keep their order.
#pragma once
#include "block_sort.cuh"

namespace cub {

template <class KeyT, int BLOCK_DIM_X, int ITEMS_PER_THREAD, class ValueT = NullType, int RADIX_BITS = 4,
          bool MEMOIZE_OUTER_SCAN = true, int INNER_SCAN_ALGORITHM = 0, int SMEM_CONFIG = 0, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1, int LEGACY_PTX_ARCH = 0>
class BlockRadixSort {
  using Sorter = BlockSorter<KeyT, ValueT, BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z, ITEMS_PER_THREAD>;
  static constexpr int all_bits = 8 * static_cast<int>(sizeof(KeyT));
  using Keys = KeyT[ITEMS_PER_THREAD];
  using Values = ValueT[ITEMS_PER_THREAD];

 public:
  struct TempStorage {
    typename Sorter::Storage sorter;
  };
  __device__ BlockRadixSort() : storage_(own()) {}
  __device__ explicit BlockRadixSort(TempStorage& storage) : storage_(storage) {}

#define AUTOTUNE_SORT(NAME, IS_DESCENDING, IS_STRIPED)                                          \
  __device__ void NAME(Keys& keys, int begin_bit = 0, int end_bit = all_bits) {                 \
    sort(keys, nullptr, begin_bit, end_bit, IS_DESCENDING, IS_STRIPED);                         \
  }                                                                                             \
  __device__ void NAME(Keys& keys, Values& values, int begin_bit = 0, int end_bit = all_bits) { \
    sort(keys, values, begin_bit, end_bit, IS_DESCENDING, IS_STRIPED);                          \
  }
  AUTOTUNE_SORT(Sort, false, false)
  AUTOTUNE_SORT(SortDescending, true, false)
  AUTOTUNE_SORT(SortBlockedToStriped, false, true)
  AUTOTUNE_SORT(SortDescendingBlockedToStriped, true, true)
#undef AUTOTUNE_SORT

 private:
  __device__ void sort(Keys& keys, ValueT* values, int begin_bit, int end_bit, bool is_descending, bool is_striped) {
    auto& storage = storage_.sorter;
    Sorter::sort(storage, keys, values, Sorter::count, is_striped, [&](int count) {
      for (int bit = begin_bit; bit < end_bit; bit += 8) {
        const int width = end_bit - bit < 8 ? end_bit - bit : 8;
        const unsigned flipped = is_descending ? 0xff : 0, all = (1u << width) - 1;
        const auto digit = [&](int place) {
          return static_cast<unsigned>(ordered_bits(storage.keys[place]) >> bit & all) ^ (flipped & all);
        };
        int first[257] = {};
        for (int i = 0; i < count; ++i) ++first[digit(storage.place[0][i]) + 1];
        for (int i = 0; i < 256; ++i) first[i + 1] += first[i];
        for (int i = 0; i < count; ++i) storage.place[1][first[digit(storage.place[0][i])]++] = storage.place[0][i];
        for (int i = 0; i < count; ++i) storage.place[0][i] = storage.place[1][i];
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

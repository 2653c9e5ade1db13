// SPDX-License-Identifier: Apache-2.0
// Of the cpu device's own CUB: differences of neighbours. Where there is none, an item stays as it is.
#pragma once
#include "block_neighbours.cuh"

namespace cub {

template <class T, int BLOCK_DIM_X, int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1, int LEGACY_PTX_ARCH = 0>
class BlockAdjacentDifference {
  using Found = Neighbours<T, BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z>;
  static constexpr int threads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;

 public:
  struct TempStorage {
    typename Found::Storage neighbours;
  };
  __device__ BlockAdjacentDifference() : storage_(own()) {}
  __device__ explicit BlockAdjacentDifference(TempStorage& storage) : storage_(storage) {}

  template <int ITEMS, class Output, class Difference>
  __device__ void SubtractLeft(T (&in)[ITEMS], Output (&out)[ITEMS], Difference difference) {
    left(in, out, difference, threads * ITEMS, nullptr);
  }
  template <int ITEMS, class Output, class Difference>
  __device__ void SubtractLeft(T (&in)[ITEMS], Output (&out)[ITEMS], Difference difference, T predecessor) {
    left(in, out, difference, threads * ITEMS, &predecessor);
  }
  template <int ITEMS, class Output, class Difference>
  __device__ void SubtractLeftPartialTile(T (&in)[ITEMS], Output (&out)[ITEMS], Difference difference, int valid) {
    left(in, out, difference, valid, nullptr);
  }
  template <int ITEMS, class Output, class Difference>
  __device__ void SubtractLeftPartialTile(T (&in)[ITEMS], Output (&out)[ITEMS], Difference difference, int valid,
                                          T predecessor) {
    left(in, out, difference, valid, &predecessor);
  }
  template <int ITEMS, class Output, class Difference>
  __device__ void SubtractRight(T (&in)[ITEMS], Output (&out)[ITEMS], Difference difference) {
    right(in, out, difference, threads * ITEMS, nullptr);
  }
  template <int ITEMS, class Output, class Difference>
  __device__ void SubtractRight(T (&in)[ITEMS], Output (&out)[ITEMS], Difference difference, T successor) {
    right(in, out, difference, threads * ITEMS, &successor);
  }
  template <int ITEMS, class Output, class Difference>
  __device__ void SubtractRightPartialTile(T (&in)[ITEMS], Output (&out)[ITEMS], Difference difference, int valid) {
    right(in, out, difference, valid, nullptr);
  }

 private:
  template <int ITEMS, class Output, class Difference>
  __device__ void left(T (&in)[ITEMS], Output (&out)[ITEMS], Difference difference, int valid, const T* predecessor) {
    T before = in[0], behind = in[0];
    Found::find(storage_.neighbours, in, before, behind);
    const int first = thread_in_block() * ITEMS;
    bool is_first = first == 0 && !predecessor;
    if (first == 0 && predecessor) before = *predecessor;
    for (int i = 0; i < ITEMS; ++i) {
      T item = in[i];
      out[i] = is_first || first + i >= valid ? static_cast<Output>(item) : difference(item, before);
      before = item;
      is_first = false;
    }
  }
  template <int ITEMS, class Output, class Difference>
  __device__ void right(T (&in)[ITEMS], Output (&out)[ITEMS], Difference difference, int valid, const T* successor) {
    T before = in[0], behind = in[0];
    Found::find(storage_.neighbours, in, before, behind);
    const int first = thread_in_block() * ITEMS, last = threads * ITEMS - 1;
    if (successor && thread_in_block() == threads - 1) behind = *successor;
    for (int i = 0; i < ITEMS; ++i) {
      T next = i + 1 < ITEMS ? in[i + 1] : behind;
      const bool has_next = first + i + 1 < valid || (successor && first + i == last);
      out[i] = has_next ? difference(in[i], next) : static_cast<Output>(in[i]);
    }
  }
  static __device__ TempStorage& own() {
    __shared__ TempStorage storage;
    return storage;
  }
  TempStorage& storage_;
};

}  // namespace cub

// SPDX-License-Identifier: Apache-2.0
// Of the cpu device's own CUB: reductions over the lanes of a logical warp. The first lane gets the result.
#pragma once
#include "../util.cuh"

namespace cub {

template <class T, int LOGICAL_WARP_THREADS = 32>
class WarpReduce {
  LogicalWarp<LOGICAL_WARP_THREADS> warp_;

 public:
  struct TempStorage {};
  __device__ explicit WarpReduce(TempStorage&) {}

  // Neighbours first, then pairs of them: in order, so that an operation need not commute.
  template <class Operation>
  __device__ T Reduce(T input, Operation operation, int valid_items = LOGICAL_WARP_THREADS) {
    const int lane = static_cast<int>(warp_.lane);
    for (int step = 1; step < LOGICAL_WARP_THREADS; step *= 2) {
      const T other = warp_.from(input, warp_.lane + static_cast<unsigned>(step));
      if (lane % (2 * step) == 0 && lane + step < valid_items) input = operation(input, other);
    }
    return input;
  }
  template <class Operation, int ITEMS>
  __device__ T Reduce(const T (&items)[ITEMS], Operation operation) {
    return Reduce(ThreadReduce(items, operation), operation);
  }
  __device__ T Sum(T input) { return Reduce(input, cub::Sum()); }
  __device__ T Sum(T input, int valid_items) { return Reduce(input, cub::Sum(), valid_items); }
  __device__ T Max(T input) { return Reduce(input, cub::Max()); }
  __device__ T Min(T input) { return Reduce(input, cub::Min()); }

  // Of the lanes from a head to before the next one; each head gets its own.
  template <class Operation, class Flag>
  __device__ T HeadSegmentedReduce(T input, Flag is_head, Operation operation) {
    const unsigned heads = __ballot_sync(warp_.mask, is_head) >> warp_.first;
    const unsigned after = warp_.lane < 31 ? heads >> (warp_.lane + 1) << (warp_.lane + 1) : 0;
    return segment(input, after ? static_cast<int>(__ffs(static_cast<int>(after))) - 1 : LOGICAL_WARP_THREADS,
                   operation);
  }
  // Up to and with the lane that is a tail.
  template <class Operation, class Flag>
  __device__ T TailSegmentedReduce(T input, Flag is_tail, Operation operation) {
    const unsigned tails = __ballot_sync(warp_.mask, is_tail) >> warp_.first, here = tails >> warp_.lane << warp_.lane;
    return segment(input, here ? static_cast<int>(__ffs(static_cast<int>(here))) : LOGICAL_WARP_THREADS, operation);
  }
  template <class Flag>
  __device__ T HeadSegmentedSum(T input, Flag is_head) {
    return HeadSegmentedReduce(input, is_head, cub::Sum());
  }
  template <class Flag>
  __device__ T TailSegmentedSum(T input, Flag is_tail) {
    return TailSegmentedReduce(input, is_tail, cub::Sum());
  }

 private:
  // Of the lanes from this one to before `end`.
  template <class Operation>
  __device__ T segment(T input, int end, Operation operation) {
    for (int step = 1; step < LOGICAL_WARP_THREADS; step *= 2) {
      const T other = warp_.from(input, warp_.lane + static_cast<unsigned>(step));
      if (static_cast<int>(warp_.lane) + step < end) input = operation(input, other);
    }
    return input;
  }
};

}  // namespace cub

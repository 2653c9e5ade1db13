// SPDX-License-Identifier: Apache-2.0
// Of the cpu device's own CUB: prefixes over the threads of a block. Of several items of a thread, they follow each
// other.
#pragma once
#include "../warp/warp_scan.cuh"

namespace cub {

// The result is that of the last one whichever is asked for: warps by themselves, then what lies before them.
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

template <class T, int BLOCK_DIM_X, BlockScanAlgorithm ALGORITHM = BLOCK_SCAN_RAKING, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1, int LEGACY_PTX_ARCH = 0>
class BlockScan {
  static constexpr int threads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z, warps = (threads + 31) / 32;

 public:
  struct TempStorage {
    Room<T, warps + 1> totals;  // and the prefix of the whole block
  };
  __device__ BlockScan() : storage_(own()) {}
  __device__ explicit BlockScan(TempStorage& storage) : storage_(storage) {}

  // Thread 0 has no exclusive one.
  template <class Operation>
  __device__ void ExclusiveScan(T input, T& exclusive, Operation operation) {
    T inclusive, aggregate;
    scan(input, inclusive, exclusive, operation, aggregate);
  }
  template <class Operation>
  __device__ void ExclusiveScan(T input, T& exclusive, Operation operation, T& aggregate) {
    T inclusive;
    scan(input, inclusive, exclusive, operation, aggregate);
  }
  template <class Operation>
  __device__ void ExclusiveScan(T input, T& exclusive, T initial, Operation operation) {
    T aggregate;
    ExclusiveScan(input, exclusive, initial, operation, aggregate);
  }
  // `aggregate` is without the initial value.
  template <class Operation>
  __device__ void ExclusiveScan(T input, T& exclusive, T initial, Operation operation, T& aggregate) {
    T inclusive, before;
    scan(input, inclusive, before, operation, aggregate);
    exclusive = thread_in_block() == 0 ? initial : operation(initial, before);
  }
  // `prefix_of` is called by the first warp with the aggregate; what its first lane gets lies before the block.
  template <class Operation, class Prefix>
  __device__ void ExclusiveScan(T input, T& exclusive, Operation operation, Prefix& prefix_of) {
    T inclusive, before, aggregate;
    scan(input, inclusive, before, operation, aggregate);
    const T prefix = prefixed(aggregate, prefix_of);
    exclusive = thread_in_block() == 0 ? prefix : operation(prefix, before);
  }
  template <class Operation>
  __device__ void InclusiveScan(T input, T& inclusive, Operation operation) {
    T aggregate;
    InclusiveScan(input, inclusive, operation, aggregate);
  }
  template <class Operation>
  __device__ void InclusiveScan(T input, T& inclusive, Operation operation, T& aggregate) {
    T exclusive;
    scan(input, inclusive, exclusive, operation, aggregate);
  }
  template <class Operation, class Prefix>
  __device__ void InclusiveScan(T input, T& inclusive, Operation operation, Prefix& prefix_of) {
    T before, aggregate;
    scan(input, inclusive, before, operation, aggregate);
    inclusive = operation(prefixed(aggregate, prefix_of), inclusive);
  }

  // The same of several items.
  template <int ITEMS, class Operation>
  __device__ void ExclusiveScan(T (&in)[ITEMS], T (&out)[ITEMS], T initial, Operation operation) {
    T before;
    ExclusiveScan(ThreadReduce(in, operation), before, initial, operation);
    exclusive_items(in, out, before, operation);
  }
  template <int ITEMS, class Operation>
  __device__ void ExclusiveScan(T (&in)[ITEMS], T (&out)[ITEMS], T initial, Operation operation, T& aggregate) {
    T before;
    ExclusiveScan(ThreadReduce(in, operation), before, initial, operation, aggregate);
    exclusive_items(in, out, before, operation);
  }
  template <int ITEMS, class Operation, class Prefix>
  __device__ void ExclusiveScan(T (&in)[ITEMS], T (&out)[ITEMS], Operation operation, Prefix& prefix_of) {
    T before;
    ExclusiveScan(ThreadReduce(in, operation), before, operation, prefix_of);
    exclusive_items(in, out, before, operation);
  }
  template <int ITEMS, class Operation>
  __device__ void InclusiveScan(T (&in)[ITEMS], T (&out)[ITEMS], Operation operation) {
    T aggregate;
    InclusiveScan(in, out, operation, aggregate);
  }
  template <int ITEMS, class Operation>
  __device__ void InclusiveScan(T (&in)[ITEMS], T (&out)[ITEMS], Operation operation, T& aggregate) {
    T inclusive, before;
    scan(ThreadReduce(in, operation), inclusive, before, operation, aggregate);
    inclusive_items(in, out, thread_in_block() == 0, before, operation);
  }
  template <int ITEMS, class Operation, class Prefix>
  __device__ void InclusiveScan(T (&in)[ITEMS], T (&out)[ITEMS], Operation operation, Prefix& prefix_of) {
    T before;
    ExclusiveScan(ThreadReduce(in, operation), before, operation, prefix_of);
    inclusive_items(in, out, false, before, operation);
  }

  __device__ void ExclusiveSum(T input, T& exclusive) { ExclusiveScan(input, exclusive, T(), cub::Sum()); }
  __device__ void ExclusiveSum(T input, T& exclusive, T& aggregate) {
    ExclusiveScan(input, exclusive, T(), cub::Sum(), aggregate);
  }
  template <class Prefix>
  __device__ void ExclusiveSum(T input, T& exclusive, Prefix& prefix_of) {
    ExclusiveScan(input, exclusive, cub::Sum(), prefix_of);
  }
  template <int ITEMS>
  __device__ void ExclusiveSum(T (&in)[ITEMS], T (&out)[ITEMS]) {
    ExclusiveScan(in, out, T(), cub::Sum());
  }
  template <int ITEMS>
  __device__ void ExclusiveSum(T (&in)[ITEMS], T (&out)[ITEMS], T& aggregate) {
    ExclusiveScan(in, out, T(), cub::Sum(), aggregate);
  }
  template <int ITEMS, class Prefix>
  __device__ void ExclusiveSum(T (&in)[ITEMS], T (&out)[ITEMS], Prefix& prefix_of) {
    ExclusiveScan(in, out, cub::Sum(), prefix_of);
  }
  __device__ void InclusiveSum(T input, T& inclusive) { InclusiveScan(input, inclusive, cub::Sum()); }
  __device__ void InclusiveSum(T input, T& inclusive, T& aggregate) {
    InclusiveScan(input, inclusive, cub::Sum(), aggregate);
  }
  template <class Prefix>
  __device__ void InclusiveSum(T input, T& inclusive, Prefix& prefix_of) {
    InclusiveScan(input, inclusive, cub::Sum(), prefix_of);
  }
  template <int ITEMS>
  __device__ void InclusiveSum(T (&in)[ITEMS], T (&out)[ITEMS]) {
    InclusiveScan(in, out, cub::Sum());
  }
  template <int ITEMS>
  __device__ void InclusiveSum(T (&in)[ITEMS], T (&out)[ITEMS], T& aggregate) {
    InclusiveScan(in, out, cub::Sum(), aggregate);
  }
  template <int ITEMS, class Prefix>
  __device__ void InclusiveSum(T (&in)[ITEMS], T (&out)[ITEMS], Prefix& prefix_of) {
    InclusiveScan(in, out, cub::Sum(), prefix_of);
  }

 private:
  static __device__ TempStorage& own() {
    __shared__ TempStorage storage;
    return storage;
  }
  template <class Operation>
  __device__ void scan(T input, T& inclusive, T& exclusive, Operation operation, T& aggregate) {
    const int warp = static_cast<int>(WarpId()), last = threads - 32 * warp < 32 ? threads - 32 * warp - 1 : 31;
    typename WarpScan<T>::TempStorage none;
    WarpScan<T>(none).Scan(input, inclusive, exclusive, operation);
    if (static_cast<int>(LaneId()) == last) storage_.totals[warp] = inclusive;
    __syncthreads();
    T before = storage_.totals[0];
    aggregate = before;
    for (int other = 1; other < warps; ++other) {
      aggregate = operation(aggregate, storage_.totals[other]);
      if (other < warp) before = aggregate;
    }
    if (warp > 0) {
      inclusive = operation(before, inclusive);
      exclusive = LaneId() == 0 ? before : operation(before, exclusive);
    }
  }
  template <class Prefix>
  __device__ T prefixed(const T& aggregate, Prefix& prefix_of) {
    if (WarpId() == 0) {
      const T prefix = prefix_of(aggregate);
      if (LaneId() == 0) storage_.totals[warps] = prefix;
    }
    __syncthreads();
    return storage_.totals[warps];
  }
  template <int ITEMS, class Operation>
  static __device__ void exclusive_items(const T (&in)[ITEMS], T (&out)[ITEMS], T before, Operation operation) {
    for (int i = 0; i < ITEMS; ++i) {
      T item = in[i];
      out[i] = before;
      before = operation(before, item);
    }
  }
  template <int ITEMS, class Operation>
  static __device__ void inclusive_items(const T (&in)[ITEMS], T (&out)[ITEMS], bool is_first, T before,
                                         Operation operation) {
    for (int i = 0; i < ITEMS; ++i) out[i] = before = is_first && i == 0 ? in[i] : operation(before, in[i]);
  }
  TempStorage& storage_;
};

}  // namespace cub

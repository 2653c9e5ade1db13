// SPDX-License-Identifier: Apache-2.0
// Of the cpu device's own CUB: prefixes over the lanes of a logical warp.
#pragma once
#include "../util.cuh"

namespace cub {

template <class T, int LOGICAL_WARP_THREADS = 32>
class WarpScan {
  LogicalWarp<LOGICAL_WARP_THREADS> warp_;

 public:
  struct TempStorage {};
  __device__ explicit WarpScan(TempStorage&) {}

  template <class Operation>
  __device__ void InclusiveScan(T input, T& inclusive, Operation operation) {
    for (unsigned step = 1; step < LOGICAL_WARP_THREADS; step *= 2) {
      const T before = warp_.from(input, warp_.lane >= step ? warp_.lane - step : warp_.lane);
      if (warp_.lane >= step) input = operation(before, input);
    }
    inclusive = input;
  }
  template <class Operation>
  __device__ void InclusiveScan(T input, T& inclusive, Operation operation, T& aggregate) {
    InclusiveScan(input, inclusive, operation);
    aggregate = warp_.from(inclusive, LOGICAL_WARP_THREADS - 1);
  }
  // The first lane has none.
  template <class Operation>
  __device__ void ExclusiveScan(T input, T& exclusive, Operation operation) {
    T inclusive;
    Scan(input, inclusive, exclusive, operation);
  }
  template <class Operation>
  __device__ void ExclusiveScan(T input, T& exclusive, T initial, Operation operation) {
    T inclusive;
    Scan(input, inclusive, exclusive, initial, operation);
  }
  template <class Operation>
  __device__ void ExclusiveScan(T input, T& exclusive, T initial, Operation operation, T& aggregate) {
    T inclusive;
    InclusiveScan(input, inclusive, operation, aggregate);
    exclusive = shifted(inclusive);
    exclusive = warp_.lane == 0 ? initial : operation(initial, exclusive);
  }
  template <class Operation>
  __device__ void Scan(T input, T& inclusive, T& exclusive, Operation operation) {
    InclusiveScan(input, inclusive, operation);
    exclusive = shifted(inclusive);
  }
  template <class Operation>
  __device__ void Scan(T input, T& inclusive, T& exclusive, T initial, Operation operation) {
    InclusiveScan(input, inclusive, operation);
    exclusive = shifted(inclusive);
    exclusive = warp_.lane == 0 ? initial : operation(initial, exclusive);
    inclusive = operation(initial, inclusive);
  }
  __device__ void InclusiveSum(T input, T& inclusive) { InclusiveScan(input, inclusive, cub::Sum()); }
  __device__ void InclusiveSum(T input, T& inclusive, T& aggregate) {
    InclusiveScan(input, inclusive, cub::Sum(), aggregate);
  }
  __device__ void ExclusiveSum(T input, T& exclusive) { ExclusiveScan(input, exclusive, T(), cub::Sum()); }
  __device__ void ExclusiveSum(T input, T& exclusive, T& aggregate) {
    ExclusiveScan(input, exclusive, T(), cub::Sum(), aggregate);
  }
  __device__ void Sum(T input, T& inclusive, T& exclusive) { Scan(input, inclusive, exclusive, T(), cub::Sum()); }
  __device__ T Broadcast(T input, unsigned lane) { return warp_.from(input, lane); }

 private:
  __device__ T shifted(T value) { return warp_.from(value, warp_.lane == 0 ? 0 : warp_.lane - 1); }
};

}  // namespace cub

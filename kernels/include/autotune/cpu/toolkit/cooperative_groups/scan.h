// SPDX-License-Identifier: Apache-2.0
// Stands in for the toolkit's header on the cpu device.
#pragma once
#include "reduce.h"

namespace cooperative_groups {

template <class Group, class T, class Operation>
__device__ inline T inclusive_scan(const Group& group, T value, Operation operation) {
  const unsigned rank = group.thread_rank();
  for (unsigned step = 1; step < group.num_threads(); step *= 2) {
    const T before = group.shfl_up(value, step);
    if (rank >= step) value = operation(before, value);
  }
  return value;
}
template <class Group, class T>
__device__ inline T inclusive_scan(const Group& group, T value) {
  return inclusive_scan(group, value, plus<T>());
}
// The first thread gets T().
template <class Group, class T, class Operation>
__device__ inline T exclusive_scan(const Group& group, T value, Operation operation) {
  const T before = group.shfl_up(inclusive_scan(group, value, operation), 1);
  return group.thread_rank() == 0 ? T() : before;
}
template <class Group, class T>
__device__ inline T exclusive_scan(const Group& group, T value) {
  return exclusive_scan(group, value, plus<T>());
}

}  // namespace cooperative_groups

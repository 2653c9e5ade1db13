// SPDX-License-Identifier: Apache-2.0
// Stands in for the toolkit's header on the cpu device: a copy is made at once, and waiting for it is a barrier.
#pragma once
#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class Group, class T, class Source>
__device__ inline void memcpy_async(const Group& group, T* to, const Source* from, unsigned long bytes) {
  const unsigned char* const source = reinterpret_cast<const unsigned char*>(from);
  unsigned char* const target = reinterpret_cast<unsigned char*>(to);
  for (unsigned long i = group.thread_rank(); i < bytes; i += group.num_threads()) target[i] = source[i];
}
template <class Group>
__device__ inline void wait(const Group& group) {
  group.sync();
}
template <unsigned STAGES, class Group>
__device__ inline void wait_prior(const Group& group) {
  group.sync();
}

}  // namespace cooperative_groups

// SPDX-License-Identifier: Apache-2.0
// Barriers, and exchange between the lanes of a warp.
#pragma once
#include "autotune/cpu/launch.hpp"

namespace autotune::cpu {

inline BarrierCount barrier(bool predicate) {
  return suspended([=](Worker* worker, uint3 thread) { return setting.runtime->barrier(worker, thread, predicate); });
}

inline unsigned long long warp(WarpOperation operation, unsigned mask, unsigned long long value, unsigned operand = 0,
                               unsigned width = lanes) {
  return suspended([=](Worker* worker, uint3 thread) {
    return setting.runtime->warp(worker, thread, operation, mask, value, operand, width);
  });
}

template <class T>
T exchange(WarpOperation operation, unsigned mask, T value, unsigned operand, int width) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  unsigned long long word = 0;
  memcpy(&word, &value, sizeof(T));
  word = warp(operation, mask, word, operand, static_cast<unsigned>(width));
  memcpy(&value, &word, sizeof(T));
  return value;
}

// Returns when every thread of the grid is here; what they wrote before is seen after.
inline void grid_barrier() {
  barrier(false);
  if (here.thread.x == 0 && here.thread.y == 0 && here.thread.z == 0) setting.runtime->grid(setting.worker);
  barrier(false);
}

}  // namespace autotune::cpu

inline void __syncthreads() { autotune::cpu::barrier(false); }
inline int __syncthreads_count(int predicate) {
  return static_cast<int>(autotune::cpu::barrier(predicate != 0).holding);
}
inline int __syncthreads_or(int predicate) { return autotune::cpu::barrier(predicate != 0).holding != 0; }
inline int __syncthreads_and(int predicate) { return autotune::cpu::barrier(predicate == 0).holding == 0; }

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize) {
  return autotune::cpu::exchange(autotune::cpu::shuffle, mask, value, static_cast<unsigned>(lane), width);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  return autotune::cpu::exchange(autotune::cpu::shuffle_up, mask, value, delta, width);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  return autotune::cpu::exchange(autotune::cpu::shuffle_down, mask, value, delta, width);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize) {
  return autotune::cpu::exchange(autotune::cpu::shuffle_xor, mask, value, static_cast<unsigned>(bits), width);
}

inline void __syncwarp(unsigned mask = ~0u) { autotune::cpu::warp(autotune::cpu::synchronise, mask, 0); }

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return static_cast<unsigned>(autotune::cpu::warp(autotune::cpu::ballot, mask, predicate != 0));
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate == 0) == 0; }

template <class T>
unsigned __match_any_sync(unsigned mask, T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "values of 4 or 8 bytes can be matched");
  unsigned long long word = 0;
  memcpy(&word, &value, sizeof(T));
  return static_cast<unsigned>(autotune::cpu::warp(autotune::cpu::match_any, mask, word));
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* all) {
  *all = __all_sync(mask, __match_any_sync(mask, value) == mask);
  return *all ? mask : 0;
}

// The lanes that meet here: the whole warp, or those that are here when no thread of the block can go on otherwise.
inline unsigned __activemask() {
  return static_cast<unsigned>(autotune::cpu::warp(autotune::cpu::active_lanes, ~0u, 0));
}

#define AUTOTUNE_REDUCE(NAME)                                                                     \
  inline unsigned __reduce_##NAME##_sync(unsigned mask, unsigned value) {                         \
    return static_cast<unsigned>(autotune::cpu::warp(autotune::cpu::reduce_##NAME, mask, value)); \
  }
AUTOTUNE_REDUCE(add)
AUTOTUNE_REDUCE(min)
AUTOTUNE_REDUCE(max)
AUTOTUNE_REDUCE(and)
AUTOTUNE_REDUCE(or)
AUTOTUNE_REDUCE(xor)
#undef AUTOTUNE_REDUCE

// Signed order is unsigned order with the sign bit flipped.
inline int __reduce_add_sync(unsigned mask, int value) {
  return static_cast<int>(__reduce_add_sync(mask, static_cast<unsigned>(value)));
}
inline int __reduce_min_sync(unsigned mask, int value) {
  return static_cast<int>(__reduce_min_sync(mask, static_cast<unsigned>(value) ^ 0x80000000u) ^ 0x80000000u);
}
inline int __reduce_max_sync(unsigned mask, int value) {
  return static_cast<int>(__reduce_max_sync(mask, static_cast<unsigned>(value) ^ 0x80000000u) ^ 0x80000000u);
}

inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// Ends the launch with an error.
inline void __trap() { autotune::cpu::setting.runtime->fail(autotune::cpu::setting.worker, autotune::cpu::trapped); }

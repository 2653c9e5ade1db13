// Copies from global into shared memory that a thread begins and waits for later, past the registers and the first
// cache.
#pragma once
#include "autotune/device.cuh"

// Begins to copy `from` to `to`: a multiple of 16 bytes, aligned to 16.
template <class T>
AUTOTUNE_DEVICE void copy_async(T& to, const T& from) {
#ifdef AUTOTUNE_CPU
  to = from;
#else
  static_assert(sizeof(T) % 16 == 0);
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(&to));
#pragma unroll
  for (unsigned n = 0; n < sizeof(T); n += 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place + n),
                 "l"(__cvta_generic_to_global(reinterpret_cast<const char*>(&from) + n))
                 : "memory");
#endif
}

// Returns when all copies that the thread began are there.
AUTOTUNE_DEVICE void await_copies() {
#ifndef AUTOTUNE_CPU
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

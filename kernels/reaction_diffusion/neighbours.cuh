// launch neighbours: blocks that stay, each with a tile of its own, wait after a time block for the tiles around it
// alone, and not for the whole grid: by flags, where rims have no marks (mark.cuh), at the beginning and at the end.
//
// Two fields take turns as the place of rims. A tile writes to the one that it wrote two time blocks ago only after all
// tiles around it have shown the rims of the block between, hence have read what it wrote then.
#pragma once
#include "autotune/device.cuh"

// What was written before a store that releases is seen after a load that acquires what it stored.
AUTOTUNE_DEVICE void store_release(unsigned* place, unsigned value) {
#ifdef AUTOTUNE_CPU
  __atomic_store_n(place, value, __ATOMIC_RELEASE);
#else
  asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(place), "r"(value) : "memory");
#endif
}
AUTOTUNE_DEVICE unsigned load_acquire(const unsigned* place) {
#ifdef AUTOTUNE_CPU
  return __atomic_load_n(place, __ATOMIC_ACQUIRE);
#else
  unsigned value;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(place) : "memory");
  return value;
#endif
}

struct Neighbours {
  unsigned* shown;  // by tile: the time blocks whose rim is in memory; 0 at the launch
  int tile, across, count;

  AUTOTUNE_DEVICE Neighbours(unsigned* shown_, unsigned tiles_across)
      : shown(shown_),
        tile(static_cast<int>(blockIdx.x)),
        across(static_cast<int>(tiles_across)),
        count(static_cast<int>(gridDim.x)) {}

  // Returns when every thread of the block is here and the tiles around have shown the rim of time block `number` too;
  // what was written before is seen after.
  AUTOTUNE_DEVICE void meet(unsigned number) const {
    __syncthreads();
    const int thread = static_cast<int>(threadIdx.x);
    if (thread == 0) store_release(shown + tile, number);
#ifdef AUTOTUNE_CPU
    __syncthreads();  // a thread that waits keeps others from running, the one above too
#endif
    if (thread < 9) {
      const int x = tile % across + thread % 3 - 1, other = tile + (thread / 3 - 1) * across + thread % 3 - 1;
      if (x >= 0 && x < across && other >= 0 && other < count) {
        while (load_acquire(shown + other) < number) {
        }
      }
    }
    __syncthreads();
  }
};

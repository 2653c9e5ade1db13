// A place in shared memory where one warp of a block tells another that it may go on.
#pragma once
#include "autotune/device.cuh"

struct WarpSignal {
  alignas(8) unsigned long long word;  // an mbarrier object (PTX ISA, parallel synchronization); on a cpu, a count

#ifdef AUTOTUNE_CPU
  AUTOTUNE_DEVICE void begin() { word = 0; }
  AUTOTUNE_DEVICE void give() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ++word;
    __syncwarp();
  }
  // There, threads run one after the other from one barrier to the next, so a warp that waits lets the others run.
  AUTOTUNE_DEVICE void await(unsigned parity) const {
    while (!__all_sync(0xffffffffu, (word & 1) != parity)) __syncthreads();
  }
#else
  // By one thread; a barrier of the block must follow.
  AUTOTUNE_DEVICE void begin() { asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(address()) : "memory"); }
  // What the warp read and wrote before is done for the one that waits. Every lane says so for itself: one for all of
  // them, after __syncwarp, is not faster, and racecheck does not take it for an order of what the others did.
  AUTOTUNE_DEVICE void give() {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address()) : "memory");
  }
  // Until it was given once more than it was awaited; `parity` is that of the times before.
  AUTOTUNE_DEVICE void await(unsigned parity) const {
    asm volatile(
        "{ .reg .pred done;\n"
        "again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
        "@!done bra again; }" ::"r"(address()),
        "r"(parity)
        : "memory");
  }

 private:
  AUTOTUNE_DEVICE unsigned address() const { return static_cast<unsigned>(__cvta_generic_to_shared(&word)); }
#endif
};

// Where the warps of a block meet that waited for signals.
struct WarpMeeting {
  unsigned here;
#ifdef AUTOTUNE_CPU
  AUTOTUNE_DEVICE void begin() { here = 0; }
  AUTOTUNE_DEVICE void meet(unsigned warps) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ++here;
    do __syncthreads();
    while (!__all_sync(0xffffffffu, here == warps));
  }
#else
  AUTOTUNE_DEVICE void begin() {}
  AUTOTUNE_DEVICE void meet(unsigned) { __syncthreads(); }
#endif
};

// A barrier for the warps of a block in two halves: a warp says that it arrived, works on, and waits later for the
// others to have arrived too. It may be a step ahead of them, and is seldom made to wait.
#pragma once
#include "autotune/device.cuh"

struct StepBarrier {
  alignas(8) unsigned long long word;  // an mbarrier object (PTX ISA, parallel synchronization)

#ifdef AUTOTUNE_CPU
  AUTOTUNE_DEVICE void begin(unsigned) {}
  AUTOTUNE_DEVICE void arrive() {}
  AUTOTUNE_DEVICE void wait(unsigned) { __syncthreads(); }
#else
  // By all threads; a barrier of the block must follow.
  AUTOTUNE_DEVICE void begin(unsigned warps) {
    if (threadIdx.x == 0)
      asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "r"(32 * warps) : "memory");
  }
  // What a thread wrote before is seen by those that wait. Every lane arrives (warp_signal.cuh says why).
  AUTOTUNE_DEVICE void arrive() {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address()) : "memory");
  }
  // Until every warp has arrived as often as this one; `parity` is that of the arrivals before.
  AUTOTUNE_DEVICE void wait(unsigned parity) {
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

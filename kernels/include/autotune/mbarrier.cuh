// SPDX-License-Identifier: Apache-2.0
// A barrier in shared memory at which some threads arrive and others wait (an mbarrier object; PTX ISA, "Parallel
// Synchronization and Communication Instructions: mbarrier"; sm_90).
#pragma once
#include "autotune/device.cuh"

namespace autotune {

#ifndef AUTOTUNE_CPU
// `__shared__ autotune::MBarrier full;`. A phase ends when as many threads have arrived as init() says; phases count
// from 0, and wait(parity) returns once the phase of that parity has ended. What a thread wrote before it arrived is
// seen by those that waited.
struct MBarrier {
  alignas(8) unsigned long long word;

  // By one thread; a barrier of the block must follow before another one arrives or waits.
  AUTOTUNE_DEVICE void init(unsigned count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "r"(count) : "memory");
  }
  AUTOTUNE_DEVICE void arrive() {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address()) : "memory");
  }
  AUTOTUNE_DEVICE void wait(unsigned parity) const {
    asm volatile(
        "{ .reg .pred done;\n"
        "again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
        "@!done bra again; }" ::"r"(address()),
        "r"(parity)
        : "memory");
  }

 private:
  AUTOTUNE_DEVICE unsigned address() const { return static_cast<unsigned>(__cvta_generic_to_shared(&word)); }
};
#endif

}  // namespace autotune

// Where the warps of a block tell each other in shared memory that they may go on.
#pragma once
#include "autotune/mbarrier.cuh"

// One warp gives it, another one awaits it.
struct WarpSignal {
  autotune::MBarrier barrier;

  // By one thread; a barrier of the block must follow.
  AUTOTUNE_DEVICE void begin() { barrier.init(32); }
  // What the warp read and wrote before is done for the one that waits. Every lane says so for itself: one for all of
  // them, after __syncwarp, is not faster, and racecheck does not take it for an order of what the others did.
  AUTOTUNE_DEVICE void give() { barrier.arrive(); }
  // Until it was given once more than it was awaited; `parity` is that of the times before.
  AUTOTUNE_DEVICE void await(unsigned parity) const { barrier.wait(parity); }
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

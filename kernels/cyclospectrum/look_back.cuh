// Counts into positions by one launch: blocks add up what those before them have, which may still be at work.
#pragma once
#include "listing.cuh"

// What the tiles before `tile` add up to, for a tile of `own`. By one warp; ready are 32-bit words, 0 at first: with
// the highest bit set the sum of each tile, and then (behind those of all `tiles`) that of it and all before it.
AUTOTUNE_DEVICE unsigned sum_of_tiles_before(unsigned tile, unsigned own, volatile unsigned* ready, unsigned tiles) {
  constexpr unsigned is_ready = 1u << 31, all_lanes = 0xffffffffu;
  const unsigned lane = threadIdx.x % 32;
  if (lane == 0) ready[tile] = own | is_ready;
  unsigned before = 0, ended = 0;
  for (unsigned from = tile; from > 0 && !ended; from -= min(from, 32u)) {  // the 32 tiles before `from`, nearest first
    const bool is_tile = lane < from;
    const unsigned place = is_tile ? from - 1 - lane : 0;
    unsigned sum, known, nearest;
    do {
      const unsigned through = is_tile ? ready[tiles + place] : is_ready;
      sum = through & is_ready ? through : ready[place];
      ended = __ballot_sync(all_lanes, through & is_ready);
      known = __ballot_sync(all_lanes, sum & is_ready);
      nearest = ended ? __ffs(ended) - 1 : 31;
    } while (~known & (~0u >> (31 - nearest)));
    sum = lane <= nearest ? sum & ~is_ready : 0;
    for (unsigned step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(all_lanes, sum, step);
    before += sum;
  }
  if (lane == 0) ready[tiles + tile] = (before + own) | is_ready;
  return before;
}

// ends[m] = how many values of the list are at most m. Blocks take the tiles in order, so those before have begun.
template <class Policy>
__global__ void __launch_bounds__(1024)
    look_back(typename Policy::counts counts, typename Policy::field field, typename Policy::ring ring,
              typename Policy::sums sums, typename Policy::ends ends, typename Policy::starts starts, unsigned total) {
  if constexpr (Policy::finish == Finish::counting && Policy::scan == Scan::look_back) {
    constexpr unsigned each = tile_bins / 1024;
    __shared__ unsigned taken, before_tile;
    const Occurrences<Policy> occurrences{counts, field, ring.extent(0) / 2, total};
    const unsigned tiles = tiles_of(sums);
    unsigned* const ready = sums.memory.base;
    if (threadIdx.x == 0) taken = atomicAdd(ready + 2 * tiles, 1u);
    __syncthreads();
    const unsigned tile = taken, first = tile * tile_bins + threadIdx.x * each;
    unsigned here[each], sum = 0, whole;
#pragma unroll
    for (unsigned k = 0; k < each; ++k) sum += here[k] = occurrences(first + k);
    unsigned before = block_sum_before(sum, whole);
    if (threadIdx.x < 32) {
      const unsigned before_this = sum_of_tiles_before(tile, whole, ready, tiles);
      if (threadIdx.x == 0) before_tile = before_this;
    }
    __syncthreads();
    before += before_tile;
#pragma unroll
    for (unsigned k = 0; k < each; before += here[k++]) store_end<Policy>(ends, starts, first + k, before, here[k]);
  }
}

// Running sums and running maxima of an array, in tiles: each tile on its own, then the same for what the tiles come
// to, then what lies before each tile is joined to it.
#pragma once
#include "autotune/device.cuh"

constexpr unsigned warp_size = 32;
constexpr unsigned all_lanes = 0xFFFFFFFFu;

AUTOTUNE_DEVICE unsigned joined(unsigned a, unsigned b, unsigned is_maximum) { return is_maximum ? max(a, b) : a + b; }

// Where this thread is: more blocks than one extent of the grid holds are not needed, and no text has 2^32 characters.
template <class Policy>
AUTOTUNE_DEVICE unsigned long long place_in_grid() {
  return static_cast<unsigned long long>(blockIdx.x) * Policy::block_size + threadIdx.x;
}

// What the values of this thread and of those before it in the block come to; `total` is that of the block.
template <class Policy>
AUTOTUNE_DEVICE unsigned running_in_block(unsigned value, unsigned is_maximum, unsigned& total) {
  constexpr unsigned warps = Policy::block_size / warp_size;
  __shared__ unsigned of_warp[warps];
  const unsigned lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  for (unsigned step = 1; step < warp_size; step *= 2) {
    const unsigned before = __shfl_up_sync(all_lanes, value, step);
    if (lane >= step) value = joined(before, value, is_maximum);
  }
  if (lane == warp_size - 1) of_warp[warp] = value;
  __syncthreads();
  unsigned before = 0;
  total = 0;
  for (unsigned w = 0; w < warps; ++w) {
    if (w == warp) before = total;
    total = joined(total, of_warp[w], is_maximum);
  }
  __syncthreads();
  return joined(before, value, is_maximum);
}

template <class Policy>
constexpr unsigned scan_tile = Policy::block_size * Policy::items;

// Each of `values` becomes what those of its tile come to, up to it and with it; tiles has that of each tile.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    scan_tiles(unsigned* values, unsigned* tiles, unsigned count, unsigned is_maximum) {
  const unsigned long long first =
      static_cast<unsigned long long>(blockIdx.x) * scan_tile<Policy> + threadIdx.x * Policy::items;
  unsigned own[Policy::items], sum = 0;
#pragma unroll
  for (unsigned i = 0; i < Policy::items; ++i) {
    own[i] = first + i < count ? values[first + i] : 0;
    sum = joined(sum, own[i], is_maximum);
    own[i] = sum;
  }
  unsigned total;
  const unsigned up_to = running_in_block<Policy>(sum, is_maximum, total);
  // What lies before this thread: the lane below has it.
  unsigned before = __shfl_up_sync(all_lanes, up_to, 1);
  __shared__ unsigned last_of_warp[Policy::block_size / warp_size];
  const unsigned lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  if (lane == warp_size - 1) last_of_warp[warp] = up_to;
  __syncthreads();
  if (lane == 0) before = warp ? last_of_warp[warp - 1] : 0;
#pragma unroll
  for (unsigned i = 0; i < Policy::items; ++i)
    if (first + i < count) values[first + i] = joined(before, own[i], is_maximum);
  if (threadIdx.x == 0) tiles[blockIdx.x] = total;
}

// tiles, scanned by now, go to the values behind each of them.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    scan_join(unsigned* values, const unsigned* tiles, unsigned count, unsigned is_maximum) {
  if (blockIdx.x == 0) return;
  const unsigned before = tiles[blockIdx.x - 1];
  const unsigned long long first = static_cast<unsigned long long>(blockIdx.x) * scan_tile<Policy>;
  for (unsigned i = threadIdx.x; i < scan_tile<Policy>; i += Policy::block_size)
    if (first + i < count) values[first + i] = joined(before, values[first + i], is_maximum);
}

// What all `count` values come to, once they are scanned.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) last_of(const unsigned* values, unsigned count, unsigned* last) {
  if (place_in_grid<Policy>() == 0) *last = values[count - 1];
}

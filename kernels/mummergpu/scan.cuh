// How many MEMs come before each: sums of counts over threads, tiles (blocks of the print kernels), groups of tiles.
#pragma once
#include "autotune/warp.cuh"
#include "seeds.cuh"

// The sum of `value` over the threads before this one; `total` is that over the block.
template <int BLOCK_SIZE, class Number>
AUTOTUNE_DEVICE Number exclusive_sum(Number value, Number& total) {
  constexpr int warps = BLOCK_SIZE / 32;
  __shared__ Number sums[warps];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Number sum = autotune::warp::inclusive_sum(value);
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  sum -= value;
  total = 0;
  for (unsigned w = 0; w < warps; ++w) {
    if (w < warp) sum += sums[w];
    total += sums[w];
  }
  return sum;
}

// Sums of counts are added up with 64 bits and end at this, which says: this many or more.
constexpr unsigned too_many = 0xFFFFFFFFu;
AUTOTUNE_DEVICE unsigned limited(unsigned long long sum) {
  return sum < too_many ? static_cast<unsigned>(sum) : too_many;
}

constexpr unsigned scan_block_size = 1024;            // family.yaml: kernels: scan_tiles: block
constexpr unsigned group_size = 4 * scan_block_size;  // family.yaml: extents: group

template <class Policy>
AUTOTUNE_DEVICE unsigned tiles_of(const typename Policy::arguments& a) {
  const unsigned count = counted<Policy>(a);
  return count / Policy::block_size + (count % Policy::block_size != 0);
}

// The sums over groups of tiles, behind the one of all; tile_sums become the sums over the tiles before each in its
// group.
template <class Policy>
__global__ void __launch_bounds__(scan_block_size) scan_tiles(typename Policy::arguments a) {
  const unsigned tiles = tiles_of<Policy>(a);
  const unsigned first = blockIdx.x * group_size + threadIdx.x * 4;
  unsigned counts[4];
  unsigned long long sum = 0, total;
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) sum += counts[i] = first + i < tiles ? a.tile_sums.load(first + i) : 0;
  sum = exclusive_sum<scan_block_size>(sum, total);
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    if (first + i < tiles) a.tile_sums.store(limited(sum), first + i);
    sum += counts[i];
  }
  if (threadIdx.x == 0) a.group_sums.store(limited(total), 1 + blockIdx.x);
}

// group_sums become the sums over the groups before each, and the first that of all; with too_many there the others
// mean nothing. One block; a thread has a run of neighbours.
template <class Policy>
__global__ void __launch_bounds__(scan_block_size) scan_groups(typename Policy::arguments a) {
  const unsigned tiles = tiles_of<Policy>(a);
  const unsigned groups = (tiles + group_size - 1) / group_size;
  const unsigned run = (groups + scan_block_size - 1) / scan_block_size;
  const unsigned first = min(threadIdx.x * run, groups), last = min(first + run, groups);
  unsigned long long sum = 0, total;
  for (unsigned group = first; group < last; ++group) sum += a.group_sums.load(1 + group);
  sum = exclusive_sum<scan_block_size>(sum, total);
  for (unsigned group = first; group < last; ++group) {
    const unsigned count = a.group_sums.load(1 + group);
    a.group_sums.store(limited(sum), 1 + group);
    sum += count;
  }
  if (threadIdx.x == 0) {
    a.group_sums.store(limited(total), 0);
    // An array has at least one element: where there is no MEM, it says so.
    if (total == 0) a.mems.store(Mem{no_position, no_position, no_position, no_position}, 0);
  }
}

// The number of a tile's first MEM.
template <class Policy>
AUTOTUNE_DEVICE unsigned first_of_tile(const typename Policy::arguments& a) {
  return a.tile_sums.load(blockIdx.x) + a.group_sums.load(1 + blockIdx.x / group_size);
}

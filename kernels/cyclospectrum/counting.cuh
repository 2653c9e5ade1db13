// The sorted list without a sort: sums are whole numbers up to the total T, so it is enough to know how often each
// occurs. That is the autocorrelation of the prefix sums on a ring of T places, and a sum of m has its complement
// T - m in the rest of the ring, so the masses up to T / 2 are counted and the others are their mirror image.
#pragma once
#include "autotune/shared.cuh"
#include "ring.cuh"

constexpr unsigned tile_bins = 4096;  // of one block of tile_sums, offsets, look_back and pair_up

// The first i in [low, high) whose prefix sum lies at least `mass` after `from`, or high.
template <class Ring>
AUTOTUNE_DEVICE unsigned first_at_least(const Ring& before, unsigned from, unsigned mass, unsigned low, unsigned high) {
  while (low < high) {
    const unsigned middle = (low + high) / 2;
    if (before.load(middle) - from < mass)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// counts[m] = how many parts of the ring have mass m <= T / 2. A block counts a window of masses for a share of the
// starts: from each start those are the parts that end in one run of places.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    tally(typename Policy::ring before, typename Policy::counts counts) {
  if constexpr (Policy::finish == Finish::counting && Policy::count_by == CountBy::differences) {
    constexpr unsigned window = Policy::window, warps = Policy::block_size / 32, all_lanes = 0xffffffffu;
    unsigned* const bins = autotune::dynamic_shared<unsigned>();
    const unsigned n = before.extent(0) / 2, lane = threadIdx.x % 32;
    const unsigned first = blockIdx.x * window, end = min(first + window, counts.extent(0));
    for (unsigned bin = threadIdx.x; bin < window; bin += Policy::block_size) bins[bin] = 0;
    __syncthreads();
    // Warps take 32 starts at a time: a lane looks up the run of one of them, then all count each run in turn.
    const unsigned groups = (n + 31) / 32;
    for (unsigned group = blockIdx.y * warps + threadIdx.x / 32; group < groups; group += gridDim.y * warps) {
      const unsigned start = min(group * 32 + lane, n - 1), from = before.load(start);
      const unsigned run = first_at_least(before, from, first, start + 1, start + n);
      const unsigned run_end = first_at_least(before, from, end, run, start + n);
      for (unsigned k = 0; k < min(32u, n - group * 32); ++k) {
        const unsigned its_from = __shfl_sync(all_lanes, from, k), its_end = __shfl_sync(all_lanes, run_end, k);
#pragma unroll 4
        for (unsigned i = __shfl_sync(all_lanes, run, k) + lane; i < its_end; i += 32)
          atomicAdd(&bins[before.load(i) - its_from - first], 1u);
      }
    }
    __syncthreads();
    for (unsigned bin = threadIdx.x; bin < end - first; bin += Policy::block_size)
      if (bins[bin]) counts.add(bins[bin], first + bin);
  }
}

// How often a mass is in the list: as a part of the ring, and once for 0 and for the total.
template <class Policy>
struct Occurrences {
  typename Policy::counts counts;
  typename Policy::field field;
  unsigned n, total;

  AUTOTUNE_DEVICE unsigned operator()(unsigned mass) const {
    if (mass > total) return 0;
    const unsigned ends = (mass == 0) + (mass == total);
    if constexpr (Policy::count_by == CountBy::differences) {
      return counts.load(min(mass, total - mass)) + ends;
    } else {
      // Of two starts at one place of the ring, one is a part of no mass before the other, the other all but that.
      if (ends) return (field.load(0) - n) / 2 * ends + ends;
      return field.load(mass) + field.load(total - mass);
    }
  }

  // What the scan adds up: values of the list, or masses that are in it.
  AUTOTUNE_DEVICE unsigned places(unsigned mass) const {
    const unsigned found = (*this)(mass);
    return Policy::output == Output::pairs ? found > 0 : found;
  }
};

// sums[b] = how many places run b of the masses takes.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    tile_sums(typename Policy::counts counts, typename Policy::field field, typename Policy::ring ring,
              typename Policy::sums sums, unsigned total) {
  if constexpr (Policy::finish == Finish::counting && Policy::scan == Scan::passes) {
    const Occurrences<Policy> occurrences{counts, field, ring.extent(0) / 2, total};
    unsigned sum = 0, whole;
    for (unsigned bin = threadIdx.x; bin < tile_bins; bin += Policy::block_size)
      sum += occurrences.places(blockIdx.x * tile_bins + bin);
    autotune::block::exclusive_sum(sum, whole);
    if (threadIdx.x == 0) sums.store(whole, blockIdx.x);
  }
}

// sums[b] = how many places the runs before b take; the last, all. One block.
template <class Policy>
__global__ void __launch_bounds__(1024) scan_tiles(typename Policy::sums sums, unsigned total) {
  if constexpr (Policy::finish == Finish::counting && Policy::scan == Scan::passes) {
    const unsigned tiles = total / tile_bins + 1;
    unsigned before = 0, whole;
    for (unsigned tile = 0; tile < tiles; tile += blockDim.x, before += whole) {
      const unsigned mine = tile + threadIdx.x;
      const unsigned here = autotune::block::exclusive_sum(mine < tiles ? sums.load(mine) : 0, whole);
      if (mine < tiles) sums.store(before + here, mine);
    }
    if (threadIdx.x == 0) sums.store(before, tiles);
  }
}

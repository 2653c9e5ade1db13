// The sorted list without a sort: sums are whole numbers up to the total T, so it is enough to know how often each
// occurs. That is the autocorrelation of the prefix sums on a ring of T places, and a sum of m has its complement
// T - m in the rest of the ring, so the masses up to T / 2 are counted and the others are their mirror image.
#pragma once
#include "ring.cuh"

constexpr unsigned tile_bins = 4096;  // of one block of tile_sums and offsets; family.yaml has it, too

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
  if constexpr (Policy::finish == Finish::counting) {
    constexpr bool in_shared = Policy::count_in == CountIn::shared;
    constexpr unsigned window = Policy::window, warps = Policy::block_size / 32, all_lanes = 0xffffffffu;
    unsigned* const bins = autotune::dynamic_shared<unsigned>();
    const unsigned n = before.extent(0) / 2, lane = threadIdx.x % 32;
    const unsigned first = blockIdx.x * window, end = min(first + window, counts.extent(0));
    if constexpr (in_shared) {
      for (unsigned bin = threadIdx.x; bin < window; bin += Policy::block_size) bins[bin] = 0;
      __syncthreads();
    }
    // Warps take 32 starts at a time: a lane looks up the run of one of them, then all count each run in turn.
    const unsigned groups = (n + 31) / 32;
    for (unsigned group = blockIdx.y * warps + threadIdx.x / 32; group < groups; group += gridDim.y * warps) {
      const unsigned start = min(group * 32 + lane, n - 1), from = before.load(start);
      const unsigned run = first_at_least(before, from, first, start + 1, start + n);
      const unsigned run_end = first_at_least(before, from, end, run, start + n);
      for (unsigned k = 0; k < min(32u, n - group * 32); ++k) {
        const unsigned its_from = __shfl_sync(all_lanes, from, k), its_end = __shfl_sync(all_lanes, run_end, k);
#pragma unroll 4
        for (unsigned i = __shfl_sync(all_lanes, run, k) + lane; i < its_end; i += 32) {
          const unsigned mass = before.load(i) - its_from;
          if constexpr (in_shared)
            atomicAdd(&bins[mass - first], 1u);
          else
            counts.add(1u, mass);
        }
      }
    }
    if constexpr (in_shared) {
      __syncthreads();
      for (unsigned bin = threadIdx.x; bin < end - first; bin += Policy::block_size)
        if (bins[bin]) counts.add(bins[bin], first + bin);
    }
  }
}

// How often `mass` is in the list, of which `total` is the largest: the parts of that mass, 0 and the total.
template <class Counts>
AUTOTUNE_DEVICE unsigned occurrences(const Counts& counts, unsigned mass, unsigned total) {
  if (mass > total) return 0;
  return counts.load(min(mass, total - mass)) + (mass == 0) + (mass == total);
}

// sums[b] = how many values of the list lie in run b of the bins.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    tile_sums(typename Policy::counts counts, typename Policy::sums sums, typename Policy::ends ends) {
  if constexpr (Policy::finish == Finish::counting) {
    unsigned sum = 0, whole;
    for (unsigned bin = threadIdx.x; bin < tile_bins; bin += Policy::block_size)
      sum += occurrences(counts, blockIdx.x * tile_bins + bin, ends.extent(0) - 1);
    block_sum_before(sum, whole);
    if (threadIdx.x == 0) sums.store(whole, blockIdx.x);
  }
}

// sums[b] = how many values lie in the runs before b. One block.
template <class Policy>
__global__ void __launch_bounds__(1024) scan_tiles(typename Policy::sums sums) {
  if constexpr (Policy::finish == Finish::counting) {
    unsigned before = 0, whole;
    for (unsigned tile = 0; tile < sums.extent(0); tile += blockDim.x, before += whole) {
      const unsigned mine = tile + threadIdx.x;
      const unsigned here = block_sum_before(mine < sums.extent(0) ? sums.load(mine) : 0, whole);
      if (mine < sums.extent(0)) sums.store(before + here, mine);
    }
  }
}

// ends[m] = how many values of the list are at most m.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    offsets(typename Policy::counts counts, typename Policy::sums sums, typename Policy::ends ends) {
  if constexpr (Policy::finish == Finish::counting) {
    unsigned before = sums.load(blockIdx.x), whole;
    for (unsigned bin = 0; bin < tile_bins; bin += Policy::block_size, before += whole) {
      const unsigned mass = blockIdx.x * tile_bins + bin + threadIdx.x;
      const unsigned here = occurrences(counts, mass, ends.extent(0) - 1);
      const unsigned sum = block_sum_before(here, whole) + here;
      if (mass < ends.extent(0)) ends.store(before + sum, mass);
    }
  }
}

// The first mass in [low, high] with ends[mass] > output, or high.
template <class Ends>
AUTOTUNE_DEVICE unsigned mass_between(const Ends& ends, unsigned low, unsigned high, unsigned output) {
  while (low < high) {
    const unsigned middle = (low + high) / 2;
    if (ends.load(middle) <= output)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// The first mass >= low with ends[mass] > output: it is near, so steps double until it is passed.
template <class Ends>
AUTOTUNE_DEVICE unsigned mass_after(const Ends& ends, unsigned low, unsigned output) {
  const unsigned last = ends.extent(0) - 1;
  unsigned step = 1;
  while (low < last && ends.load(min(low + step, last) - 1) <= output) {
    low = min(low + step, last);
    step *= 2;
  }
  return mass_between(ends, low, min(low + step - 1, last), output);
}

// The list from its counts. A warp writes a run of vectors, so most stores hold a mass or two.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    expand(typename Policy::ends ends, typename Policy::spectrum spectrum) {
  if constexpr (Policy::finish == Finish::counting) {
    using Vector = typename Policy::spectrum::value_type;
    constexpr unsigned words = Vector::words, rounds = Policy::outputs_per_thread / words;
    const unsigned warp = (blockIdx.x * Policy::block_size + threadIdx.x) / 32, lane = threadIdx.x % 32;
    const unsigned first = warp * rounds * 32 + lane, outputs = ends.load(ends.extent(0) - 1);
    if (first >= spectrum.extent(0)) return;
    unsigned mass = mass_between(ends, 0, ends.extent(0) - 1, first * words), end = ends.load(mass);
    for (unsigned round = 0; round < rounds; ++round) {
      const unsigned place = first + round * 32;
      if (place >= spectrum.extent(0)) return;
      Vector vector;
#pragma unroll
      for (unsigned k = 0; k < words; ++k) {
        const unsigned output = place * words + k;
        if (output >= end && end < outputs) {
          mass = mass_after(ends, mass + 1, output);
          end = ends.load(mass);
        }
        vector.word[k] = output < outputs ? mass : 0;
      }
      spectrum.store(vector, place);
    }
  }
}

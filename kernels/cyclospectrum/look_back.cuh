// Counts into positions by one launch: blocks add up what those before them have, which may still be at work.
#pragma once
#include "autotune/element.cuh"
#include "listing.cuh"

// What the tiles before `tile` add up to, for a tile of `own`. All threads of a block call it; ready are 32-bit words,
// 0 at first: with the highest bit set the sum of each tile, and then (behind those of all `tiles`) that of it and all
// before it. Each thread waits for the sum of one tile, which is there early, and the last for all that lie further
// back.
AUTOTUNE_DEVICE unsigned sum_of_tiles_before(unsigned tile, unsigned own, volatile unsigned* ready, unsigned tiles) {
  constexpr unsigned is_ready = 1u << 31;
  const unsigned thread = threadIdx.x, near = blockDim.x - 1;
  if (thread == 0) ready[tile] = own | is_ready;
  unsigned sum = 0, whole;
  if (thread < near ? thread < tile : tile > near) {
    const unsigned place = thread < near ? tile - 1 - thread : tiles + tile - 1 - near;
    do {
      sum = ready[place];
    } while (!(sum & is_ready));
  }
  autotune::block::exclusive_sum(sum & ~is_ready, whole);
  if (thread == 0) ready[tiles + tile] = (whole + own) | is_ready;
  return whole;
}

// ends[m] = how many values of the list are at most m. Blocks take the tiles in order, so those before have begun.
template <class Policy>
__global__ void __launch_bounds__(1024)
    look_back(typename Policy::counts counts, typename Policy::field field, typename Policy::ring ring,
              typename Policy::sums sums, typename Policy::ends ends, typename Policy::starts starts, unsigned total) {
  if constexpr (Policy::finish == Finish::counting && Policy::scan == Scan::look_back) {
    constexpr unsigned each = tile_bins / 1024;
    __shared__ unsigned taken;
    const Occurrences<Policy> occurrences{counts, field, ring.extent(0) / 2, total};
    const unsigned tiles = total / tile_bins + 1;
    unsigned* const ready = &autotune::element(sums, 0);
    if (threadIdx.x == 0) taken = atomicAdd(ready + 2 * tiles, 1u);
    __syncthreads();
    const unsigned tile = taken, first = tile * tile_bins + each * threadIdx.x;
    unsigned here[each], sum = 0, whole;
#pragma unroll
    for (unsigned k = 0; k < each; ++k) sum += here[k] = occurrences(first + k);
    unsigned before = autotune::block::exclusive_sum(sum, whole);
    before += sum_of_tiles_before(tile, whole, ready, tiles);
#pragma unroll
    for (unsigned k = 0; k < each; before += here[k++]) store_end<Policy>(ends, starts, first + k, before, here[k]);
  }
}

constexpr unsigned listed_bins = 256;  // of a tile that is listed by the block that adds it up

// The list from how often each mass occurs, without ends in memory: a block looks back and writes its tile's values.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    list_tiles(typename Policy::counts counts, typename Policy::field field, typename Policy::ring ring,
               typename Policy::sums sums, typename Policy::spectrum spectrum, unsigned total) {
  if constexpr (Policy::finish == Finish::counting && Policy::scan == Scan::listing) {
    using Vector = typename Policy::spectrum::value_type;
    constexpr unsigned words = Vector::words;
    __shared__ unsigned taken, ends[listed_bins];
    const Occurrences<Policy> occurrences{counts, field, ring.extent(0) / 2, total};
    const unsigned tiles = total / listed_bins + 1, thread = threadIdx.x;
    unsigned* const ready = &autotune::element(sums, 0);
    if (thread == 0) taken = atomicAdd(ready + 2 * tiles, 1u);
    __syncthreads();
    const unsigned lowest = taken * listed_bins, here = thread < listed_bins ? occurrences(lowest + thread) : 0;
    unsigned whole;
    const unsigned before = autotune::block::exclusive_sum(here, whole);
    const unsigned begin = sum_of_tiles_before(taken, whole, ready, tiles), stop = begin + whole;
    if (thread < listed_bins) ends[thread] = begin + before + here;
    __syncthreads();
    // The vectors that begin in the tile; the last may end in one behind it. With a wrong total there may be too many.
    const unsigned last = min((stop + words - 1) / words, spectrum.extent(0));
    for (unsigned place = (begin + words - 1) / words + thread; place < last; place += Policy::block_size) {
      unsigned bin = 0;  // ends that are at most the first output
#pragma unroll
      for (unsigned step = listed_bins / 2; step > 0; step /= 2)
        if (ends[bin + step - 1] <= place * words) bin += step;
      unsigned end = ends[bin];
      Vector vector;
#pragma unroll
      for (unsigned k = 0; k < words; ++k) {
        const unsigned output = place * words + k;
        while (output >= end && lowest + bin < total) {
          ++bin;
          end = bin < listed_bins ? ends[bin] : end + occurrences(lowest + bin);
        }
        vector.word[k] = output < end ? lowest + bin : 0;
      }
      spectrum.store(vector, place);
    }
  }
}

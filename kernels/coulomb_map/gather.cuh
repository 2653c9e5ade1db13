// A block finds the atoms that it wants, and takes them a tile at a time from shared memory.
#pragma once
#include "cells.cuh"

// A lane's rank among those of its warp that have `take`, and how many there are.
struct Taken {
  unsigned rank, count;
  AUTOTUNE_DEVICE explicit Taken(bool take, unsigned lane) {
    const unsigned mask = __ballot_sync(0xffffffffu, take);
    rank = __popc(mask & ((1u << lane) - 1));
    count = __popc(mask);
  }
};

// Blocks of `threads`, tiles of at most `tile` atoms.
template <unsigned threads, unsigned tile>
struct Gathered {
  static constexpr unsigned warps = threads / warp_size;
  alignas(16) Atom atoms[tile + threads];
  unsigned begin[threads], end[threads], taken[warps], sum[warps];

  // Calls visit(atoms, count) for tiles of all atoms of all runs with wanted(atom). run(i) is the i-th of `runs` runs.
  // All threads of the block call this, and visit together; it ends at a barrier.
  template <class Sorted, class Run, class Wanted, class Visit>
  AUTOTUNE_DEVICE void each(const Sorted& sorted, unsigned runs, Run run, Wanted wanted, Visit visit) {
    const unsigned thread = threadIdx.x, lane = thread % warp_size, warp = thread / warp_size;
    unsigned held = 0;
    for (unsigned first = 0; first < runs; first += threads) {
      const Rows::Run mine = first + thread < runs ? run(first + thread) : Rows::Run{0, 0};
      const unsigned candidates = arrange(mine);
      Atom next = thread < candidates ? sorted.load(place(thread)) : Atom{};
      for (unsigned chunk = 0; chunk < candidates; chunk += threads) {
        const Atom atom = next;
        const bool take = chunk + thread < candidates && wanted(atom);
        if (chunk + threads + thread < candidates)
          next = sorted.load(place(chunk + threads + thread));  // not waited for
        const Taken these(take, lane);
        if (lane == 0) taken[warp] = these.count;
        __syncthreads();
        unsigned before = held;
        for (unsigned w = 0; w < warps; ++w) {
          if (w < warp) before += taken[w];
          held += taken[w];
        }
        if (take) atoms[before + these.rank] = atom;
        __syncthreads();
        for (; held >= tile; held -= tile) {
          visit(atoms + held - tile, tile);
          __syncthreads();
        }
      }
    }
    if (held) visit(atoms, held);
    __syncthreads();
  }

 private:
  // The runs of all threads one after the other; how many atoms these are.
  AUTOTUNE_DEVICE unsigned arrange(const Rows::Run& mine) {
    const unsigned thread = threadIdx.x, lane = thread % warp_size, warp = thread / warp_size;
    unsigned to = autotune::warp::inclusive_sum(mine.count);
    if (lane == warp_size - 1) sum[warp] = to;
    __syncthreads();
    unsigned total = 0;
    for (unsigned w = 0; w < warps; ++w) {
      if (w < warp) to += sum[w];
      total += sum[w];
    }
    begin[thread] = mine.begin + mine.count - to;  // what is to be added to a candidate's number, modulo 2^32
    end[thread] = to;
    __syncthreads();
    return total;
  }
  AUTOTUNE_DEVICE unsigned place(unsigned candidate) const {
    unsigned low = 0, high = threads - 1;
    while (low < high) {
      const unsigned middle = (low + high) / 2;
      if (end[middle] > candidate)
        high = middle;
      else
        low = middle + 1;
    }
    return begin[low] + candidate;
  }
};

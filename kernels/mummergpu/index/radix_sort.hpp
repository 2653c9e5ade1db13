// A stable sort by eight bits of 64-bit keys, each with a value of 32 bits: a pass counts the digits of each tile, and
// once the counts are summed up (scan.hpp) moves the tile to its places, by digit in shared memory first, so that what
// lies together there is written together.
#pragma once
#include "scan.hpp"

constexpr unsigned digit_bits = 8;
constexpr unsigned digits = 1u << digit_bits;

template <class Policy>
constexpr unsigned sort_tile = Policy::block_size * Policy::items;

AUTOTUNE_DEVICE unsigned digit_of(unsigned long long key, unsigned shift) {
  return static_cast<unsigned>(key >> shift) & (digits - 1);
}

// counts[digit * tiles + tile]: how many keys of the tile have the digit.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    sort_count(const unsigned long long* keys, unsigned* counts, unsigned count, unsigned shift) {
  __shared__ unsigned found[digits];
  for (unsigned digit = threadIdx.x; digit < digits; digit += Policy::block_size) found[digit] = 0;
  __syncthreads();
  const unsigned long long first = static_cast<unsigned long long>(blockIdx.x) * sort_tile<Policy>;
#pragma unroll
  for (unsigned i = 0; i < Policy::items; ++i) {
    const unsigned long long place = first + i * Policy::block_size + threadIdx.x;
    if (place < count) atomicAdd(&found[digit_of(keys[place], shift)], 1u);
  }
  __syncthreads();
  for (unsigned digit = threadIdx.x; digit < digits; digit += Policy::block_size)
    counts[static_cast<unsigned long long>(digit) * gridDim.x + blockIdx.x] = found[digit];
}

// The lanes of the warp that have the same digit.
AUTOTUNE_DEVICE unsigned same_digit(unsigned digit) {
  unsigned same = all_lanes;
#pragma unroll
  for (unsigned bit = 0; bit <= digit_bits; ++bit) {
    const bool is_set = digit >> bit & 1;
    const unsigned set = __ballot_sync(all_lanes, is_set);
    same &= is_set ? set : ~set;
  }
  return same;
}

// counts are running sums by now: counts[i] is how many keys go up to the end of run i.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    sort_move(const unsigned long long* keys, const unsigned* values, const unsigned* counts,
              unsigned long long* moved_keys, unsigned* moved_values, unsigned count, unsigned shift) {
  constexpr unsigned warps = Policy::block_size / warp_size, of_warp = warp_size * Policy::items;
  __shared__ unsigned seen[warps][digits];  // of a digit, in this warp so far; then before this warp in the tile
  __shared__ unsigned begin[digits];        // of a digit's run in the tile
  __shared__ unsigned target[digits];       // of that run in all, less its begin
  __shared__ unsigned long long staged[sort_tile<Policy>];
  const unsigned lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  const unsigned long long first = static_cast<unsigned long long>(blockIdx.x) * sort_tile<Policy>;
  const unsigned here = count - first < sort_tile<Policy> ? static_cast<unsigned>(count - first) : sort_tile<Policy>;
  for (unsigned digit = lane; digit < digits; digit += warp_size) seen[warp][digit] = 0;
  __syncwarp();
  unsigned long long key[Policy::items];
  unsigned place[Policy::items];  // among those of its digit in this warp; then in the tile
#pragma unroll
  for (unsigned i = 0; i < Policy::items; ++i) {
    const unsigned own = warp * of_warp + i * warp_size + lane;
    key[i] = own < here ? keys[first + own] : 0;
    // What is behind the end has a digit of its own.
    const unsigned digit = own < here ? digit_of(key[i], shift) : digits;
    const unsigned same = same_digit(digit), before = __popc(same & ((1u << lane) - 1));
    place[i] = 0;
    if (digit < digits) place[i] = seen[warp][digit] + before;
    __syncwarp();
    if (digit < digits && before == 0) seen[warp][digit] += __popc(same);
    __syncwarp();
  }
  __syncthreads();
  unsigned carried = 0;
  for (unsigned base = 0; base < digits; base += Policy::block_size) {
    const unsigned digit = base + threadIdx.x;
    unsigned of_digit = 0, total;
    if (digit < digits)
      for (unsigned w = 0; w < warps; ++w) {
        const unsigned own = seen[w][digit];
        seen[w][digit] = of_digit;
        of_digit += own;
      }
    const unsigned up_to = running_in_block<Policy>(of_digit, false, total);
    if (digit < digits) {
      begin[digit] = carried + up_to - of_digit;
      const unsigned long long run = static_cast<unsigned long long>(digit) * gridDim.x + blockIdx.x;
      target[digit] = (run ? counts[run - 1] : 0) - begin[digit];
    }
    carried += total;
  }
  __syncthreads();
#pragma unroll
  for (unsigned i = 0; i < Policy::items; ++i)
    if (warp * of_warp + i * warp_size + lane < here) {
      const unsigned digit = digit_of(key[i], shift);
      place[i] += begin[digit] + seen[warp][digit];
      staged[place[i]] = key[i];
    }
  __syncthreads();
  unsigned to[Policy::items];
#pragma unroll
  for (unsigned i = 0; i < Policy::items; ++i) {
    const unsigned own = i * Policy::block_size + threadIdx.x;
    if (own < here) {
      const unsigned long long moved = staged[own];
      to[i] = target[digit_of(moved, shift)] + own;
      moved_keys[to[i]] = moved;
    }
  }
  __syncthreads();
  unsigned* const staged_values = reinterpret_cast<unsigned*>(staged);
#pragma unroll
  for (unsigned i = 0; i < Policy::items; ++i) {
    const unsigned own = warp * of_warp + i * warp_size + lane;
    if (own < here) staged_values[place[i]] = values[first + own];
  }
  __syncthreads();
#pragma unroll
  for (unsigned i = 0; i < Policy::items; ++i) {
    const unsigned own = i * Policy::block_size + threadIdx.x;
    if (own < here) moved_values[to[i]] = staged_values[own];
  }
}

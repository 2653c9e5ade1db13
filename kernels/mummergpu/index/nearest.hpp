// An array below least values of runs of it, of runs of those, and so on: the nearest smaller value of any element, and
// the least value of any range, in logarithmic time.
#pragma once
#include "scan.hpp"

constexpr unsigned run_bits = 5;
constexpr unsigned run = 1u << run_bits;
constexpr unsigned most_levels = 7;  // 32^7 is more than there are numbers
constexpr unsigned nowhere = 0xFFFFFFFFu;

// steps.py: Leasts. Level 0 is the array itself.
struct Leasts {
  const unsigned* level[most_levels];
  unsigned size[most_levels];
  unsigned levels;

  AUTOTUNE_DEVICE unsigned operator[](unsigned long long i) const { return level[0][i]; }
};

// The least of each run of `values`.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    least_of_runs(const unsigned* values, unsigned* leasts, unsigned count) {
  const unsigned long long own = place_in_grid<Policy>(), first = own << run_bits;
  if (first >= count) return;
  const unsigned long long last = min(first + run, static_cast<unsigned long long>(count));
  unsigned least = values[first];
  for (unsigned long long i = first + 1; i < last; ++i) least = min(least, values[i]);
  leasts[own] = least;
}

// The last element in front of `end` that is below `bound`; nowhere where there is none.
AUTOTUNE_DEVICE unsigned previous_below(const Leasts& leasts, unsigned end, unsigned bound) {
  unsigned level = 0, i = end;
  for (;; ++level, i >>= run_bits) {
    if (level == leasts.levels) return nowhere;
    const unsigned first = i & ~(run - 1);
    while (i > first && leasts.level[level][i - 1] >= bound) --i;
    if (i > first) break;
  }
  for (--i; level; --level) {
    i = min((i << run_bits) + run, leasts.size[level - 1]) - 1;
    while (leasts.level[level - 1][i] >= bound) --i;
  }
  return i;
}

// The first element from `begin` on that is below `bound`; nowhere where there is none.
AUTOTUNE_DEVICE unsigned next_below(const Leasts& leasts, unsigned begin, unsigned bound) {
  unsigned level = 0, i = begin;
  for (;; ++level, i = (i >> run_bits) + 1) {
    if (level == leasts.levels || i >= leasts.size[level]) return nowhere;
    const unsigned last = min(leasts.size[level] - 1, i | (run - 1));
    while (i < last && leasts.level[level][i] >= bound) ++i;
    if (leasts.level[level][i] < bound) break;
  }
  for (; level; --level)
    for (i <<= run_bits; leasts.level[level - 1][i] >= bound;) ++i;
  return i;
}

// The least value of [begin, end), which is not empty.
AUTOTUNE_DEVICE unsigned least_of(const Leasts& leasts, unsigned begin, unsigned end) {
  unsigned least = nowhere;
  for (unsigned level = 0;; ++level, begin >>= run_bits, end >>= run_bits) {
    const unsigned* const values = leasts.level[level];
    if (end - begin <= 2 * run || level + 1 == leasts.levels) {
      for (; begin < end; ++begin) least = min(least, values[begin]);
      return least;
    }
    for (; begin & (run - 1); ++begin) least = min(least, values[begin]);
    for (; end & (run - 1); --end) least = min(least, values[end - 1]);
  }
}

// SPDX-License-Identifier: Apache-2.0
// Orders other than the ascending one, which show what relies on it. Part of the runtime.
#pragma once
#include "autotune/cpu/abi.hpp"

namespace autotune::cpu {

// SplitMix64's last step: any two inputs give outputs that have nothing in common.
inline unsigned long long mixed(unsigned long long x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

class Random {
 public:
  explicit Random(unsigned long long seed = 0) : state_(mixed(seed)) {}
  // Less than `bound`.
  unsigned below(unsigned bound) { return static_cast<unsigned>((next() >> 32) * bound >> 32); }
  bool coin() { return next() >> 63; }

 private:
  unsigned long long next() { return mixed(state_ += 0x9e3779b97f4a7c15ull); }
  unsigned long long state_;
};

template <class T>
void shuffle_items(T* items, unsigned count, Random& random) {
  for (unsigned left = count; left > 1; --left) {
    const unsigned other = random.below(left);
    const T last = items[left - 1];
    items[left - 1] = items[other];
    items[other] = last;
  }
}

// The item whose turn it is in a permutation of [0, count) that is worked out and not stored: a Feistel network over
// the next power of four, walked until it comes back into the range.
inline unsigned long long drawn_item(unsigned long long turn, unsigned long long count, unsigned long long seed) {
  unsigned half = 1;
  while (half < 32 && 1ull << 2 * half < count) ++half;
  const unsigned long long mask = (1ull << half) - 1;
  do {
    unsigned long long left = turn >> half, right = turn & mask;
    for (unsigned long long round = 1; round <= 4; ++round) {
      const unsigned long long other = left ^ (mixed(seed + (round << 32) + right) & mask);
      left = right;
      right = other;
    }
    turn = left << half | right;
  } while (turn >= count);
  return turn;
}

template <Order ORDER>
unsigned long long item_at(unsigned long long turn, unsigned long long count, unsigned long long seed) {
  if constexpr (ORDER == drawn) return drawn_item(turn, count, seed);
  return ORDER == descending ? count - 1 - turn : turn;
}

}  // namespace autotune::cpu

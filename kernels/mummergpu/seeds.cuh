// Words of reads in a table: where the leaves that begin with each lie. A seed is a place in the reads, counted over
// all of them, at which a word is looked up; a match is as long as one word and all places to the next, so it has a
// seed.
#pragma once
#include "tree.cuh"

template <class Policy>
AUTOTUNE_DEVICE const auto& table_of(const typename Policy::arguments& a) {
  if constexpr (Policy::search == Search::coarse_table)
    return a.coarse_table;
  else
    return a.fine_table;
}

// How many letters a word has, and how many bases seeds are apart.
struct Spacing {
  unsigned letters, step;
};

template <class Policy>
AUTOTUNE_DEVICE Spacing spacing_of(const typename Policy::arguments& a) {
  const auto entries = table_of<Policy>(a).extent(0);  // 4^letters, and one
  const unsigned letters = (31 - __clz(static_cast<int>(entries - 1))) / 2;
  return {letters, a.min_match_length - letters + 1};
}

// How many slots or seeds there are: what is counted one by one.
template <class Policy>
AUTOTUNE_DEVICE unsigned counted(const typename Policy::arguments& a) {
  if constexpr (Policy::search == Search::tree) {
    return a.slots;
  } else {
    const unsigned step = spacing_of<Policy>(a).step;
    const unsigned bases = a.offsets.load(a.offsets.extent(0) - 1).base;
    return bases / step + (bases % step != 0);
  }
}

// The read of `first` to `last` that has this base.
template <class Offsets>
AUTOTUNE_DEVICE unsigned query_of(const Offsets& offsets, unsigned base, unsigned first, unsigned last) {
  while (first < last) {
    const unsigned middle = first + (last - first + 1) / 2;
    if (offsets.load(middle).base <= base)
      first = middle;
    else
      last = middle - 1;
  }
  return first;
}

// The same of the first `reads` by all threads of a warp at once, in a few steps.
template <class Offsets>
AUTOTUNE_DEVICE unsigned query_of_warp(const Offsets& offsets, unsigned base, unsigned reads) {
  const unsigned lane = threadIdx.x % 32;
  unsigned first = 0;
  for (unsigned left = reads; left > 1;) {
    const unsigned step = (left + 31) / 32;
    const bool is_there = lane * step < left && offsets.load(first + lane * step).base <= base;
    const unsigned passed = (31 - __clz(static_cast<int>(__ballot_sync(0xffffffffu, is_there)))) * step;
    first += passed;
    left = min(step, left - passed);
  }
  return first;
}

// A word: its number in the table, none where a letter matches nothing.
constexpr unsigned no_word = 0xFFFFFFFFu;
template <class Text>
AUTOTUNE_DEVICE unsigned word_at(const Text& text, unsigned base, unsigned letters_of_word) {
  unsigned word = 0, all = 0;
  for (unsigned done = 0; done < letters_of_word; done += letters_at_once) {
    const unsigned ahead = letters(text, base + done);
#pragma unroll
    for (unsigned i = 0; i < letters_at_once; ++i)
      if (done + i < letters_of_word) {
        word = word << 2 | (ahead >> i * 4 & 3);
        all |= ahead >> i * 4;
      }
  }
  return all & other ? no_word : word;
}

// The leaves of every seed's word; none where the read ends within it.
template <class Policy>
AUTOTUNE_DEVICE void look_up(const typename Policy::arguments& a) {
  const Spacing spacing = spacing_of<Policy>(a);
  const unsigned reads = a.offsets.extent(0) - 1, count = counted<Policy>(a);
  const unsigned first = blockIdx.x * Policy::block_size, seed = first + threadIdx.x;
  if (first >= count) return;
  __shared__ unsigned of_ends[2];
  if (threadIdx.x < 64) {  // two warps, so that both are looked for at once
    const unsigned end = threadIdx.x < 32 ? first : min(first + Policy::block_size, count) - 1;
    const unsigned query = query_of_warp(a.offsets, end * spacing.step, reads);
    if (threadIdx.x % 32 == 0) of_ends[threadIdx.x / 32] = query;
  }
  __syncthreads();
  if (threadIdx.x == 0) a.tile_queries.store(of_ends[0], blockIdx.x);
  if (seed >= count) return;
  const unsigned base = seed * spacing.step;
  const unsigned query = query_of(a.offsets, base, of_ends[0], of_ends[1]);
  Range found = {0, 0};
  if (a.offsets.load(query + 1).base - base >= spacing.letters) {
    const unsigned word = word_at(a.queries, base, spacing.letters);
    if (word != no_word) {
      found.first = table_of<Policy>(a).load(word);
      found.count = table_of<Policy>(a).load(word + 1) - found.first;
    }
  }
  a.seeds.store(found, seed);
}

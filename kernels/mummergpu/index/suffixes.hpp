// The order of a text's suffixes, by prefix doubling (Larsson and Sadakane): sorted by their first letters at once,
// then again and again only what is still equal, by twice as many letters each time. A separator ends a suffix and is
// behind every letter; of two the one that comes first in the text is first, so no two suffixes are equal.
//
// A suffix's rank is the place of the first of those equal to it so far. Ranks of separators are behind all others.
#pragma once
#include "scan.hpp"

constexpr unsigned separator = 4;
constexpr unsigned key_letters = 29;  // of two bits in a key, above six bits that say how many of them are missing
constexpr unsigned missing_bits = 6;

// ends[i] = 1 for a separator.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    mark_separators(const unsigned char* text, unsigned* ends, unsigned length) {
  const unsigned long long i = place_in_grid<Policy>();
  if (i < length) ends[i] = text[i] == separator;
}

// ends are running sums by now. Of the letters, in the order of the text, keys and suffixes; of the separators their
// positions and ranks, which take the place of their ends.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    first_keys(const unsigned char* text, unsigned* ends, unsigned long long* keys, unsigned* suffixes,
               unsigned* separators, unsigned length, unsigned letters) {
  const unsigned long long i = place_in_grid<Policy>();
  if (i >= length) return;
  const unsigned before = ends[i];
  if (text[i] == separator) {
    separators[before - 1] = static_cast<unsigned>(i);
    ends[i] = letters + before - 1;
    return;
  }
  unsigned long long key = 0;
  unsigned found = 0;
  bool ended = false;
  for (unsigned letter = 0; letter < key_letters; ++letter) {
    // The text ends with a separator, so nothing behind it is read.
    const unsigned code = ended ? separator : text[i + letter];
    ended = code == separator;
    found += !ended;
    key = key << 2 | (ended ? separator - 1 : code);  // an end is behind the last letter: as that, and fewer
  }
  const unsigned place = static_cast<unsigned>(i) - before;
  keys[place] = key << missing_bits | (key_letters - found);
  suffixes[place] = static_cast<unsigned>(i);
}

// heads[rank] = rank where a suffix differs from the one before it, else 0. One that has ended differs from all.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    first_heads(const unsigned long long* keys, unsigned* heads, unsigned letters) {
  const unsigned long long rank = place_in_grid<Policy>();
  if (rank >= letters) return;
  const unsigned long long key = keys[rank];
  const bool has_ended = key & ((1u << missing_bits) - 1);
  heads[rank] = has_ended || rank == 0 || keys[rank - 1] != key ? static_cast<unsigned>(rank) : 0;
}

// heads are running maxima by now. is_left[rank] = 1 for a suffix that is equal to a neighbour.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    first_ranks(const unsigned* heads, const unsigned* suffixes, unsigned* ranks, unsigned* is_left, unsigned letters) {
  const unsigned long long rank = place_in_grid<Policy>();
  if (rank >= letters) return;
  const unsigned head = heads[rank];
  ranks[suffixes[rank]] = head;
  is_left[rank] = head != rank || (rank + 1 < letters && heads[rank + 1] == head);
}

// lefts are running sums by now: what is left moves together, with its places.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    gather_left(const unsigned* lefts, const unsigned* places, const unsigned* suffixes, unsigned* left_places,
                unsigned* left_suffixes, unsigned count) {
  const unsigned long long i = place_in_grid<Policy>();
  if (i >= count) return;
  const unsigned to = lefts[i], before = i ? lefts[i - 1] : 0;
  if (to == before) return;
  left_places[before] = places ? places[i] : static_cast<unsigned>(i);
  left_suffixes[before] = suffixes[i];
}

// By the rank, which they share with those equal to them so far, then by that of the suffix `depth` letters behind.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    next_keys(const unsigned* suffixes, const unsigned* ranks, unsigned long long* keys, unsigned count,
              unsigned depth) {
  const unsigned long long i = place_in_grid<Policy>();
  if (i >= count) return;
  const unsigned suffix = suffixes[i];
  keys[i] = static_cast<unsigned long long>(ranks[suffix]) << 32 | ranks[suffix + depth];
}

// The suffixes to their places; heads[i] = place where one differs from the one before it, else 0.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    next_heads(const unsigned long long* keys, const unsigned* suffixes, const unsigned* places, unsigned* order,
               unsigned* heads, unsigned* is_left, unsigned count) {
  const unsigned long long i = place_in_grid<Policy>();
  if (i >= count) return;
  const unsigned long long key = keys[i];
  const unsigned place = places[i];
  const bool is_head = i == 0 || keys[i - 1] != key, is_last = i + 1 == count || keys[i + 1] != key;
  order[place] = suffixes[i];
  heads[i] = is_head ? place : 0;
  is_left[i] = !(is_head && is_last);
}

// heads are running maxima by now.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    next_ranks(const unsigned* heads, const unsigned* suffixes, unsigned* ranks, unsigned count) {
  const unsigned long long i = place_in_grid<Policy>();
  if (i < count) ranks[suffixes[i]] = heads[i];
}

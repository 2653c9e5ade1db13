// How many letters a suffix shares with the one before it in their order. Going on by one position, that falls by one
// at most, and where the letters before both are equal it falls by exactly one: only the others are compared, together
// no more than n log n letters (Kärkkäinen, Manzini and Puglisi, Permuted longest-common-prefix array, 2009).
#pragma once
#include "suffixes.hpp"

constexpr unsigned no_position = 0xFFFFFFFFu;
constexpr unsigned word_letters = 8;
constexpr unsigned letters_alone = 512;  // that one thread compares; what shares more is left to a block

// The codes of eight letters from a position on. The text has room for two words more than it has letters.
AUTOTUNE_DEVICE unsigned long long word_at(const unsigned char* text, unsigned long long position) {
  const auto* const words = reinterpret_cast<const unsigned long long*>(text);
  const unsigned shift = static_cast<unsigned>(position % word_letters) * 8;
  const unsigned long long low = words[position / word_letters], high = words[position / word_letters + 1];
  return shift ? low >> shift | high << (64 - shift) : low;
}

// How many of the eight letters from both positions on are equal before one is a separator.
AUTOTUNE_DEVICE unsigned equal_letters(const unsigned char* text, unsigned long long one, unsigned long long other) {
  const unsigned long long a = word_at(text, one), b = word_at(text, other);
  const unsigned long long unequal = (a ^ b) | (a & 0x0404040404040404ull);
  return unequal ? static_cast<unsigned>(__ffsll(static_cast<long long>(unequal)) - 1) / 8 : word_letters;
}

// The suffix before the one at `position`, or no_position.
AUTOTUNE_DEVICE unsigned suffix_before(const unsigned* ranks, const unsigned* suffixes, unsigned position) {
  const unsigned rank = ranks[position];
  return rank ? suffixes[rank - 1] : no_position;
}

// reach[position]: where what the suffix shares with the one before it ends; 0 where that is as for the position
// before. Those that share many letters are listed in `longer`, and how many they are in its count.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    share(const unsigned char* text, const unsigned* ranks, const unsigned* suffixes, unsigned* reach, unsigned* longer,
          unsigned* longer_count, unsigned length) {
  const unsigned long long place = place_in_grid<Policy>();
  if (place >= length) return;
  const unsigned position = static_cast<unsigned>(place);
  reach[position] = 0;
  if (text[position] == separator) return;
  const unsigned before = suffix_before(ranks, suffixes, position);
  if (before == no_position) {
    reach[position] = position;
    return;
  }
  if (position && before && text[position - 1] == text[before - 1] && text[position - 1] != separator) return;
  unsigned shared = 0, equal = word_letters;
  for (; equal == word_letters && shared < letters_alone; shared += equal)
    equal = equal_letters(text, position + shared, before + shared);
  if (equal == word_letters)
    longer[atomicAdd(longer_count, 1u)] = position;
  else
    reach[position] = position + shared;
}

// One block for each that shares many.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    share_longer(const unsigned char* text, const unsigned* ranks, const unsigned* suffixes, unsigned* reach,
                 const unsigned* longer, unsigned length) {
  const unsigned position = longer[blockIdx.x], before = suffix_before(ranks, suffixes, position);
  const unsigned later = max(position, before);
  __shared__ unsigned least;
  if (threadIdx.x == 0) least = no_position;
  __syncthreads();
  for (unsigned long long shared = letters_alone;; shared += word_letters * Policy::block_size) {
    const unsigned long long own = shared + word_letters * threadIdx.x;
    // The text ends with a separator, at which the later of the two stops: no thread looks behind it.
    if (later + own < length) {
      const unsigned equal = equal_letters(text, position + own, before + own);
      if (equal < word_letters) atomicMin(&least, static_cast<unsigned>(own) + equal);
    }
    __syncthreads();
    const unsigned found = least;
    __syncthreads();
    if (found != no_position) {
      if (threadIdx.x == 0) reach[position] = position + found;
      return;
    }
  }
}

// reach are running maxima by now.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    shared_by_rank(const unsigned* reach, const unsigned* suffixes, unsigned* shared, unsigned letters) {
  const unsigned long long rank = place_in_grid<Policy>();
  if (rank > letters) return;
  // None before the first, and none behind the last.
  shared[rank] = rank && rank < letters ? reach[suffixes[rank]] - suffixes[rank] : 0;
}

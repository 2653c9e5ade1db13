// What a search without a tree reads: the leaves in their order, and how many of them come before each word of letters.
#pragma once
#include "nodes.hpp"

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    write_order(const unsigned char* text, const unsigned* suffixes, Leaf* leaves, unsigned letters) {
  const unsigned long long rank = place_in_grid<Policy>();
  if (rank >= letters) return;
  const unsigned position = suffixes[rank];
  leaves[rank] = {position, preceding(text, position)};
}

// counts[word + 1]: how many suffixes begin with the word, the first letter counting most. One that ends within it
// counts as if the last letter followed.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    count_words(const unsigned char* text, unsigned* counts, unsigned length, unsigned word_letters) {
  const unsigned long long position = place_in_grid<Policy>();
  if (position >= length || text[position] == separator) return;
  unsigned word = 0;
  bool ended = false;
  for (unsigned letter = 0; letter < word_letters; ++letter) {
    const unsigned code = ended ? separator : text[position + letter];
    ended = code == separator;
    word = word << 2 | (ended ? separator - 1 : code);
  }
  atomicAdd(&counts[word + 1], 1u);
}

// SPDX-License-Identifier: Apache-2.0
// packing: several small non-negative integers in one word. A kernel compares and counts through these
// functions and never sees the bits.
#pragma once
#include "autotune/device.cuh"

namespace autotune {

// 32 / BITS elements side by side in a 32-bit word, the first in the lowest bits.
template <int BITS>
struct Bits {
  static constexpr int elements = 32 / BITS;
  static constexpr unsigned element_mask = BITS == 32 ? ~0u : (1u << BITS % 32) - 1;
  static constexpr unsigned ones = ~0u / element_mask;  // 1 in every element
  static constexpr unsigned low = ones * (element_mask >> 1);
  using Word = unsigned;
  AUTOTUNE_DEVICE static unsigned element(Word word, int k) { return (word >> (k * BITS % 32)) & element_mask; }
  AUTOTUNE_DEVICE static Word filled(unsigned value) { return ones * value; }
  // One set bit (the highest of its field) for every element in which a and b differ.
  AUTOTUNE_DEVICE static unsigned differ(Word a, Word b) {
    const unsigned x = a ^ b;
    if constexpr (BITS == 32) return x ? 1u : 0u;
    return (((x & low) + low) | x) & ~low;
  }
  AUTOTUNE_DEVICE static unsigned count(unsigned mask) {
    if constexpr (BITS == 32) return mask;
    return __popc(mask);
  }
};

// PLANES bit planes of 32 elements: bit k of plane p is bit p of element k.
template <int PLANES>
struct Planes {
  static constexpr int elements = 32;
  struct Word {
    unsigned plane[PLANES];
  };
  AUTOTUNE_DEVICE static unsigned element(Word word, int k) {
    unsigned value = 0;
#pragma unroll
    for (int p = 0; p < PLANES; ++p) value |= (word.plane[p] >> k & 1u) << p;
    return value;
  }
  AUTOTUNE_DEVICE static Word filled(unsigned value) {
    Word word;
#pragma unroll
    for (int p = 0; p < PLANES; ++p) word.plane[p] = 0u - (value >> p & 1u);
    return word;
  }
  AUTOTUNE_DEVICE static unsigned differ(Word a, Word b) {
    unsigned mask = 0;
#pragma unroll
    for (int p = 0; p < PLANES; ++p) mask |= a.plane[p] ^ b.plane[p];
    return mask;
  }
  AUTOTUNE_DEVICE static unsigned count(unsigned mask) { return __popc(mask); }
};

// WORDS words of one packing, moved by one access.
template <class Packing, int WORDS>
struct Packed {
  using packing = Packing;
  static constexpr int words = WORDS, elements = WORDS * Packing::elements;
  typename Packing::Word word[WORDS];
};

}  // namespace autotune

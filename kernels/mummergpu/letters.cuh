// How far a read and the reference are equal, from a base on and before it.
#pragma once
#include "tree.cuh"

// The letters that a read has equal to the reference from a base on, of which `known` are known to be and `most` asked
// for; and those before it.
template <class Policy>
AUTOTUNE_DEVICE unsigned equal_from(const typename Policy::reference& reference,
                                    const typename Policy::queries& queries, unsigned position, unsigned base,
                                    unsigned known, unsigned most) {
  while (known < most) {
    const unsigned equal = equal_letters(letters(queries, base + known), letters(reference, position + known));
    known += equal;
    if (equal < letters_at_once) break;
  }
  return min(known, most);
}

template <class Policy>
AUTOTUNE_DEVICE unsigned equal_before(const typename Policy::reference& reference,
                                      const typename Policy::queries& queries, unsigned position, unsigned base,
                                      unsigned known, unsigned most) {
  while (known < most) {
    const unsigned equal =
        equal_letters_back(letters_before(queries, base - known), letters_before(reference, position - known));
    known += equal;
    if (equal < letters_at_once) break;
  }
  return min(known, most);
}

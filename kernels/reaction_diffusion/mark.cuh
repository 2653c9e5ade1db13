// launch neighbours: the points of a rim say themselves that they have arrived. The sign of the first of each access is
// a mark, as no concentration needs one, so that neither a fence nor a flag lies between a rim and the halo it becomes.
//
// Two fields take turns as the place of rims. The mark changes from one use of a field to the next, so that a halo
// tells what it waits for from what lay there before. A tile writes to a field again only after it has read the rims of
// the exchange between, which the tiles around it wrote after they had read what it wrote before: the steps between two
// exchanges hold the block's threads together.
#pragma once
#include "autotune/device.cuh"

// Whether a row of COLUMNS numbers is one access that nothing divides.
template <class Number, int COLUMNS>
constexpr bool one_access = sizeof(Number) == 4 && (COLUMNS == 1 || COLUMNS == 2 || COLUMNS == 4);

// A row as that access, seen by all multiprocessors, but in no order with others.
template <class Row>
AUTOTUNE_DEVICE void store_whole(Row* place, const Row& row) {
#ifdef AUTOTUNE_CPU
  // The word with the mark is the last to be written, and the first to be read.
  const auto* const words = reinterpret_cast<const unsigned*>(&row);
  for (int word = sizeof(Row) / 4; word-- > 0;)
    __atomic_store_n(reinterpret_cast<unsigned*>(place) + word, words[word], __ATOMIC_RELEASE);
#else
  if constexpr (sizeof(Row) == 16) {
    const ulonglong2 bits = autotune::bit_cast<ulonglong2>(row);
    asm volatile("{ .reg .b128 row; mov.b128 row, {%1, %2}; st.relaxed.gpu.global.b128 [%0], row; }" ::"l"(place),
                 "l"(bits.x), "l"(bits.y)
                 : "memory");
  } else if constexpr (sizeof(Row) == 8) {
    const auto bits = autotune::bit_cast<unsigned long long>(row);
    asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(place), "l"(bits) : "memory");
  } else {
    asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" ::"l"(place), "r"(autotune::bit_cast<unsigned>(row)) : "memory");
  }
#endif
}
template <class Row>
AUTOTUNE_DEVICE Row load_whole(const Row* place) {
#ifdef AUTOTUNE_CPU
  Row row;
  for (int word = 0; word < static_cast<int>(sizeof(Row) / 4); ++word)
    reinterpret_cast<unsigned*>(&row)[word] =
        __atomic_load_n(reinterpret_cast<const unsigned*>(place) + word, __ATOMIC_ACQUIRE);
  return row;
#else
  if constexpr (sizeof(Row) == 16) {
    ulonglong2 bits;
    asm volatile("{ .reg .b128 row; ld.relaxed.gpu.global.b128 row, [%2]; mov.b128 {%0, %1}, row; }"
                 : "=l"(bits.x), "=l"(bits.y)
                 : "l"(place)
                 : "memory");
    return autotune::bit_cast<Row>(bits);
  } else if constexpr (sizeof(Row) == 8) {
    unsigned long long bits;
    asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(bits) : "l"(place) : "memory");
    return autotune::bit_cast<Row>(bits);
  } else {
    unsigned bits;
    asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(bits) : "l"(place) : "memory");
    return autotune::bit_cast<Row>(bits);
  }
#endif
}

struct Mark {
  unsigned sign;

  // Of exchange `number`, from 1; before, no point has the mark.
  AUTOTUNE_DEVICE explicit Mark(unsigned number) : sign(((number + 1) & 2) << 30) {}

  AUTOTUNE_DEVICE float on(float c) const { return __uint_as_float((__float_as_uint(c) & 0x7fffffffu) | sign); }
  // A word that tells, together with those of other points by `or`, whether the mark is missing at any of them.
  AUTOTUNE_DEVICE unsigned missing(float c) const { return __float_as_uint(c) ^ sign; }
  AUTOTUNE_DEVICE static bool any(unsigned missing) { return missing >> 31 != 0; }
  AUTOTUNE_DEVICE static float off(float c) { return __uint_as_float(__float_as_uint(c) & 0x7fffffffu); }
};

// What the L2 cache is told of an access: to keep what the list is made from, while the list itself passes through.
// Reads that go to device memory in between the writes of the list cost more than their bytes.
#pragma once
#include "autotune/element.cuh"

// An array whose loads and stores ask for their lines to be evicted last.
template <class Array>
struct EvictedLast {
  Array array;

  AUTOTUNE_DEVICE unsigned extent(int axis) const { return array.extent(axis); }
  AUTOTUNE_DEVICE unsigned load(unsigned place) const {
#ifdef AUTOTUNE_CPU
    return array.load(place);
#else
    unsigned value;
    asm volatile("ld.global.L2::cache_hint.u32 %0, [%1], %2;"
                 : "=r"(value)
                 : "l"(&autotune::element(array, place)), "l"(policy()));
    return value;
#endif
  }
  AUTOTUNE_DEVICE void store(unsigned value, unsigned place) const {
#ifdef AUTOTUNE_CPU
    array.store(value, place);
#else
    asm volatile("st.global.L2::cache_hint.u32 [%0], %1, %2;" ::"l"(&autotune::element(array, place)), "r"(value),
                 "l"(policy())
                 : "memory");
#endif
  }

 private:
#ifndef AUTOTUNE_CPU
  AUTOTUNE_DEVICE static unsigned long long policy() {
    unsigned long long made;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(made));
    return made;
  }
#endif
};

// An array of vectors of four words, whose stores ask for their lines to be evicted first.
template <class Array>
struct EvictedFirst {
  using value_type = typename Array::value_type;
  Array array;

  AUTOTUNE_DEVICE unsigned extent(int axis) const { return array.extent(axis); }
  AUTOTUNE_DEVICE void store(const value_type& value, unsigned place) const {
#ifdef AUTOTUNE_CPU
    array.store(value, place);
#else
    static_assert(sizeof(value_type) == 16, "one store of 16 bytes");
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("st.global.L2::cache_hint.v4.u32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(&autotune::element(array, place)),
                 "r"(value.word[0]), "r"(value.word[1]), "r"(value.word[2]), "r"(value.word[3]), "l"(policy)
                 : "memory");
#endif
  }
};

template <class Policy, class Array>
AUTOTUNE_DEVICE auto to_keep(const Array& array) {
  if constexpr (Policy::eviction == Eviction::hinted)
    return EvictedLast<Array>{array};
  else
    return array;
}

template <class Policy, class Array>
AUTOTUNE_DEVICE auto to_pass(const Array& array) {
  if constexpr (Policy::eviction == Eviction::hinted)
    return EvictedFirst<Array>{array};
  else
    return array;
}

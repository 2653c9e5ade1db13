// SPDX-License-Identifier: Apache-2.0
// Accessors that check every index against its extent, for a build that looks for errors: a row follows a row, so an
// index outside of its extent may read another element, and nothing else would tell. A check costs a comparison for
// each index of each access.
//
// AUTOTUNE_ARRAY(points, autotune::GlobalArray<float, 2>); declares the type `points`. With AUTOTUNE_CHECK_BOUNDS
// defined it is checked under that name; else it is the accessor itself. `autotune sweep --bounds` does it for a
// family.
#pragma once
#if !defined(__CUDACC_RTC__)
#include <stdio.h>
#endif

#include "autotune/field_access.cuh"
#include "autotune/strided.cuh"

namespace autotune {

// Outside::report(index, axis, extent) is called for each index that is not in 0 .. extent - 1.
template <class Accessor, class Outside>
struct Checked : Accessor {
  using value_type = typename Accessor::value_type;

  template <class... Indices>
  AUTOTUNE_DEVICE void check(Indices... indices) const {
    const long long index[] = {static_cast<long long>(indices)...};
    for (int axis = 0; axis < static_cast<int>(sizeof...(Indices)); ++axis)
      if (index[axis] < 0 || index[axis] >= this->extent(axis)) Outside::report(index[axis], axis, this->extent(axis));
  }
  template <class... Indices>
  AUTOTUNE_DEVICE value_type load(Indices... indices) const {
    check(indices...);
    return Accessor::load(indices...);
  }
  template <class... Indices>
  AUTOTUNE_DEVICE void store(const value_type& value, Indices... indices) const {
    check(indices...);
    Accessor::store(value, indices...);
  }
  template <class... Indices>
  AUTOTUNE_DEVICE void add(value_type value, Indices... indices) const {
    check(indices...);
    Accessor::add(value, indices...);
  }
};

template <class Accessor, class Outside, class... Indices>
AUTOTUNE_DEVICE auto& element(const Checked<Accessor, Outside>& array, Indices... indices) {
  array.check(indices...);
  return element(static_cast<const Accessor&>(array), indices...);
}

template <auto FIELD, class Accessor, class Outside, class... Indices>
AUTOTUNE_DEVICE auto& field(const Checked<Accessor, Outside>& array, Indices... indices) {
  array.check(indices...);
  return field<FIELD>(static_cast<const Accessor&>(array), indices...);
}

template <auto FIELD, class Accessor, class Outside, class... Indices>
AUTOTUNE_DEVICE auto load_field(const Checked<Accessor, Outside>& array, Indices... indices) {
  array.check(indices...);
  return load_field<FIELD>(static_cast<const Accessor&>(array), indices...);
}

template <auto FIELD, class Accessor, class Outside, class... Indices>
AUTOTUNE_DEVICE void store_field(const Checked<Accessor, Outside>& array, const typename FieldOf<FIELD>::type& value,
                                 Indices... indices) {
  array.check(indices...);
  store_field<FIELD>(static_cast<const Accessor&>(array), value, indices...);
}

namespace detail {

template <class Accessor, class Outside>
struct Values<Checked<Accessor, Outside>> : Values<Accessor> {
  template <class... Given>
  AUTOTUNE_EVERYWHERE static Checked<Accessor, Outside> made(const Given&... given) {
    return {Values<Accessor>::made(given...)};
  }
};

#ifndef AUTOTUNE_CPU
AUTOTUNE_DEVICE void stop(const char* array, long long index, int axis, unsigned extent) {
  printf("%s: index %lld is outside of axis %d, whose extent is %u\n", array, index, axis, extent);
  __trap();
}
#endif

// Ends the kernel, or the program that runs without one, after it has said which index left which array.
template <class Name>
struct Stops {
  AUTOTUNE_DEVICE static void report(long long index, int axis, unsigned extent) {
    stop(Name::text(), index, axis, extent);
  }
};

}  // namespace detail

}  // namespace autotune

#ifdef AUTOTUNE_CHECK_BOUNDS
#define AUTOTUNE_ARRAY(NAME, ...)                               \
  struct autotune_name_of_##NAME {                              \
    AUTOTUNE_DEVICE static const char* text() { return #NAME; } \
  };                                                            \
  using NAME = autotune::Checked<__VA_ARGS__, autotune::detail::Stops<autotune_name_of_##NAME>>
#else
#define AUTOTUNE_ARRAY(NAME, ...) using NAME = __VA_ARGS__
#endif

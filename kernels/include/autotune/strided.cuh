// SPDX-License-Identifier: Apache-2.0
// Arrays in global memory for a program that names its layouts itself: their types, and accessors over memory that it
// has. The tuner makes both from a declaration.
#pragma once
#include "autotune/array.cuh"

namespace autotune {

namespace detail {

// Extents and strides that are all given when the accessor is made, but for the stride 1 of index CONTIGUOUS.
template <int CONTIGUOUS, class Axes>
struct GivenStrided;
template <int CONTIGUOUS, int... AXES>
struct GivenStrided<CONTIGUOUS, Integers<AXES...>> {
  using type = Strided<Extents<(0u * AXES)...>, Strides<unsigned, (AXES == CONTIGUOUS ? 1ull : 0ull)...>>;
};

}  // namespace detail

// RANK extents, which the program gives when it makes the accessor; index CONTIGUOUS has stride 1. A value is moved by
// accesses as wide as its alignment, up to 16 bytes; Records places those of one value (records.cuh: Aos, Soa, Aosoa).
template <class Value, int RANK = 1, int CONTIGUOUS = RANK - 1, class Records = Aos>
using GlobalArray = Array<Value, Global<Texel<(alignof(Value) < 16 ? alignof(Value) : 16)>>,
                          typename detail::GivenStrided<CONTIGUOUS, UpTo<RANK>>::type, Dims1D, Records>;

namespace detail {

// The values of an accessor as an ordinary array: a pointer, extents, and strides in values.
template <class Accessor>
struct Values {
  static constexpr bool is_strided = false, is_dense = false;
};
template <class Value, template <class> class Memory, class Texel, class Mapping, class Records, int MEMBERS,
          int MEMBER>
struct Values<Array<Value, Memory<Texel>, Mapping, Dims1D, Records, Merged<MEMBERS, MEMBER>>> {
  using Accessor = Array<Value, Memory<Texel>, Mapping, Dims1D, Records, Merged<MEMBERS, MEMBER>>;
  using Index = typename Mapping::Stride;
  static constexpr int rank = Mapping::rank, contiguous = Mapping::contiguous(), members = MEMBERS;
  static constexpr bool is_strided = Mapping::is_strided && (sizeof(Value) == sizeof(Texel) || Records::is_whole);
  static constexpr bool is_alone = MEMBERS == 1;
  static constexpr bool is_dense = Mapping::is_strided && !Records::template has_runs<1> && is_alone;

  AUTOTUNE_EVERYWHERE static auto pointer(const Accessor& array) {
    return reinterpret_cast<typename Memory<Texel>::template element<Value>*>(array.memory.base) + MEMBER;
  }
  AUTOTUNE_EVERYWHERE static unsigned extent(const Accessor& array, int axis) { return array.extents()[axis]; }
  AUTOTUNE_EVERYWHERE static unsigned long long stride(const Accessor& array, int axis) {
    return 1ull * array.strides()[axis] * MEMBERS;
  }
  // Elements of an array without gaps, in whole runs.
  AUTOTUNE_EVERYWHERE static unsigned long long elements(const unsigned long long (&extents)[rank]) {
    unsigned long long count = 1;
    for (int axis = 0; axis < rank; ++axis) count *= extents[axis];
    return (count + Records::lanes - 1) / Records::lanes * Records::lanes;
  }
  template <class Pointer>
  AUTOTUNE_EVERYWHERE static Accessor made(Pointer values, const unsigned long long (&extents)[rank],
                                           const unsigned long long (&strides)[rank]) {
    Accessor array{};
    array.memory.base = reinterpret_cast<decltype(Memory<Texel>::base)>(values);
    for (int axis = 0; axis < rank; ++axis) {
      array.extents().give(axis, static_cast<unsigned>(extents[axis]));
      array.strides().give(axis, static_cast<Index>(strides[axis]));
    }
    array.runs().give(0, static_cast<Index>(elements(extents)));
    return array;
  }
};

}  // namespace detail

// The accessor over `memory`, a GlobalArray of these extents without gaps: the contiguous index is the fastest, then
// the others from the last to the first. An array has less than 2^32 texels.
template <class Accessor, class... Extents>
AUTOTUNE_EVERYWHERE Accessor dense(typename Accessor::value_type* memory, Extents... extents) {
  using Values = detail::Values<Accessor>;
  static_assert(Values::is_dense, "dense() makes a GlobalArray of aos, soa or aosoa");
  static_assert(sizeof...(Extents) == Values::rank, "one extent for each axis");
  const unsigned long long given[] = {static_cast<unsigned long long>(extents)...};
  unsigned long long strides[Values::rank], stride = given[Values::contiguous];
  strides[Values::contiguous] = 1;
  for (int axis = Values::rank - 1; axis >= 0; --axis)
    if (axis != Values::contiguous) {
      strides[axis] = stride;
      stride *= given[axis];
    }
  return Values::made(memory, given, strides);
}

// The first of an array's values; the others are at the strides of to_mdspan and to_cute.
template <class Accessor>
AUTOTUNE_EVERYWHERE auto values_of(const Accessor& array) {
  static_assert(detail::Values<Accessor>::is_strided, "values_of takes arrays of whole values at strides");
  return detail::Values<Accessor>::pointer(array);
}

// The values for which dense() needs memory: as many as there are, in whole runs of an Aosoa.
template <class Accessor, class... Extents>
AUTOTUNE_EVERYWHERE unsigned long long dense_size(Extents... extents) {
  static_assert(detail::Values<Accessor>::is_dense, "dense() makes a GlobalArray of aos, soa or aosoa");
  const unsigned long long given[] = {static_cast<unsigned long long>(extents)...};
  return detail::Values<Accessor>::elements(given);
}

}  // namespace autotune

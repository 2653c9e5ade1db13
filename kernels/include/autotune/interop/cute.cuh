// SPDX-License-Identifier: Apache-2.0
// To and from cute::Layout, for arrays whose values lie at a stride along each axis (mdspan.cuh says which), and a
// swizzled tile in shared memory as a layout composed with cute::Swizzle. For a program that has CuTe.
#pragma once
#include <cute/layout.hpp>
#include <cute/swizzle_layout.hpp>

#include "autotune/shared_array.cuh"
#include "autotune/strided.cuh"

namespace autotune {

namespace detail {

// A stride that CuTe knows at compile time, where the accessor does.
template <class Accessor, int AXIS>
AUTOTUNE_EVERYWHERE auto cute_stride(const Accessor& array) {
  using Values = detail::Values<Accessor>;
  if constexpr (AXIS == Values::contiguous)
    return cute::Int<Values::members>{};
  else
    return static_cast<typename Values::Index>(Values::stride(array, AXIS));
}

template <class Accessor, int... AXES>
AUTOTUNE_EVERYWHERE auto cute_layout(const Accessor& array, Integers<AXES...>) {
  return cute::make_layout(cute::make_shape(Values<Accessor>::extent(array, AXES)...),
                           cute::make_stride(cute_stride<Accessor, AXES>(array)...));
}

template <class Layout, int... AXES>
AUTOTUNE_EVERYWHERE void take(const Layout& layout, unsigned long long* extents, unsigned long long* strides,
                              Integers<AXES...>) {
  ((extents[AXES] = static_cast<unsigned long long>(cute::get<AXES>(layout.shape())),
    strides[AXES] = static_cast<unsigned long long>(cute::get<AXES>(layout.stride()))),
   ...);
}

constexpr int log2_of(unsigned number) { return number == 1 ? 0 : 1 + log2_of(number / 2); }

}  // namespace detail

// The layout of the array's values from values_of(array) on; the contiguous axis has a static stride.
template <class Accessor>
AUTOTUNE_EVERYWHERE auto to_cute(const Accessor& array) {
  using Values = detail::Values<Accessor>;
  static_assert(Values::is_strided, "to_cute takes arrays of whole values at strides");
  return detail::cute_layout(array, UpTo<Values::rank>());
}

// An accessor over `memory` with a layout of one mode for each axis, no mode within a mode; the accessor's contiguous
// axis has stride 1 there.
template <class Accessor, class Layout>
AUTOTUNE_EVERYWHERE Accessor from_cute(typename Accessor::value_type* memory, const Layout& layout) {
  using Values = detail::Values<Accessor>;
  static_assert(Values::is_strided && Values::is_alone, "from_cute makes arrays of whole values at strides");
  static_assert(Layout::rank == Values::rank, "the layout has a mode for each axis");
  unsigned long long extents[Values::rank], strides[Values::rank];
  detail::take(layout, extents, strides, UpTo<Values::rank>());
  return Values::made(memory, extents, strides);
}

// The places of a swizzled SharedArray of rows in its memory, rows first: cute::Swizzle after a layout by rows.
template <class Value, unsigned long long ROWS, unsigned long long COLUMNS, unsigned long long PITCH, unsigned GROUPS,
          unsigned WIDTH, unsigned ELEMENTS>
AUTOTUNE_EVERYWHERE auto to_cute(
    const SharedArray<Value,
                      Swizzled<Strided<Extents<ROWS, COLUMNS>, Strides<unsigned, PITCH, 1>>, 0, 1, GROUPS, WIDTH>,
                      ELEMENTS>&) {
  static_assert((PITCH & (PITCH - 1)) == 0, "cute::Swizzle needs rows of a power of two values");
  using Rows = cute::Layout<cute::Shape<cute::Int<int(ROWS)>, cute::Int<int(COLUMNS)>>,
                            cute::Stride<cute::Int<int(PITCH)>, cute::_1>>;
  constexpr int width = detail::log2_of(WIDTH), row = detail::log2_of(int(PITCH));
  return cute::composition(cute::Swizzle<detail::log2_of(GROUPS), width, row - width>{}, Rows{});
}

}  // namespace autotune

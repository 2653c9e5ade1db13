// SPDX-License-Identifier: Apache-2.0
// To and from cuda::std::mdspan, std::mdspan and Kokkos::mdspan, for arrays whose values lie at a stride along each
// axis: whole values (aos, or values of one access) in global memory, in any order of axes, padded or merged with
// others. Nothing is copied. No other library is included: the functions take the types that a program has.
#pragma once
#include "autotune/strided.cuh"

namespace autotune {

namespace detail {

template <class Mdspan, class Accessor, int... AXES>
AUTOTUNE_EVERYWHERE Mdspan spanned(const Accessor& array, Integers<AXES...>) {
  using Index = typename Mdspan::index_type;
  using Mapping = typename Mdspan::mapping_type;
  using Strides = decltype(Mapping().strides());  // an array of one number for each axis
  return Mdspan(Values<Accessor>::pointer(array),
                Mapping(typename Mdspan::extents_type(static_cast<Index>(Values<Accessor>::extent(array, AXES))...),
                        Strides{static_cast<Index>(Values<Accessor>::stride(array, AXES))...}));
}

}  // namespace detail

// The same values as an mdspan of layout_stride:
//   autotune::to_mdspan<cuda::std::mdspan<float, cuda::std::dextents<int, 2>, cuda::std::layout_stride>>(array)
// Its elements are const where the array's memory is read-only.
template <class Mdspan, class Accessor>
AUTOTUNE_EVERYWHERE Mdspan to_mdspan(const Accessor& array) {
  using Values = detail::Values<Accessor>;
  static_assert(Values::is_strided, "an mdspan has its values at strides: no tiles, curves, swizzles or split records");
  static_assert(Mdspan::rank() == Values::rank, "the mdspan has the array's extents");
  return detail::spanned<Mdspan>(array, UpTo<Values::rank>());
}

// Whether from_mdspan can make the accessor: its contiguous axis has stride 1 in the mdspan, and extents and strides
// have its number of bits.
template <class Accessor, class Mdspan>
AUTOTUNE_EVERYWHERE bool expresses(const Mdspan& span) {
  using Values = detail::Values<Accessor>;
  if (span.stride(Values::contiguous) != 1) return false;
  for (int axis = 0; axis < Values::rank; ++axis) {
    const auto extent = static_cast<unsigned long long>(span.extent(axis));
    const auto stride = static_cast<unsigned long long>(span.stride(axis));
    if (extent > ~0u || stride > static_cast<typename Values::Index>(-1)) return false;
  }
  return true;
}

// An accessor over the values of an mdspan that it `expresses`.
template <class Accessor, class Mdspan>
AUTOTUNE_EVERYWHERE Accessor from_mdspan(const Mdspan& span) {
  using Values = detail::Values<Accessor>;
  static_assert(Values::is_strided && Values::is_alone, "from_mdspan makes arrays of whole values at strides");
  static_assert(Mdspan::rank() == Values::rank, "the mdspan has the array's extents");
  unsigned long long extents[Values::rank], strides[Values::rank];
  for (int axis = 0; axis < Values::rank; ++axis) {
    extents[axis] = static_cast<unsigned long long>(span.extent(axis));
    strides[axis] = static_cast<unsigned long long>(span.stride(axis));
  }
  return Values::made(span.data_handle(), extents, strides);
}

}  // namespace autotune

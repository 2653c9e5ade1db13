// SPDX-License-Identifier: Apache-2.0
// shared: an array in shared memory whose elements lie as a mapping says: by rows, padded, in tiles, swizzled.
#pragma once
#include "autotune/swizzle.cuh"

namespace autotune {

// `__shared__ typename Policy::tile tile;`, then tile(row, column). All extents and strides of the mapping are known,
// so that it takes no room, and its arithmetic is of constants.
template <class Value, class Mapping, unsigned ELEMENTS>
struct SharedArray {
  Value values[ELEMENTS];

  template <class... Indices>
  AUTOTUNE_DEVICE Value& operator()(Indices... indices) {
    return values[Mapping().offset(static_cast<unsigned>(indices)...)];
  }
  template <class... Indices>
  AUTOTUNE_DEVICE const Value& operator()(Indices... indices) const {
    return values[Mapping().offset(static_cast<unsigned>(indices)...)];
  }
  AUTOTUNE_EVERYWHERE static constexpr unsigned extent(int axis) { return Mapping::extents_type::known(axis); }
};

namespace detail {

template <class Swizzle, unsigned ROWS, unsigned COLUMNS>
struct SwizzledRows;
template <unsigned GROUPS, unsigned WIDTH, unsigned ROWS, unsigned COLUMNS>
struct SwizzledRows<Xor<GROUPS, WIDTH>, ROWS, COLUMNS> {
  static constexpr unsigned span = GROUPS * WIDTH, pitch = (COLUMNS + span - 1) / span * span;
  using Rows = Strided<Extents<ROWS, COLUMNS>, Strides<unsigned, pitch, 1>>;
  using Mapping = Swizzled<Rows, 0, 1, GROUPS, WIDTH>;
};

}  // namespace detail

// The same of rows, without a declaration: `__shared__ autotune::SharedTile<float, 32, 32, autotune::Xor<32>> tile;`.
// Rows take room for whole spans of the swizzle.
template <class Value, unsigned ROWS, unsigned COLUMNS, class Swizzle = Xor<1>>
using SharedTile = SharedArray<Value, typename detail::SwizzledRows<Swizzle, ROWS, COLUMNS>::Mapping,
                               ROWS * detail::SwizzledRows<Swizzle, ROWS, COLUMNS>::pitch>;

}  // namespace autotune

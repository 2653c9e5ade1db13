// SPDX-License-Identifier: Apache-2.0
// tiles: elements that are stored together in blocks, one tile after the other.
#pragma once
#include "autotune/mapping.cuh"

namespace autotune {

// Two mappings composed: Inner is that of a tile, whose extents are constants, and Outer that of the tiles, whose
// strides are those of whole tiles.
template <class Inner, class Outer>
struct Tiled : Outer {
  using typename Outer::Offset;
  static constexpr bool is_strided = false;

  template <class... Indices>
  AUTOTUNE_DEVICE Offset offset(Indices... indices) const {
    return cut(UpTo<sizeof...(Indices)>(), static_cast<Offset>(indices)...);
  }

 private:
  template <int... AXES, class... Indices>
  AUTOTUNE_DEVICE Offset cut(Integers<AXES...>, Indices... indices) const {
    using Sizes = typename Inner::extents_type;
    return Outer::offset(indices / Sizes::known(AXES)...) + Inner().offset(indices % Sizes::known(AXES)...);
  }
};

}  // namespace autotune

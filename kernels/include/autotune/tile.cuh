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
    using Sizes = typename Inner::extents_type;
    Offset tile[] = {static_cast<Offset>(indices)...}, within[sizeof...(Indices)];
#pragma unroll
    for (int axis = 0; axis < static_cast<int>(sizeof...(Indices)); ++axis) {
      within[axis] = tile[axis] % Sizes::known(axis);
      tile[axis] /= Sizes::known(axis);
    }
    constexpr UpTo<sizeof...(Indices)> all{};
    return detail::offset_of<Outer>(*this, tile, all) + detail::offset_of<Inner>(Inner(), within, all);
  }
};

}  // namespace autotune

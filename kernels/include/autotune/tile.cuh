// tiles: elements that lie together in blocks, one tile behind the other.
#pragma once
#include "autotune/mapping.cuh"

namespace autotune {

// Axes from the slowest to the contiguous one.
template <int... AXES>
struct Axes {
  static constexpr int count = sizeof...(AXES);

  AUTOTUNE_DEVICE static constexpr int axis(int place) {
    const int axes[] = {AXES...};
    return axes[place];
  }
  // Where `axis` stands among them; -1 where it does not.
  AUTOTUNE_DEVICE static constexpr int place(int axis) {
    const int axes[] = {AXES...};
    int found = -1;
    for (int place = 0; place < count; ++place)
      if (axes[place] == axis) found = place;
    return found;
  }
};

// The size of a tile along each axis.
template <unsigned... SIZES>
struct Tile {
  static constexpr unsigned volume = (SIZES * ... * 1u);

  AUTOTUNE_DEVICE static constexpr unsigned size(int axis) {
    const unsigned sizes[] = {SIZES...};
    return sizes[axis];
  }
};

// How far apart neighbours along `axis` lie within a tile, whose axes are stored as the array's are.
template <class Axes, class Tile>
AUTOTUNE_DEVICE constexpr unsigned within_tile(int axis) {
  unsigned stride = 1;
  for (int place = Axes::place(axis) + 1; place < Axes::count; ++place) stride *= Tile::size(Axes::axis(place));
  return stride;
}

// offset(i0, i1, …) = sum of (i_k / size_k) * strides[k] + (i_k % size_k) * the stride within a tile. The strides are
// those of whole tiles.
template <class Axes, class Tile, class ExtentsOf, class StridesOf>
struct Tiled : Shape<ExtentsOf, StridesOf> {
  using typename Shape<ExtentsOf, StridesOf>::Offset;

  template <class... Indices>
  AUTOTUNE_DEVICE Offset offset(Indices... indices) const {
    constexpr int rank = Axes::count;
    static_assert(sizeof...(Indices) == rank, "one index for each axis");
    const Offset index[] = {static_cast<Offset>(indices)...};
    Offset sum = 0;
#pragma unroll
    for (int axis = 0; axis < rank; ++axis) {
      const unsigned size = Tile::size(axis);
      const Offset stride = StridesOf::known(axis) != 0 ? StridesOf::known(axis) : this->strides()[axis];
      sum += index[axis] / size * stride + index[axis] % size * within_tile<Axes, Tile>(axis);
    }
    return sum;
  }
};

}  // namespace autotune

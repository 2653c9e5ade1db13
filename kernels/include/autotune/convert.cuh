// SPDX-License-Identifier: Apache-2.0
// A copy of an array in another layout, made between two kernels: read through the one accessor, written through the
// other. Where another axis is contiguous in the copy, values go through a tile in shared memory, so that both sides
// are read and written along their own.
#pragma once
#include "autotune/array.cuh"

namespace autotune {

// Of RANK indices FROM is contiguous in the array and TO in its copy; a block takes EDGE x EDGE values.
template <int RANK, int FROM, int TO, int EDGE, class INDEX>
struct Conversion {
  using Index = INDEX;  // wide enough to count the values
  static constexpr int rank = RANK, from = FROM, to = TO, edge = EDGE;
};

static constexpr unsigned conversion_threads = 256;

namespace detail {

template <int RANK>
struct MultiIndex {
  unsigned at[RANK];
};

template <int RANK, class From, class To>
AUTOTUNE_DEVICE void copy_value(const From& from, const To& to, const MultiIndex<RANK>& i) {
  if constexpr (RANK == 1) to.store(from.load(i.at[0]), i.at[0]);
  if constexpr (RANK == 2) to.store(from.load(i.at[0], i.at[1]), i.at[0], i.at[1]);
  if constexpr (RANK == 3) to.store(from.load(i.at[0], i.at[1], i.at[2]), i.at[0], i.at[1], i.at[2]);
  if constexpr (RANK == 4) to.store(from.load(i.at[0], i.at[1], i.at[2], i.at[3]), i.at[0], i.at[1], i.at[2], i.at[3]);
  if constexpr (RANK == 5)
    to.store(from.load(i.at[0], i.at[1], i.at[2], i.at[3], i.at[4]), i.at[0], i.at[1], i.at[2], i.at[3], i.at[4]);
  if constexpr (RANK == 6)
    to.store(from.load(i.at[0], i.at[1], i.at[2], i.at[3], i.at[4], i.at[5]), i.at[0], i.at[1], i.at[2], i.at[3],
             i.at[4], i.at[5]);
}

// The array `from` with one value in place of its content, and `to` that puts what is stored there into a variable: so
// that a tile's values are named by the same indices.
template <class Value>
struct Held {
  Value* value;
  template <class... Indices>
  AUTOTUNE_DEVICE Value load(Indices...) const {
    return *value;
  }
  template <class... Indices>
  AUTOTUNE_DEVICE void store(const Value& given, Indices...) const {
    *value = given;
  }
};

// The same axis is contiguous in both: values one after the other, as they lie in the array.
template <class Shape, class From, class To>
AUTOTUNE_DEVICE void convert_along(const From& from, const To& to) {
  using Index = typename Shape::Index;
  Index values = 1;
  for (int axis = 0; axis < Shape::rank; ++axis) values *= from.extent(axis);
  const Index first = static_cast<Index>(blockIdx.x) * (Shape::edge * Shape::edge);
  for (unsigned n = threadIdx.x; n < Shape::edge * Shape::edge; n += conversion_threads) {
    Index left = first + n;
    if (left >= values) return;
    MultiIndex<Shape::rank> place;
    place.at[Shape::from] = static_cast<unsigned>(left % from.extent(Shape::from));
    left /= from.extent(Shape::from);
#pragma unroll
    for (int axis = Shape::rank - 1; axis >= 0; --axis)
      if (axis != Shape::from) {
        place.at[axis] = static_cast<unsigned>(left % from.extent(axis));
        left /= from.extent(axis);
      }
    copy_value<Shape::rank>(from, to, place);
  }
}

// Another axis: a tile of both, at one index of each other axis.
template <class Shape, class From, class To>
AUTOTUNE_DEVICE void convert_across(const From& from, const To& to) {
  constexpr unsigned edge = Shape::edge;
  MultiIndex<Shape::rank> place;
  unsigned left = blockIdx.x;
  const unsigned across = (from.extent(Shape::from) + edge - 1) / edge,
                 down = (from.extent(Shape::to) + edge - 1) / edge;
  const unsigned first = left % across * edge, second = left / across % down * edge;
  left /= across;
  left /= down;
#pragma unroll
  for (int axis = Shape::rank - 1; axis >= 0; --axis)
    if (axis != Shape::from && axis != Shape::to) {
      place.at[axis] = left % from.extent(axis);
      left /= from.extent(axis);
    }
  using Value = typename From::value_type;
  __shared__ Value tile[edge][edge + 1];
  for (unsigned n = threadIdx.x; n < edge * edge; n += conversion_threads) {
    place.at[Shape::from] = first + n % edge;
    place.at[Shape::to] = second + n / edge;
    if (place.at[Shape::from] < from.extent(Shape::from) && place.at[Shape::to] < from.extent(Shape::to)) {
      if constexpr (is_cpu)  // a cache holds the tile
        copy_value<Shape::rank>(from, to, place);
      else
        copy_value<Shape::rank>(from, Held<Value>{&tile[n / edge][n % edge]}, place);
    }
  }
  if (is_cpu) return;
  __syncthreads();
  for (unsigned n = threadIdx.x; n < edge * edge; n += conversion_threads) {
    place.at[Shape::from] = first + n / edge;
    place.at[Shape::to] = second + n % edge;
    if (place.at[Shape::from] < from.extent(Shape::from) && place.at[Shape::to] < from.extent(Shape::to))
      copy_value<Shape::rank>(Held<Value>{&tile[n % edge][n / edge]}, to, place);
  }
}

}  // namespace detail

template <class Shape, class From, class To>
AUTOTUNE_DEVICE void convert(const From& from, const To& to) {
  if constexpr (Shape::from == Shape::to) {
    detail::convert_along<Shape>(from, to);
  } else {
    detail::convert_across<Shape>(from, to);
  }
}

}  // namespace autotune

// SPDX-License-Identifier: Apache-2.0
// axes and padding: which index is contiguous, and how far apart the others lie.
#pragma once
#include "autotune/device.cuh"

namespace autotune {

namespace detail {

// COUNT numbers that a launch gives. Role tells those of one accessor apart, so that none takes no room there.
template <class Role, class Number, int COUNT>
struct Given {
  Number number[COUNT];
};
template <class Role, class Number>
struct Given<Role, Number, 0> {};

// A number for each axis of an array. What is not 0 in KNOWN is a constant; the others alone are passed to a kernel.
template <class Role, class Number, unsigned long long... KNOWN>
struct PerAxis : Given<Role, Number, (0 + ... + (KNOWN == 0))> {
  using number_type = Number;
  static constexpr int count = sizeof...(KNOWN), given = (0 + ... + (KNOWN == 0));

  // That of `axis` where it is a constant, else 0.
  AUTOTUNE_EVERYWHERE static constexpr Number known(int axis) { return known(axis, UpTo<count>()); }
  AUTOTUNE_EVERYWHERE static constexpr Number volume() { return (static_cast<Number>(1) * ... * KNOWN); }

  AUTOTUNE_EVERYWHERE constexpr Number operator[](int axis) const {
    if constexpr (given == 0) {
      return known(axis);
    } else if constexpr (given == count) {
      return this->number[axis];
    } else {
      return known(axis) != 0 ? known(axis) : this->number[place(axis, UpTo<count>())];
    }
  }

  // Nothing where it is a constant.
  AUTOTUNE_EVERYWHERE constexpr void give(int axis, Number value) {
    if constexpr (given > 0)
      if (known(axis) == 0) this->number[place(axis, UpTo<count>())] = value;
  }

 private:
  template <int... AXES>
  AUTOTUNE_EVERYWHERE static constexpr Number known(int axis, Integers<AXES...>) {
    return (static_cast<Number>(0) + ... + (axis == AXES ? static_cast<Number>(KNOWN) : 0));
  }
  // Of the number of `axis` among those that are given.
  template <int... AXES>
  AUTOTUNE_EVERYWHERE static constexpr int place(int axis, Integers<AXES...>) {
    return (0 + ... + (KNOWN == 0 && AXES < axis));
  }
};

}  // namespace detail

// Elements along each axis; how many elements apart neighbours along each axis lie.
template <unsigned... KNOWN>
using Extents = detail::PerAxis<struct ExtentRole, unsigned, KNOWN...>;
template <class Index, unsigned long long... KNOWN>
using Strides = detail::PerAxis<struct StrideRole, Index, KNOWN...>;

namespace detail {

// What every mapping has of its array. ExtentsOf is Extents, StridesOf is Strides of unsigned, or of unsigned long long
// for arrays past 2^32 elements. They are bases, since those without members take no room.
template <class ExtentsOf, class StridesOf>
struct Shape : ExtentsOf, StridesOf {
  using extents_type = ExtentsOf;
  static constexpr int rank = ExtentsOf::count;
  using Stride = typename StridesOf::number_type;
  using Offset = OffsetOf<Stride>;
  static constexpr bool is_strided = false;  // whether an offset is a sum of strides

  AUTOTUNE_EVERYWHERE constexpr ExtentsOf& extents() { return *this; }
  AUTOTUNE_EVERYWHERE constexpr const ExtentsOf& extents() const { return *this; }
  AUTOTUNE_EVERYWHERE constexpr StridesOf& strides() { return *this; }
  AUTOTUNE_EVERYWHERE constexpr const StridesOf& strides() const { return *this; }
};

// Of the index as an array: what a mapping that changes it asks of the one that it is composed with.
template <class Mapping, class Offset, int RANK, int... AXES>
AUTOTUNE_DEVICE Offset offset_of(const Mapping& mapping, const Offset (&index)[RANK], Integers<AXES...>) {
  return mapping.offset(index[AXES]...);
}

}  // namespace detail

// offset(i0, i1, …) = sum of i_k * strides[k].
template <class ExtentsOf, class StridesOf>
struct Strided : detail::Shape<ExtentsOf, StridesOf> {
  using typename detail::Shape<ExtentsOf, StridesOf>::Offset;
  static constexpr bool is_strided = true;

  // An axis whose neighbours are stored side by side; the rank where tiles are what lies side by side.
  AUTOTUNE_EVERYWHERE static constexpr int contiguous() {
    int axis = 0;
    while (axis < ExtentsOf::count && StridesOf::known(axis) != 1) ++axis;
    return axis;
  }

  template <class... Indices>
  AUTOTUNE_DEVICE Offset offset(Indices... indices) const {
    constexpr int rank = ExtentsOf::count;
    static_assert(sizeof...(Indices) == rank, "one index for each axis");
    const Offset index[] = {static_cast<Offset>(indices)...};
    constexpr int side_by_side = contiguous();
    Offset sum = 0;
    if constexpr (side_by_side < rank) sum = index[side_by_side];
#pragma unroll
    for (int axis = 0; axis < rank; ++axis)
      if (axis != side_by_side) sum += index[axis] * this->strides()[axis];
    return sum;
  }
};

// Not an offset but the two indices themselves, row above column, for a texture with the array's own rows and columns
// (dims.cuh: DimsRows). They may lie outside of it.
template <class ExtentsOf>
struct Coordinates : detail::Shape<ExtentsOf, Strides<unsigned, 1, 1>> {
  using Offset = unsigned long long;

  template <class Row, class Column>
  AUTOTUNE_DEVICE Offset offset(Row row, Column column) const {
    return static_cast<Offset>(static_cast<unsigned>(row)) << 32 | static_cast<unsigned>(column);
  }
};

}  // namespace autotune

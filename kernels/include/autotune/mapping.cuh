// SPDX-License-Identifier: Apache-2.0
// axes and padding: which index is contiguous, and how far apart the others lie.
#pragma once
#include "autotune/device.cuh"

namespace autotune {

// offset(i0, i1, …) = sum of i_k * strides[k]; the CONTIGUOUS axis has stride 1 known at compile time.
// Index is unsigned, or unsigned long long for arrays past 2^32 elements.
template <int RANK, int CONTIGUOUS, class Index = unsigned>
struct Strided {
  using Stride = Index;
#ifdef AUTOTUNE_CPU
  using Offset = unsigned long long;  // host compilers vectorise only offsets that cannot wrap
#else
  using Offset = Index;
#endif
  unsigned extents[RANK];
  Stride strides[RANK];

  template <class... Indices>
  AUTOTUNE_DEVICE Offset offset(Indices... indices) const {
    static_assert(sizeof...(Indices) == RANK, "one index for each axis");
    const Offset index[] = {static_cast<Offset>(indices)...};
    Offset sum = index[CONTIGUOUS];
#pragma unroll
    for (int axis = 0; axis < RANK; ++axis)
      if (axis != CONTIGUOUS) sum += index[axis] * strides[axis];
    return sum;
  }
};

// Not an offset but the two indices themselves, row above column, for a texture with the array's own rows and columns
// (dims.cuh: DimsRows). They may lie outside of it. A view's, so its members are those of Strided.
template <class Index = unsigned>
struct Coordinates {
  using Stride = Index;
  using Offset = unsigned long long;
  unsigned extents[2];
  Stride strides[2];

  template <class Row, class Column>
  AUTOTUNE_DEVICE Offset offset(Row row, Column column) const {
    return static_cast<Offset>(static_cast<unsigned>(row)) << 32 | static_cast<unsigned>(column);
  }
};

}  // namespace autotune

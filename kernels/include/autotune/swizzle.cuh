// SPDX-License-Identifier: Apache-2.0
// swizzle: columns change places within their row, in each row others, so that one column of several rows lies in
// different banks of shared memory, or sectors of a line.
#pragma once
#include "autotune/mapping.cuh"

namespace autotune {

// Where column `column` of row `row` lies: columns in groups of WIDTH, group g of row r where group g ^ (r % GROUPS)
// was. Both are powers of two, and a row is a whole number of GROUPS * WIDTH columns.
template <unsigned GROUPS, unsigned WIDTH = 1>
struct Xor {
  static_assert((GROUPS & (GROUPS - 1)) == 0 && (WIDTH & (WIDTH - 1)) == 0, "groups and their width are powers of two");

  template <class Index>
  AUTOTUNE_DEVICE static constexpr Index column(Index row, Index column) {
    return column ^ (row & (GROUPS - 1)) * WIDTH;
  }
};

// A mapping whose index COLUMN, the contiguous one, changes places by index ROW.
template <class Mapping, int ROW, int COLUMN, unsigned GROUPS, unsigned WIDTH>
struct Swizzled : Mapping {
  using Offset = typename Mapping::Offset;
  static constexpr bool is_strided = false;

  template <class... Indices>
  AUTOTUNE_DEVICE Offset offset(Indices... indices) const {
    Offset index[] = {static_cast<Offset>(indices)...};
    index[COLUMN] = Xor<GROUPS, WIDTH>::column(index[ROW], index[COLUMN]);
    return detail::offset_of<Mapping>(*this, index, UpTo<sizeof...(Indices)>());
  }
};

}  // namespace autotune

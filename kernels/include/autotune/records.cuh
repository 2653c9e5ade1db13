// SPDX-License-Identifier: Apache-2.0
// records and grouping: where part `part` of element `element` lies. A record is PARTS texels. `has_runs`: whether that
// depends on how long the run of each part is; `lanes`: elements of a run; `is_whole`: the parts of a record are
// adjacent; `is_grouped`: parts move together (fields.cuh).
#pragma once
#include "autotune/device.cuh"

namespace autotune {

// Array of structures: a record's parts are adjacent.
struct Aos {
  static constexpr int lanes = 1;
  static constexpr bool is_whole = true, is_grouped = false;
  template <int PARTS>
  static constexpr bool has_runs = false;
  template <int PARTS, class Index>
  AUTOTUNE_DEVICE static Index offset(Index element, Index part, Index) {
    return element * PARTS + part;
  }
};

// Structure of arrays: each part has its own run, `part_stride` texels long.
struct Soa {
  static constexpr int lanes = 1;
  static constexpr bool is_whole = false, is_grouped = false;
  template <int PARTS>
  static constexpr bool has_runs = PARTS > 1;
  template <int PARTS, class Index>
  AUTOTUNE_DEVICE static Index offset(Index element, Index part, Index part_stride) {
    return part * part_stride + element;
  }
};

// Array of structures of arrays: runs of LANES elements.
template <int LANES>
struct Aosoa {
  static constexpr int lanes = LANES;
  static constexpr bool is_whole = false, is_grouped = false;
  template <int PARTS>
  static constexpr bool has_runs = false;
  template <int PARTS, class Index>
  AUTOTUNE_DEVICE static Index offset(Index element, Index part, Index) {
    return ((element / LANES) * PARTS + part) * LANES + element % LANES;
  }
};

// Records with something behind them, which is found by the length of the run of a part.
template <class Records>
struct Followed : Records {
  template <int>
  static constexpr bool has_runs = true;
};

// Arrays over one index space, side by side (split) or interleaved (merged): member MEMBER of MEMBERS.
template <int MEMBERS, int MEMBER>
struct Merged {
  template <class Index>
  AUTOTUNE_DEVICE static Index element(Index index) {
    return index * MEMBERS + MEMBER;
  }
};
using Split = Merged<1, 0>;

}  // namespace autotune

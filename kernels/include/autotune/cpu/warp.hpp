// SPDX-License-Identifier: Apache-2.0
// What the lanes of a warp wait for, and how it is computed once they are all there. Part of the runtime.
#pragma once
#include "autotune/cpu/abi.hpp"
#include "autotune/cpu/fibre.hpp"

namespace autotune::cpu {

struct Lane {
  Fibre* fibre;
  unsigned long long value, result;
  unsigned mask;
  WarpOperation operation;
  unsigned char operand, width;
};

inline unsigned lowest(unsigned mask) { return static_cast<unsigned>(__builtin_ctz(mask)); }

// Whether all lanes of `need` wait for the same operation on the same mask.
inline bool agree(const Lane* lane, unsigned need) {
  const Lane& first = lane[lowest(need)];
  for (unsigned left = need; left; left &= left - 1) {
    const Lane& other = lane[lowest(left)];
    if (other.mask != first.mask || other.operation != first.operation) return false;
  }
  return true;
}

// The lanes of `waiting` that only ask who is there.
inline unsigned asking(const Lane* lane, unsigned waiting) {
  unsigned found = 0;
  for (unsigned left = waiting; left; left &= left - 1)
    if (lane[lowest(left)].operation == active_lanes) found |= left & (0u - left);
  return found;
}

// The lane whose value `own` gets: itself when the one it names lies outside its section of `width` lanes or takes
// no part.
inline unsigned source(const Lane& lane, unsigned own, unsigned need) {
  const unsigned width = lane.width, operand = lane.operand, section = own & ~(width - 1);
  unsigned from = own;
  if (lane.operation == shuffle) from = section + (operand & (width - 1));
  if (lane.operation == shuffle_up && own - section >= operand) from = own - operand;
  if (lane.operation == shuffle_down && own - section + operand < width) from = own + operand;
  if (lane.operation == shuffle_xor && (own ^ operand) < section + width) from = own ^ operand;
  return need >> from & 1 ? from : own;
}

inline unsigned combined(WarpOperation operation, unsigned a, unsigned b) {
  switch (operation) {
    case reduce_add:
      return a + b;
    case reduce_min:
      return a < b ? a : b;
    case reduce_max:
      return a > b ? a : b;
    case reduce_and:
      return a & b;
    case reduce_or:
      return a | b;
    default:
      return a ^ b;
  }
}

inline unsigned reduced(const Lane* lane, unsigned need) {
  const WarpOperation operation = lane[lowest(need)].operation;
  unsigned total = 0;
  if (operation == ballot) {
    for (unsigned left = need; left; left &= left - 1)
      total |= static_cast<unsigned>(lane[lowest(left)].value) << lowest(left);
    return total;
  }
  total = static_cast<unsigned>(lane[lowest(need)].value);
  for (unsigned left = need & (need - 1); left; left &= left - 1)
    total = combined(operation, total, static_cast<unsigned>(lane[lowest(left)].value));
  return total;
}

inline void match(Lane* lane, unsigned need) {
  for (unsigned left = need; left; left &= left - 1) {
    Lane& own = lane[lowest(left)];
    own.result = 0;
    for (unsigned others = need; others; others &= others - 1)
      if (lane[lowest(others)].value == own.value) own.result |= others & (0u - others);
  }
}

// Gives every lane of `need` its result.
inline void exchange(Lane* lane, unsigned need) {
  const WarpOperation operation = lane[lowest(need)].operation;
  if (operation == synchronise) return;
  if (operation == match_any) return match(lane, need);
  const bool is_shuffle = operation >= shuffle && operation <= shuffle_xor;
  const unsigned total = is_shuffle ? 0 : operation == active_lanes ? need : reduced(lane, need);
  for (unsigned left = need; left; left &= left - 1) {
    const unsigned own = lowest(left);
    lane[own].result = is_shuffle ? lane[source(lane[own], own, need)].value : total;
  }
}

}  // namespace autotune::cpu

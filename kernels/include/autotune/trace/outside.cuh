// SPDX-License-Identifier: Apache-2.0
// Tells hooks.cpp which axis of array ARRAY an index left, and goes on: the address may still be right, since a row
// follows a row, and is not once the rows lie otherwise.
#pragma once
#include "autotune/checked.cuh"

extern "C" void autotune_trace_outside(int array, int axis);

namespace autotune {

template <int ARRAY>
struct TracedOutside {
  AUTOTUNE_DEVICE static void report(long long, int axis, unsigned) { autotune_trace_outside(ARRAY, axis); }
};

}  // namespace autotune

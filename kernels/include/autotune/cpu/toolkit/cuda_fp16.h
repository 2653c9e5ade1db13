// SPDX-License-Identifier: Apache-2.0
// Stands in for the toolkit's header on the cpu device.
#pragma once
#include "../small_float.hpp"

struct __nv_bfloat16;

struct __half_raw {
  unsigned short x;
};

#define AUTOTUNE_NUMBER __half
#define AUTOTUNE_PAIR __half2
#define AUTOTUNE_RAW __half_raw
#define AUTOTUNE_OTHER __nv_bfloat16
#define AUTOTUNE_FORMAT autotune::cpu::SmallFloat<5, 10>
#define AUTOTUNE_OF(before, after) before##half##after
#define AUTOTUNE_OF2(before, after) before##half2##after
#include "../half_functions.hpp"
#undef AUTOTUNE_NUMBER
#undef AUTOTUNE_PAIR
#undef AUTOTUNE_RAW
#undef AUTOTUNE_OTHER
#undef AUTOTUNE_FORMAT
#undef AUTOTUNE_OF
#undef AUTOTUNE_OF2

AUTOTUNE_NUMBER_FUNCTION __half2 __half2half2(__half a) { return {a, a}; }

using half = __half;
using half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;

#define CUDART_INF_FP16 __ushort_as_half(0x7c00u)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fffu)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001u)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bffu)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(0x8000u)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000u)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00u)

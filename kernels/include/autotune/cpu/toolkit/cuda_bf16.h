// SPDX-License-Identifier: Apache-2.0
// Stands in for the toolkit's header on the cpu device.
#pragma once
#include "cuda_fp16.h"

struct __nv_bfloat16_raw {
  unsigned short x;
};

#define AUTOTUNE_NUMBER __nv_bfloat16
#define AUTOTUNE_PAIR __nv_bfloat162
#define AUTOTUNE_RAW __nv_bfloat16_raw
#define AUTOTUNE_OTHER __half
#define AUTOTUNE_FORMAT autotune::cpu::SmallFloat<8, 7>
#define AUTOTUNE_OF(before, after) before##bfloat16##after
#define AUTOTUNE_OF2(before, after) before##bfloat162##after
#include "../half_functions.hpp"
#undef AUTOTUNE_NUMBER
#undef AUTOTUNE_PAIR
#undef AUTOTUNE_RAW
#undef AUTOTUNE_OTHER
#undef AUTOTUNE_FORMAT
#undef AUTOTUNE_OF
#undef AUTOTUNE_OF2

AUTOTUNE_NUMBER_FUNCTION __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return {a, a}; }
inline __host__ __device__ __half::__half(__nv_bfloat16 value) : __half(static_cast<float>(value)) {}
inline __host__ __device__ __nv_bfloat16::__nv_bfloat16(__half value) : __nv_bfloat16(static_cast<float>(value)) {}

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80u)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fffu)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(0x0001u)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7f7fu)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(0x8000u)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000u)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3f80u)

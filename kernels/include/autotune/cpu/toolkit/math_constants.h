// SPDX-License-Identifier: Apache-2.0
// Stands in for the toolkit's header on the cpu device.
#pragma once

#define CUDART_INF_F __int_as_float(0x7f800000)
#define CUDART_NAN_F __int_as_float(0x7fffffff)
#define CUDART_MAX_NORMAL_F __int_as_float(0x7f7fffff)
#define CUDART_MIN_DENORM_F __int_as_float(0x00000001)
#define CUDART_NEG_ZERO_F __int_as_float(static_cast<int>(0x80000000))
#define CUDART_PI_F 3.141592654f
#define CUDART_PIO2_F 1.570796327f
#define CUDART_PIO4_F 0.785398163f
#define CUDART_2PI_F 6.283185307f
#define CUDART_SQRT_2PI_F 2.506628275f
#define CUDART_SQRT_TWO_F 1.414213562f
#define CUDART_LN2_F 0.693147181f
#define CUDART_LOG2E_F 1.442695041f
#define CUDART_INF __longlong_as_double(0x7ff0000000000000ll)
#define CUDART_NAN __longlong_as_double(0x7fffffffffffffffll)
#define CUDART_PI 3.1415926535897931e+0
#define CUDART_PIO2 1.5707963267948966e+0
#define CUDART_2PI 6.2831853071795862e+0
#define CUDART_SQRT_TWO 1.4142135623730951e+0
#define CUDART_LN2 6.9314718055994529e-1

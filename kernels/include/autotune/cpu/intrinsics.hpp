// SPDX-License-Identifier: Apache-2.0
// More of what a CUDA compiler knows without a header: conversions, functions of <math.h> that C has not, memory
// accesses that say which caches they want, words of bytes.
#pragma once
#include "autotune/cpu/rounding.hpp"

#define AUTOTUNE_FROM_FLOATING(FLOAT, FLOAT_NAME, INTEGER, INTEGER_NAME, LETTERS, HOW) \
  inline INTEGER __##FLOAT_NAME##2##INTEGER_NAME##_##LETTERS(FLOAT x) {                \
    return autotune::cpu::integer_of<INTEGER>(x, autotune::cpu::Rounding::HOW);        \
  }
#define AUTOTUNE_TO_FLOATING(FLOAT, FLOAT_NAME, FROM, FROM_NAME, LETTERS, HOW) \
  inline FLOAT __##FROM_NAME##2##FLOAT_NAME##_##LETTERS(FROM x) {              \
    return autotune::cpu::float_of<FLOAT>(x, autotune::cpu::Rounding::HOW);    \
  }
#define AUTOTUNE_CONVERSIONS(LETTERS, HOW)                                      \
  AUTOTUNE_FROM_FLOATING(float, float, int, int, LETTERS, HOW)                  \
  AUTOTUNE_FROM_FLOATING(float, float, unsigned, uint, LETTERS, HOW)            \
  AUTOTUNE_FROM_FLOATING(float, float, long long, ll, LETTERS, HOW)             \
  AUTOTUNE_FROM_FLOATING(float, float, unsigned long long, ull, LETTERS, HOW)   \
  AUTOTUNE_FROM_FLOATING(double, double, int, int, LETTERS, HOW)                \
  AUTOTUNE_FROM_FLOATING(double, double, unsigned, uint, LETTERS, HOW)          \
  AUTOTUNE_FROM_FLOATING(double, double, long long, ll, LETTERS, HOW)           \
  AUTOTUNE_FROM_FLOATING(double, double, unsigned long long, ull, LETTERS, HOW) \
  AUTOTUNE_TO_FLOATING(float, float, int, int, LETTERS, HOW)                    \
  AUTOTUNE_TO_FLOATING(float, float, unsigned, uint, LETTERS, HOW)              \
  AUTOTUNE_TO_FLOATING(float, float, long long, ll, LETTERS, HOW)               \
  AUTOTUNE_TO_FLOATING(float, float, unsigned long long, ull, LETTERS, HOW)     \
  AUTOTUNE_TO_FLOATING(float, float, double, double, LETTERS, HOW)              \
  AUTOTUNE_TO_FLOATING(double, double, long long, ll, LETTERS, HOW)             \
  AUTOTUNE_TO_FLOATING(double, double, unsigned long long, ull, LETTERS, HOW)
AUTOTUNE_CONVERSIONS(rn, nearest)
AUTOTUNE_CONVERSIONS(rz, zero)
AUTOTUNE_CONVERSIONS(rd, down)
AUTOTUNE_CONVERSIONS(ru, up)
AUTOTUNE_TO_FLOATING(double, double, int, int, rn, nearest)
AUTOTUNE_TO_FLOATING(double, double, unsigned, uint, rn, nearest)
#undef AUTOTUNE_CONVERSIONS
#undef AUTOTUNE_FROM_FLOATING
#undef AUTOTUNE_TO_FLOATING
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  const unsigned long long word = static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32;
  return __longlong_as_double(static_cast<long long>(word | static_cast<unsigned>(low)));
}

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
inline float __frsqrt_rn(float a) { return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(a))); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __drcp_rn(double a) { return 1.0 / a; }
inline double __dsqrt_rn(double a) { return __builtin_sqrt(a); }

inline float __tanf(float x) { return __builtin_tanf(x); }
inline float __exp10f(float x) { return __builtin_powf(10.0f, x); }
inline float __log2f(float x) { return __builtin_log2f(x); }
inline float __log10f(float x) { return __builtin_log10f(x); }
inline void __sincosf(float x, float* sine, float* cosine) {
  *sine = __builtin_sinf(x);
  *cosine = __builtin_cosf(x);
}
inline float fdividef(float a, float b) { return a / b; }
inline float rcbrtf(float x) { return 1.0f / __builtin_cbrtf(x); }
inline double rcbrt(double x) { return 1.0 / __builtin_cbrt(x); }
inline float rhypotf(float x, float y) { return 1.0f / __builtin_hypotf(x, y); }
inline double rhypot(double x, double y) { return 1.0 / __builtin_hypot(x, y); }
inline float norm3df(float x, float y, float z) { return __builtin_sqrtf(x * x + y * y + z * z); }
inline float rnorm3df(float x, float y, float z) { return 1.0f / norm3df(x, y, z); }
inline double norm3d(double x, double y, double z) { return __builtin_sqrt(x * x + y * y + z * z); }
inline double rnorm3d(double x, double y, double z) { return 1.0 / norm3d(x, y, z); }
inline double normcdf(double x) { return 0.5 * __builtin_erfc(x * -0.70710678118654752440); }
inline float normcdff(float x) { return static_cast<float>(normcdf(x)); }
inline double sinpi(double x) {
  x = __builtin_fmod(x, 2.0);
  return x == __builtin_rint(x) ? x * 0.0 : __builtin_sin(x * 3.14159265358979323846);
}
inline double cospi(double x) {
  x = __builtin_fabs(__builtin_fmod(x, 2.0));
  return x == 0.5 || x == 1.5 ? 0.0 : __builtin_cos(x * 3.14159265358979323846);
}
inline float sinpif(float x) { return static_cast<float>(sinpi(x)); }
inline float cospif(float x) { return static_cast<float>(cospi(x)); }
inline void sincospi(double x, double* sine, double* cosine) {
  *sine = sinpi(x);
  *cosine = cospi(x);
}
inline void sincospif(float x, float* sine, float* cosine) {
  *sine = sinpif(x);
  *cosine = cospif(x);
}

inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
inline unsigned __sad(int a, int b, unsigned c) {
  return (a < b ? static_cast<unsigned>(b) - static_cast<unsigned>(a)
                : static_cast<unsigned>(a) - static_cast<unsigned>(b)) +
         c;
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a < b ? b - a : a - b) + c; }
inline int __hadd(int a, int b) { return static_cast<int>((1ll * a + b) >> 1); }
inline int __rhadd(int a, int b) { return static_cast<int>((1ll * a + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return static_cast<unsigned>((1ull * a + b) >> 1); }
inline unsigned __urhadd(unsigned a, unsigned b) { return static_cast<unsigned>((1ull * a + b + 1) >> 1); }

// Four of the eight bytes of b and a: each of the lower four digits of `selector` names one, and by its top bit asks
// for that byte's sign.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const unsigned long long both = static_cast<unsigned long long>(b) << 32 | a;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned digit = selector >> 4 * i & 15, byte = static_cast<unsigned>(both >> 8 * (digit & 7)) & 0xff;
    result |= (digit & 8 ? (byte & 0x80 ? 0xffu : 0) : byte) << 8 * i;
  }
  return result;
}

// The sum of four products of bytes, and c.
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += static_cast<signed char>(a >> 8 * i) * static_cast<signed char>(b >> 8 * i);
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += (a >> 8 * i & 0xff) * (b >> 8 * i & 0xff);
  return c;
}

// A cpu has its own mind about its caches.
#define AUTOTUNE_LOAD(NAME)         \
  template <class T>                \
  inline T NAME(const T* address) { \
    return *address;                \
  }
#define AUTOTUNE_STORE(NAME)                  \
  template <class T, class Value>             \
  inline void NAME(T* address, Value value) { \
    *address = static_cast<T>(value);         \
  }
AUTOTUNE_LOAD(__ldca)
AUTOTUNE_LOAD(__ldcg)
AUTOTUNE_LOAD(__ldcs)
AUTOTUNE_LOAD(__ldcv)
AUTOTUNE_LOAD(__ldlu)
AUTOTUNE_STORE(__stcg)
AUTOTUNE_STORE(__stcs)
AUTOTUNE_STORE(__stwb)
AUTOTUNE_STORE(__stwt)
#undef AUTOTUNE_LOAD
#undef AUTOTUNE_STORE

inline void __nanosleep(unsigned) {}

// Up to `most`, then from 0; down to 0, then from `most`.
inline unsigned atomicInc(unsigned* address, unsigned most) {
  for (unsigned old = __atomic_load_n(address, __ATOMIC_RELAXED);;) {
    const unsigned seen = atomicCAS(address, old, old >= most ? 0 : old + 1);
    if (seen == old) return old;
    old = seen;
  }
}
inline unsigned atomicDec(unsigned* address, unsigned most) {
  for (unsigned old = __atomic_load_n(address, __ATOMIC_RELAXED);;) {
    const unsigned seen = atomicCAS(address, old, old == 0 || old > most ? most : old - 1);
    if (seen == old) return old;
    old = seen;
  }
}

// Here all atomic operations are the system's.
#define AUTOTUNE_SCOPES(NAME)                       \
  template <class T, class Value>                   \
  inline T NAME##_block(T* address, Value value) {  \
    return NAME(address, static_cast<T>(value));    \
  }                                                 \
  template <class T, class Value>                   \
  inline T NAME##_system(T* address, Value value) { \
    return NAME(address, static_cast<T>(value));    \
  }
AUTOTUNE_SCOPES(atomicAdd)
AUTOTUNE_SCOPES(atomicSub)
AUTOTUNE_SCOPES(atomicMin)
AUTOTUNE_SCOPES(atomicMax)
AUTOTUNE_SCOPES(atomicAnd)
AUTOTUNE_SCOPES(atomicOr)
AUTOTUNE_SCOPES(atomicXor)
AUTOTUNE_SCOPES(atomicExch)
#undef AUTOTUNE_SCOPES

// SPDX-License-Identifier: Apache-2.0
// CUDA's built-in functions on numbers that <math.h> does not have.
#pragma once

#define AUTOTUNE_MIN_MAX(T)                           \
  constexpr T min(T a, T b) { return b < a ? b : a; } \
  constexpr T max(T a, T b) { return a < b ? b : a; }
AUTOTUNE_MIN_MAX(int)
AUTOTUNE_MIN_MAX(unsigned)
AUTOTUNE_MIN_MAX(long)
AUTOTUNE_MIN_MAX(unsigned long)
AUTOTUNE_MIN_MAX(long long)
AUTOTUNE_MIN_MAX(unsigned long long)
#undef AUTOTUNE_MIN_MAX
constexpr unsigned min(int a, unsigned b) { return min(static_cast<unsigned>(a), b); }
constexpr unsigned min(unsigned a, int b) { return min(a, static_cast<unsigned>(b)); }
constexpr unsigned max(int a, unsigned b) { return max(static_cast<unsigned>(a), b); }
constexpr unsigned max(unsigned a, int b) { return max(a, static_cast<unsigned>(b)); }
// A NaN loses, as on the device.
inline float min(float a, float b) { return __builtin_fminf(a, b); }
inline float max(float a, float b) { return __builtin_fmaxf(a, b); }
inline double min(double a, double b) { return __builtin_fmin(a, b); }
inline double max(double a, double b) { return __builtin_fmax(a, b); }

#ifndef AUTOTUNE_CPU_STANDARD_LIBRARY
// C has these for double only, under this name.
#define AUTOTUNE_OVERLOAD(NAME) \
  inline float NAME(float x) { return NAME##f(x); }
AUTOTUNE_OVERLOAD(sqrt)
AUTOTUNE_OVERLOAD(cbrt)
AUTOTUNE_OVERLOAD(fabs)
AUTOTUNE_OVERLOAD(floor)
AUTOTUNE_OVERLOAD(ceil)
AUTOTUNE_OVERLOAD(trunc)
AUTOTUNE_OVERLOAD(round)
AUTOTUNE_OVERLOAD(rint)
AUTOTUNE_OVERLOAD(exp)
AUTOTUNE_OVERLOAD(exp2)
AUTOTUNE_OVERLOAD(log)
AUTOTUNE_OVERLOAD(log2)
AUTOTUNE_OVERLOAD(log10)
AUTOTUNE_OVERLOAD(sin)
AUTOTUNE_OVERLOAD(cos)
AUTOTUNE_OVERLOAD(tan)
AUTOTUNE_OVERLOAD(tanh)
AUTOTUNE_OVERLOAD(atan)
#undef AUTOTUNE_OVERLOAD
inline float pow(float x, float y) { return powf(x, y); }
inline float fmod(float x, float y) { return fmodf(x, y); }
inline float atan2(float y, float x) { return atan2f(y, x); }
inline float fma(float a, float b, float c) { return fmaf(a, b, c); }
inline float fmin(float a, float b) { return fminf(a, b); }
inline float fmax(float a, float b) { return fmaxf(a, b); }
inline float abs(float x) { return fabsf(x); }
inline double abs(double x) { return fabs(x); }
inline long abs(long x) { return labs(x); }
inline long long abs(long long x) { return llabs(x); }
#endif

inline int __popc(unsigned word) { return __builtin_popcount(word); }
inline int __popcll(unsigned long long word) { return __builtin_popcountll(word); }
inline int __clz(int word) { return word ? __builtin_clz(static_cast<unsigned>(word)) : 32; }
inline int __clzll(long long word) { return word ? __builtin_clzll(static_cast<unsigned long long>(word)) : 64; }
inline int __ffs(int word) { return __builtin_ffs(word); }
inline int __ffsll(long long word) { return __builtin_ffsll(word); }

inline unsigned __brev(unsigned word) {
  word = (word >> 1 & 0x55555555u) | (word & 0x55555555u) << 1;
  word = (word >> 2 & 0x33333333u) | (word & 0x33333333u) << 2;
  word = (word >> 4 & 0x0f0f0f0fu) | (word & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(word);
}
inline unsigned long long __brevll(unsigned long long word) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(word))) << 32 |
         __brev(static_cast<unsigned>(word >> 32));
}

inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}

inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(1ull * a * b >> 32); }
inline int __mulhi(int a, int b) { return static_cast<int>(1ll * a * b >> 32); }
// The low 32 bits of the product of two 24-bit integers.
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline int __mul24(int a, int b) {
  const int x = static_cast<int>(static_cast<unsigned>(a) << 8) >> 8;
  const int y = static_cast<int>(static_cast<unsigned>(b) << 8) >> 8;
  return static_cast<int>(static_cast<unsigned>(x) * static_cast<unsigned>(y));
}

inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
inline float __saturatef(float x) { return min(max(x, 0.0f), 1.0f); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }

#define AUTOTUNE_REINTERPRET(NAME, FROM, TO) \
  inline TO NAME(FROM from) {                \
    TO to;                                   \
    memcpy(&to, &from, sizeof(TO));          \
    return to;                               \
  }
AUTOTUNE_REINTERPRET(__float_as_int, float, int)
AUTOTUNE_REINTERPRET(__float_as_uint, float, unsigned)
AUTOTUNE_REINTERPRET(__int_as_float, int, float)
AUTOTUNE_REINTERPRET(__uint_as_float, unsigned, float)
AUTOTUNE_REINTERPRET(__double_as_longlong, double, long long)
AUTOTUNE_REINTERPRET(__longlong_as_double, long long, double)
#undef AUTOTUNE_REINTERPRET

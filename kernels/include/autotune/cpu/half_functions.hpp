// SPDX-License-Identifier: Apache-2.0
// The functions of cuda_fp16.h and cuda_bf16.h, which differ in names alone: included once by each, with
//   AUTOTUNE_NUMBER, AUTOTUNE_PAIR    the types __half and __half2
//   AUTOTUNE_RAW                      __half_raw
//   AUTOTUNE_OTHER                    the other type of number
//   AUTOTUNE_FORMAT                   the SmallFloat it is
//   AUTOTUNE_OF(before, after)        before##half##after
//   AUTOTUNE_OF2(before, after)       before##half2##after
// Each operation rounds its exact result to nearest even, as the device's do; those of a library (exp, log, ...) are
// computed as float and rounded. What is done to a pair is done to x, the lower half of its word, and to y.

struct AUTOTUNE_NUMBER;
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER AUTOTUNE_OF(__ushort_as_, )(unsigned short bits);

struct __align__(2) AUTOTUNE_NUMBER {
 protected:
  unsigned short __x;

 public:
  AUTOTUNE_NUMBER() = default;
#ifdef __SANITIZE_THREAD__
  // A compiler that shows accesses of memory shows none of an argument that it copies by itself.
  __host__ __device__ AUTOTUNE_NUMBER(const AUTOTUNE_NUMBER& other) : __x(other.__x) {}
  __host__ __device__ AUTOTUNE_NUMBER& operator=(const AUTOTUNE_NUMBER& other) {
    __x = other.__x;
    return *this;
  }
#endif
  __host__ __device__ AUTOTUNE_NUMBER(const AUTOTUNE_RAW& raw) : __x(raw.x) {}
  __host__ __device__ operator AUTOTUNE_RAW() const { return {__x}; }
  explicit __host__ __device__ AUTOTUNE_NUMBER(AUTOTUNE_OTHER value);
  __host__ __device__ AUTOTUNE_NUMBER(float value) : __x(AUTOTUNE_FORMAT::rounded(value)) {}
  __host__ __device__ AUTOTUNE_NUMBER(double value) : __x(AUTOTUNE_FORMAT::rounded(value)) {}
  __host__ __device__ operator float() const { return AUTOTUNE_FORMAT::widened(__x); }
  __host__ __device__ operator bool() const { return (__x & 0x7fff) != 0; }

#define AUTOTUNE_INTEGER(T)                                                                            \
  __host__ __device__ AUTOTUNE_NUMBER(T value)                                                         \
      : __x(AUTOTUNE_FORMAT::rounded(autotune::cpu::without_ties(autotune::cpu::widest(value)))) {}    \
  __host__ __device__ operator T() const {                                                             \
    return autotune::cpu::integer_of<T>(AUTOTUNE_FORMAT::widened(__x), autotune::cpu::Rounding::zero); \
  }
  AUTOTUNE_INTEGER(short)
  AUTOTUNE_INTEGER(unsigned short)
  AUTOTUNE_INTEGER(int)
  AUTOTUNE_INTEGER(unsigned)
  AUTOTUNE_INTEGER(long)
  AUTOTUNE_INTEGER(unsigned long)
  AUTOTUNE_INTEGER(long long)
  AUTOTUNE_INTEGER(unsigned long long)
#undef AUTOTUNE_INTEGER
#define AUTOTUNE_CHARACTER(T)                                                                          \
  __host__ __device__ operator T() const {                                                             \
    return autotune::cpu::integer_of<T>(AUTOTUNE_FORMAT::widened(__x), autotune::cpu::Rounding::zero); \
  }
  AUTOTUNE_CHARACTER(char)
  AUTOTUNE_CHARACTER(signed char)
  AUTOTUNE_CHARACTER(unsigned char)
#undef AUTOTUNE_CHARACTER
};

struct __align__(4) AUTOTUNE_PAIR {
  AUTOTUNE_NUMBER x, y;
  AUTOTUNE_PAIR() = default;
  __host__ __device__ AUTOTUNE_PAIR(const AUTOTUNE_NUMBER& x_, const AUTOTUNE_NUMBER& y_) : x(x_), y(y_) {}
};

// -- from and to other types ------------------------------------------------------------------------------------------

AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER AUTOTUNE_OF(__ushort_as_, )(unsigned short bits) { return AUTOTUNE_RAW{bits}; }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER AUTOTUNE_OF(__short_as_, )(short bits) {
  return AUTOTUNE_RAW{static_cast<unsigned short>(bits)};
}
AUTOTUNE_NUMBER_FUNCTION unsigned short AUTOTUNE_OF(__, _as_ushort)(AUTOTUNE_NUMBER a) {
  return static_cast<AUTOTUNE_RAW>(a).x;
}
AUTOTUNE_NUMBER_FUNCTION short AUTOTUNE_OF(__, _as_short)(AUTOTUNE_NUMBER a) {
  return static_cast<short>(static_cast<AUTOTUNE_RAW>(a).x);
}

AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER AUTOTUNE_OF(__float2, )(float a) { return a; }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER AUTOTUNE_OF(__double2, )(double a) { return a; }
AUTOTUNE_NUMBER_FUNCTION float AUTOTUNE_OF(__, 2float)(AUTOTUNE_NUMBER a) { return a; }

#define AUTOTUNE_ROUNDED(LETTERS, HOW)                                                                   \
  AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER AUTOTUNE_OF(__float2, _##LETTERS)(float a) {                  \
    return AUTOTUNE_RAW{AUTOTUNE_FORMAT::rounded(static_cast<double>(a), autotune::cpu::Rounding::HOW)}; \
  }                                                                                                      \
  AUTOTUNE_CONVERTED(int, int, LETTERS, HOW)                                                             \
  AUTOTUNE_CONVERTED(unsigned, uint, LETTERS, HOW)                                                       \
  AUTOTUNE_CONVERTED(short, short, LETTERS, HOW)                                                         \
  AUTOTUNE_CONVERTED(unsigned short, ushort, LETTERS, HOW)                                               \
  AUTOTUNE_CONVERTED(long long, ll, LETTERS, HOW)                                                        \
  AUTOTUNE_CONVERTED(unsigned long long, ull, LETTERS, HOW)
#define AUTOTUNE_CONVERTED(T, NAME, LETTERS, HOW)                                                       \
  AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER AUTOTUNE_OF(__##NAME##2, _##LETTERS)(T a) {                  \
    return AUTOTUNE_RAW{AUTOTUNE_FORMAT::rounded(autotune::cpu::without_ties(autotune::cpu::widest(a)), \
                                                 autotune::cpu::Rounding::HOW)};                        \
  }                                                                                                     \
  AUTOTUNE_NUMBER_FUNCTION T AUTOTUNE_OF(__, 2##NAME##_##LETTERS)(AUTOTUNE_NUMBER a) {                  \
    return autotune::cpu::integer_of<T>(AUTOTUNE_FORMAT::widened(static_cast<AUTOTUNE_RAW>(a).x),       \
                                        autotune::cpu::Rounding::HOW);                                  \
  }
AUTOTUNE_ROUNDED(rn, nearest)
AUTOTUNE_ROUNDED(rz, zero)
AUTOTUNE_ROUNDED(rd, down)
AUTOTUNE_ROUNDED(ru, up)
#undef AUTOTUNE_ROUNDED
#undef AUTOTUNE_CONVERTED
AUTOTUNE_NUMBER_FUNCTION signed char AUTOTUNE_OF(__, 2char_rz)(AUTOTUNE_NUMBER a) { return a; }
AUTOTUNE_NUMBER_FUNCTION unsigned char AUTOTUNE_OF(__, 2uchar_rz)(AUTOTUNE_NUMBER a) { return a; }

AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR AUTOTUNE_OF2(make_, )(AUTOTUNE_NUMBER x, AUTOTUNE_NUMBER y) { return {x, y}; }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR AUTOTUNE_OF2(__halves2, )(AUTOTUNE_NUMBER x, AUTOTUNE_NUMBER y) {
  return {x, y};
}
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR AUTOTUNE_OF2(__floats2, _rn)(float x, float y) { return {x, y}; }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR AUTOTUNE_OF2(__float2, _rn)(float a) { return {a, a}; }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR AUTOTUNE_OF2(__float22, _rn)(float2 a) { return {a.x, a.y}; }
AUTOTUNE_NUMBER_FUNCTION float2 AUTOTUNE_OF2(__, 2float2)(AUTOTUNE_PAIR a) { return make_float2(a.x, a.y); }
AUTOTUNE_NUMBER_FUNCTION float __low2float(AUTOTUNE_PAIR a) { return a.x; }
AUTOTUNE_NUMBER_FUNCTION float __high2float(AUTOTUNE_PAIR a) { return a.y; }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER AUTOTUNE_OF(__low2, )(AUTOTUNE_PAIR a) { return a.x; }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER AUTOTUNE_OF(__high2, )(AUTOTUNE_PAIR a) { return a.y; }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR AUTOTUNE_OF2(__low2, )(AUTOTUNE_PAIR a) { return {a.x, a.x}; }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR AUTOTUNE_OF2(__high2, )(AUTOTUNE_PAIR a) { return {a.y, a.y}; }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR AUTOTUNE_OF2(__lows2, )(AUTOTUNE_PAIR a, AUTOTUNE_PAIR b) { return {a.x, b.x}; }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR AUTOTUNE_OF2(__highs2, )(AUTOTUNE_PAIR a, AUTOTUNE_PAIR b) { return {a.y, b.y}; }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR __lowhigh2highlow(AUTOTUNE_PAIR a) { return {a.y, a.x}; }

// -- arithmetic -------------------------------------------------------------------------------------------------------

// float has more than twice the bits of either type and two more: rounding its result is rounding the exact one.
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hadd(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b) {
  return static_cast<float>(a) + static_cast<float>(b);
}
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hsub(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b) {
  return static_cast<float>(a) - static_cast<float>(b);
}
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hmul(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b) {
  return static_cast<float>(a) * static_cast<float>(b);
}
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hdiv(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b) {
  return static_cast<float>(a) / static_cast<float>(b);
}
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hfma(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b, AUTOTUNE_NUMBER c) {
  return AUTOTUNE_RAW{AUTOTUNE_FORMAT::multiplied_and_added(a, b, c)};
}
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hneg(AUTOTUNE_NUMBER a) {
  const unsigned short bits = static_cast<AUTOTUNE_RAW>(a).x;
  return AUTOTUNE_RAW{
      static_cast<unsigned short>((bits & 0x7fff) > AUTOTUNE_FORMAT::infinity ? 0x7fff : bits ^ 0x8000)};
}
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __habs(AUTOTUNE_NUMBER a) {
  return AUTOTUNE_RAW{static_cast<unsigned short>(static_cast<AUTOTUNE_RAW>(a).x & 0x7fff)};
}
AUTOTUNE_NUMBER_FUNCTION bool __hisnan(AUTOTUNE_NUMBER a) {
  return (static_cast<AUTOTUNE_RAW>(a).x & 0x7fff) > AUTOTUNE_FORMAT::infinity;
}
AUTOTUNE_NUMBER_FUNCTION int __hisinf(AUTOTUNE_NUMBER a) {
  const unsigned short bits = static_cast<AUTOTUNE_RAW>(a).x;
  return bits == AUTOTUNE_FORMAT::infinity ? 1 : bits == (AUTOTUNE_FORMAT::infinity | 0x8000) ? -1 : 0;
}

// A NaN loses, and -0 is less than 0; of the others a NaN wins.
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hmax(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b) {
  const float x = a, y = b;
  if (__hisnan(a)) return __hisnan(b) ? AUTOTUNE_NUMBER(AUTOTUNE_RAW{0x7fff}) : b;
  if (x == y) return static_cast<AUTOTUNE_RAW>(a).x & 0x8000 ? b : a;
  return x < y ? b : a;
}
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hmin(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b) {
  const float x = a, y = b;
  if (__hisnan(a)) return __hisnan(b) ? AUTOTUNE_NUMBER(AUTOTUNE_RAW{0x7fff}) : b;
  if (x == y) return static_cast<AUTOTUNE_RAW>(a).x & 0x8000 ? a : b;
  return y < x ? b : a;
}
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hmax_nan(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b) {
  return __hisnan(a) || __hisnan(b) ? AUTOTUNE_NUMBER(AUTOTUNE_RAW{0x7fff}) : __hmax(a, b);
}
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hmin_nan(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b) {
  return __hisnan(a) || __hisnan(b) ? AUTOTUNE_NUMBER(AUTOTUNE_RAW{0x7fff}) : __hmin(a, b);
}
namespace autotune::cpu {
// Into [0, 1]; NaN becomes 0.
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER saturated(AUTOTUNE_NUMBER a) {
  const float x = a;
  return x > 0 ? (x < 1 ? a : AUTOTUNE_NUMBER(1.0f)) : AUTOTUNE_NUMBER(0.0f);
}
}  // namespace autotune::cpu
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hadd_rn(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b) { return __hadd(a, b); }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hsub_rn(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b) { return __hsub(a, b); }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hmul_rn(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b) { return __hmul(a, b); }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hadd_sat(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b) {
  return autotune::cpu::saturated(__hadd(a, b));
}
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hsub_sat(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b) {
  return autotune::cpu::saturated(__hsub(a, b));
}
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hmul_sat(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b) {
  return autotune::cpu::saturated(__hmul(a, b));
}
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hfma_sat(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b, AUTOTUNE_NUMBER c) {
  return autotune::cpu::saturated(__hfma(a, b, c));
}
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER __hfma_relu(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b, AUTOTUNE_NUMBER c) {
  return __hmax_nan(__hfma(a, b, c), AUTOTUNE_NUMBER(0.0f));
}

// Of each number of a pair.
#define AUTOTUNE_PAIRED_1(NAME2, NAME) \
  AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR NAME2(AUTOTUNE_PAIR a) { return {NAME(a.x), NAME(a.y)}; }
#define AUTOTUNE_PAIRED_2(NAME2, NAME)                                             \
  AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR NAME2(AUTOTUNE_PAIR a, AUTOTUNE_PAIR b) { \
    return {NAME(a.x, b.x), NAME(a.y, b.y)};                                       \
  }
#define AUTOTUNE_PAIRED_3(NAME2, NAME)                                                              \
  AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR NAME2(AUTOTUNE_PAIR a, AUTOTUNE_PAIR b, AUTOTUNE_PAIR c) { \
    return {NAME(a.x, b.x, c.x), NAME(a.y, b.y, c.y)};                                              \
  }
AUTOTUNE_PAIRED_1(__hneg2, __hneg)
AUTOTUNE_PAIRED_1(__habs2, __habs)
AUTOTUNE_PAIRED_2(__hadd2, __hadd)
AUTOTUNE_PAIRED_2(__hsub2, __hsub)
AUTOTUNE_PAIRED_2(__hmul2, __hmul)
AUTOTUNE_PAIRED_2(__h2div, __hdiv)
AUTOTUNE_PAIRED_2(__hadd2_rn, __hadd)
AUTOTUNE_PAIRED_2(__hsub2_rn, __hsub)
AUTOTUNE_PAIRED_2(__hmul2_rn, __hmul)
AUTOTUNE_PAIRED_2(__hadd2_sat, __hadd_sat)
AUTOTUNE_PAIRED_2(__hsub2_sat, __hsub_sat)
AUTOTUNE_PAIRED_2(__hmul2_sat, __hmul_sat)
AUTOTUNE_PAIRED_2(__hmax2, __hmax)
AUTOTUNE_PAIRED_2(__hmin2, __hmin)
AUTOTUNE_PAIRED_2(__hmax2_nan, __hmax_nan)
AUTOTUNE_PAIRED_2(__hmin2_nan, __hmin_nan)
AUTOTUNE_PAIRED_3(__hfma2, __hfma)
AUTOTUNE_PAIRED_3(__hfma2_sat, __hfma_sat)
AUTOTUNE_PAIRED_3(__hfma2_relu, __hfma_relu)
// The product of two complex numbers and a third one added, part by part.
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR __hcmadd(AUTOTUNE_PAIR a, AUTOTUNE_PAIR b, AUTOTUNE_PAIR c) {
  return {__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};
}

// -- comparisons ------------------------------------------------------------------------------------------------------

// `u` holds where one is NaN, too. Of a pair: as numbers, as masks, and whether both do.
#define AUTOTUNE_COMPARISON(NAME, OPERATOR, UNORDERED)                                    \
  AUTOTUNE_NUMBER_FUNCTION bool __h##NAME(AUTOTUNE_NUMBER a, AUTOTUNE_NUMBER b) {         \
    const float x = a, y = b;                                                             \
    return x == x && y == y ? x OPERATOR y : UNORDERED;                                   \
  }                                                                                       \
  AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR __h##NAME##2(AUTOTUNE_PAIR a, AUTOTUNE_PAIR b) { \
    return {AUTOTUNE_NUMBER(static_cast<float>(__h##NAME(a.x, b.x))),                     \
            AUTOTUNE_NUMBER(static_cast<float>(__h##NAME(a.y, b.y)))};                    \
  }                                                                                       \
  AUTOTUNE_NUMBER_FUNCTION unsigned __h##NAME##2_mask(AUTOTUNE_PAIR a, AUTOTUNE_PAIR b) { \
    return (__h##NAME(a.x, b.x) ? 0xffffu : 0) | (__h##NAME(a.y, b.y) ? 0xffff0000u : 0); \
  }                                                                                       \
  AUTOTUNE_NUMBER_FUNCTION bool __hb##NAME##2(AUTOTUNE_PAIR a, AUTOTUNE_PAIR b) {         \
    return __h##NAME(a.x, b.x) && __h##NAME(a.y, b.y);                                    \
  }
AUTOTUNE_COMPARISON(eq, ==, false)
AUTOTUNE_COMPARISON(ne, !=, false)
AUTOTUNE_COMPARISON(lt, <, false)
AUTOTUNE_COMPARISON(le, <=, false)
AUTOTUNE_COMPARISON(gt, >, false)
AUTOTUNE_COMPARISON(ge, >=, false)
AUTOTUNE_COMPARISON(equ, ==, true)
AUTOTUNE_COMPARISON(neu, !=, true)
AUTOTUNE_COMPARISON(ltu, <, true)
AUTOTUNE_COMPARISON(leu, <=, true)
AUTOTUNE_COMPARISON(gtu, >, true)
AUTOTUNE_COMPARISON(geu, >=, true)
#undef AUTOTUNE_COMPARISON
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR __hisnan2(AUTOTUNE_PAIR a) {
  return {AUTOTUNE_NUMBER(static_cast<float>(__hisnan(a.x))), AUTOTUNE_NUMBER(static_cast<float>(__hisnan(a.y)))};
}

// -- functions --------------------------------------------------------------------------------------------------------

#define AUTOTUNE_FUNCTION(NAME, VALUE)                                  \
  AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER h##NAME(AUTOTUNE_NUMBER a) { \
    const float x = a;                                                  \
    return AUTOTUNE_NUMBER(VALUE);                                      \
  }                                                                     \
  AUTOTUNE_PAIRED_1(h2##NAME, h##NAME)
AUTOTUNE_FUNCTION(trunc, __builtin_truncf(x))
AUTOTUNE_FUNCTION(ceil, __builtin_ceilf(x))
AUTOTUNE_FUNCTION(floor, __builtin_floorf(x))
AUTOTUNE_FUNCTION(rint, __builtin_rintf(x))
AUTOTUNE_FUNCTION(sqrt, __builtin_sqrtf(x))
AUTOTUNE_FUNCTION(rsqrt, 1.0 / __builtin_sqrt(static_cast<double>(x)))
AUTOTUNE_FUNCTION(rcp, 1.0f / x)
AUTOTUNE_FUNCTION(exp, __builtin_expf(x))
AUTOTUNE_FUNCTION(exp2, __builtin_exp2f(x))
AUTOTUNE_FUNCTION(exp10, __builtin_pow(10.0, x))
AUTOTUNE_FUNCTION(log, __builtin_logf(x))
AUTOTUNE_FUNCTION(log2, __builtin_log2f(x))
AUTOTUNE_FUNCTION(log10, __builtin_log10f(x))
AUTOTUNE_FUNCTION(sin, __builtin_sinf(x))
AUTOTUNE_FUNCTION(cos, __builtin_cosf(x))
AUTOTUNE_FUNCTION(tanh, __builtin_tanhf(x))
AUTOTUNE_FUNCTION(tanh_approx, __builtin_tanhf(x))
#undef AUTOTUNE_FUNCTION

// -- operators --------------------------------------------------------------------------------------------------------

#define AUTOTUNE_OPERATOR(OPERATOR, NAME, NAME2)                                                                    \
  AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER operator OPERATOR(const AUTOTUNE_NUMBER& a, const AUTOTUNE_NUMBER& b) {  \
    return NAME(a, b);                                                                                              \
  }                                                                                                                 \
  AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER& operator OPERATOR## = (AUTOTUNE_NUMBER & a, const AUTOTUNE_NUMBER& b) { \
    return a = NAME(a, b);                                                                                          \
  }                                                                                                                 \
  AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR operator OPERATOR(const AUTOTUNE_PAIR& a, const AUTOTUNE_PAIR& b) {        \
    return NAME2(a, b);                                                                                             \
  }                                                                                                                 \
  AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR& operator OPERATOR## = (AUTOTUNE_PAIR & a, const AUTOTUNE_PAIR& b) {       \
    return a = NAME2(a, b);                                                                                         \
  }
AUTOTUNE_OPERATOR(+, __hadd, __hadd2)
AUTOTUNE_OPERATOR(-, __hsub, __hsub2)
AUTOTUNE_OPERATOR(*, __hmul, __hmul2)
AUTOTUNE_OPERATOR(/, __hdiv, __h2div)
#undef AUTOTUNE_OPERATOR
#define AUTOTUNE_COMPARISON(OPERATOR, NAME)                                                             \
  AUTOTUNE_NUMBER_FUNCTION bool operator OPERATOR(const AUTOTUNE_NUMBER& a, const AUTOTUNE_NUMBER& b) { \
    return __h##NAME(a, b);                                                                             \
  }                                                                                                     \
  AUTOTUNE_NUMBER_FUNCTION bool operator OPERATOR(const AUTOTUNE_PAIR& a, const AUTOTUNE_PAIR& b) {     \
    return __hb##NAME##2(a, b);                                                                         \
  }
AUTOTUNE_COMPARISON(==, eq)
AUTOTUNE_COMPARISON(!=, neu)
AUTOTUNE_COMPARISON(<, lt)
AUTOTUNE_COMPARISON(<=, le)
AUTOTUNE_COMPARISON(>, gt)
AUTOTUNE_COMPARISON(>=, ge)
#undef AUTOTUNE_COMPARISON
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER operator+(const AUTOTUNE_NUMBER& a) { return a; }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER operator-(const AUTOTUNE_NUMBER& a) { return __hneg(a); }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR operator+(const AUTOTUNE_PAIR& a) { return a; }
AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_PAIR operator-(const AUTOTUNE_PAIR& a) { return __hneg2(a); }
#define AUTOTUNE_STEP(OPERATOR, NAME)                                                   \
  AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER& operator OPERATOR(AUTOTUNE_NUMBER& a) {     \
    return a = NAME(a, AUTOTUNE_NUMBER(1.0f));                                          \
  }                                                                                     \
  AUTOTUNE_NUMBER_FUNCTION AUTOTUNE_NUMBER operator OPERATOR(AUTOTUNE_NUMBER& a, int) { \
    const AUTOTUNE_NUMBER before = a;                                                   \
    OPERATOR a;                                                                         \
    return before;                                                                      \
  }
AUTOTUNE_STEP(++, __hadd)
AUTOTUNE_STEP(--, __hsub)
#undef AUTOTUNE_STEP

#undef AUTOTUNE_PAIRED_1
#undef AUTOTUNE_PAIRED_2
#undef AUTOTUNE_PAIRED_3

// -- memory, and the lanes of a warp ----------------------------------------------------------------------------------

// As one word, which other threads change as one.
__device__ inline AUTOTUNE_PAIR atomicAdd(AUTOTUNE_PAIR* address, AUTOTUNE_PAIR value) {
  unsigned* const word = reinterpret_cast<unsigned*>(address);
  for (unsigned old = *static_cast<volatile unsigned*>(word);;) {
    const AUTOTUNE_PAIR before = autotune::cpu::same_bits<AUTOTUNE_PAIR>(old);
    const unsigned seen = atomicCAS(word, old, autotune::cpu::same_bits<unsigned>(before + value));
    if (seen == old) return before;
    old = seen;
  }
}
// In the word that holds it.
__device__ inline AUTOTUNE_NUMBER atomicAdd(AUTOTUNE_NUMBER* address, AUTOTUNE_NUMBER value) {
  const unsigned long long place = reinterpret_cast<unsigned long long>(address);
  unsigned* const word = reinterpret_cast<unsigned*>(place & ~3ull);
  const unsigned shift = place & 2 ? 16 : 0;
  for (unsigned old = *static_cast<volatile unsigned*>(word);;) {
    const AUTOTUNE_NUMBER before = AUTOTUNE_OF(__ushort_as_, )(static_cast<unsigned short>(old >> shift));
    const unsigned sum = AUTOTUNE_OF(__, _as_ushort)(before + value);
    const unsigned seen = atomicCAS(word, old, (old & ~(0xffffu << shift)) | sum << shift);
    if (seen == old) return before;
    old = seen;
  }
}

#define AUTOTUNE_SHUFFLE(NAME, OPERAND)                                                                             \
  __device__ inline AUTOTUNE_NUMBER NAME(unsigned mask, AUTOTUNE_NUMBER a, OPERAND operand, int width = warpSize) { \
    const unsigned bits = AUTOTUNE_OF(__, _as_ushort)(a);                                                           \
    return AUTOTUNE_OF(__ushort_as_, )(static_cast<unsigned short>(NAME(mask, bits, operand, width)));              \
  }                                                                                                                 \
  __device__ inline AUTOTUNE_PAIR NAME(unsigned mask, AUTOTUNE_PAIR a, OPERAND operand, int width = warpSize) {     \
    const unsigned bits = autotune::cpu::same_bits<unsigned>(a);                                                    \
    return autotune::cpu::same_bits<AUTOTUNE_PAIR>(NAME(mask, bits, operand, width));                               \
  }
AUTOTUNE_SHUFFLE(__shfl_sync, int)
AUTOTUNE_SHUFFLE(__shfl_up_sync, unsigned)
AUTOTUNE_SHUFFLE(__shfl_down_sync, unsigned)
AUTOTUNE_SHUFFLE(__shfl_xor_sync, int)
#undef AUTOTUNE_SHUFFLE

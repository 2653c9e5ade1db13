// SPDX-License-Identifier: Apache-2.0
// CUDA's vector types, with CUDA's sizes and alignments; CUDA's own where a program has included them.
#pragma once

#ifdef __VECTOR_TYPES_H__
#include <vector_functions.h>
#else
struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

// An assignment of its own where a compiler is to show accesses of memory: it shows no store of what a function returns
// as a whole. It is one access, as the plain one is.
#ifdef __SANITIZE_THREAD__
namespace autotune::cpu {
template <unsigned long BYTES>
struct WordOf {
  struct __attribute__((may_alias)) type {
    unsigned char bytes[BYTES];
  };
};
template <>
struct WordOf<2> {
  typedef unsigned short __attribute__((may_alias)) type;
};
template <>
struct WordOf<4> {
  typedef unsigned __attribute__((may_alias)) type;
};
template <>
struct WordOf<8> {
  typedef unsigned long long __attribute__((may_alias)) type;
};
template <>
struct WordOf<16> {
  typedef unsigned __int128 __attribute__((may_alias)) type;
};
}  // namespace autotune::cpu
#define AUTOTUNE_SHOWN(TYPE)                                                 \
  TYPE& operator=(const TYPE& other) {                                       \
    using Word = autotune::cpu::WordOf<sizeof(TYPE)>::type;                  \
    *reinterpret_cast<Word*>(this) = *reinterpret_cast<const Word*>(&other); \
    return *this;                                                            \
  }
#else
#define AUTOTUNE_SHOWN(TYPE)
#endif

// A type of two or four is aligned to its size up to 16 bytes, one of three like its member.
#define AUTOTUNE_VECTORS_1_2_4(NAME, MEMBER)                                  \
  struct NAME##1 { MEMBER x; };                                               \
  struct alignas(2 * sizeof(MEMBER)) NAME##2 {                                \
    MEMBER x, y;                                                              \
    AUTOTUNE_SHOWN(NAME##2)                                                   \
  };                                                                          \
  struct alignas(4 * sizeof(MEMBER) < 16 ? 4 * sizeof(MEMBER) : 16) NAME##4 { \
    MEMBER x, y, z, w;                                                        \
    AUTOTUNE_SHOWN(NAME##4)                                                   \
  };                                                                          \
  constexpr NAME##1 make_##NAME##1(MEMBER x) { return {x}; }                  \
  constexpr NAME##2 make_##NAME##2(MEMBER x, MEMBER y) { return {x, y}; }     \
  constexpr NAME##4 make_##NAME##4(MEMBER x, MEMBER y, MEMBER z, MEMBER w) { return {x, y, z, w}; }

#define AUTOTUNE_VECTORS(NAME, MEMBER) \
  AUTOTUNE_VECTORS_1_2_4(NAME, MEMBER) \
  struct NAME##3 { MEMBER x, y, z; };  \
  constexpr NAME##3 make_##NAME##3(MEMBER x, MEMBER y, MEMBER z) { return {x, y, z}; }

AUTOTUNE_VECTORS(char, signed char)
AUTOTUNE_VECTORS(uchar, unsigned char)
AUTOTUNE_VECTORS(short, short)
AUTOTUNE_VECTORS(ushort, unsigned short)
AUTOTUNE_VECTORS(int, int)
AUTOTUNE_VECTORS_1_2_4(uint, unsigned)
AUTOTUNE_VECTORS(long, long)
AUTOTUNE_VECTORS(ulong, unsigned long)
AUTOTUNE_VECTORS(longlong, long long)
AUTOTUNE_VECTORS(ulonglong, unsigned long long)
AUTOTUNE_VECTORS(float, float)
AUTOTUNE_VECTORS(double, double)

constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

#undef AUTOTUNE_SHOWN
#undef AUTOTUNE_VECTORS
#undef AUTOTUNE_VECTORS_1_2_4
#endif

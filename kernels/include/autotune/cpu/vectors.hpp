// CUDA's vector types, with CUDA's sizes and alignments.
#pragma once

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

// An assignment that stores member by member where a compiler is to show accesses of memory: it shows no store of what
// a function returns as a whole.
#ifdef __SANITIZE_THREAD__
#define AUTOTUNE_SHOWN(TYPE, ...) \
  constexpr TYPE& operator=(const TYPE& other) { return __VA_ARGS__, *this; }
#else
#define AUTOTUNE_SHOWN(TYPE, ...)
#endif

// A type of two or four is aligned to its size up to 16 bytes, one of three like its member.
#define AUTOTUNE_VECTORS_1_2_4(NAME, MEMBER)                                    \
  struct NAME##1 { MEMBER x; };                                                 \
  struct alignas(2 * sizeof(MEMBER)) NAME##2 {                                  \
    MEMBER x, y;                                                                \
    AUTOTUNE_SHOWN(NAME##2, x = other.x, y = other.y)                           \
  };                                                                            \
  struct alignas(4 * sizeof(MEMBER) < 16 ? 4 * sizeof(MEMBER) : 16) NAME##4 {   \
    MEMBER x, y, z, w;                                                          \
    AUTOTUNE_SHOWN(NAME##4, x = other.x, y = other.y, z = other.z, w = other.w) \
  };                                                                            \
  constexpr NAME##1 make_##NAME##1(MEMBER x) { return {x}; }                    \
  constexpr NAME##2 make_##NAME##2(MEMBER x, MEMBER y) { return {x, y}; }       \
  constexpr NAME##4 make_##NAME##4(MEMBER x, MEMBER y, MEMBER z, MEMBER w) { return {x, y, z, w}; }

#define AUTOTUNE_VECTORS(NAME, MEMBER)                             \
  AUTOTUNE_VECTORS_1_2_4(NAME, MEMBER)                             \
  struct NAME##3 {                                                 \
    MEMBER x, y, z;                                                \
    AUTOTUNE_SHOWN(NAME##3, x = other.x, y = other.y, z = other.z) \
  };                                                               \
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

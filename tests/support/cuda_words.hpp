// The words and vector types of CUDA that the shims of these tests have in common.
#pragma once

#define __device__
#define __host__
#define __forceinline__ inline
#define __constant__
#define __align__(n) alignas(n)

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

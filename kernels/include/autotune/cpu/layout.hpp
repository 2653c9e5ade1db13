// SPDX-License-Identifier: Apache-2.0
// For the host: what the layout library's headers define for GPUs alone, in device.cuh and under #ifndef AUTOTUNE_CPU.
#pragma once
#include "autotune/cpu/texture.hpp"
#include "autotune/cpu/threads.hpp"

namespace autotune {
namespace detail {

constexpr bool is_cpu = true;

template <class Index>
using OffsetOf = unsigned long long;  // host compilers vectorise only offsets that cannot wrap

template <class Texel>
__forceinline__ Texel load_texel(const Texel* place) {
  return __ldg(place);
}
template <class Texel>
__forceinline__ void store_texel(Texel* place, Texel texel) {
  reinterpret_cast<cpu::Aliasing<Texel>*>(place)->value = texel;
}

// What the first thread to leave an array did, for the program that launched it. The others only stop.
struct Violation {
  bool is_taken;
  char text[256];
};
inline Violation violation{};

inline void stop(const char* array, long long index, int axis, unsigned extent) {
  if (!__atomic_exchange_n(&violation.is_taken, true, __ATOMIC_RELAXED))
    snprintf(violation.text, sizeof(violation.text), "%s: index %lld is outside of axis %d, whose extent is %u", array,
             index, axis, extent);
  if (!cpu::setting.runtime) {  // a program of its own, a unit test
    fprintf(stderr, "%s\n", violation.text);
    abort();
  }
  __trap();
}

}  // namespace detail

template <class T>
__forceinline__ T* dynamic_shared() {
  return static_cast<T*>(cpu::setting.dynamic_shared);
}

inline double reciprocal(double x) { return 1 / x; }
inline double reciprocal_root(double x) { return rsqrt(x); }

struct MBarrier {
  unsigned short expected, missing;
  unsigned phase;

  void init(unsigned count) { *this = {static_cast<unsigned short>(count), static_cast<unsigned short>(count), 0}; }
  void arrive() {
    if (--missing > 0) return;
    missing = expected;
    ++phase;
  }
  // Threads of a block run one after the other, from one barrier to the next: a warp that waits meets the others
  // at the block's barrier, as often as it takes, and lets them run.
  void wait(unsigned parity) const {
    while (!__all_sync(0xffffffffu, (phase & 1) != parity)) __syncthreads();
  }
};

// A texture is memory: what lies beyond its edge and between its texels is worked out.
enum class Edge;
template <class Base, int RANK, Edge EDGE, class Read, class Filter>
struct Image;
template <class Element, class ExtentsOf, int... AXES>
struct SurfaceImage;
template <class Element, class ExtentsOf, Edge EDGE, class Read, class Filter, int... AXES>
using TextureImage = Image<SurfaceImage<Element, ExtentsOf, AXES...>, sizeof...(AXES), EDGE, Read, Filter>;

}  // namespace autotune

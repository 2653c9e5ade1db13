// SPDX-License-Identifier: Apache-2.0
// One header for both compilers: what a device function is, and bit-exact casts.
// Under NVRTC and nvcc the CUDA built-ins are there; the host compiler gets them and its own parts from cpu.hpp.
#pragma once

#ifdef AUTOTUNE_CPU
#include "autotune/cpu.hpp"
#define AUTOTUNE_DEVICE inline __attribute__((always_inline))
#define AUTOTUNE_EVERYWHERE AUTOTUNE_DEVICE
#else
#if !defined(__CUDACC__) && !defined(__CUDA__) && !defined(__device__)
#error "autotune's headers need a CUDA compiler, or AUTOTUNE_CPU defined for host C++ (CMake: autotune_layout::host)"
#endif
#define AUTOTUNE_DEVICE __device__ __forceinline__
#define AUTOTUNE_EVERYWHERE __host__ __device__ __forceinline__

namespace autotune::detail {

static constexpr bool is_cpu = false;

// What an offset of an array is computed as, whose strides are of type Index.
template <class Index>
using OffsetOf = Index;

// The one access of a texel, whatever the type of what is stored there.
template <class Texel>
AUTOTUNE_DEVICE Texel load_texel(const Texel* place) {
  return *place;
}
template <class Texel>
AUTOTUNE_DEVICE void store_texel(Texel* place, Texel texel) {
  *place = texel;
}

}  // namespace autotune::detail
#endif
#include "autotune/integers.cuh"

namespace autotune {

// The bytes of `from` read as a To. memcpy compiles to register moves; a union or a pointer cast would
// be undefined behaviour on the host.
template <class To, class From>
AUTOTUNE_DEVICE To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast needs types of one size");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

namespace detail {

template <int BYTES>
struct TexelOf;
template <>
struct TexelOf<1> {
  using type = unsigned char;
};
template <>
struct TexelOf<2> {
  using type = unsigned short;
};
template <>
struct TexelOf<4> {
  using type = unsigned int;
};
template <>
struct TexelOf<8> {
  using type = uint2;
};
template <>
struct TexelOf<16> {
  using type = uint4;
};

}  // namespace detail

// The unit of one memory instruction: 1, 2, 4, 8 or 16 bytes.
template <int BYTES>
using Texel = typename detail::TexelOf<BYTES>::type;

}  // namespace autotune

// SPDX-License-Identifier: Apache-2.0
// memory: where texels live, and the instruction that moves one. Each type is a handle of 8 bytes that a
// kernel receives inside its accessor; `Texel` is the unit of one access. What all have: requirements.cuh.
#pragma once
#include "autotune/device.cuh"

namespace autotune {

template <class Texel>
struct Global {
  using texel_type = Texel;
  static constexpr bool is_writable = true, is_addressed = true;
  template <class Unit>
  using rebind = Global<Unit>;
  template <class Value>
  using element = Value;
  Texel* base;
  template <class Dims, class Index>
  AUTOTUNE_DEVICE Texel load(Index offset) const {
    return detail::load_texel(base + Dims::linear(offset));
  }
  template <class Dims, class Index>
  AUTOTUNE_DEVICE void store(Index offset, Texel texel) const {
    detail::store_texel(base + Dims::linear(offset), texel);
  }
  template <class Dims, class Index>
  AUTOTUNE_DEVICE Texel* address(Index offset) const {
    return base + Dims::linear(offset);
  }
};

// Global memory that the kernel only reads: an input.
template <class Texel>
struct Global<const Texel> {
  using texel_type = Texel;
  static constexpr bool is_writable = false, is_addressed = true;
  template <class Unit>
  using rebind = Global<const Unit>;
  template <class Value>
  using element = const Value;
  const Texel* base;
  template <class Dims, class Index>
  AUTOTUNE_DEVICE Texel load(Index offset) const {
    return detail::load_texel(base + Dims::linear(offset));
  }
  template <class Dims, class Index>
  AUTOTUNE_DEVICE const Texel* address(Index offset) const {
    return base + Dims::linear(offset);
  }
};

// ld.global.nc: the kernel promises that nothing writes the data while it runs.
template <class Texel>
struct ReadOnly {
  using texel_type = Texel;
  static constexpr bool is_writable = false, is_addressed = true;
  template <class Unit>
  using rebind = ReadOnly<Unit>;
  template <class Value>
  using element = const Value;
  const Texel* base;
  template <class Dims, class Index>
  AUTOTUNE_DEVICE Texel load(Index offset) const {
    return __ldg(base + Dims::linear(offset));
  }
};

// A texture object over linear memory.
template <class Texel>
struct Texture1D {
  using texel_type = Texel;
  static constexpr bool is_writable = false, is_addressed = false;
  cudaTextureObject_t object;
  template <class Dims, class Index>
  AUTOTUNE_DEVICE Texel load(Index offset) const {
    return tex1Dfetch<Texel>(object, static_cast<int>(offset));
  }
};

// A texture object over a CUDA array or over pitched memory; un-normalised coordinates, texel centres. Outside of it,
// the nearest edge.
template <class Texel>
struct Texture2D {
  using texel_type = Texel;
  static constexpr bool is_writable = false, is_addressed = false;
  cudaTextureObject_t object;
  template <class Dims, class Index>
  AUTOTUNE_DEVICE Texel load(Index offset) const {
    return tex2D<Texel>(object, static_cast<float>(Dims::x(offset)) + 0.5f, static_cast<float>(Dims::y(offset)) + 0.5f);
  }
};

// The whole of constant memory, shared by every constant layout of a variant; each has its byte offset.
template <int BYTES>
__constant__ __align__(16) unsigned char constant_window[BYTES];

template <class Texel, int OFFSET>
struct Constant {
  using texel_type = Texel;
  static constexpr bool is_writable = false, is_addressed = true;
  template <class Unit>
  using rebind = Constant<Unit, OFFSET>;
  unsigned long long unused;
  template <class Dims, class Index>
  AUTOTUNE_DEVICE Texel load(Index offset) const {
    return reinterpret_cast<const Texel*>(constant_window<65536> + OFFSET)[Dims::linear(offset)];
  }
};

}  // namespace autotune

// SPDX-License-Identifier: Apache-2.0
// memory: where texels live, and the instruction that moves one. Each type is a handle of 8 bytes that a
// kernel receives inside its accessor; `Texel` is the unit of one access.
#pragma once
#include "autotune/device.cuh"

namespace autotune {

template <class Texel>
struct Global {
  using texel_type = Texel;
  Texel* base;
  template <class Dims, class Index>
  AUTOTUNE_DEVICE Texel load(Index offset) const {
    return base[Dims::linear(offset)];
  }
  template <class Dims, class Index>
  AUTOTUNE_DEVICE void store(Index offset, Texel texel) const {
    base[Dims::linear(offset)] = texel;
  }
  template <class Dims, class Index>
  AUTOTUNE_DEVICE Texel* address(Index offset) const {
    return base + Dims::linear(offset);
  }
};

// ld.global.nc: the kernel promises that nothing writes the data while it runs.
template <class Texel>
struct ReadOnly {
  using texel_type = Texel;
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
  unsigned long long unused;
  template <class Dims, class Index>
  AUTOTUNE_DEVICE Texel load(Index offset) const {
    return reinterpret_cast<const Texel*>(constant_window<65536> + OFFSET)[Dims::linear(offset)];
  }
};

}  // namespace autotune

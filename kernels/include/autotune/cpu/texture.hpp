// SPDX-License-Identifier: Apache-2.0
// Textures as plain memory: un-normalised coordinates, the nearest texel. Read-only loads with them.
#pragma once

// What a cudaTextureObject_t points to, mirrored by autotune/device/cpu/native.py. A plane's rows are `pitch`
// texels apart; a linear texture is one row. A volume's slices of `height` rows follow each other.
struct autotune_texture {
  const unsigned char* data;
  unsigned long long width, height, pitch;  // texels
};

using cudaTextureObject_t = unsigned long long;
using cudaSurfaceObject_t = cudaTextureObject_t;

namespace autotune::cpu {

template <class T>
inline T texel(const autotune_texture& texture, unsigned long long index) {
  T value;
  memcpy(&value, texture.data + index * sizeof(T), sizeof(T));
  return value;
}

// The texel at byte `byte` of a row.
template <class T>
inline T* surface(unsigned long long object, int byte, int y, int z = 0) {
  const auto& texture = *reinterpret_cast<const autotune_texture*>(object);
  const unsigned long long row = texture.height * static_cast<unsigned>(z) + static_cast<unsigned>(y);
  return const_cast<T*>(reinterpret_cast<const T*>(texture.data + row * texture.pitch * sizeof(T) + byte));
}

// A T that lies where something else may be stored.
template <class T>
struct __attribute__((may_alias)) Aliasing {
  T value;
};

// Towards zero is as good as down: what lies below zero is clamped to it.
inline unsigned long long clamped(float coordinate, unsigned long long extent) {
  const long long nearest = static_cast<long long>(coordinate), last = static_cast<long long>(extent) - 1;
  return static_cast<unsigned long long>(nearest < 0 ? 0 : nearest > last ? last : nearest);
}

}  // namespace autotune::cpu

// Outside the texture: zero.
template <class T>
inline T tex1Dfetch(cudaTextureObject_t object, int x) {
  const auto& texture = *reinterpret_cast<const autotune_texture*>(object);
  return static_cast<unsigned>(x) < texture.width ? autotune::cpu::texel<T>(texture, static_cast<unsigned>(x)) : T{};
}

// Outside the texture: the nearest edge.
template <class T>
inline T tex2D(cudaTextureObject_t object, float x, float y) {
  const auto& texture = *reinterpret_cast<const autotune_texture*>(object);
  const auto column = autotune::cpu::clamped(x, texture.width), row = autotune::cpu::clamped(y, texture.height);
  return autotune::cpu::texel<T>(texture, row * texture.pitch + column);
}

template <class T>
inline T __ldg(const T* address) {
  return reinterpret_cast<const autotune::cpu::Aliasing<T>*>(address)->value;
}

template <class T>
inline T surf2Dread(cudaSurfaceObject_t object, int byte, int y) {
  return __ldg(autotune::cpu::surface<T>(object, byte, y));
}
template <class T>
inline T surf3Dread(cudaSurfaceObject_t object, int byte, int y, int z) {
  return __ldg(autotune::cpu::surface<T>(object, byte, y, z));
}
template <class T>
inline void surf2Dwrite(T texel, cudaSurfaceObject_t object, int byte, int y) {
  memcpy(autotune::cpu::surface<T>(object, byte, y), &texel, sizeof(T));
}
template <class T>
inline void surf3Dwrite(T texel, cudaSurfaceObject_t object, int byte, int y, int z) {
  memcpy(autotune::cpu::surface<T>(object, byte, y, z), &texel, sizeof(T));
}

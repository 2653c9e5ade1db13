// SPDX-License-Identifier: Apache-2.0
// Textures as plain memory: un-normalised coordinates, the nearest texel. Read-only loads with them.
#pragma once

// What a cudaTextureObject_t points to, mirrored by autotune/device/cpu/native.py. A plane's rows are `pitch`
// texels apart; a linear texture is one row. A volume's slices of `height` rows follow each other.
struct autotune_texture {
  unsigned char* data;
  unsigned long long width, height, pitch;  // texels
};

using cudaTextureObject_t = unsigned long long;
using cudaSurfaceObject_t = cudaTextureObject_t;

namespace autotune::cpu {

// A T that lies where something else may be stored.
template <class T>
struct __attribute__((may_alias)) Aliasing {
  T value;
};

// Where the texel at byte `byte` of a row is.
template <class T>
inline unsigned char* texel(cudaTextureObject_t object, unsigned long long byte, unsigned y, unsigned z = 0) {
  const auto& texture = *reinterpret_cast<const autotune_texture*>(object);
  return texture.data + (texture.height * z + y) * texture.pitch * sizeof(T) + byte;
}
template <class T>
inline T fetch(const unsigned char* place) {
  T value;
  memcpy(&value, place, sizeof(T));
  return value;
}

// Towards zero is as good as down: what lies below zero is clamped to it.
inline unsigned clamped(float coordinate, unsigned long long extent) {
  const long long nearest = static_cast<long long>(coordinate), last = static_cast<long long>(extent) - 1;
  return static_cast<unsigned>(nearest < 0 ? 0 : nearest > last ? last : nearest);
}

}  // namespace autotune::cpu

// Outside the texture: zero.
template <class T>
inline T tex1Dfetch(cudaTextureObject_t object, int x) {
  const auto& texture = *reinterpret_cast<const autotune_texture*>(object);
  const auto column = static_cast<unsigned>(x);
  return column < texture.width ? autotune::cpu::fetch<T>(texture.data + column * sizeof(T)) : T{};
}

// Outside the texture: the nearest edge.
template <class T>
inline T tex2D(cudaTextureObject_t object, float x, float y) {
  using namespace autotune::cpu;
  const auto& texture = *reinterpret_cast<const autotune_texture*>(object);
  return fetch<T>(texel<T>(object, clamped(x, texture.width) * sizeof(T), clamped(y, texture.height)));
}

template <class T>
inline T surf3Dread(cudaSurfaceObject_t object, int byte, int y, int z) {
  return autotune::cpu::fetch<T>(autotune::cpu::texel<T>(object, byte, y, z));
}
template <class T>
inline T surf2Dread(cudaSurfaceObject_t object, int byte, int y) {
  return surf3Dread<T>(object, byte, y, 0);
}
template <class T>
inline void surf3Dwrite(T value, cudaSurfaceObject_t object, int byte, int y, int z) {
  memcpy(autotune::cpu::texel<T>(object, byte, y, z), &value, sizeof(T));
}
template <class T>
inline void surf2Dwrite(T value, cudaSurfaceObject_t object, int byte, int y) {
  surf3Dwrite(value, object, byte, y, 0);
}

template <class T>
inline T __ldg(const T* address) {
  return reinterpret_cast<const autotune::cpu::Aliasing<T>*>(address)->value;
}

// Just enough of CUDA for image.cuh as a GPU's compiler sees it, written apart from the project's own cpu headers: the
// texture units by the programming guide's formulas ("Texture Fetching"), and surfaces; and loops over an accessor.
#pragma once
#include <math.h>
#include <string.h>

#include "cuda_words.hpp"

// What a texture or surface object is the address of. `size` is width, height, depth; a `format` of 0 is texels as they
// are, else the whole numbers' largest value, which a fetch gives as 1.
struct Unit {
  unsigned char* base;
  int size[3], edge, is_linear, format;  // edge: clamp, mirror, wrap, border
};
using cudaTextureObject_t = unsigned long long;
using cudaSurfaceObject_t = unsigned long long;

inline bool unit_misused = false;
inline float __frcp_rn(float x) { return 1.0f / x; }

template <class T>
T* texel_at(const Unit& unit, int x, int y, int z, size_t bytes) {
  const int at[] = {x, y, z};
  for (int axis = 0; axis < 3; ++axis)
    if (at[axis] < 0 || at[axis] >= unit.size[axis]) return nullptr;
  const size_t texel = (static_cast<size_t>(z) * unit.size[1] + y) * unit.size[0] + x;
  return reinterpret_cast<T*>(unit.base + texel * bytes);
}

inline int found(int texel, int extent, int edge) {
  if (edge == 0) return texel < 0 ? 0 : texel < extent ? texel : extent - 1;
  if (edge == 3) return texel;
  while (texel < 0) texel += 2 * extent;
  texel %= edge == 1 ? 2 * extent : extent;
  return texel < extent ? texel : 2 * extent - 1 - texel;
}

template <class T>
T value_at(const Unit& unit, const int (&texel)[3]) {
  int at[3];
  for (int axis = 0; axis < 3; ++axis) at[axis] = found(texel[axis], unit.size[axis], unit.edge);
  if (unit.format) {
    const auto* number = texel_at<unsigned char>(unit, at[0], at[1], at[2], 1);
    const float value = number ? *number / static_cast<float>(unit.format) : 0.0f;
    T as;
    memcpy(&as, &value, sizeof value < sizeof as ? sizeof value : sizeof as);
    if (sizeof as != sizeof value) unit_misused = true;
    return as;
  }
  const T* place = texel_at<T>(unit, at[0], at[1], at[2], sizeof(T));
  return place ? *place : T{};
}

// Coordinates of wrap and mirror are in units of the extent, others in texels.
template <class T>
T fetch(cudaTextureObject_t object, const float (&given)[3]) {
  const Unit& unit = *reinterpret_cast<const Unit*>(object);
  double at[3];
  int texel[3];
  for (int axis = 0; axis < 3; ++axis) {
    at[axis] = unit.edge == 1 || unit.edge == 2 ? static_cast<double>(given[axis]) * unit.size[axis] : given[axis];
    texel[axis] = static_cast<int>(floor(at[axis]));
  }
  if (!unit.is_linear) return value_at<T>(unit, texel);
  double total = 0;
  for (int corner = 0; corner < 8; ++corner) {
    double weight = 1;
    for (int axis = 0; axis < 3; ++axis) {
      const double shifted = at[axis] - 0.5, part = round((shifted - floor(shifted)) * 256) / 256;
      texel[axis] = static_cast<int>(floor(shifted)) + (corner >> axis & 1);
      weight *= corner >> axis & 1 ? part : 1 - part;
    }
    const T value = value_at<T>(unit, texel);
    float number;
    memcpy(&number, &value, sizeof number);
    if (weight > 0) total += weight * number;
  }
  const float sum = static_cast<float>(total);
  T as{};
  memcpy(&as, &sum, sizeof sum < sizeof as ? sizeof sum : sizeof as);
  return as;
}

template <class T>
T tex2D(cudaTextureObject_t object, float x, float y) {
  // The middle of the only slice, whatever its unit.
  return fetch<T>(object, {x, y, 0.5f});
}
template <class T>
T tex3D(cudaTextureObject_t object, float x, float y, float z) {
  return fetch<T>(object, {x, y, z});
}

template <class T>
T* surface_at(cudaSurfaceObject_t object, int bytes, int y, int z) {
  const Unit& unit = *reinterpret_cast<const Unit*>(object);
  T* place = bytes % sizeof(T) ? nullptr : texel_at<T>(unit, bytes / static_cast<int>(sizeof(T)), y, z, sizeof(T));
  static T nowhere;
  if (!place) unit_misused = true;  // the hardware traps
  return place ? place : &nowhere;
}
template <class T>
void surf2Dwrite(T value, cudaSurfaceObject_t object, int bytes, int y) {
  *surface_at<T>(object, bytes, y, 0) = value;
}
template <class T>
void surf3Dwrite(T value, cudaSurfaceObject_t object, int bytes, int y, int z) {
  *surface_at<T>(object, bytes, y, z) = value;
}
template <class T>
T surf2Dread(cudaSurfaceObject_t object, int bytes, int y) {
  return *surface_at<T>(object, bytes, y, 0);
}
template <class T>
T surf3Dread(cudaSurfaceObject_t object, int bytes, int y, int z) {
  return *surface_at<T>(object, bytes, y, z);
}

template <class T>
T __ldg(const T* address) {
  return *address;
}
inline int __popc(unsigned word) { return __builtin_popcount(word); }
template <class T>
T atomicAdd(T* address, T value) {
  const T before = *address;
  *address += value;
  return before;
}
template <class T>
T tex1Dfetch(cudaTextureObject_t object, int x) {
  return *texel_at<T>(*reinterpret_cast<const Unit*>(object), x, 0, 0, sizeof(T));
}

#include "autotune/image.cuh"

template <class Accessor>
Accessor accessor(const unsigned char* argument) {
  Accessor made;
  memcpy(&made, argument, sizeof made);
  return made;
}

// Calls visit(indices...) for every index from -2 extents to 3.
template <class Accessor, class Visit>
void around(const Accessor& image, Visit visit) {
  const int d = image.extent(0), h = image.extent(1), w = Accessor::rank == 3 ? image.extent(2) : 0;
  for (int i = -2 * d; i < 3 * d; ++i)
    for (int j = -2 * h; j < 3 * h; ++j)
      if constexpr (Accessor::rank == 2)
        visit(i, j);
      else
        for (int k = -2 * w; k < 3 * w; ++k) visit(i, j, k);
}

using Bytes = const unsigned char*;

template <class Accessor>
void sample_all(Bytes argument, const float* at, int count, float* values) {
  const auto image = accessor<Accessor>(argument);
  for (int n = 0; n < count; ++n, at += Accessor::rank)
    if constexpr (Accessor::rank == 2)
      values[n] = image.sample(at[0], at[1]);
    else
      values[n] = image.sample(at[0], at[1], at[2]);
}

#define IMAGE(NUMBER, BYTES, ...)                                                                              \
  using Image##NUMBER = __VA_ARGS__;                                                                           \
  static_assert(sizeof(Image##NUMBER) == BYTES && alignof(Image##NUMBER) == 8, "the host passes other bytes"); \
  extern "C" void load_##NUMBER(Bytes argument, unsigned char* values) {                                       \
    const auto image = accessor<Image##NUMBER>(argument);                                                      \
    around(image, [&](auto... index) {                                                                         \
      const auto value = image.load(index...);                                                                 \
      memcpy(values, &value, sizeof value);                                                                    \
      values += sizeof value;                                                                                  \
    });                                                                                                        \
  }

#define SAMPLED(NUMBER)                                                                        \
  extern "C" void sample_##NUMBER(Bytes argument, const float* at, int count, float* values) { \
    sample_all<Image##NUMBER>(argument, at, count, values);                                    \
  }

#define SURFACE(NUMBER, BYTES, ...)                                                           \
  using Surface##NUMBER = __VA_ARGS__;                                                        \
  static_assert(sizeof(Surface##NUMBER) == BYTES, "the host passes other bytes");             \
  extern "C" void turn_##NUMBER(Bytes argument, Bytes values) {                               \
    const auto surface = accessor<Surface##NUMBER>(argument);                                 \
    around(surface, [&](auto... index) {                                                      \
      int axis = 0;                                                                           \
      if (!((index >= 0 && index < static_cast<int>(surface.extent(axis++))) && ...)) return; \
      typename Surface##NUMBER::value_type value;                                             \
      memcpy(&value, values, sizeof value);                                                   \
      values += sizeof value;                                                                 \
      surface.store(value, index...);                                                         \
      const auto again = surface.load(index...);                                              \
      if (memcmp(&again, &value, sizeof value)) unit_misused = true;                          \
    });                                                                                       \
  }

extern "C" bool misused() { return unit_misused; }

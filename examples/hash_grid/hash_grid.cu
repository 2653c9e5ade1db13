// Multiresolution hash-grid encoding (Müller, Evans, Schied, Keller: Instant Neural Graphics Primitives with a
// Multiresolution Hash Encoding, SIGGRAPH 2022, section 3). plain.cu is where it comes from.
#include "autotune/array.cuh"

struct Point {
  float x, y, z;
};

struct Feature {
  float u, v;
};

// What a block does: all levels of its points in turn, or its points' share of one level (blockIdx.y).
enum class Work { point, level };

template <class Policy>
AUTOTUNE_DEVICE unsigned place_of(unsigned x, unsigned y, unsigned z, unsigned side, unsigned entries) {
  const bool is_dense = static_cast<unsigned long long>(side) * side * side <= entries;
  return is_dense ? x + side * (y + side * z) : (x ^ y * 2654435761u ^ z * 805459861u) & (entries - 1);
}

template <class Policy>
AUTOTUNE_DEVICE Feature interpolated(typename Policy::table table, Point point, unsigned level, float scale,
                                     unsigned side) {
  const float x = point.x * scale + 0.5f, y = point.y * scale + 0.5f, z = point.z * scale + 0.5f;
  const unsigned cx = static_cast<unsigned>(x), cy = static_cast<unsigned>(y), cz = static_cast<unsigned>(z);
  const float fx = x - cx, fy = y - cy, fz = z - cz;
  const unsigned entries = table.extent(1);
  Feature sum = {0, 0};
#pragma unroll
  for (unsigned corner = 0; corner < 8; ++corner) {
    const unsigned dx = corner & 1, dy = corner >> 1 & 1, dz = corner >> 2;
    const float weight = (dx ? fx : 1 - fx) * (dy ? fy : 1 - fy) * (dz ? fz : 1 - fz);
    const Feature feature = table.load(level, place_of<Policy>(cx + dx, cy + dy, cz + dz, side, entries));
    sum.u += weight * feature.u;
    sum.v += weight * feature.v;
  }
  return sum;
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    hash_grid(typename Policy::points points, typename Policy::table table, typename Policy::scale scale,
              typename Policy::resolution resolution, typename Policy::encoding encoding) {
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i >= points.extent(0)) return;
  const Point point = points.load(i);
  if constexpr (Policy::work == Work::level) {
    const unsigned level = blockIdx.y;
    encoding.store(interpolated<Policy>(table, point, level, scale.load(level), resolution.load(level)), i, level);
  } else {
    for (unsigned level = 0; level < table.extent(0); ++level)
      encoding.store(interpolated<Policy>(table, point, level, scale.load(level), resolution.load(level)), i, level);
  }
}

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif

// The points of a thread: where they lie, what their sums are, how these come into the map.
#pragma once
#include "atom.cuh"

// A thread has points_x points of a row in points_z slices. They are adjacent, or a block's width apart so that what a
// warp reads and writes is contiguous, or spread over the whole row: then threads fill row after row, and only a row's
// last points and the last block's threads can be without work.
template <class Policy>
struct Place {
  unsigned row, first_column, step, first_slice, end_slice;

  template <class Map>
  AUTOTUNE_DEVICE Place(const Map& map, unsigned begin, unsigned end)
      : first_slice(begin + blockIdx.z * Policy::points_z), end_slice(end) {
    if constexpr (Policy::points == Points::spread) {
      const unsigned thread = (blockIdx.x * Policy::block_y + threadIdx.y) * Policy::block_x + threadIdx.x;
      step = (map.extent(2) + Policy::points_x - 1) / Policy::points_x;
      row = thread / step;
      first_column = thread % step;
    } else {
      constexpr bool adjacent = Policy::points == Points::adjacent;
      step = adjacent ? 1 : Policy::block_x;
      row = blockIdx.y * Policy::block_y + threadIdx.y;
      first_column =
          blockIdx.x * (Policy::block_x * Policy::points_x) + threadIdx.x * (adjacent ? Policy::points_x : 1);
    }
  }

  AUTOTUNE_DEVICE unsigned column(int p) const { return first_column + p * step; }
  AUTOTUNE_DEVICE unsigned slice(int z) const { return first_slice + z; }

  // Whether the point is there. In a padded map there is room for a block's whole width.
  template <class Map>
  AUTOTUNE_DEVICE bool has(const Map& map, int z, int p) const {
    return (Policy::edges == Edges::padded || column(p) < map.extent(2)) && row < map.extent(1) && slice(z) < end_slice;
  }
};

template <class Policy>
class Sums {
  using Real = RealOf<Policy>;
  static constexpr int nx = Policy::points_x, nz = Policy::points_z, threads = Policy::block_x * Policy::block_y;
  static constexpr bool compensated = Policy::precision == Precision::compensated;
  Real sum_[nz][nx], lost_[compensated ? nz : 1][compensated ? nx : 1] = {};

  AUTOTUNE_DEVICE static float* parked() {
    __shared__ float values[nz * nx * threads];
    return values + threadIdx.y * Policy::block_x + threadIdx.x;
  }

 public:
  // With what the map has so far: in registers, in shared memory until the end, or only at the end.
  template <class Map>
  AUTOTUNE_DEVICE Sums(const Map& map, const Place<Policy>& place) {
#pragma unroll
    for (int z = 0; z < nz; ++z)
#pragma unroll
      for (int p = 0; p < nx; ++p) {
        sum_[z][p] = 0;
        if constexpr (Policy::accumulate != Accumulate::at_end) {
          const float before = place.has(map, z, p) ? map.load(place.slice(z), place.row, place.column(p)) : 0.0f;
          if constexpr (Policy::accumulate == Accumulate::shared)
            parked()[(z * nx + p) * threads] = before;
          else
            sum_[z][p] = before;
        }
      }
  }

  AUTOTUNE_DEVICE void add(int z, int p, const Charge<Policy>& charge, Real s) {
    if constexpr (compensated) {  // what rounding takes away is added up apart
      const Real before = sum_[z][p], term = charge.added(0, s, z * nx + p);
      sum_[z][p] = before + term;
      lost_[z][p] += lost(before, term, sum_[z][p]);
    } else {
      sum_[z][p] = charge.added(sum_[z][p], s, z * nx + p);
    }
  }

  template <class Map>
  AUTOTUNE_DEVICE void store(const Map& map, const Place<Policy>& place) const {
#pragma unroll
    for (int z = 0; z < nz; ++z)
#pragma unroll
      for (int p = 0; p < nx; ++p)
        if (place.has(map, z, p)) {
          Real sum = sum_[z][p];
          if constexpr (compensated) sum += lost_[z][p];
          if constexpr (Policy::accumulate == Accumulate::shared) sum += parked()[(z * nx + p) * threads];
          if constexpr (Policy::accumulate == Accumulate::at_end)
            sum += map.load(place.slice(z), place.row, place.column(p));
          map.store(static_cast<float>(sum), place.slice(z), place.row, place.column(p));
        }
  }
};

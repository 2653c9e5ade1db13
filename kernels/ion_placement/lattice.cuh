// Points of the lattice, the best of many, and what an ion does to one.
#pragma once
#include "autotune/array.cuh"

enum class Update { eager, fused, lazy };
enum class Launch { each, graph, persistent };

constexpr unsigned nowhere = 0xFFFFFFFFu;  // no point is left

AUTOTUNE_DEVICE double infinity() { return __longlong_as_double(0x7FF0000000000000ll); }
AUTOTUNE_DEVICE double excluded() { return __longlong_as_double(0x7FF8000000000000ll); }  // NaN: less than nothing

// Whole numbers, so that a distance is exact in float64.
struct Point {
  double column, row, slice;

  template <class Map>
  AUTOTUNE_DEVICE static Point at(const Map& map, unsigned index) {
    const unsigned line = index / map.extent(2);
    return {static_cast<double>(index % map.extent(2)), static_cast<double>(line % map.extent(1)),
            static_cast<double>(line / map.extent(1))};
  }
  AUTOTUNE_DEVICE double squared_distance(const Point& other) const {
    const double x = column - other.column, y = row - other.row, z = slice - other.slice;
    return x * x + y * y + z * z;
  }
};

struct Ion {
  Point point;
  double charge;

  // What it adds to the potential at another point.
  AUTOTUNE_DEVICE double term(const Point& there, double spacing2) const {
    return charge / sqrt(spacing2 * point.squared_distance(there));
  }
  // What `potential` at `point` becomes. `spacing2` is the squared spacing,
  // `exclusion2` the largest squared distance in points at which no other ion
  // may be.
  AUTOTUNE_DEVICE double added(double potential, const Point& there, double spacing2, double exclusion2) const {
    const double distance2 = point.squared_distance(there);
    return distance2 <= exclusion2 ? excluded() : potential + term(there, spacing2);
  }
};

// The lowest score and the first point that has it. The score is the potential
// for a cation, its negative for an anion.
struct Best {
  double score;
  unsigned index;

  AUTOTUNE_DEVICE static Best none() { return {infinity(), nowhere}; }
  AUTOTUNE_DEVICE void improve(double other_score, unsigned other_index) {
    if (other_score < score || (other_score == score && other_index < index)) {
      score = other_score;
      index = other_index;
    }
  }
};

AUTOTUNE_DEVICE double score_of(double potential, double charge) { return charge > 0 ? potential : -potential; }

// The best of each LANES lanes of a warp, known to all of them.
template <int LANES = 32>
AUTOTUNE_DEVICE Best warp_best(Best mine) {
#pragma unroll
  for (int lanes = LANES / 2; lanes > 0; lanes /= 2) {
    const double score = __shfl_xor_sync(0xffffffffu, mine.score, lanes);
    mine.improve(score, __shfl_xor_sync(0xffffffffu, mine.index, lanes));
  }
  return mine;
}

// The best of a block's threads, known to all of them.
template <int THREADS>
AUTOTUNE_DEVICE Best block_best(Best mine) {
  __shared__ Best of_warp[THREADS / 32];
  mine = warp_best(mine);
  __syncthreads();  // the last call's are read
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  return warp_best<THREADS / 32>(of_warp[threadIdx.x % (THREADS / 32)]);
}

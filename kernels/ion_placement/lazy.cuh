// Bounded-lazy updates: a tile of the map gets the ions placed since it was
// looked at last only when it may hold the next place.
//
// What these ions do to a tile is known to first order in the distance from its
// middle: a sum of values, a sum of gradients, and a sum of bounds on the rest.
// With the lowest and highest potential that the tile had this bounds those it
// has. One point of each tile, where it was lowest, and one where it was
// highest, are kept exact; the best of such points is a value that the next
// place cannot be worse than. Tiles whose bound is not worse are brought up to
// date.
#pragma once
#include "eager.cuh"

// What ions do to a tile, to first order in the distance from its middle;
// `rest` bounds what is missing.
struct Effect {
  float value, x, y, z, rest;
  AUTOTUNE_DEVICE float slope() const { return fabsf(x) + fabsf(y) + fabsf(z); }
};

// The second order, as the half of a symmetric matrix.
struct Curvature {
  float xx, yy, zz, xy, xz, yz;
};

// The map has `applied` ions in the tile's points, and `all` is what those
// since do; `low` and `high` bound its potential without those of `since`.
// low_now and high_now are exact, at the points that were lowest and highest
// when the tile was brought up to date, or NaN when such a point was excluded
// since.
struct Tile {
  double low, high, low_now, high_now;
  unsigned low_index, high_index, applied;
  Effect all, since;
  Curvature curvature;  // of all
  unsigned unused;

  // Not above the tile's best score for an ion of `charge`. `half` is half the
  // tile's edge in angstrom.
  AUTOTUNE_DEVICE double bound(double charge, float half) const {
    const double slack = since.slope() * half + since.rest;
    return charge > 0 ? low + since.value - slack : -high - since.value - slack;
  }
};

template <class Policy>
struct Tiling {
  static constexpr unsigned edge = Policy::tile;
  static constexpr float half_edge = (edge - 1) / 2.0f;  // between points
  unsigned columns, rows, slices;

  template <class Map>
  AUTOTUNE_DEVICE explicit Tiling(const Map& map)
      : columns((map.extent(2) + edge - 1) / edge),
        rows((map.extent(1) + edge - 1) / edge),
        slices((map.extent(0) + edge - 1) / edge) {}
  AUTOTUNE_DEVICE unsigned count() const { return columns * rows * slices; }
  AUTOTUNE_DEVICE unsigned first_column(unsigned tile) const { return tile % columns * edge; }
  AUTOTUNE_DEVICE unsigned first_row(unsigned tile) const { return tile / columns % rows * edge; }
  AUTOTUNE_DEVICE unsigned first_slice(unsigned tile) const { return tile / columns / rows * edge; }

  // Adds an ion to the sums of a tile. Taylor's theorem for 1 / r, whose n-th
  // term is at most (radius / distance)^n / distance: what is missing after n
  // terms is at most radius^n / (distance - radius)^(n + 1). No point that
  // counts is as near to an ion as `nearest`. In float32: each rest grows by
  // more than rounding takes.
  AUTOTUNE_DEVICE void add(Tile& to, unsigned tile, const Ion& ion, float spacing, float nearest) const {
    const float x =
        (static_cast<float>(first_column(tile)) + half_edge - static_cast<float>(ion.point.column)) * spacing;
    const float y = (static_cast<float>(first_row(tile)) + half_edge - static_cast<float>(ion.point.row)) * spacing;
    const float z = (static_cast<float>(first_slice(tile)) + half_edge - static_cast<float>(ion.point.slice)) * spacing;
    const float charge = static_cast<float>(ion.charge), size = fabsf(charge), half = half_edge * spacing;
    const float radius = 1.7320509f * half, distance = sqrtf(x * x + y * y + z * z);
    Effect one = {};
    float rest_of_all;
    if (distance > 2 * radius && distance > nearest) {
      const float inverse = 1 / distance, inner = 1 / (distance - radius), ratio = radius * inner;
      const float field = charge * inverse * inverse * inverse, second = 1.5f * field * inverse * inverse;
      const float rounding = 1e-6f * size * inverse;
      one = {charge * inverse, -field * x, -field * y, -field * z, size * ratio * ratio * inner + rounding};
      rest_of_all = size * ratio * ratio * ratio * inner + rounding;
      Curvature& c = to.curvature;
      c.xx += second * x * x - field / 2;
      c.yy += second * y * y - field / 2;
      c.zz += second * z * z - field / 2;
      c.xy += 2 * second * x * y;
      c.xz += 2 * second * x * z;
      c.yz += 2 * second * y * z;
    } else {
      const float most = 1 / max(distance - radius, nearest), least = 1 / (distance + radius);
      one.value = charge * (most + least) / 2;
      rest_of_all = one.rest = size * ((most - least) / 2 + 1e-6f * most);
    }
    sum(to.since, one, one.rest, half);
    sum(to.all, one, rest_of_all, half);
  }

 private:
  AUTOTUNE_DEVICE static void sum(Effect& to, const Effect& one, float rest, float half) {
    to.value += one.value;
    to.x += one.x;
    to.y += one.y;
    to.z += one.z;
    to.rest += rest;
    to.rest += 2e-7f * (fabsf(to.value) + to.slope() * half + to.rest);
  }
};

// The lowest potential of a tile and the highest, each with the first point
// that has it.
struct Range {
  Best low, high;  // of the negative potential
};

AUTOTUNE_DEVICE Range best_of_warp(const Range& range) { return {warp_best(range.low), warp_best(range.high)}; }

// Applies ions applied .. count - 1 to a tile, in order, and finds its best
// points. The lanes of a warp take part. `from` is where the points are read;
// `last` is ion number count - 1, which `ions` may not have yet.
template <class Policy, class From>
AUTOTUNE_DEVICE Range brought_up(const From& from, const typename Policy::map& map, const typename Policy::ions& ions,
                                 unsigned tile, unsigned applied, unsigned count, const Ion& last, double spacing2,
                                 double exclusion2) {
  constexpr unsigned edge = Policy::tile, points = edge * edge * edge;
  const Tiling<Policy> tiling(map);
  Range range = {Best::none(), Best::none()};
#pragma unroll 1
  for (unsigned p = threadIdx.x % 32; p < points; p += 32) {
    const unsigned column = tiling.first_column(tile) + p % edge, row = tiling.first_row(tile) + p / edge % edge;
    const unsigned slice = tiling.first_slice(tile) + p / (edge * edge);
    if (column >= map.extent(2) || row >= map.extent(1) || slice >= map.extent(0)) continue;
    const Point there = {static_cast<double>(column), static_cast<double>(row), static_cast<double>(slice)};
    double potential = from.load(slice, row, column);
    for (unsigned i = applied; i < count; ++i) {
      const Ion ion = i + 1 == count ? last : ions.load(i);
      if (ion.charge != 0) potential = ion.added(potential, there, spacing2,
                                                 exclusion2);  // 0: there was no place
    }
    const unsigned index = (slice * map.extent(1) + row) * map.extent(2) + column;
    map.store(potential, slice, row, column);
    range.low.improve(potential, index);
    range.high.improve(-potential, index);
  }
  return best_of_warp(range);
}

AUTOTUNE_DEVICE Tile tile_of(const Range& range, unsigned applied) {
  const double low = range.low.score, high = -range.high.score;
  return {low, high, low, high, range.low.index, range.high.index, applied, {}, {}, {}, 0};
}

// Bounds on a tile's potential from those of each of its points, not excluded
// yet. The lanes of a warp take part.
template <class Policy>
AUTOTUNE_DEVICE Range looked_at(const typename Policy::map& map, const Tile& tile, unsigned number, float spacing) {
  constexpr unsigned edge = Policy::tile, points = edge * edge * edge;
  constexpr float half = Tiling<Policy>::half_edge;
  const Tiling<Policy> tiling(map);
  const Effect& all = tile.all;
  const Curvature& c = tile.curvature;
  Range range = {Best::none(), Best::none()};
  for (unsigned p = threadIdx.x % 32; p < points; p += 32) {
    const unsigned i = p % edge, j = p / edge % edge, k = p / (edge * edge);
    const unsigned column = tiling.first_column(number) + i, row = tiling.first_row(number) + j;
    const unsigned slice = tiling.first_slice(number) + k;
    if (column >= map.extent(2) || row >= map.extent(1) || slice >= map.extent(0)) continue;
    const float x = (static_cast<float>(i) - half) * spacing, y = (static_cast<float>(j) - half) * spacing;
    const float z = (static_cast<float>(k) - half) * spacing;
    const float first = all.value + (all.x * x + all.y * y + all.z * z);
    const float second = x * (c.xx * x + c.xy * y + c.xz * z) + y * (c.yy * y + c.yz * z) + c.zz * z * z;
    const double potential = map.load(slice, row, column) + (first + second);
    range.low.improve(potential - all.rest, p);
    range.high.improve(-potential - all.rest, p);
  }
  return best_of_warp(range);
}

// A warp a tile: the map as it is before the first ion.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    begin(typename Policy::potential potential, typename Policy::map map, typename Policy::ions ions,
          typename Policy::tiles tiles, double spacing2, double exclusion2) {
  const unsigned tile = (blockIdx.x * Policy::block_size + threadIdx.x) / 32;
  if (tile >= Tiling<Policy>(map).count()) return;
  const Range range = brought_up<Policy>(potential, map, ions, tile, 0, 0, {}, spacing2, exclusion2);
  if (threadIdx.x % 32 == 0) tiles.store(tile_of(range, 0), tile);
}

// Adds the ion before number `ion` where it may matter and leaves the best
// points for number `ion` in parts; in further rows of parts the best exact
// points for the ion after it, by their potential.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    advance_lazily(typename Policy::map map, typename Policy::charges charges, typename Policy::parts parts,
                   typename Policy::places places, typename Policy::ions ions, typename Policy::tiles tiles,
                   typename Policy::updates updates, double spacing2, double exclusion2, unsigned ion) {
  constexpr unsigned threads = Policy::block_size, points = Policy::tile * Policy::tile * Policy::tile;
  const Tiling<Policy> tiling(map);
  const float spacing = sqrtf(static_cast<float>(spacing2)), half = tiling.half_edge * spacing;
  const float nearest = spacing * max(1.0f, sqrtf(static_cast<float>(exclusion2))) * 0.9999f;
  const double charge = charges.load(ion), next_charge = charges.load(min(ion + 1, charges.extent(0) - 1));
  unsigned last = nowhere;
  Ion placed = {{0, 0, 0}, 0};
  double most = infinity();  // the next score is not above it
  if (ion > 0) {
    last = place_of<Policy>(parts, gridDim.x, ion - 1);
    if (last != nowhere) placed = {Point::at(map, last), charges.load(ion - 1)};
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      places.store(last, ion - 1);
      ions.store(placed, ion - 1);
    }
    Best best = Best::none();
    for (unsigned b = threadIdx.x; b < gridDim.x; b += threads) {
      const Part part = parts.load(2 + (ion - 1) % 2, b);
      if (part.index == nowhere) continue;
      const double potential =
          last == nowhere ? part.score : placed.added(part.score, Point::at(map, part.index), spacing2, exclusion2);
      best.improve(score_of(potential, charge), part.index);
    }
    most = block_best<threads>(best).score;
  }

  __shared__ unsigned listed, list[threads];
  Best best = Best::none(), next = Best::none();
  unsigned long long updated = 0;
  const unsigned count = tiling.count();
  for (unsigned first = blockIdx.x; first < count; first += gridDim.x * threads) {
    if (threadIdx.x == 0) listed = 0;
    __syncthreads();
    const unsigned number = first + threadIdx.x * gridDim.x;
    const bool has = number < count;
    if (has && last != nowhere) {
      Tile tile = tiles.load(number);
      if (tile.low_index != nowhere) {  // else all of its points are excluded
        tile.low_now = placed.added(tile.low_now, Point::at(map, tile.low_index), spacing2, exclusion2);
        tile.high_now = placed.added(tile.high_now, Point::at(map, tile.high_index), spacing2, exclusion2);
        tiling.add(tile, number, placed, spacing, nearest);
        updated += 2;
        tiles.store(tile, number);
        if (tile.bound(charge, half) <= most) list[atomicAdd(&listed, 1u)] = number;
      }
    }
    __syncthreads();
    const bool leads = threadIdx.x % 32 == 0;
    for (unsigned n = threadIdx.x / 32; n < listed; n += threads / 32) {
      Tile tile = tiles.load(list[n]);
      const unsigned applied = tile.applied;
      if (ion - applied > 1) {
        if (leads) updated += points;
        const Range bounds = looked_at<Policy>(map, tile, list[n], spacing);
        if ((charge > 0 ? bounds.low : bounds.high).score > most) {
          tile.low = bounds.low.score;
          tile.high = -bounds.high.score;
          tile.since = {};
          if (leads) tiles.store(tile, list[n]);
          continue;
        }
      }
      const Range range = brought_up<Policy>(map, map, ions, list[n], applied, ion, placed, spacing2, exclusion2);
      if (leads) {
        updated += (ion - applied) * points;
        tiles.store(tile_of(range, ion), list[n]);
      }
    }
    __syncthreads();
    if (has) {
      const Tile tile = tiles.load(number);
      best.improve(charge > 0 ? tile.low_now : -tile.high_now, charge > 0 ? tile.low_index : tile.high_index);
      next.improve(next_charge > 0 ? tile.low_now : -tile.high_now, next_charge > 0 ? tile.low_index : tile.high_index);
    }
    __syncthreads();
  }
  best = block_best<threads>(best);
  next = block_best<threads>(next);
  if (threadIdx.x == 0) {
    parts.store({best.score, best.index, 0}, ion % 2, blockIdx.x);
    parts.store({score_of(next.score, next_charge), next.index, 0}, 2 + ion % 2, blockIdx.x);
  }
  if (updated) updates.add(updated, 0);
}

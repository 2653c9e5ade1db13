// Bounded-lazy updates: a tile of the map is gone over only when an ion is near or when it may hold the next place.
//
// A far ion is added to a few sums of a tile, which bound its potential (tile.cuh). Of each tile the best point of
// when it was looked at last is remembered, with a bound on its score; the best of these is a score that the next
// place cannot be worse than. Tiles whose bound is not worse are looked at: each of their points has a bound of its
// own, a few points pass it, and these are weighed by all ions (scoring.cuh), in the order of eager updates where
// nothing less tells them apart.
//
// A block has every gridDim-th tile. Rows of parts: its best for even and for odd ions; and remembered for those after.
#pragma once
#include "autotune/grid_barrier.cuh"
#include "scoring.cuh"
#include "tile.cuh"

template <class Policy>
struct Lazy {
  static constexpr unsigned threads = Policy::block_size, warps = threads / 32;
  static constexpr unsigned points = Tiling<Policy>::points, turns = (points + 31) / 32;  // of a lane
  static constexpr unsigned near_one = 0x80000000u;                                       // beside a tile's slot
  typename Policy::potential potential;
  typename Policy::map map;
  typename Policy::charges charges;
  typename Policy::parts parts;
  typename Policy::places places;
  typename Policy::ions ions;
  typename Policy::tiles tiles;
  double spacing2, exclusion2;
  Tiling<Policy> tiling;
  unsigned long long updated;

  AUTOTUNE_DEVICE unsigned slots() const { return (tiling.count() + gridDim.x - 1) / gridDim.x; }
  AUTOTUNE_DEVICE unsigned tile_number(unsigned slot) const { return slot * gridDim.x + blockIdx.x; }
  AUTOTUNE_DEVICE unsigned stored_at(unsigned slot) const { return blockIdx.x * slots() + slot; }

  // One step: finds the place of the ion before `ion`, adds it where it may matter, and leaves the best candidates for
  // number `ion` in parts.
  AUTOTUNE_DEVICE void place(unsigned ion) {
    const unsigned count = charges.extent(0);
    if (ion == 0) {
      begin(charges.load(0), charges.load(min(1u, count - 1)));
      return;
    }
    const unsigned last = placed_at(ion - 1);
    if (blockIdx.x == 0 && threadIdx.x == 0) places.store(last, ion - 1);
    if (ion == count) return;
    Ion placed = {{0, 0, 0}, 0};
    if (last != nowhere) placed = {Point::at(map, last), charges.load(ion - 1)};
    if (blockIdx.x == 0 && threadIdx.x == 0) ions.store(placed, ion - 1);
    const double charge = charges.load(ion), next_charge = charges.load(min(ion + 1, count - 1));
    const Scoring<Policy> scoring = {potential, ions, placed, ion - 1, ion, charge, spacing2, updated};
    Candidate best = Candidate::none();
    Best next = Best::none();
    if (last != nowhere) {
      double most = most_of_parts(ion, charge, placed);
      if (most == infinity()) most = most_of_tiles(charge, placed);
      add(scoring, most + 1e-15 * fabs(most), next_charge, best, next);
    }
    leave(ion, scoring, best, next);
  }

  AUTOTUNE_DEVICE void report(const typename Policy::updates& updates) const {
    const unsigned long long sum = warp_sum(updated);
    if (threadIdx.x % 32 == 0 && sum != 0) updates.add(sum, 0);
  }

 private:
  // The map as it is before the first ion, in which all scores are exact.
  AUTOTUNE_DEVICE void begin(double charge, double next_charge) {
    Best best = Best::none(), next = Best::none();
    for (unsigned slot = threadIdx.x / 32; slot < slots(); slot += warps) {
      const unsigned number = tile_number(slot);
      if (number >= tiling.count()) break;
      Range range = {Best::none(), Best::none()};
      for_points(number, [&](const Point& there, unsigned index, unsigned) {
        const double value = of(potential, there);
        keep(value, there);
        range.low.improve(value, index);
        range.high.improve(-value, index);
      });
      Tile tile = {};
      looked_at(tile, {warp_best(range.low), warp_best(range.high)}, number);
      if (threadIdx.x % 32 == 0) tiles.store(tile, stored_at(slot));
      best.improve(score_of(charge > 0 ? tile.low : tile.high, charge), tile.best_point(charge));
      next.improve(score_of(next_charge > 0 ? tile.low : tile.high, next_charge), tile.best_point(next_charge));
    }
    best = block_best<threads>(best);
    next = block_best<threads>(next);
    if (threadIdx.x == 0) {
      parts.store({best.score, best.index, 0}, 0, blockIdx.x);
      parts.store({next.score, next.index, 0}, 2, blockIdx.x);
    }
  }

  // The place of ion number `ion`, known to all threads.
  AUTOTUNE_DEVICE unsigned placed_at(unsigned ion) {
    __shared__ unsigned place;
    __syncthreads();
    if (threadIdx.x < 32) {
      const Scoring<Policy> scoring = {potential, ions, {}, ion, ion, charges.load(ion), spacing2, updated};
      const Candidate best = scoring.best_of(gridDim.x, [&](unsigned block) {
        const Part part = parts.load(ion % 2, block);
        return Candidate{part.score, part.margin, part.index};
      });
      if (threadIdx.x == 0) place = best.index;
    }
    __syncthreads();
    return place;
  }

  // What the score of ion number `ion` is not above: the best of the points that blocks remembered.
  AUTOTUNE_DEVICE double most_of_parts(unsigned ion, double charge, const Ion& placed) {
    Best best = Best::none();
    for (unsigned block = threadIdx.x; block < gridDim.x; block += threads) {
      const Part part = parts.load(2 + (ion - 1) % 2, block);
      if (part.index == nowhere) continue;
      const double now = placed.added(score_of(part.score, charge), Point::at(map, part.index), spacing2, exclusion2);
      best.improve(score_of(now, charge), part.index);
      ++updated;
    }
    return block_best<threads>(best).score;
  }

  // The same from the block's own far tiles, where no remembered point is left.
  AUTOTUNE_DEVICE double most_of_tiles(double charge, const Ion& placed) {
    Best best = Best::none();
    for (unsigned slot = threadIdx.x; slot < slots(); slot += threads) {
      const unsigned number = tile_number(slot);
      if (number >= tiling.count()) break;
      Tile tile = tiles.load(stored_at(slot));
      if (tile.low_point == nowhere) continue;
      ++updated;
      if (tiling.add(tile, number, placed)) remember(best, tile, number, charge);
    }
    return block_best<threads>(best).score;
  }

  AUTOTUNE_DEVICE void add(const Scoring<Policy>& scoring, double most, double next_charge, Candidate& best,
                           Best& next) {
    __shared__ unsigned listed, list[threads], waiting, waits[warps * points];
    const unsigned warp = threadIdx.x / 32;
    for (unsigned first = 0; first < slots(); first += threads) {
      if (threadIdx.x == 0) listed = 0;
      __syncthreads();
      const unsigned slot = first + threadIdx.x, number = tile_number(slot);
      if (slot < slots() && number < tiling.count()) {
        Tile tile = tiles.load(stored_at(slot));
        if (tile.low_point != nowhere) {
          const bool far = tiling.add(tile, number, scoring.last);
          tiles.store(tile, stored_at(slot));
          ++updated;
          if (!far || tile.bound(scoring.charge, tiling.half) <= most) {
            list[atomicAdd(&listed, 1u)] = far ? slot : slot | near_one;
          } else {
            remember(next, tile, number, next_charge);
          }
        }
      }
      __syncthreads();
      for (unsigned n = 0; n < listed; n += warps) {  // a warp a tile, then a warp a point
        if (threadIdx.x == 0) waiting = 0;
        __syncthreads();
        if (n + warp < listed) look(list[n + warp], scoring, most, next_charge, next, waiting, waits);
        __syncthreads();
        for (unsigned point = warp; point < waiting; point += warps) {
          best = scoring.better(best, scoring.close(waits[point]));
        }
        __syncthreads();
      }
      __syncthreads();
    }
  }

  // Bounds the potential of each of a tile's points and puts those that may be the best into `waits`.
  AUTOTUNE_DEVICE void look(unsigned listed, const Scoring<Policy>& scoring, double most, double next_charge,
                            Best& next, unsigned& waiting, unsigned* waits) {
    const bool near = (listed & near_one) != 0;
    const unsigned slot = listed & ~near_one, number = tile_number(slot);
    Tile tile = tiles.load(stored_at(slot));
    double values[turns];
    for_points(number, [&](const Point& there, unsigned, unsigned turn) { values[turn] = of(map, there); });
    Range range = {Best::none(), Best::none()};
    for_points(number, [&](const Point& there, unsigned index, unsigned turn) {
      if (near) {
        values[turn] = scoring.last.added(values[turn], there, spacing2, exclusion2);
        keep(values[turn], there);
      }
      const Offset offset = tiling.offset(number, there);
      const float rest = tiling.rest(tile, offset);
      values[turn] += tile.polynomial.at(offset);
      range.low.improve(values[turn] - rest, index);
      range.high.improve(-values[turn] - rest, index);
    });
    looked_at(tile, {warp_best(range.low), warp_best(range.high)}, number);
    if (threadIdx.x % 32 == 0) {
      tiles.store(tile, stored_at(slot));
      remember(next, tile, number, next_charge);
      updated += points;
    }
    if (tile.bound(scoring.charge, tiling.half) > most) return;
    for_points(number, [&](const Point& there, unsigned index, unsigned turn) {
      const double score = score_of(values[turn] + tile.value, scoring.charge);
      if (score - tiling.rest(tile, tiling.offset(number, there)) <= most) waits[atomicAdd(&waiting, 1u)] = index;
    });
  }

  AUTOTUNE_DEVICE void looked_at(Tile& tile, const Range& range, unsigned number) const {
    tile.low = range.low.score;
    tile.high = -range.high.score;
    tile.low_point = range.low.index;
    tile.high_point = range.high.index;
    tile.since = {};
    tile.width = 0;
    if (tile.low_point == nowhere) return;
    const float low = tiling.rest(tile, tiling.offset(number, Point::at(map, tile.low_point)));
    tile.width = 2 * max(low, tiling.rest(tile, tiling.offset(number, Point::at(map, tile.high_point))));
  }

  AUTOTUNE_DEVICE void remember(Best& next, const Tile& tile, unsigned number, double charge) const {
    const unsigned index = tile.best_point(charge);
    if (index == nowhere) return;
    next.improve(tile.best_score(charge, tiling.offset(number, Point::at(map, index))), index);
  }

  // The block's best of its warps', as parts.
  AUTOTUNE_DEVICE void leave(unsigned ion, const Scoring<Policy>& scoring, const Candidate& best, Best next) {
    __shared__ Candidate of_warp[warps];
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = best;
    next = block_best<threads>(next);
    if (threadIdx.x < 32) {
      const Candidate of_block = scoring.best_of(warps, [&](unsigned warp) { return of_warp[warp]; });
      if (threadIdx.x == 0) {
        parts.store({of_block.score, of_block.index, of_block.margin}, ion % 2, blockIdx.x);
        parts.store({next.score, next.index, 0}, 2 + ion % 2, blockIdx.x);
      }
    }
  }

  // Calls visit(point, index, turn) for the lane's share of a tile's points.
  template <class Visit>
  AUTOTUNE_DEVICE void for_points(unsigned number, Visit visit) const {
    constexpr unsigned edge = Policy::tile;
    const unsigned first_column = tiling.first_column(number), first_row = tiling.first_row(number);
    const unsigned first_slice = tiling.first_slice(number);
#pragma unroll
    for (unsigned turn = 0; turn < turns; ++turn) {
      const unsigned p = turn * 32 + threadIdx.x % 32, column = first_column + p % edge;
      const unsigned row = first_row + p / edge % edge, slice = first_slice + p / (edge * edge);
      if (p < points && column < map.extent(2) && row < map.extent(1) && slice < map.extent(0)) {
        const Point there = {static_cast<double>(column), static_cast<double>(row), static_cast<double>(slice)};
        visit(there, (slice * map.extent(1) + row) * map.extent(2) + column, turn);
      }
    }
  }
  template <class Array>
  AUTOTUNE_DEVICE static double of(const Array& array, const Point& there) {
    return array.load(static_cast<unsigned>(there.slice), static_cast<unsigned>(there.row),
                      static_cast<unsigned>(there.column));
  }
  AUTOTUNE_DEVICE void keep(double value, const Point& there) const {
    map.store(value, static_cast<unsigned>(there.slice), static_cast<unsigned>(there.row),
              static_cast<unsigned>(there.column));
  }
};

// One step.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size, 1)
    place(typename Policy::potential potential, typename Policy::map map, typename Policy::charges charges,
          typename Policy::parts parts, typename Policy::places places, typename Policy::ions ions,
          typename Policy::tiles tiles, typename Policy::updates updates, double spacing2, double exclusion2,
          unsigned ion) {
  if constexpr (Policy::update == Update::lazy && Policy::launch != Launch::persistent) {
    Lazy<Policy> lazy = {potential, map,   charges,  parts,      places,
                         ions,      tiles, spacing2, exclusion2, Tiling<Policy>(map, spacing2, exclusion2),
                         0};
    lazy.place(ion);
    lazy.report(updates);
  }
}

// All steps in one cooperative launch.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size, 1)
    place_all(typename Policy::potential potential, typename Policy::map map, typename Policy::charges charges,
              typename Policy::parts parts, typename Policy::places places, typename Policy::ions ions,
              typename Policy::tiles tiles, typename Policy::updates updates, double spacing2, double exclusion2,
              typename Policy::barrier barrier) {
  if constexpr (Policy::update == Update::lazy && Policy::launch == Launch::persistent) {
    Lazy<Policy> lazy = {potential, map,   charges,  parts,      places,
                         ions,      tiles, spacing2, exclusion2, Tiling<Policy>(map, spacing2, exclusion2),
                         0};
    const unsigned count = charges.extent(0);
#pragma unroll 1
    for (unsigned ion = 0; ion <= count; ++ion) {
      if (ion > 0) autotune::grid_barrier(barrier.memory.base);
      lazy.place(ion);
    }
    lazy.report(updates);
  }
}

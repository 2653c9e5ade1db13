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
#include "autotune/element.cuh"
#include "autotune/grid_barrier.cuh"
#include "scoring.cuh"
#include "tile_team.cuh"

template <class Policy>
struct Lazy {
  using Team = TileTeam<Policy>;
  static constexpr unsigned threads = Policy::block_size, warps = threads / 32;
  static constexpr unsigned held = (Policy::lazy_blocks + threads - 1) / threads;  // blocks' parts, by a thread
  static constexpr unsigned near_one = 0x80000000u;                                // beside a tile's slot
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
  AUTOTUNE_DEVICE bool is_tile(unsigned slot) const { return slot < slots() && tile_number(slot) < tiling.count(); }

  // One step: finds the place of the ion before `ion`, adds it where it may matter, and leaves the best candidates for
  // number `ion` in parts.
  AUTOTUNE_DEVICE void place(unsigned ion) {
    const unsigned count = charges.extent(0);
    if (ion == 0) {
      begin(charges.load(0), charges.load(min(1u, count - 1)));
      return;
    }
    // What does not depend on the last ion's place is loaded first: a load takes as long as much of what follows.
    Part placed_parts[held], next_parts[held];
    load_parts((ion - 1) % 2, placed_parts);
    load_parts(2 + (ion - 1) % 2, next_parts);
    const double last_charge = charges.load(ion - 1), charge = charges.load(min(ion, count - 1));
    const double next_charge = charges.load(min(ion + 1, count - 1));
    Tile first_tile = {};
    if (is_tile(threadIdx.x)) first_tile = tiles.load(stored_at(threadIdx.x));

    const unsigned last = placed_at(ion - 1, last_charge, placed_parts);
    if (blockIdx.x == 0 && threadIdx.x == 0) places.store(last, ion - 1);
    if (ion == count) return;
    Ion placed = {{0, 0, 0}, 0};
    if (last != nowhere) placed = {Point::at(map, last), last_charge};
    if (blockIdx.x == 0 && threadIdx.x == 0) ions.store(placed, ion - 1);
    const Scoring<Policy> scoring = {potential, ions, placed, ion - 1, ion, charge, spacing2, updated};
    Candidate best = Candidate::none();
    Best next = Best::none();
    if (last != nowhere) {
      double most = most_of_parts(charge, placed, next_parts);
      if (most == infinity()) most = most_of_tiles(charge, placed);
      add(scoring, first_tile, most + 1e-15 * fabs(most), next_charge, best, next);
    }
    leave(ion, best, next);
  }

  AUTOTUNE_DEVICE void report(const typename Policy::updates& updates) const {
    const unsigned long long sum = autotune::warp::sum(updated);
    if (threadIdx.x % 32 == 0 && sum != 0) updates.add(sum, 0);
  }

 private:
  // The map as it is before the first ion, in which all scores are exact.
  AUTOTUNE_DEVICE void begin(double charge, double next_charge) {
    Best best = Best::none(), next = Best::none();
    for (unsigned first = 0; first < slots(); first += Team::count) {
      const unsigned slot = first + Team::number(), number = tile_number(slot);
      Range range = {Best::none(), Best::none()};
      if (is_tile(slot)) {
        Team::for_points(tiling, map, number, [&](const Point& there, unsigned index, unsigned) {
          const double value = of(potential, there);
          keep(value, there);
          range.low.improve(value, index);
          range.high.improve(-value, index);
        });
      }
      range = Team::range(range);
      if (!is_tile(slot) || !Team::first_thread()) continue;
      Tile tile = {};
      tiling.looked_at(tile, range, number, map);
      tiles.store(tile, stored_at(slot));
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

  // The thread's share of what blocks left in a row of parts.
  AUTOTUNE_DEVICE void load_parts(unsigned row, Part (&mine)[held]) const {
#pragma unroll
    for (unsigned n = 0; n < held; ++n) {
      const unsigned block = n * threads + threadIdx.x;
      mine[n] = {infinity(), nowhere, 0};
      if (block < gridDim.x) mine[n] = parts.load(row, block);
    }
  }

  // The place of ion number `ion`, known to all threads.
  AUTOTUNE_DEVICE unsigned placed_at(unsigned ion, double charge, const Part (&mine)[held]) {
    __shared__ unsigned place;
    __shared__ Candidate of_warp[warps];
    const Scoring<Policy> scoring = {potential, ions, {}, ion, ion, charge, spacing2, updated};
    Candidate best = Candidate::none();
#pragma unroll
    for (unsigned n = 0; n < held; ++n) {
      best = scoring.better(best, scoring.best_of({mine[n].score, mine[n].margin, mine[n].index}));
    }
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = best;
    __syncthreads();
    if (threadIdx.x < 32) {
      best = scoring.best_of(threadIdx.x < warps ? of_warp[threadIdx.x] : Candidate::none());
      if (threadIdx.x == 0) place = best.index;
    }
    __syncthreads();
    return place;
  }

  // What the next ion's score is not above: the best of the points that blocks remembered.
  AUTOTUNE_DEVICE double most_of_parts(double charge, const Ion& placed, const Part (&mine)[held]) {
    Best best = Best::none();
#pragma unroll
    for (unsigned n = 0; n < held; ++n) {
      const Part& part = mine[n];
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
    for (unsigned slot = threadIdx.x; is_tile(slot); slot += threads) {
      const unsigned number = tile_number(slot);
      Tile tile = tiles.load(stored_at(slot));
      if (tile.low_point == nowhere) continue;
      ++updated;
      if (tiling.add(tile, number, placed)) remember(best, tile, number, charge);
    }
    return block_best<threads>(best).score;
  }

  AUTOTUNE_DEVICE void add(const Scoring<Policy>& scoring, const Tile& first_tile, double most, double next_charge,
                           Candidate& best, Best& next) {
    __shared__ unsigned listed, list[threads], waiting, waits[Team::count * Team::points];
    for (unsigned first = 0; first < slots(); first += threads) {
      if (threadIdx.x == 0) listed = 0;
      __syncthreads();
      const unsigned slot = first + threadIdx.x, number = tile_number(slot);
      if (is_tile(slot)) {
        Tile tile = first == 0 ? first_tile : tiles.load(stored_at(slot));
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
      for (unsigned n = 0; n < listed; n += Team::count) {  // a team a tile, then the block a point
        if (threadIdx.x == 0) waiting = 0;
        const unsigned mine = n + Team::number();
        look(mine < listed ? list[mine] : nowhere, scoring, most, next_charge, next, waiting, waits);
        __syncthreads();
        best = scoring.closest(best, waits, waiting);
        __syncthreads();
      }
      __syncthreads();
    }
  }

  // Bounds the potential of each of a tile's points and puts those that may be the best into `waits`. All threads of
  // the block are here, those of a team without a tile for its barriers only.
  AUTOTUNE_DEVICE void look(unsigned listed, const Scoring<Policy>& scoring, double most, double next_charge,
                            Best& next, unsigned& waiting, unsigned* waits) {
    const bool some = listed != nowhere, near = (listed & near_one) != 0;
    const unsigned slot = some ? listed & ~near_one : 0, number = tile_number(slot);
    Tile tile = {};
    double values[Team::turns] = {};
    Range range = {Best::none(), Best::none()};
    if (some) {
      Team::for_points(tiling, map, number,
                       [&](const Point& there, unsigned, unsigned turn) { values[turn] = of(map, there); });
      tile = tiles.load(stored_at(slot));
      Team::for_points(tiling, map, number, [&](const Point& there, unsigned index, unsigned turn) {
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
    }
    range = Team::range(range);
    if (!some) return;
    tiling.looked_at(tile, range, number, map);
    if (Team::first_thread()) {
      tiles.store(tile, stored_at(slot));
      remember(next, tile, number, next_charge);
      updated += Team::points;
    }
    if (tile.bound(scoring.charge, tiling.half) > most) return;
    Team::for_points(tiling, map, number, [&](const Point& there, unsigned index, unsigned turn) {
      const double score = score_of(values[turn] + tile.value, scoring.charge);
      if (score - tiling.rest(tile, tiling.offset(number, there)) <= most) waits[atomicAdd(&waiting, 1u)] = index;
    });
  }

  AUTOTUNE_DEVICE void remember(Best& next, const Tile& tile, unsigned number, double charge) const {
    const unsigned index = tile.best_point(charge);
    if (index == nowhere) return;
    next.improve(tile.best_score(charge, tiling.offset(number, Point::at(map, index))), index);
  }

  // The block's best, which the first warp has, and the best to remember of all threads', as parts.
  AUTOTUNE_DEVICE void leave(unsigned ion, const Candidate& best, Best next) {
    next = block_best<threads>(next);
    if (threadIdx.x == 0) {
      parts.store({best.score, best.index, best.margin}, ion % 2, blockIdx.x);
      parts.store({next.score, next.index, 0}, 2 + ion % 2, blockIdx.x);
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
      if (ion > 0) autotune::grid_barrier(&autotune::element(barrier, 0));
      lazy.place(ion);
    }
    lazy.report(updates);
  }
}

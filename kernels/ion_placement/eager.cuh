// Eager and fused updates: every point for every ion. A block leaves the best of its points in `parts`, one half for
// even ions and one for odd; the next launch's blocks each find the best of those.
#pragma once
#include "lattice.cuh"

// As parts holds it: 16 bytes. The score is known within `margin`, which only lazy updates leave above 0.
struct Part {
  double score;
  unsigned index;
  float margin;
};

// Calls visit(column, row, slice, index) for the block's share of the points.
template <class Policy, class Map, class Visit>
AUTOTUNE_DEVICE void for_points(const Map& map, Visit visit) {
  const unsigned columns = map.extent(2), rows = map.extent(1), points = columns * rows * map.extent(0);
  for (unsigned long long at = blockIdx.x * 1ull * Policy::block_size + threadIdx.x; at < points;
       at += gridDim.x * 1ull * Policy::block_size) {
    const unsigned index = static_cast<unsigned>(at), line = index / columns;
    visit(index % columns, line % rows, line / rows, index);
  }
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    copy(typename Policy::potential potential, typename Policy::map map) {
  for_points<Policy>(map, [&](unsigned column, unsigned row, unsigned slice, unsigned) {
    map.store(potential.load(slice, row, column), slice, row, column);
  });
}

// The place of ion number `ion`, from the parts of `blocks` blocks.
template <class Policy>
AUTOTUNE_DEVICE unsigned place_of(const typename Policy::parts& parts, unsigned blocks, unsigned ion) {
  Best best = Best::none();
  for (unsigned b = threadIdx.x; b < blocks; b += Policy::block_size) {
    const Part part = parts.load(ion % 2, b);
    best.improve(part.score, part.index);
  }
  return block_best<Policy::block_size>(best).index;
}

// Goes over the block's share of the points: adds ion number ADDED, if any, and notes the best for number SOUGHT.
template <class Policy>
AUTOTUNE_DEVICE void sweep(const typename Policy::map& map, const typename Policy::charges& charges,
                           const typename Policy::parts& parts, const typename Policy::places& places, unsigned added,
                           unsigned sought, double spacing2, double exclusion2) {
  Ion ion = {{0, 0, 0}, 0};
  bool adds = false;
  if (added != nowhere) {
    const unsigned place = place_of<Policy>(parts, gridDim.x, added);
    if (blockIdx.x == 0 && threadIdx.x == 0) places.store(place, added);
    adds = place != nowhere;
    if (adds) ion = {Point::at(map, place), charges.load(added)};
  }
  const double charge = sought == nowhere ? 1 : charges.load(sought);
  Best best = Best::none();
  for_points<Policy>(map, [&](unsigned column, unsigned row, unsigned slice, unsigned index) {
    double potential = map.load(slice, row, column);
    if (adds) {
      const Point there = {static_cast<double>(column), static_cast<double>(row), static_cast<double>(slice)};
      potential = ion.added(potential, there, spacing2, exclusion2);
      map.store(potential, slice, row, column);
    }
    best.improve(score_of(potential, charge), index);
  });
  if (sought == nowhere) return;
  best = block_best<Policy::block_size>(best);
  if (threadIdx.x == 0) parts.store({best.score, best.index, 0}, sought % 2, blockIdx.x);
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    search(typename Policy::map map, typename Policy::charges charges, typename Policy::parts parts,
           typename Policy::places places, double spacing2, double exclusion2, unsigned ion) {
  sweep<Policy>(map, charges, parts, places, nowhere, ion, spacing2, exclusion2);
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    update(typename Policy::map map, typename Policy::charges charges, typename Policy::parts parts,
           typename Policy::places places, double spacing2, double exclusion2, unsigned ion) {
  sweep<Policy>(map, charges, parts, places, ion, nowhere, spacing2, exclusion2);
}

// Both in one pass: adds the ion before `ion` and searches for `ion`.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    advance(typename Policy::map map, typename Policy::charges charges, typename Policy::parts parts,
            typename Policy::places places, double spacing2, double exclusion2, unsigned ion) {
  sweep<Policy>(map, charges, parts, places, ion - 1, ion, spacing2, exclusion2);
}

// The last ion's place; it need not be added.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    finish(typename Policy::parts parts, typename Policy::places places, unsigned ion, unsigned blocks) {
  const unsigned place = place_of<Policy>(parts, blocks, ion);
  if (threadIdx.x == 0) places.store(place, ion);
}

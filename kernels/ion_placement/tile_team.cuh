// The threads of a block that go over a tile together.
#pragma once
#include "tile.cuh"

template <class Policy>
struct TileTeam {
  static constexpr unsigned points = Tiling<Policy>::points;
  static constexpr unsigned threads = points > 64 ? 128 : 64;          // of a team
  static constexpr unsigned count = Policy::block_size / threads;      // of a block
  static constexpr unsigned turns = (points + threads - 1) / threads;  // of a thread

  AUTOTUNE_DEVICE static unsigned number() { return threadIdx.x / threads; }
  AUTOTUNE_DEVICE static bool first_thread() { return threadIdx.x % threads == 0; }

  // Calls visit(point, index, turn) for the thread's share of a tile's points.
  template <class Map, class Visit>
  AUTOTUNE_DEVICE static void for_points(const Tiling<Policy>& tiling, const Map& map, unsigned tile, Visit visit) {
    constexpr unsigned edge = Policy::tile;
    const unsigned first_column = tiling.first_column(tile), first_row = tiling.first_row(tile);
    const unsigned first_slice = tiling.first_slice(tile);
#pragma unroll
    for (unsigned turn = 0; turn < turns; ++turn) {
      const unsigned p = turn * threads + threadIdx.x % threads, column = first_column + p % edge;
      const unsigned row = first_row + p / edge % edge, slice = first_slice + p / (edge * edge);
      if (p < points && column < map.extent(2) && row < map.extent(1) && slice < map.extent(0)) {
        const Point there = {static_cast<double>(column), static_cast<double>(row), static_cast<double>(slice)};
        visit(there, (slice * map.extent(1) + row) * map.extent(2) + column, turn);
      }
    }
  }

  // The range of all of a team's threads, known to all of them. All threads of the block are here.
  AUTOTUNE_DEVICE static Range range(const Range& mine) {
    __shared__ Range of_warp[Policy::block_size / 32];
    const Range warp = {warp_best(mine.low), warp_best(mine.high)};
    __syncthreads();  // the last call's are read
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = warp;
    __syncthreads();
    const Range& other = of_warp[number() * (threads / 32) + threadIdx.x % (threads / 32)];
    return {warp_best<threads / 32>(other.low), warp_best<threads / 32>(other.high)};
  }
};

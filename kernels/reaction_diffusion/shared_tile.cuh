// field_memory shared: a block keeps a tile with its halo in shared memory, twice, and steps between the two. A thread
// has vector_width columns a warp apart in `strip` rows a block's warps apart.
#pragma once
#include "autotune/shared.cuh"
#include "tile.cuh"

template <class Policy>
struct SharedTile {
  static constexpr int columns = Policy::vector_width, rows = Policy::strip, warps = Policy::block_size / 32;
  static constexpr int width = 32 * columns, height = warps * rows;
  using Number = Real<Policy>;
  using Place = Blocked<Policy, width, height>;

  const Surroundings<Policy>& around;
  Place place;
  int lane, warp;

  AUTOTUNE_DEVICE SharedTile(const Surroundings<Policy>& around_, unsigned tile)
      : around(around_),
        place(tile, around_.columns),
        lane(static_cast<int>(threadIdx.x) % 32),
        warp(static_cast<int>(threadIdx.x) / 32) {}

  AUTOTUNE_DEVICE unsigned long long advance(const Field<Number>& from, const Field<Number>& to, unsigned steps,
                                             bool sampled) {
    Number* const tile = autotune::dynamic_shared<Number>();
    const int x = place.left - Place::halo_x + lane, y = place.top - Place::halo_y + warp;
    OwnTile<Policy, rows, columns> own;
    SidesTile<rows, columns> sides;
    const Mirrored<columns, 32> mirrored{x, around.columns};
    own.load(around.medium, y, warps, mirrored);
    if constexpr (Policy::boundary == Boundary::mask) sides.load(around, y, warps, mirrored);
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const auto loaded = mirrored.load(from, folded(y + r * warps, around.rows));
#pragma unroll
      for (int j = 0; j < columns; ++j) tile[index(0, r, j)] = loaded.at[j];
    }
    const Number d = around.medium.rates.diffusion;
    unsigned buffer = 0;
    for (unsigned step = 0; step < steps; ++step, buffer ^= 1) {
      __syncthreads();
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const int tile_y = warp + r * warps, above = tile_y ? -width : 0, below = tile_y < height - 1 ? width : 0;
#pragma unroll
        for (int j = 0; j < columns; ++j) {
          const int tile_x = lane + 32 * j, here = index(buffer, r, j);
          const Number c = tile[here], north = tile[here + above], south = tile[here + below];
          const Number west = tile[here - (tile_x ? 1 : 0)], east = tile[here + (tile_x < width - 1 ? 1 : 0)];
          const Number a = own.at(around.medium, r, j);
          Number next;
          if constexpr (Policy::boundary == Boundary::mask)
            next = walled(sides.at(r, j), a, d, c, north, south, west, east);
          else
            next = advanced(a, d, c, north, south, west, east);
          tile[index(buffer ^ 1, r, j)] = next;
        }
      }
    }
    // A thread reads what it wrote itself. The next tile of a persistent block begins with a barrier.
    unsigned long long sum = 0;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const int row = y + r * warps;
      if (!place.row(row) || row >= around.rows) continue;
#pragma unroll
      for (int j = 0; j < columns; ++j) {
        const int column = x + 32 * j;
        if (!place.column(column) || column >= around.columns) continue;
        const Number c = tile[index(buffer, r, j)];
        to.set_point(c, row, column);
        if (sampled) sum += around.detected(c, row, column);
      }
    }
    __syncthreads();
    return sum;
  }

 private:
  AUTOTUNE_DEVICE int index(unsigned buffer, int r, int j) const {
    return (static_cast<int>(buffer) * height + warp + r * warps) * width + lane + 32 * j;
  }
};

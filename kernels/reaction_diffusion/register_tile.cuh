// field_memory register_tile: a block keeps a tile with its halo in registers. A warp has 32 * vector_width columns of
// `strip` rows, a thread vector_width columns of them: neighbours to the left and right come by shuffles, those above
// and below are registers, and only the first and last row of a warp go through shared memory, once a step.
#pragma once
#include "autotune/shared.cuh"
#include "tile.cuh"

template <class Policy>
struct RegisterTile {
  static constexpr int columns = Policy::vector_width, rows = Policy::strip, warps = Policy::block_size / 32;
  static constexpr int width = 32 * columns, height = warps * rows;
  using Number = Real<Policy>;
  using Row = Points<Number, columns>;
  using Place = Blocked<Policy, width, height>;
  struct Edges {
    Row row[2][warps][2][32];  // by step's parity, warp, upper or lower, lane
  };

  // Where a thread's points are: `x` of the first column, `y` of the first row. Made anew in every phase.
  struct Location {
    Place place;
    int x, y;
    Mirrored<columns, 1> mirrored;

    AUTOTUNE_DEVICE Location(int tile, int field_columns)
        : place(static_cast<unsigned>(opaque(tile)), field_columns),
          x(place.left - Place::halo_x + static_cast<int>(threadIdx.x) % 32 * columns),
          y(place.top - Place::halo_y + static_cast<int>(threadIdx.x) / 32 * rows),
          mirrored(x, field_columns) {}
  };

  const Surroundings<Policy>& around;
  int tile;
  Row c[rows];
  OwnTile<Policy, rows, columns> own;
  SidesTile<rows, columns> sides;
  bool plain;  // no point of the warp has a closed side

  AUTOTUNE_DEVICE RegisterTile(const Surroundings<Policy>& around_, unsigned tile_)
      : around(around_), tile(static_cast<int>(tile_)) {
    const Location at{tile, around.columns};
    own.load(around.medium, at.y, 1, at.mirrored);
    if constexpr (Policy::boundary == Boundary::mask) {
      sides.load(around, at.y, 1, at.mirrored);
      plain = !__any_sync(0xffffffffu, sides.any_closed);
    }
  }

  AUTOTUNE_DEVICE void load(const Field<Number>& from) {
    const Location at{tile, around.columns};
#pragma unroll
    for (int r = 0; r < rows; ++r) c[r] = at.mirrored.load(from, folded(at.y + r, around.rows));
  }

  // `c` by up to time_block steps.
  AUTOTUNE_DEVICE void advance(unsigned steps) {
    if constexpr (Policy::boundary == Boundary::mask) {
      // Every warp meets the same barriers, whichever it takes.
      if (plain)
        march<false>(steps);
      else
        march<true>(steps);
    } else {
      march<false>(steps);
    }
  }

  // All useful points of the tile.
  AUTOTUNE_DEVICE void store(const Field<Number>& to) const {
    const Location at{tile, around.columns};
    if (!at.place.column(at.x) || at.x >= around.columns) return;
#pragma unroll
    for (int r = 0; r < rows; ++r)
      if (at.place.row(at.y + r) && at.y + r < around.rows) to.store_inside(c[r], at.y + r, at.x);
  }

  // What the useful points add to F.
  AUTOTUNE_DEVICE unsigned long long detected() const {
    const Location at{tile, around.columns};
    unsigned long long sum = 0;
    if (!at.place.column(at.x) || at.x >= around.columns) return sum;
#pragma unroll
    for (int r = 0; r < rows; ++r)
      if (at.place.row(at.y + r) && at.y + r < around.rows) sum += around.detected(c[r], at.y + r, at.x);
    return sum;
  }

  // For a block that keeps its tile: the useful points that halos show, those of other tiles or, as a mirror image
  // behind a wall, its own.
  AUTOTUNE_DEVICE void store_rim(const Field<Number>& to) const {
    const Location at{tile, around.columns};
    const int left = at.place.left, top = at.place.top;
    if (!at.place.column(at.x) || at.x >= around.columns) return;
    const bool beside = at.x < left + Place::halo_x || at.x + columns > left + Place::useful_x - Place::halo_x ||
                        at.x + columns > around.columns - Place::halo_x;
    const int lower = min(top + Place::useful_y, around.rows) - Place::halo_y;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const int row = at.y + r;
      if (!at.place.row(row) || row >= around.rows) continue;
      if (beside || row < top + Place::halo_y || row >= lower) to.store_inside(c[r], row, at.x);
    }
  }
  // All that is not useful: behind a wall as far as the halo reaches, the rest being of no use to anyone.
  AUTOTUNE_DEVICE void load_halo(const Field<Number>& from) {
    const Location at{tile, around.columns};
    if (around.rows < height)
      load_halo_rows<false, false>(from, at);
    else if (at.mirrored.together)
      load_halo_rows<true, true>(from, at);
    else
      load_halo_rows<true, false>(from, at);
  }

 private:
  // Loads without a branch between them, so that all are under way at once. ONCE: no row lies behind two walls.
  template <bool ONCE, bool TOGETHER>
  AUTOTUNE_DEVICE void load_halo_rows(const Field<Number>& from, const Location& at) {
    const bool beside = !at.place.column(at.x) || at.x + columns > around.columns;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const int y = at.y + r;
      if (!beside && at.place.row(y) && y < around.rows) continue;
      const int once = y < 0 ? -1 - y : y < around.rows ? y : 2 * around.rows - 1 - y;
      const int row = ONCE ? once : folded(y, around.rows);
      if constexpr (TOGETHER) {
        c[r] = from.template load<columns>(row, at.x);
      } else {
#pragma unroll
        for (int j = 0; j < columns; ++j) c[r].at[j] = from.point(row, at.mirrored.at[j]);
      }
    }
  }

  template <bool WALLS>
  AUTOTUNE_DEVICE Row advanced_row(int r, const Row& north, const Row& here, const Row& south) const {
    const Number west_of = __shfl_up_sync(0xffffffffu, here.at[columns - 1], 1);
    const Number east_of = __shfl_down_sync(0xffffffffu, here.at[0], 1);
    const Number d = around.medium.rates.diffusion;
    Row next;
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      const Number west = j ? here.at[j ? j - 1 : 0] : west_of;
      const Number east = j < columns - 1 ? here.at[j < columns - 1 ? j + 1 : 0] : east_of;
      const Number a = own.at(around.medium, r, j);
      if constexpr (WALLS)
        next.at[j] = walled(sides.at(r, j), a, d, here.at[j], north.at[j], south.at[j], west, east);
      else
        next.at[j] = advanced(a, d, here.at[j], north.at[j], south.at[j], west, east);
    }
    return next;
  }

  template <bool WALLS>
  AUTOTUNE_DEVICE void march(unsigned steps) {
    Edges& edges = *autotune::dynamic_shared<Edges>();
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int above = warp ? warp - 1 : 0, below = warp < warps - 1 ? warp + 1 : warp;
    unsigned parity = 0;
#pragma unroll 2
    for (unsigned step = 0; step < steps; ++step, parity ^= 1) {
      edges.row[parity][warp][0][lane] = c[0];
      edges.row[parity][warp][1][lane] = c[rows - 1];
      // The rows that need nothing of others come before the barrier, so that warps are seldom waited for.
      const Row first = c[0], second = c[rows > 1 ? 1 : 0], last_but_one = c[rows > 1 ? rows - 2 : 0];
      Row north = first;
#pragma unroll
      for (int r = 1; r < rows - 1; ++r) {
        const Row here = c[r];
        c[r] = advanced_row<WALLS>(r, north, here, c[r + 1]);
        north = here;
      }
      __syncthreads();
      const Row upper = edges.row[parity][above][1][lane], lower = edges.row[parity][below][0][lane];
      if constexpr (rows == 1) {
        c[0] = advanced_row<WALLS>(0, upper, first, lower);
      } else {
        const Row last = c[rows - 1];
        c[0] = advanced_row<WALLS>(0, upper, first, second);
        c[rows - 1] = advanced_row<WALLS>(rows - 1, last_but_one, last, lower);
      }
    }
    // The next march may begin with the same parity, and F is summed up in the same memory.
    __syncthreads();
  }
};

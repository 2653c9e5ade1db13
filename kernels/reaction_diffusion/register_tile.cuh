// field_memory register_tile: a block keeps a tile with its halo in registers. A warp has 32 * vector_width columns of
// `strip` rows, a thread vector_width columns of them: neighbours to the left and right come by shuffles, those above
// and below are registers, and only the first and last row of a warp go through shared memory, once a step.
#pragma once
#include "autotune/shared.cuh"
#include "step_barrier.cuh"
#include "tile.cuh"

template <class Policy>
struct RegisterTile {
  static constexpr int columns = Policy::vector_width, rows = Policy::strip, warps = Policy::block_size / 32;
  static constexpr int width = 32 * columns, height = warps * rows, all_rows = (1 << rows) - 1;
  using Number = Real<Policy>;
  using Row = Points<Number, columns>;
  using Place = Blocked<Policy, width, height>;
  struct Edges {
    Row row[2][warps][2][32];  // by step's parity, warp, upper or lower, lane
    StepBarrier stored;
  };
  // Where registers are short, `own` is computed at every step, and not in the dark.
  static constexpr bool by_light = Policy::min_blocks > 1 && Policy::coefficient != Coefficient::stored;

  // Where a thread's points are: `x` of the first column, `y` of the first row. Made anew in every phase.
  struct Location {
    Place place;
    int x, y;

    AUTOTUNE_DEVICE explicit Location(int tile)
        : place(opaque(tile) & 0xffff, opaque(tile) >> 16),
          x(place.left - Place::halo_x + static_cast<int>(threadIdx.x) % 32 * columns),
          y(place.top - Place::halo_y + static_cast<int>(threadIdx.x) / 32 * rows) {}
  };

  const Surroundings<Policy>& around;
  int tile;  // its column of tiles, and its row in the upper half
  Row c[rows];
  OwnTile<Policy, rows, columns, !by_light> own;
  SidesTile<rows, columns> sides;
  bool plain;  // no point of the warp has a closed side
  bool lit;    // `own` may differ from `still` in the warp

  AUTOTUNE_DEVICE RegisterTile(const Surroundings<Policy>& around_, unsigned number) : around(around_) {
    const unsigned across = (around.columns + Place::useful_x - 1) / Place::useful_x;
    tile = static_cast<int>(number % across | number / across << 16);
    const Location at{tile};
    const Mirrored<columns, 1> mirrored{at.x, around.columns};
    own.load(around.medium, at.y, 1, mirrored);
    if constexpr (by_light) lit = own.any_lit();
    if constexpr (Policy::boundary == Boundary::mask) {
      sides.load(around, at.y, 1, mirrored);
      plain = !__any_sync(0xffffffffu, sides.any_closed);
    }
  }

  AUTOTUNE_DEVICE void load(const Field<Number>& from) { load_rows(from, all_rows); }

  // Once a launch, by all threads of the block, before the first tile is advanced.
  static AUTOTUNE_DEVICE void begin() {
    autotune::dynamic_shared<Edges>()->stored.begin(warps);
    __syncthreads();
  }

  // `c` by up to time_block steps. Every warp meets the same barriers, whichever way it takes.
  AUTOTUNE_DEVICE void advance(unsigned steps) {
    if constexpr (Policy::boundary == Boundary::mask) {
      if (!plain) return march<true, true>(steps);
    }
    if constexpr (by_light) {
      if (!lit) return march<false, false>(steps);
    }
    march<false, true>(steps);
  }

  // All useful points of the tile.
  AUTOTUNE_DEVICE void store(const Field<Number>& to) const { store_rows(to, useful_rows()); }

  // Which of a thread's points the detector sees, a bit each.
  AUTOTUNE_DEVICE unsigned long long seen() const {
    const Location at{tile};
    const int useful = useful_rows();
    unsigned long long bits = 0;
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int j = 0; j < columns; ++j)
        if ((useful >> r & 1) && at.x + j < around.columns && around.detector.load(at.y + r, at.x + j))
          bits |= 1ull << (r * columns + j);
    return bits;
  }
  // What those add to F.
  AUTOTUNE_DEVICE unsigned long long detected(unsigned long long bits) const {
    unsigned long long sum = 0;
    if (!__any_sync(0xffffffffu, bits != 0)) return sum;
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int j = 0; j < columns; ++j)
        if (bits >> (r * columns + j) & 1) sum += quanta(c[r].at[j], around.quanta_per_unit);
    return sum;
  }

  // For a block that keeps its tile, a bit for each row of a thread: the useful ones that halos show, those of other
  // tiles or, as a mirror image behind a wall, its own.
  AUTOTUNE_DEVICE int rim_rows() const {
    const Location at{tile};
    const int left = at.place.left, top = at.place.top;
    const bool beside = at.x < left + Place::halo_x || at.x + columns > left + Place::useful_x - Place::halo_x ||
                        at.x + columns > around.columns - Place::halo_x;
    const int lower = min(top + Place::useful_y, around.rows) - Place::halo_y;
    int shown = 0;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const int row = at.y + r;
      shown |= (beside || row < top + Place::halo_y || row >= lower ? 1 : 0) << r;
    }
    return shown & useful_rows();
  }
  // All that are not useful: behind a wall as far as the halo reaches, the rest being of no use to anyone.
  AUTOTUNE_DEVICE int halo_rows() const {
    const Location at{tile};
    return at.x + columns > around.columns ? all_rows : ~useful_rows() & all_rows;
  }

  // The rows of `which`. In a field that is `roomy`, without a branch between them, so that
  // all are under way at once and the code is short: it runs once a time block, mostly not from the instruction cache.
  AUTOTUNE_DEVICE void store_rows(const Field<Number>& to, int which) const {
    const Location at{tile};
    if (roomy(at.place)) {
      Number* const first = to.place(at.y, at.x);
#pragma unroll
      for (int r = 0; r < rows; ++r)
        if (which >> r & 1) *reinterpret_cast<Row*>(first + r * static_cast<int>(to.pitch)) = c[r];
    } else {
#pragma unroll
      for (int r = 0; r < rows; ++r)
        if (which >> r & 1) to.store_inside(c[r], at.y + r, at.x);
    }
  }
  AUTOTUNE_DEVICE void load_rows(const Field<Number>& from, int which) {
    const Location at{tile};
    if (roomy(at.place)) {
      const bool turned = at.x < 0 || at.x >= around.columns;
      const int column = turned ? once_folded(at.x, around.columns) - (columns - 1) : at.x;
      const int top = once_folded(at.y, around.rows);
      const Number* const first = from.place(top, column);
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const int down = once_folded(at.y + r, around.rows) - top;
        if (which >> r & 1) c[r] = *reinterpret_cast<const Row*>(first + down * static_cast<int>(from.pitch));
      }
      if (turned) turn_rows(which);
    } else {
      const Mirrored<columns, 1> mirrored{at.x, around.columns};
#pragma unroll
      for (int r = 0; r < rows; ++r)
        if (which >> r & 1) c[r] = mirrored.load(from, folded(at.y + r, around.rows));
    }
  }

 private:
  // Whether the field has only whole accesses and none of the tile's points lies behind two walls.
  AUTOTUNE_DEVICE bool roomy(const Place& place) const {
    return around.columns % columns == 0 && around.columns >= Place::halo_x && around.rows >= Place::halo_y &&
           place.left + width - Place::halo_x <= 2 * around.columns &&
           place.top + height - Place::halo_y <= 2 * around.rows;
  }

  // A bit for each of a thread's rows that is useful and lies in the field.
  AUTOTUNE_DEVICE int useful_rows() const {
    const Location at{tile};
    const bool inside = at.place.column(at.x) && at.x < around.columns;
    int useful = 0;
#pragma unroll
    for (int r = 0; r < rows; ++r) useful |= (inside && at.place.row(at.y + r) && at.y + r < around.rows ? 1 : 0) << r;
    return useful;
  }

  // Mirror images: the last column first.
  AUTOTUNE_DEVICE void turn_rows(int which) {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const Row row = c[r];
#pragma unroll
      for (int j = 0; j < columns; ++j)
        if (which >> r & 1) c[r].at[j] = row.at[columns - 1 - j];
    }
  }

  template <bool WALLS, bool LIT>
  AUTOTUNE_DEVICE Row advanced_row(int r, const Row& north, const Row& here, const Row& south) const {
    const Number west_of = __shfl_up_sync(0xffffffffu, here.at[columns - 1], 1);
    const Number east_of = __shfl_down_sync(0xffffffffu, here.at[0], 1);
    const Number d = around.medium.rates.diffusion;
    Row next;
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      const Number west = j ? here.at[j ? j - 1 : 0] : west_of;
      const Number east = j < columns - 1 ? here.at[j < columns - 1 ? j + 1 : 0] : east_of;
      const Number a = LIT ? own.at(around.medium, r, j) : around.medium.rates.still;
      if constexpr (WALLS)
        next.at[j] = walled(sides.at(r, j), a, d, here.at[j], north.at[j], south.at[j], west, east);
      else
        next.at[j] = advanced(a, d, here.at[j], north.at[j], south.at[j], west, east);
    }
    return next;
  }

  template <bool WALLS, bool LIT>
  AUTOTUNE_DEVICE void march(unsigned steps) {
    Edges& edges = *autotune::dynamic_shared<Edges>();
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int above = warp ? warp - 1 : 0, below = warp < warps - 1 ? warp + 1 : warp;
    unsigned parity = 0;
#pragma unroll 2
    for (unsigned step = 0; step < steps; ++step, parity ^= 1) {
      edges.row[parity][warp][0][lane] = c[0];
      edges.row[parity][warp][1][lane] = c[rows - 1];
      edges.stored.arrive();
      // The rows that need nothing of others come before the others are waited for: by then they are mostly there.
      const Row first = c[0], second = c[rows > 1 ? 1 : 0], last_but_one = c[rows > 1 ? rows - 2 : 0];
      Row north = first;
#pragma unroll
      for (int r = 1; r < rows - 1; ++r) {
        const Row here = c[r];
        c[r] = advanced_row<WALLS, LIT>(r, north, here, c[r + 1]);
        north = here;
      }
      edges.stored.wait(parity);
      const Row upper = edges.row[parity][above][1][lane], lower = edges.row[parity][below][0][lane];
      if constexpr (rows == 1) {
        c[0] = advanced_row<WALLS, LIT>(0, upper, first, lower);
      } else {
        const Row last = c[rows - 1];
        c[0] = advanced_row<WALLS, LIT>(0, upper, first, second);
        c[rows - 1] = advanced_row<WALLS, LIT>(rows - 1, last_but_one, last, lower);
      }
    }
    if (parity) {  // the next march begins with 0 again
      edges.stored.arrive();
      edges.stored.wait(parity);
    }
  }
};

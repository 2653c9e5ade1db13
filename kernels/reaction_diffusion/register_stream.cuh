// field_memory register_stream: a warp marches down a column of the field, 32 * vector_width points wide and `strip`
// rows high, with all steps of a time block under way at once: level t is a row behind level t - 1. What a level needs
// of the one before are its two latest rows, in registers, and the row that was made a moment ago. No warp waits for
// another.
#pragma once
#include "tile.cuh"

template <class Policy>
struct RegisterStream {
  static constexpr int columns = Policy::vector_width, levels = Policy::time_block, warps = Policy::block_size / 32;
  static constexpr int turns = levels % 2 ? 2 * levels : levels;  // after so many rows the registers' roles recur
  static constexpr int height = Policy::strip + 2 * levels;       // Blocked takes the halo off again
  using Number = Real<Policy>;
  using Row = Points<Number, columns>;
  using Place = Blocked<Policy, 32 * columns, height>;
  static constexpr bool whole = Policy::coefficient == Coefficient::stored;
  static constexpr bool mask = Policy::boundary == Boundary::mask;

  // What a row of the field is to every level: its factors, and the sides of its points.
  struct Ground {
    Points<Number, whole ? columns : 1> own;
    Number down;
    unsigned sides;
  };

  const Surroundings<Policy>& around;
  Place place;
  int x;
  Mirrored<columns, 1> mirrored;
  Number across[columns];

  AUTOTUNE_DEVICE RegisterStream(const Surroundings<Policy>& around_, unsigned tile)
      : around(around_),
        place(tile, around_.columns),
        x(place.left - Place::halo_x + static_cast<int>(threadIdx.x) % 32 * columns),
        mirrored(x, around_.columns) {
    if constexpr (!whole) {
#pragma unroll
      for (int j = 0; j < columns; ++j) across[j] = around.medium.across(mirrored.at[j]);
    }
  }

  AUTOTUNE_DEVICE unsigned long long advance(const Field<Number>& from, const Field<Number>& to, unsigned steps,
                                             bool sampled) {
    return steps == levels ? march<true>(from, to, steps, sampled) : march<false>(from, to, steps, sampled);
  }

 private:
  AUTOTUNE_DEVICE Ground ground(int y) const {
    Ground made{};
    const int row = folded(y, around.rows);
    if constexpr (whole)
      made.own = mirrored.load(around.medium.stored, row);
    else
      made.down = around.medium.down(row);
    if constexpr (mask) {
      SidesTile<1, columns> sides;
      sides.load(around, row, 1, mirrored);
      made.sides = sides.bits[0];
    }
    return made;
  }

  AUTOTUNE_DEVICE Row advanced_row(const Ground& ground, const Row& north, const Row& here, const Row& south) const {
    const Number west_of = __shfl_up_sync(0xffffffffu, here.at[columns - 1], 1);
    const Number east_of = __shfl_down_sync(0xffffffffu, here.at[0], 1);
    const Number d = around.medium.rates.diffusion;
    Row next;
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      const Number west = j ? here.at[j ? j - 1 : 0] : west_of;
      const Number east = j < columns - 1 ? here.at[j < columns - 1 ? j + 1 : 0] : east_of;
      Number own;
      if constexpr (whole)
        own = ground.own.at[j];
      else
        own = around.medium.own(across[j], ground.down);
      if constexpr (mask)
        next.at[j] = walled(ground.sides >> 4 * j & all_open, own, d, here.at[j], north.at[j], south.at[j], west, east);
      else
        next.at[j] = advanced(own, d, here.at[j], north.at[j], south.at[j], west, east);
    }
    return next;
  }

  // FULL: steps == levels. Else the last levels hand their rows on.
  template <bool FULL>
  AUTOTUNE_DEVICE unsigned long long march(const Field<Number>& from, const Field<Number>& to, unsigned steps,
                                           bool sampled) {
    unsigned long long sum = 0;
    const bool useful = place.column(x) && x < around.columns;
    const int bottom = min(place.top + Place::useful_y, around.rows), first = place.top - levels;
    // Level t has its latest row in recent[t][i % 2] and the one before in the other, at the i-th row of level 0.
    Row recent[levels][2] = {};
    Ground grounds[levels] = {};  // of row i in place i % levels
    Row coming = mirrored.load(from, folded(first, around.rows));
    Ground coming_ground = ground(first);
    for (int start = first; start < bottom + levels; start += turns) {
#pragma unroll
      for (int turn = 0; turn < turns; ++turn) {
        Row fresh = coming;
        const int y = start + turn;
        // The row after, fetched while this one is worked on.
        const Ground fresh_ground = coming_ground;
        coming = mirrored.load(from, folded(y + 1, around.rows));
        coming_ground = ground(y + 1);
#pragma unroll
        for (int t = 0; t < levels; ++t) {
          // Level t has just made row y - t: with rows y - t - 1 and y - t - 2, level t + 1 makes row y - t - 1.
          const Row here = recent[t][(turn + 1) % 2], north = recent[t][turn % 2];
          recent[t][turn % 2] = fresh;
          const Ground& under = grounds[(turn + 2 * levels - t - 1) % levels];
          if (FULL || t < static_cast<int>(steps))
            fresh = advanced_row(under, north, here, fresh);
          else
            fresh = here;
        }
        grounds[turn % levels] = fresh_ground;
        const int row = y - levels;
        if (useful && row >= place.top && row < bottom) {
          to.store_inside(fresh, row, x);
          if (sampled) sum += around.detected(fresh, row, x);
        }
      }
    }
    return sum;
  }
};

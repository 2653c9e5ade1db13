// field_memory register_flow: a register_stream for fields that are mostly far from walls and in the dark. A strip that
// no wall touches has a loop of its own, in which a row is fetched at one address, and one that no beam touches
// another, in which `own` is a constant. The loops are level_rows rows long, so that they stay in the instruction
// cache, and rows are fetched as many ahead. With three rows a level, a row stays in the registers it was made in.
#pragma once
#include "tile.cuh"

template <class Policy>
struct RegisterFlow {
  static constexpr int columns = Policy::vector_width, levels = Policy::time_block, turns = Policy::level_rows;
  static constexpr int group = columns < 4 ? columns : 4;    // columns of an access
  static constexpr int height = Policy::strip + 2 * levels;  // Blocked takes the halo off again
  using Number = Real<Policy>;
  using Row = Points<Number, columns>;
  using Place = Blocked<Policy, 32 * columns, height, group>;

  const Surroundings<Policy>& around;
  Place place;
  int x, first, bottom;  // first row that is read, and the one after the last that is made

  AUTOTUNE_DEVICE RegisterFlow(const Surroundings<Policy>& around_, unsigned tile)
      : around(around_),
        place(tile, around_.columns),
        x(place.left - Place::halo_x + lane() * columns),
        first(place.top - levels),
        bottom(min(place.top + Place::useful_y, around_.rows)) {}

  AUTOTUNE_DEVICE unsigned long long advance(const Field<Number>& from, const Field<Number>& to, unsigned steps,
                                             bool sampled) const {
    const bool beside = __any_sync(0xffffffffu, x < 0 || x + columns > around.columns);
    if (around.columns % group || around.columns < 32 * columns || around.rows < height + 2 * turns)
      march<true, Sides::scattered, false>(from, to, steps);
    else if (steps != levels)
      march<true, Sides::turned, false>(from, to, steps);
    else if (beside || (lit_across<columns>(around, x) && lit_down(around, first, bottom + levels)))
      march<true, Sides::turned, true>(from, to, steps);
    else
      march<false, Sides::inside, true>(from, to, steps);
    return sampled ? detected_again<columns>(around, to, place, x, place.top, bottom) : 0;
  }

 private:
  // Where the columns of a strip may lie: in the field; in part behind one wall, where an access is one turned round;
  // or anywhere.
  enum class Sides { inside, turned, scattered };

  static AUTOTUNE_DEVICE int lane() { return static_cast<int>(threadIdx.x) % 32; }

  using Part = Points<Number, group>;

  template <Sides SIDES>
  AUTOTUNE_DEVICE Row loaded(const Field<Number>& from, int y) const {
    const int row = SIDES == Sides::scattered ? folded(y, around.rows) : once_folded(y, around.rows);
    Row value;
#pragma unroll
    for (int g = 0; g < columns; g += group) {
      const int column = x + g;
      Part part;
      if constexpr (SIDES == Sides::scattered) {
        part = Mirrored<group, 1>{column, around.columns}.load(from, row);
      } else if constexpr (SIDES == Sides::turned) {
        const bool turned = column < 0 || column >= around.columns;
        const int last = once_folded(column, around.columns);
        const Part found = *reinterpret_cast<const Part*>(from.place(row, turned ? last - (group - 1) : column));
#pragma unroll
        for (int j = 0; j < group; ++j) part.at[j] = turned ? found.at[group - 1 - j] : found.at[j];
      } else {
        part = *reinterpret_cast<const Part*>(from.place(row, column));
      }
#pragma unroll
      for (int j = 0; j < group; ++j) value.at[g + j] = part.at[j];
    }
    return value;
  }

  // As much of row y as is useful and lies in the field.
  template <Sides SIDES>
  AUTOTUNE_DEVICE void store(const Field<Number>& to, const bool (&useful)[columns / group], const Row& value,
                             int y) const {
#pragma unroll
    for (int g = 0; g < columns; g += group) {
      if (!useful[g / group]) continue;
      Part part;
#pragma unroll
      for (int j = 0; j < group; ++j) part.at[j] = value.at[g + j];
      if constexpr (SIDES == Sides::scattered)
        to.store_inside(part, y, x + g);
      else
        *reinterpret_cast<Part*>(to.place(y, x + g)) = part;
    }
  }

  template <bool LIT>
  AUTOTUNE_DEVICE Row advanced_row(const Row& across, Number down, const Row& north, const Row& here,
                                   const Row& south) const {
    const Number west_of = __shfl_up_sync(0xffffffffu, here.at[columns - 1], 1);
    const Number east_of = __shfl_down_sync(0xffffffffu, here.at[0], 1);
    const Number d = around.medium.rates.diffusion;
    Row next;
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      const Number west = j ? here.at[j ? j - 1 : 0] : west_of;
      const Number east = j < columns - 1 ? here.at[j < columns - 1 ? j + 1 : 0] : east_of;
      const Number own = LIT ? around.medium.own(across.at[j], down) : around.medium.rates.still;
      next.at[j] = advanced(own, d, here.at[j], north.at[j], south.at[j], west, east);
    }
    return next;
  }

  // FULL: steps == levels. Else the last levels hand their rows on.
  template <bool LIT, Sides SIDES, bool FULL>
  AUTOTUNE_DEVICE void march(const Field<Number>& from, const Field<Number>& to, unsigned steps) const {
    Row across{}, coming[turns], recent[levels][turns] = {};  // row y of level t is in recent[t][(y + t) % turns]
    Number downs[levels] = {};                                // of the row that level t makes next
    bool useful[columns / group];
#pragma unroll
    for (int g = 0; g < columns; g += group) useful[g / group] = place.column(x + g) && x + g < around.columns;
    if constexpr (LIT) {
#pragma unroll
      for (int j = 0; j < columns; ++j) across.at[j] = around.medium.across(folded(x + j, around.columns));
    }
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) coming[turn] = loaded<SIDES>(from, first + turn);
#pragma unroll 1
    for (int start = first; start < bottom + levels; start += turns) {
#pragma unroll
      for (int turn = 0; turn < turns; ++turn) {
        const int y = start + turn;
        Row fresh = coming[turn];
        coming[turn] = loaded<SIDES>(from, y + turns);
#pragma unroll
        for (int t = 0; t < levels; ++t) {
          // Level t has just made row y - t: with rows y - t - 1 and y - t - 2, level t + 1 makes row y - t - 1.
          const Row here = recent[t][(turn + turns - 1) % turns], north = recent[t][(turn + turns - 2) % turns];
          recent[t][turn] = fresh;
          if (FULL || t < static_cast<int>(steps))
            fresh = advanced_row<LIT>(across, downs[t], north, here, fresh);
          else
            fresh = here;
        }
        if constexpr (LIT) {
#pragma unroll
          for (int t = levels - 1; t > 0; --t) downs[t] = downs[t - 1];
          downs[0] = around.medium.down(folded(y, around.rows));
        }
        const int row = y - levels;
        if (row >= place.top && row < bottom) store<SIDES>(to, useful, fresh, row);
      }
    }
  }
};

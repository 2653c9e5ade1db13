// field_memory register_flow: a register_stream for fields that are mostly far from walls and in the dark. A strip that
// no wall touches has a loop of its own, in which a row is fetched at one address, and one that no beam touches another,
// in which `own` is a constant. The loops are level_rows rows long, so that they stay in the instruction cache, and rows
// are fetched as many ahead. With three rows a level, a row stays in the registers it was made in.
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
    const bool beside = x < 0 || x + columns > around.columns;
    const bool walls = __any_sync(0xffffffffu, beside) || first < 0 || bottom + levels + 2 * turns > around.rows;
    if (steps != levels)
      march<true, true, false>(from, to, steps);
    else if (walls)
      march<true, true, true>(from, to, steps);
    else if (lit())
      march<true, false, true>(from, to, steps);
    else
      march<false, false, true>(from, to, steps);
    return sampled ? detected(to) : 0;
  }

 private:
  static AUTOTUNE_DEVICE int lane() { return static_cast<int>(threadIdx.x) % 32; }

  // Whether `own` differs from `still` anywhere in the strip.
  AUTOTUNE_DEVICE bool lit() const {
    bool across = false, down = false;
#pragma unroll
    for (int j = 0; j < columns; ++j) across |= around.medium.across(folded(x + j, around.columns)) != 0;
    for (int y = first + lane(); y < bottom + levels; y += 32) down |= around.medium.down(folded(y, around.rows)) != 0;
    return __any_sync(0xffffffffu, across) && __any_sync(0xffffffffu, down);
  }

  using Part = Points<Number, group>;

  // Row y, wherever it lies; `place` is where it would be in a field without walls.
  template <bool WALLS>
  AUTOTUNE_DEVICE Row loaded(const Field<Number>& from, const Number* place, int y) const {
    Row value;
#pragma unroll
    for (int g = 0; g < columns; g += group) {
      Part part;
      if constexpr (WALLS)
        part = Mirrored<group, 1>{x + g, around.columns}.load(from, folded(y, around.rows));
      else
        part = *reinterpret_cast<const Part*>(place + g);
#pragma unroll
      for (int j = 0; j < group; ++j) value.at[g + j] = part.at[j];
    }
    return value;
  }

  // As much of row y as is useful and lies in the field.
  template <bool WALLS>
  AUTOTUNE_DEVICE void store(const Field<Number>& to, Number* place, const bool (&useful)[columns / group],
                             const Row& value, int y) const {
#pragma unroll
    for (int g = 0; g < columns; g += group) {
      if (!useful[g / group]) continue;
      Part part;
#pragma unroll
      for (int j = 0; j < group; ++j) part.at[j] = value.at[g + j];
      if constexpr (WALLS)
        to.store_inside(part, y, x + g);
      else
        *reinterpret_cast<Part*>(place + g) = part;
    }
  }

  // What the strip adds to F. A thread reads what it wrote itself, and only where the detector looks.
  AUTOTUNE_DEVICE unsigned long long detected(const Field<Number>& to) const {
    unsigned long long sum = 0;
    for (int row = place.top; row < bottom; ++row)
#pragma unroll
      for (int j = 0; j < columns; ++j)
        if (place.column(x + j) && x + j < around.columns && around.detector.load(row, x + j))
          sum += quanta(to.point(row, x + j), around.quanta_per_unit);
    return sum;
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
  template <bool LIT, bool WALLS, bool FULL>
  AUTOTUNE_DEVICE void march(const Field<Number>& from, const Field<Number>& to, unsigned steps) const {
    Row across{}, coming[turns], recent[levels][turns] = {};  // row y of level t is in recent[t][(y + t) % turns]
    Number downs[levels] = {};                                // of the row that level t makes next
    if constexpr (LIT) {
#pragma unroll
      for (int j = 0; j < columns; ++j) across.at[j] = around.medium.across(folded(x + j, around.columns));
    }
    bool useful[columns / group];
#pragma unroll
    for (int g = 0; g < columns; g += group)
      useful[g / group] = place.column(x + g) && (!WALLS || x + g < around.columns);
    const Number* source = from.place(first, x);
    Number* target = to.place(first - levels, x);
#pragma unroll
    for (int turn = 0; turn < turns; ++turn, source += from.pitch)
      coming[turn] = loaded<WALLS>(from, source, first + turn);
#pragma unroll 1
    for (int start = first; start < bottom + levels; start += turns) {
#pragma unroll
      for (int turn = 0; turn < turns; ++turn, source += from.pitch, target += to.pitch) {
        const int y = start + turn;
        Row fresh = coming[turn];
        coming[turn] = loaded<WALLS>(from, source, y + turns);
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
          downs[0] = around.medium.down(WALLS ? folded(y, around.rows) : y);
        }
        const int row = y - levels;
        if (row >= place.top && row < bottom) store<WALLS>(to, target, useful, fresh, row);
      }
    }
  }
};

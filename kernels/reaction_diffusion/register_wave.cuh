// field_memory register_wave: the warps of a block march down a strip of the field together, each with every so many-th
// chunk of `strip` rows in registers. A step moves a chunk up by a row: so it needs the two last rows of the chunk
// above and nothing of the one below, a row is made where the row after next was, and none is computed twice but at the
// two ends of a strip. A warp waits for the one above alone, which is some steps ahead, so that some load and store
// while others compute.
#pragma once
#include "autotune/shared.cuh"
#include "tile.cuh"
#include "warp_signal.cuh"

template <class Policy>
struct RegisterWave {
  static constexpr int columns = Policy::vector_width, rows = Policy::strip, warps = Policy::block_size / 32;
  static constexpr int group = columns < 4 ? columns : 4, groups = columns / group;  // columns of an access
  static constexpr int height = Policy::block_rows + 2 * Policy::time_block;         // Blocked takes the halo off again
  // Rows that a warp may be ahead of the one below. All warps together need room for a time block.
  static constexpr int enough = (Policy::time_block + warps - 1) / warps, places = enough < 4 ? 4 : enough;
  using Number = Real<Policy>;
  using Row = Points<Number, columns>;
  using Part = Points<Number, group>;
  using Place = Blocked<Policy, 32 * columns, height, group>;

  // Where a warp leaves the two last rows of its chunk for the warp below.
  struct Handed {
    Part part[2][groups][32];
    WarpSignal full, free;
  };
  struct Hands {
    Handed handed[warps][places];
    WarpMeeting end;
  };
  static constexpr unsigned shared_bytes = sizeof(Handed::part) * warps * places + summed_bytes<Policy>;
  static_assert(sizeof(Hands) <= shared_bytes, "room for what is handed on");
  // The places of a warp one after the other.
  struct Turn {
    Handed* first;
    int number;
    unsigned parity;
    AUTOTUNE_DEVICE Handed& place() const { return first[number]; }
    AUTOTUNE_DEVICE void pass() {
      if (++number == places) number = 0, parity ^= 1;
    }
  };

  const Surroundings<Policy>& around;
  Place place;
  int warp, x, bottom;  // bottom: the row after the last that is made
  bool roomy;           // every access is whole, and none lies behind two walls
  bool lit;             // by its columns
  Turn mine, above;
  Row c[rows];

  AUTOTUNE_DEVICE RegisterWave(const Surroundings<Policy>& around_, unsigned tile)
      : around(around_),
        place(tile, around_.columns),
        warp(__shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0)),  // known to be the same in all lanes
        x(place.left - Place::halo_x + lane() * columns),
        bottom(min(place.top + Place::useful_y, around_.rows)),
        roomy(around_.columns % group == 0 && around_.columns >= 32 * columns &&
              around_.rows >= 2 * Policy::time_block + rows),
        lit(lit_across<columns>(around_, x)) {
    Hands& hands = *autotune::dynamic_shared<Hands>();
    if (threadIdx.x == 0) hands.end.begin();
    if (lane() < places) {
      hands.handed[warp][lane()].full.begin();
      hands.handed[warp][lane()].free.begin();
    }
    __syncthreads();
    mine = {hands.handed[warp], 0, 1};  // free at first
    above = {hands.handed[(warp + warps - 1) % warps], 0, 0};
  }

  AUTOTUNE_DEVICE unsigned long long advance(const Field<Number>& from, const Field<Number>& to, int steps,
                                             bool sampled) {
    const int first = place.top - steps, chunks = (bottom + steps - first + rows - 1) / rows;
    for (int chunk = warp; chunk < chunks; chunk += warps) {
      const int y = first + chunk * rows;
      load(from, y);
      if (lit && lit_down(around, y - steps, y + rows))
        march<true>(y, steps, chunk > 0, chunk + 1 < chunks);
      else
        march<false>(y, steps, chunk > 0, chunk + 1 < chunks);
      store(to, y - steps);
    }
    autotune::dynamic_shared<Hands>()->end.meet(warps);
    unsigned long long sum = 0;
    if (sampled)
      for (int y = first - steps + warp * rows; y < bottom; y += warps * rows)
        sum += detected_again<columns>(around, to, place, x, max(y, place.top), min(y + rows, bottom));
    return sum;
  }

 private:
  static AUTOTUNE_DEVICE int lane() { return static_cast<int>(threadIdx.x) % 32; }

  // Rows y to y + rows - 1, behind a wall as mirror images.
  AUTOTUNE_DEVICE void load(const Field<Number>& from, int y) {
    if (!roomy) {
#pragma unroll
      for (int g = 0; g < groups; ++g) {
        const Mirrored<group> mirrored{x + g * group, around.columns};
#pragma unroll
        for (int r = 0; r < rows; ++r) put(r, g, mirrored.load(from, folded(y + r, around.rows)));
      }
    } else if (y >= 0 && y + rows <= around.rows) {
      load_whole<true>(from, y);
    } else {
      load_whole<false>(from, y);
    }
  }
  // INSIDE: no row lies behind a wall.
  template <bool INSIDE>
  AUTOTUNE_DEVICE void load_whole(const Field<Number>& from, int y) {
    const int top = INSIDE ? y : once_folded(y, around.rows), pitch = static_cast<int>(from.pitch);
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      const int column = x + g * group;
      const Number* const first =
          from.place(top, turned(column) ? once_folded(column, around.columns) - (group - 1) : column);
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const int below = INSIDE ? r : once_folded(y + r, around.rows) - top;
        put(r, g, *reinterpret_cast<const Part*>(first + below * pitch));
      }
    }
#pragma unroll
    for (int g = 0; g < groups; ++g) {  // once all are under way
      if (!turned(x + g * group)) continue;
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const Part part = got(r, g);
#pragma unroll
        for (int j = 0; j < group; ++j) c[r].at[g * group + j] = part.at[group - 1 - j];
      }
    }
  }
  // Whether an access of a `roomy` field is a mirror image, the last column first.
  AUTOTUNE_DEVICE bool turned(int column) const { return column < 0 || column >= around.columns; }

  // As much of rows y to y + rows - 1 as is useful and lies in the field.
  AUTOTUNE_DEVICE void store(const Field<Number>& to, int y) const {
    const bool whole = roomy && y >= place.top && y + rows <= bottom;
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      const int column = x + g * group;
      if (!place.column(column) || column >= around.columns) continue;
      if (whole) {
        Number* const first = to.place(y, column);
#pragma unroll
        for (int r = 0; r < rows; ++r) *reinterpret_cast<Part*>(first + r * static_cast<int>(to.pitch)) = got(r, g);
      } else {
#pragma unroll
        for (int r = 0; r < rows; ++r)
          if (y + r >= place.top && y + r < bottom) to.store_inside(got(r, g), y + r, column);
      }
    }
  }

  AUTOTUNE_DEVICE Part got(int r, int g) const {
    Part part;
#pragma unroll
    for (int j = 0; j < group; ++j) part.at[j] = c[r].at[g * group + j];
    return part;
  }
  AUTOTUNE_DEVICE void put(int r, int g, const Part& part) {
#pragma unroll
    for (int j = 0; j < group; ++j) c[r].at[g * group + j] = part.at[j];
  }

  // The row whose own value is `here`, row y of the field.
  template <bool LIT>
  AUTOTUNE_DEVICE Row advanced_row(const Row& across, int y, const Row& north, const Row& here,
                                   const Row& south) const {
    const Number west_of = __shfl_up_sync(0xffffffffu, here.at[columns - 1], 1);
    const Number east_of = __shfl_down_sync(0xffffffffu, here.at[0], 1);
    const Number d = around.medium.rates.diffusion;
    Number down{};
    if constexpr (LIT) down = around.medium.down(folded(y, around.rows));
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

  // The chunk whose first row is y by `steps` steps. What lies above the first chunk (not TAKES) does not matter.
  template <bool LIT>
  AUTOTUNE_DEVICE void march(int y, int steps, bool takes, bool hands_on) {
    // So many rows are made before those of the chunk above are awaited, as was best on an H200.
    constexpr int before = columns == 8 ? rows / 2 + 1 : 3, middle = rows - before > 2 ? rows - before : 2;
    Row across{};
    if constexpr (LIT) {
#pragma unroll
      for (int j = 0; j < columns; ++j) across.at[j] = around.medium.across(folded(x + j, around.columns));
    }
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      --y;
      if (hands_on) {
        Handed& place = mine.place();
        place.free.await(mine.parity);
#pragma unroll
        for (int g = 0; g < groups; ++g) {
          place.part[0][g][lane()] = got(rows - 2, g);
          place.part[1][g][lane()] = got(rows - 1, g);
        }
        place.full.give();
        mine.pass();
      }
#pragma unroll
      for (int r = rows - 1; r >= middle; --r) c[r] = advanced_row<LIT>(across, y + r, c[r - 2], c[r - 1], c[r]);
      Row upper{}, lower{};  // of the chunk above
      if (takes) {
        const Handed& place = above.place();
        place.full.await(above.parity);
#pragma unroll
        for (int g = 0; g < groups; ++g) {
          const Part one = place.part[0][g][lane()], other = place.part[1][g][lane()];
#pragma unroll
          for (int j = 0; j < group; ++j) upper.at[g * group + j] = one.at[j], lower.at[g * group + j] = other.at[j];
        }
      }
#pragma unroll
      for (int r = middle - 1; r >= 2; --r) c[r] = advanced_row<LIT>(across, y + r, c[r - 2], c[r - 1], c[r]);
      c[1] = advanced_row<LIT>(across, y + 1, lower, c[0], c[1]);
      c[0] = advanced_row<LIT>(across, y, upper, lower, c[0]);
      if (takes) {
        above.place().free.give();
        above.pass();
      }
    }
  }
};

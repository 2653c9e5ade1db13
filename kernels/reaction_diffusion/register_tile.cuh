// field_memory register_tile: a block keeps a tile with its halo in registers. A warp has 32 * vector_width columns of
// `strip` rows, a thread vector_width columns of them: neighbours to the left and right come by shuffles, those above
// and below are registers, and only the first and last row of a warp go through shared memory, once a step.
#pragma once
#include "autotune/shared.cuh"
#include "mark.cuh"
#include "tile.cuh"

template <class Policy>
struct RegisterTile {
  static constexpr int columns = Policy::vector_width, rows = Policy::strip, warps = Policy::block_size / 32;
  static constexpr int width = 32 * columns, height = warps * rows, all_rows = (1 << rows) - 1;
  using Number = Real<Policy>;
  using Row = Points<Number, columns>;
  using Place = Blocked<Policy, width, height>;
  struct Edges {
    Row row[2][warps][2][32];              // by step's parity, warp, upper or lower, lane
    alignas(8) unsigned long long unused;  // the places behind it lie where the shipped entries were measured with them
  };
  // Rims that carry marks: where each row of a thread is, in points from the field's first.
  static constexpr bool can_mark = Policy::launch == Launch::neighbours && one_access<Number, columns>;
  struct Kept {
    Edges edges;
    Points<int, 4> place[(rows + 3) / 4][Policy::block_size];
  };
  static constexpr unsigned shared_bytes =
      sizeof(Edges::row) + (Policy::launch == Launch::neighbours ? sizeof(Kept::place) : 0) + summed_bytes<Policy>;
  static_assert(sizeof(Edges) <= shared_bytes && (!can_mark || sizeof(Kept) <= shared_bytes), "room for what is kept");

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
  OwnTile<Policy, rows, columns> own;
  SidesTile<rows, columns> sides;
  bool plain;  // no point of the warp has a closed side

  AUTOTUNE_DEVICE RegisterTile(const Surroundings<Policy>& around_, unsigned number)
      : around(around_), tile(packed(around_, number)) {
    const Location at{tile};
    const Mirrored<columns> mirrored{at.x, around.columns};
    own.load(around.medium, at.y, mirrored);
    if constexpr (Policy::boundary == Boundary::mask) {
      sides.load(around, at.y, mirrored);
      plain = !__any_sync(0xffffffffu, sides.any_closed);
    }
  }

  AUTOTUNE_DEVICE void load(const Field<Number>& from) { load_rows(from, all_rows); }

  // `c` by up to time_block steps. Every warp meets the same barriers, whichever way it takes.
  AUTOTUNE_DEVICE void advance(unsigned steps) {
    if constexpr (Policy::boundary == Boundary::mask) {
      if (!plain) return march<true>(steps);
    }
    march<false>(steps);
  }

  // All useful points of the tile.
  AUTOTUNE_DEVICE void store(const Field<Number>& to) const { store_rows(to, useful_rows()); }

  // Which of a thread's points the detector sees, a bit each.
  struct Seen {
    unsigned word[(rows * columns + 31) / 32];
  };
  AUTOTUNE_DEVICE Seen seen() const {
    const Location at{tile};
    const int useful = useful_rows();
    Seen bits{};
    if (!around.watched(at.y, at.y + rows, at.x, at.x + columns)) return bits;
#pragma unroll
    for (int n = 0; n < rows * columns; ++n) {
      const int r = n / columns, x = at.x + n % columns;
      if ((useful >> r & 1) && x < around.columns && around.detector.load(at.y + r, x))
        bits.word[n / 32] |= 1u << n % 32;
    }
    return bits;
  }
  // Whether any are there, for the whole warp.
  static AUTOTUNE_DEVICE bool any(const Seen& bits) {
    unsigned word = 0;
    for (const unsigned more : bits.word) word |= more;
    return __any_sync(0xffffffffu, word != 0);
  }
  // What those add to F.
  AUTOTUNE_DEVICE unsigned long long detected(const Seen& bits) const {
    unsigned long long sum = 0;
    if (!any(bits)) return sum;
#pragma unroll
    for (int n = 0; n < rows * columns; ++n)
      if (bits.word[n / 32] >> n % 32 & 1) sum += quanta(c[n / columns].at[n % columns], around.quanta_per_unit);
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
  // Those that are not useful, and those that reach behind a wall, up to `halo` from what is useful.
  AUTOTUNE_DEVICE int halo_rows() const {
    const Location at{tile};
    const int right = min(at.place.left + Place::useful_x, around.columns) + Place::halo_x;
    const int bottom = min(at.place.top + Place::useful_y, around.rows) + Place::halo_y;
    int near = 0;
#pragma unroll
    for (int r = 0; r < rows; ++r) near |= (at.x < right && at.y + r < bottom ? 1 : 0) << r;
    return at.x + columns > around.columns ? near : near & ~useful_rows();
  }

  // The rows of `which`. In a field that is `roomy`, without a branch between them, so that
  // all are under way at once and the code is short: it runs once a time block, mostly not from the instruction cache.
  AUTOTUNE_DEVICE void store_rows(const Field<Number>& to, int which) const {
    const Location at{tile};
    if (roomy(around, at.place)) {
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
    if (roomy(around, at.place)) {
      const Reach reach{around, from, at};
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const Row* const place = reach.row(r);
        if (which >> r & 1) c[r] = *place;
      }
      if (reach.turned) turn_rows(which);
    } else {
      const Mirrored<columns> mirrored{at.x, around.columns};
#pragma unroll
      for (int r = 0; r < rows; ++r)
        if (which >> r & 1) c[r] = mirrored.load(from, folded(at.y + r, around.rows));
    }
  }

  // Whether all tiles of the field have rims that can carry marks.
  static AUTOTUNE_DEVICE bool marks(const Surroundings<Policy>& around) {
    return roomy(around, Place{(around.columns - 1) / Place::useful_x, (around.rows - 1) / Place::useful_y});
  }
  // Before the first exchange.
  AUTOTUNE_DEVICE void keep_places(const Field<Number>& rims) const {
    const Location at{tile};
    const Reach reach{around, rims, at};
    Kept& kept = *autotune::dynamic_shared<Kept>();
#pragma unroll
    for (int r = 0; r < rows; ++r)
      kept.place[r / 4][threadIdx.x].at[r % 4] =
          static_cast<int>(reinterpret_cast<const Number*>(reach.row(r)) - rims.base);
  }
  // The rows of `shown` go to memory, and those of `awaited` come from there, each as soon as it has the mark. No
  // thread waits for others of its block here: the steps between two exchanges have barriers.
  AUTOTUNE_DEVICE void exchange(const Field<Number>& rims, int shown, int awaited, const Mark& mark) {
    const Kept& kept = *autotune::dynamic_shared<Kept>();
    Number* const base = opaque(rims.base);
    Row* place[rows];
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      place[r] = reinterpret_cast<Row*>(base + kept.place[r / 4][threadIdx.x].at[r % 4]);
      c[r].at[0] = mark.on(c[r].at[0]);
      keep(c[r].at[0]);
    }
#pragma unroll
    for (int r = 0; r < rows; ++r)
      if (shown >> r & 1) store_whole(place[r], c[r]);
#ifdef AUTOTUNE_CPU
    __syncthreads();  // a thread that waits keeps others from running
#endif
    unsigned missing;
    do {
      missing = 0;
#pragma unroll
      for (int r = 0; r < rows; ++r)
        if (awaited >> r & 1) c[r] = load_whole(place[r]);
#pragma unroll
      for (int r = 0; r < rows; ++r) missing |= mark.missing(c[r].at[0]);  // a row that is not awaited has its own
    } while (Mark::any(missing));
#pragma unroll
    for (int r = 0; r < rows; ++r) c[r].at[0] = mark.off(c[r].at[0]);
    const Location at{tile};
    if (at.x < 0 || at.x >= around.columns) turn_rows(awaited);
  }

 private:
  static AUTOTUNE_DEVICE int packed(const Surroundings<Policy>& around, unsigned number) {
    const unsigned across = (around.columns + Place::useful_x - 1) / Place::useful_x;
    return static_cast<int>(number % across | number / across << 16);
  }

  // Where a thread's rows are in a field that is `roomy`: behind a wall as mirror images, the last column first.
  struct Reach {
    const Surroundings<Policy>& around;
    bool turned;
    int y, top, pitch;
    const Number* first;

    AUTOTUNE_DEVICE Reach(const Surroundings<Policy>& around_, const Field<Number>& from, const Location& at)
        : around(around_),
          turned(at.x < 0 || at.x >= around_.columns),
          y(at.y),
          top(once_folded(at.y, around_.rows)),
          pitch(static_cast<int>(from.pitch)),
          first(from.place(top, turned ? once_folded(at.x, around_.columns) - (columns - 1) : at.x)) {}

    AUTOTUNE_DEVICE const Row* row(int r) const {
      return reinterpret_cast<const Row*>(first + (once_folded(y + r, around.rows) - top) * pitch);
    }
  };

  // Whether the field has only whole accesses and none of the tile's points lies behind two walls.
  static AUTOTUNE_DEVICE bool roomy(const Surroundings<Policy>& around, const Place& place) {
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
      const Number a = own.at[r][j];
      if constexpr (WALLS)
        next.at[j] = walled(sides.at(r, j), a, d, here.at[j], north.at[j], south.at[j], west, east);
      else
        next.at[j] = advanced(a, d, here.at[j], north.at[j], south.at[j], west, east);
    }
    return next;
  }

  // Rows FIRST to LAST, whose neighbours are the thread's own; `north` is what the row before FIRST was.
  template <bool WALLS, int FIRST, int LAST>
  AUTOTUNE_DEVICE void advance_rows(Row& north) {
#pragma unroll
    for (int r = FIRST; r <= LAST; ++r) {
      const Row here = c[r];
      c[r] = advanced_row<WALLS>(r, north, here, c[r + 1]);
      north = here;
    }
  }

  // Warps wait for each other once a step, at a barrier in the middle of the rows that need nothing of others, so that
  // what they left is fetched in time.
  template <bool WALLS>
  AUTOTUNE_DEVICE void march(unsigned steps) {
    constexpr int middle = rows > 3 ? rows / 2 : 1;
    Edges& edges = *autotune::dynamic_shared<Edges>();
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int above = warp ? warp - 1 : 0, below = warp < warps - 1 ? warp + 1 : warp;
    unsigned parity = 0;
#pragma unroll 2
    for (unsigned step = 0; step < steps; ++step, parity ^= 1) {
      edges.row[parity][warp][0][lane] = c[0];
      edges.row[parity][warp][1][lane] = c[rows - 1];
      const Row first = c[0], second = c[rows > 1 ? 1 : 0], last_but_one = c[rows > 1 ? rows - 2 : 0];
      Row north = first;
      advance_rows<WALLS, 1, middle - 1>(north);
      __syncthreads();
      const Row upper = edges.row[parity][above][1][lane], lower = edges.row[parity][below][0][lane];
      advance_rows<WALLS, middle, rows - 2>(north);
      if constexpr (rows == 1) {
        c[0] = advanced_row<WALLS>(0, upper, first, lower);
      } else {
        const Row last = c[rows - 1];
        c[0] = advanced_row<WALLS>(0, upper, first, second);
        c[rows - 1] = advanced_row<WALLS>(rows - 1, last_but_one, last, lower);
      }
    }
    if (parity) __syncthreads();  // the next march begins with parity 0 again
  }
};

// What the kinds of tiles share: where a block's or warp's part of the field lies, the sides of its points, and F.
#pragma once
#include "medium.cuh"
#include "record.cuh"

enum class FieldMemory { global, readonly, texture, register_tile, register_wave };
enum class Boundary { branch, ghost, clamp, mask };
enum class Launch { each, graph, persistent, neighbours };

// A concentration as the kernels write it. A texture is as large as the field, so that its edges are the walls.
template <class Policy>
using Concentration = typename FieldOf<typename Policy::field_even, Real<Policy>, autotune::Global,
                                       Policy::field_memory != FieldMemory::texture>::type;

// Of the shared memory of a block that advances: a word a thread, for sums, signals and what lies behind rows.
template <class Policy>
constexpr unsigned summed_bytes = sizeof(unsigned) * Policy::block_size;

// Everything a step reads besides the field itself.
template <class Policy>
struct Surroundings {
  Medium<Policy> medium;
  typename Policy::open_sides open_sides;
  typename Policy::detector detector;
  typename Policy::watched seen;  // the rectangle of a Rectangle
  int rows, columns;
  double quanta_per_unit;

  AUTOTUNE_DEVICE unsigned sides(int y, int x) const { return open_sides.load(y, x); }
  // Whether the detector may see any point of rows top to bottom - 1 and columns left to right - 1.
  AUTOTUNE_DEVICE bool watched(int top, int bottom, int left, int right) const {
    return top < static_cast<int>(seen.load(1)) && bottom > rows - static_cast<int>(seen.load(0)) &&
           left < static_cast<int>(seen.load(3)) && right > columns - static_cast<int>(seen.load(2));
  }
  // What the point adds to F when it is sampled.
  AUTOTUNE_DEVICE unsigned long long detected(Real<Policy> c, int y, int x) const {
    return detector.load(y, x) ? quanta(c, quanta_per_unit) : 0;
  }
  template <int COLUMNS>
  AUTOTUNE_DEVICE unsigned long long detected(const Points<Real<Policy>, COLUMNS>& c, int y, int x) const {
    unsigned long long sum = 0;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j)
      if (x + j < columns) sum += detected(c.at[j], y, x + j);
    return sum;
  }
};

AUTOTUNE_DEVICE constexpr int rounded_up(int a, int b) { return (a + b - 1) / b * b; }

// `value`, as something the compiler does not know. What is computed from it is computed where it stands: kept in
// registers over all steps of a time block, addresses would take the room of the points.
AUTOTUNE_DEVICE int opaque(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
template <class Number>
AUTOTUNE_DEVICE Number* opaque(Number* place) {
#ifdef AUTOTUNE_CPU
  asm volatile("" : "+r"(place));
#else
  asm volatile("" : "+l"(place));
#endif
  return place;
}

// A tile that is advanced by up to time_block steps without its neighbours: what lies within `halo` of its edge turns
// wrong, from the edge inwards by a point a step, and is not stored. An access moves ACCESS columns.
template <class Policy, int WIDTH, int HEIGHT, int ACCESS = Policy::vector_width>
struct Blocked {
  static constexpr int halo_x = rounded_up(Policy::time_block, ACCESS), halo_y = Policy::time_block;
  static constexpr int useful_x = WIDTH - 2 * halo_x, useful_y = HEIGHT - 2 * halo_y;
  int left, top;  // of what is useful
  AUTOTUNE_DEVICE Blocked(unsigned tile, int columns) {
    const unsigned across = (columns + useful_x - 1) / useful_x;
    left = static_cast<int>(tile % across) * useful_x;
    top = static_cast<int>(tile / across) * useful_y;
  }
  // Of the tile in that column and row of tiles.
  AUTOTUNE_DEVICE Blocked(int column, int row) : left(column * useful_x), top(row * useful_y) {}
  AUTOTUNE_DEVICE bool column(int x) const { return x >= left && x < left + useful_x; }
  AUTOTUNE_DEVICE bool row(int y) const { return y >= top && y < top + useful_y; }
};

// The sides of the ROWS x COLUMNS points of a thread, four bits each. Behind a wall they do not matter.
template <int ROWS, int COLUMNS>
struct SidesTile {
  unsigned bits[ROWS];
  bool any_closed;

  template <class Policy>
  AUTOTUNE_DEVICE void load(const Surroundings<Policy>& around, int y, const Mirrored<COLUMNS>& mirrored) {
    unsigned all = ~0u;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      bits[r] = 0;
      const int row = folded(y + r, around.rows);
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) bits[r] |= around.sides(row, mirrored.at[j]) << 4 * j;
      all &= bits[r];
    }
    constexpr unsigned open = (1u << 4 * COLUMNS) - 1;
    any_closed = all != open;
  }
  AUTOTUNE_DEVICE unsigned at(int r, int j) const { return bits[r] >> 4 * j & all_open; }
};

// Whether a beam's factor is not 0 in any of a warp's columns, a thread's COLUMNS from x on, and in any of rows top to
// bottom - 1. Where one of both is 0 everywhere, `own` is `still`.
template <int COLUMNS, class Policy>
AUTOTUNE_DEVICE bool lit_across(const Surroundings<Policy>& around, int x) {
  bool lit = false;
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) lit |= around.medium.across(folded(x + j, around.columns)) != 0;
  return __any_sync(0xffffffffu, lit);
}
template <class Policy>
AUTOTUNE_DEVICE bool lit_down(const Surroundings<Policy>& around, int top, int bottom) {
  bool lit = false;
  for (int y = top + static_cast<int>(threadIdx.x) % 32; y < bottom; y += 32)
    lit |= around.medium.down(folded(y, around.rows)) != 0;
  return __any_sync(0xffffffffu, lit);
}

// What a thread's useful points of rows top to bottom - 1 add to F. It reads what it wrote itself, and only where the
// detector looks: as many rows at a time as a word has bits for.
template <int COLUMNS, class Policy, class Place>
AUTOTUNE_DEVICE unsigned long long detected_again(const Surroundings<Policy>& around, const Field<Real<Policy>>& to,
                                                  const Place& place, int x, int top, int bottom) {
  constexpr int batch = 32 / COLUMNS;
  unsigned long long sum = 0;
  if (!around.watched(top, bottom, x, x + COLUMNS)) return sum;
  for (; top < bottom; top += batch) {
    unsigned seen = 0;
#pragma unroll
    for (int n = 0; n < 32; ++n) {
      const int row = top + n / COLUMNS, column = x + n % COLUMNS;
      if (row < bottom && place.column(column) && column < around.columns)
        seen |= (around.detector.load(row, column) ? 1u : 0u) << n;
    }
    for (; seen; seen &= seen - 1) {
      const int n = __ffs(static_cast<int>(seen)) - 1;
      sum += quanta(to.point(top + n / COLUMNS, x + n % COLUMNS), around.quanta_per_unit);
    }
  }
  return sum;
}

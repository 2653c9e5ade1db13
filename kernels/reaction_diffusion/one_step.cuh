// field_memory global, readonly or texture: one step, straight from memory. A thread has vector_width columns and
// marches down `strip` rows with three of them in registers.
#pragma once
#include "tile.cuh"

template <class Policy, class From>
struct OneStep {
  static constexpr int columns = Policy::vector_width;
  static constexpr int width = 32 * columns, height = Policy::block_size / 32 * Policy::strip;
  using Number = Real<Policy>;
  using Row = Points<Number, columns>;

  const Surroundings<Policy>& around;
  const From& from;

  // Quanta of the tile's points, when it is `sampled`.
  AUTOTUNE_DEVICE unsigned long long advance(unsigned tile, const Concentration<Policy>& to, bool sampled) const {
    const unsigned across = (around.columns + width - 1) / width;
    const int thread = static_cast<int>(threadIdx.x);
    const int x = static_cast<int>(tile % across) * width + thread % 32 * columns;
    const int top = static_cast<int>(tile / across) * height + thread / 32 * Policy::strip;
    unsigned long long sum = 0;
    if (x >= around.columns || top >= around.rows) return sum;
    Row north = row(top - 1, x), here = row(top, x);
    const auto across_x = beam_across(x);
    for (int y = top; y < top + Policy::strip && y < around.rows; ++y) {
      const Row south = row(y + 1, x);
      const Row next = advanced_row(y, x, across_x, north, here, south);
      to.store_inside(next, y, x);
      if constexpr (Policy::boundary == Boundary::ghost) store_ghosts(to, next, y, x);
      if (sampled) sum += around.detected(next, y, x);
      north = here;
      here = south;
    }
    return sum;
  }

 private:
  // The points of row y; for a branch, those behind a wall are never looked at.
  AUTOTUNE_DEVICE Row row(int y, int x) const {
    if constexpr (Policy::boundary == Boundary::branch) {
      if (y < 0 || y >= around.rows) return Row{};
    }
    if constexpr (Policy::boundary == Boundary::clamp && !From::clamps) y = min(max(y, 0), around.rows - 1);
    return from.template load<columns>(y, x);
  }
  AUTOTUNE_DEVICE Number beside(int y, int x) const {
    if constexpr (Policy::boundary == Boundary::branch) {
      if (x < 0 || x >= around.columns) return Number{};
    }
    if constexpr (Policy::boundary == Boundary::clamp && !From::clamps) x = min(max(x, 0), around.columns - 1);
    return from.point(y, x);
  }

  AUTOTUNE_DEVICE Row beam_across(int x) const {
    Row factors{};
    if constexpr (Policy::coefficient != Coefficient::stored) {
#pragma unroll
      for (int j = 0; j < columns; ++j) factors.at[j] = around.medium.across(min(x + j, around.columns - 1));
    }
    return factors;
  }

  AUTOTUNE_DEVICE Row owns(int y, int x, const Row& across_x) const {
    if constexpr (Policy::coefficient == Coefficient::stored) return around.medium.stored.template load<columns>(y, x);
    Row own;
    const Number down = around.medium.down(y);
#pragma unroll
    for (int j = 0; j < columns; ++j) own.at[j] = around.medium.own(across_x.at[j], down);
    return own;
  }

  AUTOTUNE_DEVICE Row advanced_row(int y, int x, const Row& across_x, const Row& north, const Row& here,
                                   const Row& south) const {
    const Number west_of = beside(y, x - 1), east_of = beside(y, x + columns), d = around.medium.rates.diffusion;
    const Row own = owns(y, x, across_x);
    Row next;
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      const Number c = here.at[j], west = j ? here.at[j ? j - 1 : 0] : west_of;
      const Number east = j < columns - 1 ? here.at[j < columns - 1 ? j + 1 : 0] : east_of;
      const bool last = x + j == around.columns - 1;
      if constexpr (Policy::boundary == Boundary::mask) {
        const unsigned sides = x + j < around.columns ? around.sides(y, x + j) : 0;
        next.at[j] = walled(sides, own.at[j], d, c, north.at[j], south.at[j], west, east);
      } else if constexpr (Policy::boundary == Boundary::branch) {
        next.at[j] = advanced(own.at[j], d, c, y == 0 ? c : north.at[j], y == around.rows - 1 ? c : south.at[j],
                              x + j == 0 ? c : west, last ? c : east);
      } else if constexpr (Policy::boundary == Boundary::clamp && !From::clamps) {
        next.at[j] = advanced(own.at[j], d, c, north.at[j], south.at[j], west, last ? c : east);
      } else {
        next.at[j] = advanced(own.at[j], d, c, north.at[j], south.at[j], west, east);
      }
    }
    return next;
  }

  // A point at a wall is its own neighbour behind it.
  AUTOTUNE_DEVICE void store_ghosts(const Concentration<Policy>& to, const Row& value, int y, int x) const {
    if (y == 0) to.store_inside(value, -1, x);
    if (y == around.rows - 1) to.store_inside(value, around.rows, x);
    if (x == 0) to.set_point(value.at[0], y, -1);
    if (x + columns >= around.columns) {
#pragma unroll
      for (int j = 0; j < columns; ++j)
        if (x + j == around.columns - 1) to.set_point(value.at[j], y, around.columns);
    }
  }
};

// What a step does to a point: explicit Euler for dc/dt = D lap c - k B(x, y) c on a square lattice.
//
//   c' = own * c + d * ((north + south) + (west + east)),   own = (1 - 4 d) - k dt B,   d = D dt / h^2
//
// with a neighbour behind a wall replaced by the point itself (no flux). Every configuration evaluates exactly these
// operations in this order, fused where `fused` says so (the family is compiled with --fmad=false), so that all give
// the same bits.
#pragma once
#include "field.cuh"

enum class Coefficient { stored, recomputed, separable };
enum class BeamShape { any, separable, gaussian };
enum class Walls { rectangle, outline };

AUTOTUNE_DEVICE float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
AUTOTUNE_DEVICE double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

template <class Number>
AUTOTUNE_DEVICE Number advanced(Number own, Number d, Number c, Number north, Number south, Number west, Number east) {
  return fused(d, (north + south) + (west + east), own * c);
}

// exp(-t^2) by multiplications and additions alone, so that the host (beam.py) computes the same bits: 2^-y for
// y = t^2 / ln 2, the whole part by the exponent, the rest by Taylor's series of exp to the 7th power.
AUTOTUNE_DEVICE float gaussian(float t) {
  const float y = t * t * 1.44269504f;
  if (!(y < 126.0f)) return 0.0f;
  const int whole = static_cast<int>(y);
  const float z = (y - static_cast<float>(whole)) * -0.693147181f;
  float series = 1.0f + z * (1.0f / 7.0f);
#pragma unroll
  for (int n = 6; n >= 1; --n) series = 1.0f + z * series * (1.0f / static_cast<float>(n));
  return series * __int_as_float((127 - whole) << 23);
}

// The lattice's constants in Real.
template <class Policy>
struct Rates {
  Real<Policy> diffusion, still, bleaching;
  AUTOTUNE_DEVICE Rates(double diffusion_, double bleaching_)
      : diffusion(static_cast<Real<Policy>>(diffusion_)),
        still(static_cast<Real<Policy>>(1.0 - 4.0 * diffusion_)),
        bleaching(static_cast<Real<Policy>>(bleaching_)) {}
};

// The factor `own` of a point. A beam that is a product of functions of x and y gives it as `still + across * down`.
template <class Policy>
struct Medium {
  Rates<Policy> rates;
  typename FieldOf<typename Policy::own, Real<Policy>, autotune::ReadOnly, true>::type stored;
  typename Policy::beam_columns beam_columns;
  typename Policy::beam_rows beam_rows;
  float rate, centre_x, centre_y;

  AUTOTUNE_DEVICE Real<Policy> across(int x) const {
    return -(rates.bleaching * static_cast<Real<Policy>>(factor(beam_columns, x, centre_x)));
  }
  AUTOTUNE_DEVICE Real<Policy> down(int y) const { return static_cast<Real<Policy>>(factor(beam_rows, y, centre_y)); }
  AUTOTUNE_DEVICE Real<Policy> own(Real<Policy> across_x, Real<Policy> down_y) const {
    return fused(across_x, down_y, rates.still);
  }

 private:
  template <class Factors>
  AUTOTUNE_DEVICE float factor(const Factors& factors, int index, float centre) const {
    if constexpr (Policy::coefficient == Coefficient::recomputed)
      return gaussian((static_cast<float>(index) - centre) * rate);
    else
      return factors.load(index);
  }
};

// `value` in a register from here on: the compiler may not compute it anew where it is used.
template <class Number>
AUTOTUNE_DEVICE void keep(Number& value) {
#ifndef AUTOTUNE_CPU
  if constexpr (sizeof(Number) == 4)
    asm volatile("" : "+f"(value));
  else
    asm volatile("" : "+d"(value));
#endif
}

// `own` of the ROWS x COLUMNS points that a thread keeps, in registers.
template <class Policy, int ROWS, int COLUMNS>
struct OwnTile {
  using Number = Real<Policy>;
  Number at[ROWS][COLUMNS];

  AUTOTUNE_DEVICE void load(const Medium<Policy>& medium, int y, const Mirrored<COLUMNS>& mirrored) {
    const int rows = medium.stored.rows;
    if constexpr (Policy::coefficient == Coefficient::stored) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        const auto row = mirrored.load(medium.stored, folded(y + r, rows));
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) at[r][j] = row.at[j];
      }
    } else {
      Number across[COLUMNS];
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) across[j] = medium.across(mirrored.at[j]);
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        const Number down = medium.down(folded(y + r, rows));
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) {
          at[r][j] = medium.own(across[j], down);
          keep(at[r][j]);
        }
      }
    }
  }
};

// The sides of a point that are open: 1 north, 2 south, 4 west, 8 east. A closed one shows the point itself.
constexpr unsigned all_open = 15;

template <class Number>
AUTOTUNE_DEVICE Number through(unsigned sides, unsigned side, Number neighbour, Number own) {
  return sides & side ? neighbour : own;
}

template <class Number>
AUTOTUNE_DEVICE Number walled(unsigned sides, Number own, Number d, Number c, Number north, Number south, Number west,
                              Number east) {
  return advanced(own, d, c, through(sides, 1, north, c), through(sides, 2, south, c), through(sides, 4, west, c),
                  through(sides, 8, east, c));
}

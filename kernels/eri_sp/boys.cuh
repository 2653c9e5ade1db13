// The Boys functions Fn(T) = integral over u in [0, 1] of u^2n exp(-T u^2), n = 0 .. ORDER, T >= 0 (Helgaker,
// Joergensen, Olsen, Molecular Electronic-Structure Theory, section 9.8). boys.py makes the table.
#pragma once
#include "autotune/reciprocal.cuh"

enum class Boys { erf, quotient };

constexpr double boys_end = 40;        // from here exp(-T) is nothing beside any Fn up to F4
constexpr double boys_series_end = 5;  // from here the recursion upwards loses nothing
constexpr int boys_terms = 44;
constexpr double half_root_pi = 0.88622692545275801365;

// A polynomial of degree 7 in T less the middle of the row, a quarter wide.
struct BoysRow {
  double c0, c1, c2, c3, c4, c5, c6, c7;
};

AUTOTUNE_DEVICE double boys_row(const BoysRow& row, double d) {
  double sum = fma(row.c7, d, row.c6);
  sum = fma(sum, d, row.c5);
  sum = fma(sum, d, row.c4);
  sum = fma(sum, d, row.c3);
  sum = fma(sum, d, row.c2);
  sum = fma(sum, d, row.c1);
  return fma(sum, d, row.c0);
}

// From the highest order down: all terms are positive, so nothing is lost.
template <int ORDER>
AUTOTUNE_DEVICE void boys_downwards(double t, double decay, double (&f)[ORDER + 1]) {
#pragma unroll
  for (int n = ORDER - 1; n >= 0; --n) f[n] = fma(2 * t, f[n + 1], decay) * (1.0 / (2 * n + 1));
}

// F0 alone, and up from it: T so large that exp(-T) is left out.
template <int ORDER>
AUTOTUNE_DEVICE void boys_far(double t, double (&f)[ORDER + 1]) {
  const double root = autotune::reciprocal_root(t), half = 0.5 * (root * root);
  f[0] = half_root_pi * root;
#pragma unroll
  for (int n = 0; n < ORDER; ++n) f[n + 1] = (2 * n + 1) * half * f[n];
}

// Without a table: the series exp(-T) sum over k of (2T)^k / ((2n+1)(2n+3) ... (2n+2k+1)), from its end; and erf.
template <int ORDER>
AUTOTUNE_DEVICE void boys_erf(double t, double (&f)[ORDER + 1]) {
  const double decay = exp(-t);
  if (t < boys_series_end) {
    double sum = 1;
    for (int k = boys_terms; k > 0; --k) sum = fma(sum, 2 * t / (2 * ORDER + 2 * k + 1), 1.0);
    f[ORDER] = decay * sum * (1.0 / (2 * ORDER + 1));
    boys_downwards<ORDER>(t, decay, f);
  } else {
    const double root = sqrt(t), half = 0.5 / t;
    f[0] = half_root_pi * erf(root) / root;
#pragma unroll
    for (int n = 0; n < ORDER; ++n) f[n + 1] = ((2 * n + 1) * f[n] - decay) * half;
  }
}

// F0 alone, T < 40, as the quotient of two polynomials of degree 12: within 1e-15 of it. Found in 50 digits by
// interpolation; all coefficients are positive, so nothing cancels. Lowest power first.
AUTOTUNE_DEVICE double boys_quotient(double t) {
  constexpr double over[] = {1.0,
                             0.20229374853398394,
                             0.05989788640860855,
                             0.006502616214034326,
                             0.0007954078874865887,
                             5.5060577338301405e-05,
                             3.7160402377943414e-06,
                             1.6697550547480403e-07,
                             6.513430294838452e-09,
                             1.68976429500646e-10,
                             2.9829072100132518e-12,
                             1.7479970392436898e-14,
                             1.1162449920206068e-17};
  constexpr double under[] = {1.0,
                              0.5356270818673131,
                              0.1384402470311089,
                              0.022896180846830615,
                              0.0027068395968819297,
                              0.0002417394630406485,
                              1.677248301111327e-05,
                              9.129519026790575e-07,
                              3.8684849693665364e-08,
                              1.2348744816033335e-09,
                              2.741663026636864e-11,
                              3.125732779135042e-13,
                              7.434855371091773e-16};
  constexpr int degree = 12;
  double numerator = over[degree], denominator = under[degree];
#pragma unroll
  for (int power = degree - 1; power >= 0; --power) {
    numerator = fma(numerator, t, over[power]);
    denominator = fma(denominator, t, under[power]);
  }
  return numerator * autotune::reciprocal(denominator);
}

// By the policy's method: without a table; or the highest from the table (`table` is the accessor of its rows) and the
// others from it and exp, but F0 where it is alone by the quotient.
template <class Policy, int ORDER>
AUTOTUNE_DEVICE void boys_functions(double t, const typename Policy::boys_table& table, double (&f)[ORDER + 1]) {
  if constexpr (Policy::boys == Boys::erf) {
    boys_erf<ORDER>(t, f);
  } else {
    if (t >= boys_end) {
      boys_far<ORDER>(t, f);
      return;
    }
    if constexpr (ORDER == 0) {
      f[0] = boys_quotient(t);
    } else {
      const int row = static_cast<int>(4 * t);
      f[ORDER] = boys_row(table.load(ORDER, row), t - (row + 0.5) * 0.25);
      boys_downwards<ORDER>(t, exp(-t), f);
    }
  }
}

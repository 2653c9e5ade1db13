// Solid harmonics: the local expansion of 1 / r that all three steps use, as Dehnen (2014, "A fast multipole method for
// stellar dynamics", Appendix A) defines them.
//
// Around a middle, with atoms at y and points at x: sum of q / |y - x| = sum over n and m of F(n, m) conj(R(n, m; x)),
// F(n, m) = sum of q I(n, m; y). Negative m follow: F(n, -m) = (-1)^m conj(F(n, m)).
//   R(m, m) = (-(x + iy) / 2)^m / m!
//   I(0, 0) = 1 / r, I(m, m) = -(2 m - 1) (x + iy) / r^2 I(m - 1, m - 1)
//   r^2 I(n, m) = (2 n - 1) z I(n - 1, m) - ((n - 1)^2 - m^2) I(n - 2, m)
// Of an atom at distance d the terms of degree n at a point in a ball of radius b are together at most b^n / d^(n + 1),
// and all from n = p + 1 on at most (b / d)^(p + 1) / (d - b).
#pragma once
#include "atom.cuh"

struct Complex {
  double re, im;
};

AUTOTUNE_DEVICE constexpr int term_of(int n, int m) { return n * (n + 1) / 2 + m; }
AUTOTUNE_DEVICE constexpr int terms_to(int order) { return term_of(order + 1, 0); }

// I(n, m) = scale(n, m) seed(m) H(n), where seed(m) = (-(x + iy) / r^2)^m / r, H(m) = 1, H(m + 1) = z / r^2 and
// H(n) = turn(n, m) (z / r^2) H(n - 1) - H(n - 2) / r^2: the recurrence with one product less, and in real numbers.
AUTOTUNE_DEVICE constexpr double part_of_scale(int n, int m) {
  double product = (n - m) % 2 ? 2 * m + 1 : 1;
  for (int k = m + 2 + (n - m) % 2; k <= n; k += 2) product *= (k - 1) * (k - 1) - m * m;
  return product;
}
AUTOTUNE_DEVICE constexpr double turn(int n, int m) {
  return n == m + 1 ? 1 : (2 * n - 1) * part_of_scale(n - 1, m) / part_of_scale(n, m);
}
AUTOTUNE_DEVICE constexpr double scale(int n, int m) {
  double product = part_of_scale(n, m);
  for (int k = 1; k <= m; ++k) product *= 2 * k - 1;
  return product;
}
AUTOTUNE_DEVICE constexpr double factorial(int n) {
  double product = 1;
  for (int k = 2; k <= n; ++k) product *= k;
  return product;
}

// F(n, m) of a table with those of m >= 0.
AUTOTUNE_DEVICE Complex term_at(const Complex* table, int n, int m) {
  const Complex found = table[term_of(n, m < 0 ? -m : m)];
  if (m >= 0) return found;
  return m & 1 ? Complex{-found.re, found.im} : Complex{found.re, -found.im};
}

// R(n, m) at (x, y, z) for one m and all n up to the order, into the table.
template <int order>
AUTOTUNE_DEVICE void regular(Complex* table, int m, double x, double y, double z) {
  Complex last = {1, 0}, before = {0, 0};
  for (int k = 1; k <= m; ++k) last = {-(last.re * x - last.im * y) / (2 * k), -(last.re * y + last.im * x) / (2 * k)};
  const double r2 = x * x + y * y + z * z;
  table[term_of(m, m)] = last;
  for (int n = m + 1; n <= order; ++n) {
    const double inverse = 1.0 / (n * n - m * m);
    const Complex next = {((2 * n - 1) * z * last.re - r2 * before.re) * inverse,
                          ((2 * n - 1) * z * last.im - r2 * before.im) * inverse};
    before = last;
    last = next;
    table[term_of(n, m)] = next;
  }
}

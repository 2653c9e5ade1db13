// The integrals over Hermite Gaussians, and Gaussians expanded in them (McMurchie, Davidson, J. Comput. Phys. 26, 218,
// 1978; Helgaker, Joergensen, Olsen, Molecular Electronic-Structure Theory, sections 9.5 and 9.9).
//
// A Hermite Gaussian has three powers t, u, v, of x, y and z. They are numbered by t + u + v:
// 1; x y z; xx xy xz yy yz zz; xxx xxy xxz xyy xyz xzz yyy yyz yzz zzz; and 15 of four.
#pragma once
#include "autotune/device.cuh"

// How many have t + u + v up to `order`.
AUTOTUNE_DEVICE constexpr int hermites(int order) { return (order + 1) * (order + 2) * (order + 3) / 6; }

// The number of the one that has one power more along `axis`.
AUTOTUNE_DEVICE constexpr int raised(int number, int axis) {
  constexpr int by[20][3] = {{1, 2, 3},    {4, 5, 6},    {5, 7, 8},    {6, 8, 9},    {10, 11, 12},
                             {11, 13, 14}, {12, 14, 15}, {13, 16, 17}, {14, 17, 18}, {15, 18, 19},
                             {20, 21, 22}, {21, 23, 24}, {22, 24, 25}, {23, 26, 27}, {24, 27, 28},
                             {25, 28, 29}, {26, 30, 31}, {27, 31, 32}, {28, 32, 33}, {29, 33, 34}};
  return by[number][axis];
}

// How the recursion makes one: along `axis` from `lower`, and `times` of `lowest`, which has one power less again.
struct Step {
  int axis, lower, times, lowest;
};

AUTOTUNE_DEVICE constexpr Step step_to(int number) {
  constexpr Step steps[35] = {
      {0, 0, 0, 0},                                                                // 1
      {0, 0, 0, 0},  {1, 0, 0, 0},  {2, 0, 0, 0},                                  // x y z
      {0, 1, 1, 0},  {0, 2, 0, 0},  {0, 3, 0, 0},  {1, 2, 1, 0},  {1, 3, 0, 0},    // xx xy xz yy yz
      {2, 3, 1, 0},                                                                // zz
      {0, 4, 2, 1},  {1, 4, 0, 0},  {2, 4, 0, 0},  {0, 7, 0, 0},  {0, 8, 0, 0},    // xxx xxy xxz xyy xyz
      {0, 9, 0, 0},  {1, 7, 2, 2},  {2, 7, 0, 0},  {1, 9, 0, 0},  {2, 9, 2, 3},    // xzz yyy yyz yzz zzz
      {0, 10, 3, 4}, {1, 10, 0, 0}, {2, 10, 0, 0}, {0, 13, 1, 7}, {1, 12, 0, 0},   // xxxx -y -z xxyy xxyz
      {0, 15, 1, 9}, {0, 16, 0, 0}, {0, 17, 0, 0}, {0, 18, 0, 0}, {0, 19, 0, 0},   // xxzz xyyy -yyz -yzz -zzz
      {1, 16, 3, 7}, {2, 16, 0, 0}, {1, 18, 1, 9}, {1, 19, 0, 0}, {2, 19, 3, 9}};  // yyyy -z yyzz yzzz zzzz
  return steps[number];
}

// A round of the recursion: all numbers from M down, so that one is overwritten after those of higher powers, which are
// made from it. Numbers are template arguments so that none is left to be found out when the kernel runs.
template <int M, int COUNT>
AUTOTUNE_DEVICE void hermite_round(double x, double y, double z, double (&r)[COUNT]) {
  if constexpr (M > 0) {
    constexpr Step step = step_to(M);
    const double along = step.axis == 0 ? x : step.axis == 1 ? y : z;
    if constexpr (step.times > 0)
      r[M] = fma(along, r[step.lower], step.times * r[step.lowest]);
    else
      r[M] = along * r[step.lower];
    hermite_round<M - 1>(x, y, z, r);
  }
}

// R_tuv of all t + u + v <= ORDER from base[n] = (-2 alpha)^n Fn(alpha r^2), times whatever, in rounds N = ORDER .. 0;
// x, y, z is P - Q.
template <int ORDER, int N = ORDER>
AUTOTUNE_DEVICE void hermite_integrals(const double (&base)[ORDER + 1], double x, double y, double z,
                                       double (&r)[hermites(ORDER)]) {
  hermite_round<hermites(ORDER - N) - 1>(x, y, z, r);
  r[0] = base[N];
  if constexpr (N > 0) hermite_integrals<ORDER, N - 1>(base, x, y, z, r);
}

// The product of two primitives around P = A + pa = B + pb in Hermite Gaussians; `half` is 1 / (2p), and `slope` the
// same, negative for a ket, whose Hermite Gaussians are differentiated from the other side.
struct Expansion {
  double pa[3], pb[3], half, slope;
};

// Of a primitive pair with `weight` b/p and `half` 1/2p, whose shells are A - B = (x, y, z) apart.
AUTOTUNE_DEVICE Expansion expansion(double weight, double half, double x, double y, double z, bool is_ket) {
  const double rest = 1 - weight;
  return {{-weight * x, -weight * y, -weight * z}, {rest * x, rest * y, rest * z}, half, is_ket ? -half : half};
}

// Function NUMBER of a pair of so many momenta (0: 1; 1: x y z of A; 2: xx xy xz yx ..., A slower), from the Hermite
// Gaussians around number AT of `g`.
template <int MOMENTA, int AT, int NUMBER, int COUNT>
AUTOTUNE_DEVICE double expanded(const Expansion& e, const double (&g)[COUNT]) {
  if constexpr (MOMENTA == 0) {
    return g[AT];
  } else if constexpr (MOMENTA == 1) {
    return fma(e.pa[NUMBER], g[AT], e.slope * g[raised(AT, NUMBER)]);
  } else {
    constexpr int i = NUMBER / 3, j = NUMBER % 3, to_i = raised(AT, i), to_j = raised(AT, j), to_both = raised(to_i, j);
    const double square = e.half * e.half;
    if constexpr (i == j) {
      const double sum = fma(e.slope * (e.pa[i] + e.pb[i]), g[to_i], square * g[to_both]);
      return fma(fma(e.pa[i], e.pb[i], e.half), g[AT], sum);
    } else {
      const double sum = fma(e.slope * e.pa[i], g[to_j], square * g[to_both]);
      return fma(e.pa[i] * e.pb[j], g[AT], fma(e.slope * e.pb[j], g[to_i], sum));
    }
  }
}

// The expansion of the cube that holds a cube, around the cube's own middle, added to its own. It loses nothing:
// F(n, m) = sum over k and l of F'(n + k, m + l) conj(R(k, l; way between the middles)).
#pragma once
#include "cells.cuh"
#include "harmonics.cuh"

template <class Policy>
__global__ void __launch_bounds__(128)
    shift(typename Policy::expansions expansions, typename Policy::amounts amounts, unsigned nx, unsigned ny,
          unsigned nz, float spacing, unsigned level, unsigned first_cell, unsigned first_outer) {
  constexpr int order = Policy::order, terms = terms_to(order);
  __shared__ Complex outer[terms], way[terms];
  const Points points = {nx, ny, nz, spacing};
  const Level<Policy> cubes(points, level), outer_cubes(points, level + 1);
  const uint3 place = cubes.place(blockIdx.x);
  const unsigned number = first_cell + blockIdx.x, from = first_outer + outer_cubes.number(halved(place));
  for (unsigned i = threadIdx.x; i < terms; i += 128)
    outer[i] = {expansions.load(from, 2 * i), expansions.load(from, 2 * i + 1)};
  if (threadIdx.x <= order) {
    const double quarter = 0.5 * cubes.edge * points.step;
    regular<order>(way, threadIdx.x, place.x % 2 ? quarter : -quarter, place.y % 2 ? quarter : -quarter,
                   place.z % 2 ? quarter : -quarter);
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < terms; i += 128) {
    int n = 0;
    while (term_of(n + 1, 0) <= static_cast<int>(i)) ++n;
    const int m = i - term_of(n, 0);
    Complex sum = {0, 0};
    for (int k = 0; k <= order - n; ++k)
      for (int l = -k; l <= k; ++l) {
        if (m + l > n + k || m + l < -(n + k)) continue;
        const Complex f = term_at(outer, n + k, m + l), r = term_at(way, k, l);
        sum.re += f.re * r.re + f.im * r.im;
        sum.im += f.im * r.re - f.re * r.im;
      }
    expansions.store(expansions.load(number, 2 * i) + sum.re, number, 2 * i);
    expansions.store(expansions.load(number, 2 * i + 1) + sum.im, number, 2 * i + 1);
  }
  if (threadIdx.x < 2)
    amounts.store((amounts.load(number, threadIdx.x) + amounts.load(from, threadIdx.x)), number, threadIdx.x);
}

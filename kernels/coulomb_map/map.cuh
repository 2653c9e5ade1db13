// The points of one cube of level 0: near atoms one by one, far ones by the cube's expansion. A cube whose expansion
// leaves out more than what is asked takes all atoms one by one.
#pragma once
#include "expand.cuh"

// The far atoms' potential on a column of points, (x, y) from the cube's middle, as a polynomial of z:
// R(n, m) = (-(x + iy) / 2)^m sum over j of (-(x^2 + y^2) / 4)^j z^(n - m - 2 j) / ((m + j)! j! (n - m - 2 j)!).
template <int order>
struct Column {
  double of_z[order + 1];

  template <int m, int j, int d>
  AUTOTUNE_DEVICE void powers(const Complex* table, const Complex& weight) {
    if constexpr (m + 2 * j + d <= order) {
      const Complex f = table[term_of(m + 2 * j + d, m)];
      of_z[d] = fma(weight.re, f.re, of_z[d]);
      if constexpr (m > 0) of_z[d] = fma(weight.im, f.im, of_z[d]);
      powers<m, j, d + 1>(table, weight);
    }
  }
  template <int m, int j>
  AUTOTUNE_DEVICE void squares(const Complex* table, const Complex& around, double square, double power) {
    if constexpr (m + 2 * j <= order) {
      constexpr double factor = (m ? 2 : 1) / (factorial(m + j) * factorial(j));
      powers<m, j, 0>(table, {factor * power * around.re, factor * power * around.im});
      squares<m, j + 1>(table, around, square, power * square);
    }
  }
  template <int m>
  AUTOTUNE_DEVICE void turns(const Complex* table, double x, double y, const Complex& around) {
    if constexpr (m <= order) {
      squares<m, 0>(table, around, -0.25 * (x * x + y * y), 1);
      turns<m + 1>(table, x, y, {-0.5 * (around.re * x - around.im * y), -0.5 * (around.re * y + around.im * x)});
    }
  }
  template <int d>
  AUTOTUNE_DEVICE void divide() {
    if constexpr (d <= order) {
      constexpr double inverse = 1 / factorial(d);
      of_z[d] *= inverse;
      divide<d + 1>();
    }
  }
  AUTOTUNE_DEVICE void set(const Complex* table, double x, double y) {
    turns<0>(table, x, y, {1, 0});
    divide<0>();
  }
  AUTOTUNE_DEVICE double at(double z) const {
    double value = of_z[order];
#pragma unroll
    for (int d = order - 1; d >= 0; --d) value = fma(value, z, of_z[d]);
    return value;
  }
};

// A thread's sums at its points, one in each slice of the cube, as float32 numbers and what these miss.
template <class Policy>
struct Sums {
  static constexpr int points = Policy::cell;
  static constexpr bool with_sizes = Policy::bounds == Bounds::points;
  float high[points] = {}, low[points] = {}, size[with_sizes ? points : 1] = {};

  // Adds a tile of atoms, its count a multiple of `chain`.
  AUTOTUNE_DEVICE void add(const Atom* atoms, unsigned count, float x, float y, float first_z, float step) {
    float sizes[with_sizes ? points : 1] = {};
#pragma unroll 1
    for (unsigned first = 0; first < count; first += chain) {
      float sum[points] = {};
#pragma unroll
      for (unsigned a = 0; a < chain; ++a) {
        const Atom atom = atoms[first + a];
        const float dx = fmaf(step, x, -atom.x), dy = fmaf(step, y, -atom.y);
        const float flat = fmaf(dx, dx, fmaf(dy, dy, softening));
#pragma unroll
        for (int k = 0; k < points; ++k) {
          const float dz = fmaf(step, first_z + k, -atom.z), inverse = rsqrtf(fmaf(dz, dz, flat));
          sum[k] = fmaf(atom.q, inverse, sum[k]);
          if constexpr (with_sizes) sizes[k] = fmaf(fabsf(atom.q), inverse, sizes[k]);
        }
      }
#pragma unroll
      for (int k = 0; k < points; ++k) {
        const float before = high[k];
        high[k] = before + sum[k];
        low[k] += lost(before, sum[k], high[k]);
      }
    }
#pragma unroll
    for (int k = 0; k < points; ++k) {
      const float before = high[k];
      high[k] = before + low[k];
      low[k] = lost(before, low[k], high[k]);
      if constexpr (with_sizes) size[k] += sizes[k];
    }
  }
  AUTOTUNE_DEVICE double value(int k) const { return static_cast<double>(high[k]) + low[k]; }
};

// What a cube takes from its expansion: all of it, or nothing where the bound is above what is asked. `most` is not
// below the far atoms' sum of |q| / r, `least` not above it, at any point of the cube.
struct Far {
  double error = 0, least = 0, most = 0;
  bool is_used = false;

  template <class Policy>
  AUTOTUNE_DEVICE void take(double error_of_expansion, double least_size, unsigned atoms, double accuracy) {
    const double most_size = least_size * (Policy::separation + 10) / (Policy::separation - 10.0) * above;
    const double whole_error = (error_of_expansion + far_rounding(atoms) * most_size) * above;
    is_used = (whole_error + unit_roundoff * most_size) * above * above <= accuracy * least_size;
    if (!is_used) return;
    error = whole_error;
    least = least_size;
    most = most_size;
  }
  // No point of the cube has a larger bound, as a share of what is asked.
  AUTOTUNE_DEVICE float largest_share(unsigned atoms, double accuracy) const {
    const double near_share = (near_rounding(atoms) + unit_roundoff) / accuracy;
    const double far_share = least > 0 ? (error + unit_roundoff * most) / (accuracy * least) : 0;
    return static_cast<float>(max(near_share, far_share) * size_rounding(atoms) * above * above * above);
  }
};

template <class Policy>
__global__ void __launch_bounds__((Policy::cell * Policy::cell + 31) / 32 * 32, Policy::point_blocks)
    sum_points(typename Policy::sum_arguments a) {
  constexpr int order = Policy::method == Method::direct ? 0 : Policy::order, cell = Policy::cell, tile = 128;
  constexpr unsigned threads = (cell * cell + warp_size - 1) / warp_size * warp_size;
  __shared__ Gathered<threads, tile> gathered;
  __shared__ Complex table[terms_to(order)];
  const unsigned thread = threadIdx.x, all = a.atoms.extent(0);
  const Points points = {a.nx, a.ny, a.nz, a.spacing};
  const Level<Policy> cubes(points, 0);
  const uint3 place = cubes.place(blockIdx.x);
  const unsigned column = place.x * cell + thread % cell, row = place.y * cell + thread / cell;
  const unsigned first_slice = place.z * cell;
  const float x = column, y = row, z = first_slice;
  Sums<Policy> sums;
  const auto add = [&](Atom* some, unsigned count) {
    const unsigned whole = (count + chain - 1) / chain * chain;
    if (whole > count) {
      if (thread < whole - count) some[count + thread] = {0, 0, 0, 0};
      __syncthreads();
    }
    sums.add(some, whole, x, y, z, a.spacing);
  };
  const Ball ball = cubes.ball(points, place);
  Far far;
  if constexpr (Policy::method == Method::expansions)
    far.take<Policy>(a.amounts.load(blockIdx.x, 0), a.amounts.load(blockIdx.x, 1), all, a.accuracy);
  for (unsigned i = thread; far.is_used && i < terms_to(order); i += threads)
    table[i] = {a.expansions.load(blockIdx.x, 2 * i), a.expansions.load(blockIdx.x, 2 * i + 1)};
  if constexpr (Policy::method == Method::expansions) {
    const Grid grid(a.grid_axes, a.side);
    const Rows rows(grid, ball, far.is_used ? ball.far : 1e30);
    gathered.each(
        a.sorted, rows.count(), [&](unsigned i) { return rows.run(a.starts, i); },
        [&](const Atom& atom) { return !far.is_used || !ball.is_far(atom); }, add);
  } else {
    gathered.each(
        a.atoms, (all + 1023) / 1024, [&](unsigned i) { return Rows::Run{i * 1024, min(1024u, all - i * 1024)}; },
        [](const Atom&) { return true; }, add);
  }
  // Of numbers above 0 the order is that of their bits.
  if (thread == 0)
    atomicMax(static_cast<unsigned*>(static_cast<void*>(a.share)), __float_as_uint(far.largest_share(all, a.accuracy)));
  if (thread >= cell * cell || column >= a.nx || row >= a.ny) return;
  Column<order> polynomial = {};
  if (far.is_used) polynomial.set(table, x * points.step - ball.x, y * points.step - ball.y);
#pragma unroll
  for (int k = 0; k < cell; ++k) {
    if (first_slice + k >= a.nz) break;
    const float value = static_cast<float>(sums.value(k) + polynomial.at((z + k) * points.step - ball.z));
    a.potential.store(value, first_slice + k, row, column);
    if constexpr (Policy::bounds == Bounds::points) {
      const double near_error = near_rounding(all) * sums.size[k] * size_rounding(all);
      const double error = near_error + far.error + unit_roundoff * fabs(value);
      a.bound.store(static_cast<float>(error * above * above), first_slice + k, row, column);
    }
  }
  if constexpr (Policy::bounds == Bounds::largest)
    if (thread == 0 && blockIdx.x == 0) a.bound.store(0, 0, 0, 0);
}

// Sums over time of density, velocity and products of velocities of a lattice Boltzmann fluid (D2Q9), whose populations
// are stored less their weights. A thread reads its cell before it writes it: input and output may be the same array.
#include "autotune/array.cuh"

struct Sums {
  float density, u, v, uu, vv, uv;
};

template <class Policy>
__global__ void __launch_bounds__(128) statistics(typename Policy::populations populations, typename Policy::sums sums,
                                                  typename Policy::sums_after sums_after) {
  const int right[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
  const int down[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
  const unsigned x = blockIdx.x * Policy::block_x + threadIdx.x;
  const unsigned y = blockIdx.y * (128 / Policy::block_x) + threadIdx.y;
  if (x >= populations.extent(2) || y >= populations.extent(1)) return;
  float density = 1, u = 0, v = 0;
#pragma unroll
  for (int i = 0; i < 9; ++i) {
    const float population = populations.load(i, y, x);
    density += population;
    u += right[i] * population;
    v += down[i] * population;
  }
  u /= density;
  v /= density;
  const Sums before = sums.load(y, x);
  sums_after.store(
      {before.density + density, before.u + u, before.v + v, before.uu + u * u, before.vv + v * v, before.uv + u * v},
      y, x);
}

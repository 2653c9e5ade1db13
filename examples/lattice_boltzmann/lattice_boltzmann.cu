// One step of a lattice Boltzmann fluid in two dimensions (D2Q9): each cell pulls from its neighbours the populations
// that move towards it, and relaxes them to their equilibrium. The lattice is periodic.
//
// A population is stored less its weight, the value it has in a fluid at rest: what is left is small, and so keeps more
// of its digits in few bits.
#include "autotune/array.cuh"

template <class Policy>
__global__ void __launch_bounds__(Policy::threads)
    lattice_boltzmann(typename Policy::populations before, typename Policy::streamed after, float omega) {
  const int right[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
  const int down[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
  const float weight[9] = {4 / 9.f, 1 / 9.f, 1 / 9.f, 1 / 9.f, 1 / 9.f, 1 / 36.f, 1 / 36.f, 1 / 36.f, 1 / 36.f};
  const unsigned rows = before.extent(1), columns = before.extent(2);
  const unsigned x = blockIdx.x * Policy::block_x + threadIdx.x;
  const unsigned y = blockIdx.y * (Policy::threads / Policy::block_x) + threadIdx.y;
  if (x >= columns || y >= rows) return;
  const unsigned from_x[3] = {x + 1 == columns ? 0 : x + 1, x, x == 0 ? columns - 1 : x - 1};
  const unsigned from_y[3] = {y + 1 == rows ? 0 : y + 1, y, y == 0 ? rows - 1 : y - 1};

  float population[9], density = 0, flow_x = 0, flow_y = 0;
#pragma unroll
  for (int i = 0; i < 9; ++i) {
    population[i] = before.load(i, from_y[down[i] + 1], from_x[right[i] + 1]);
    density += population[i];
    flow_x += right[i] * population[i];
    flow_y += down[i] * population[i];
  }
  const float share = 1 / (1 + density);
  const float u = flow_x * share, v = flow_y * share, square = 1.5f * (u * u + v * v);
#pragma unroll
  for (int i = 0; i < 9; ++i) {
    const float along = 3 * (right[i] * u + down[i] * v);
    // The equilibrium less the weight: w (rho (1 + a + a^2 / 2 - s) - 1), and rho is 1 + density.
    const float moved = along + 0.5f * along * along - square;
    const float equilibrium = weight[i] * (density + moved + density * moved);
    after.store(population[i] + omega * (equilibrium - population[i]), i, y, x);
  }
}

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif

// Emission and absorption without scattering, as rte_lw of RTE+RRTMGP solves them with one angle (Pincus, Mlawer,
// Delamere 2019; the angle is Elsasser's of 1942). A thread has a column, and the intensities of all points at a time.
#include "autotune/array.cuh"

constexpr int points = 16;  // as in family.yaml
constexpr float slant = 1.66f, stefan_boltzmann = 5.670374e-8f;

AUTOTUNE_DEVICE float emitted(float temperature) {
  const float square = temperature * temperature;
  return stefan_boltzmann * square * square;
}

// One layer: what comes out of it at each point, and their sum.
template <class Policy>
AUTOTUNE_DEVICE float through(float (&intensity)[points], const float (&weight)[points],
                              typename Policy::temperature temperature, typename Policy::depth depth, unsigned column,
                              unsigned level) {
  const float source = emitted(temperature.load(column, level));
  float sum = 0;
#pragma unroll
  for (int point = 0; point < points; ++point) {
    const float passed = expf(-slant * depth.load(point, column, level));
    intensity[point] = intensity[point] * passed + weight[point] * source * (1 - passed);
    sum += intensity[point];
  }
  return sum;
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    transport(typename Policy::weights weights, typename Policy::ground ground,
              typename Policy::temperature temperature, typename Policy::depth depth, typename Policy::flux flux) {
  const unsigned column = blockIdx.x * Policy::block_size + threadIdx.x, levels = temperature.extent(1);
  if (column >= temperature.extent(0)) return;
  float weight[points], intensity[points] = {};
#pragma unroll
  for (int point = 0; point < points; ++point) weight[point] = weights.load(point);
  flux.store(0, column, levels);
  for (unsigned level = levels; level-- > 0;)
    flux.store(-through<Policy>(intensity, weight, temperature, depth, column, level), column, level);
  const float source = emitted(ground.load(column));
#pragma unroll
  for (int point = 0; point < points; ++point) intensity[point] = weight[point] * source;
  flux.store(flux.load(column, 0) + source, column, 0);
  for (unsigned level = 0; level < levels; ++level) {
    const float up = through<Policy>(intensity, weight, temperature, depth, column, level);
    flux.store(flux.load(column, level + 1) + up, column, level + 1);
  }
}

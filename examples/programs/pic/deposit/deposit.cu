// Cloud in cell (Birdsall, Langdon: Plasma Physics via Computer Simulation, chapter 14): a particle is a square as wide
// as a cell, and each node gets what of it lies nearest to it.
#include "../particle.cuh"
#include "autotune/field_access.cuh"

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    deposit(typename Policy::particles particles, typename Policy::charge charge) {
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i >= particles.extent(0)) return;
  const Between y = between(autotune::load_field<&Particle::y>(particles, i), charge.extent(0));
  const Between x = between(autotune::load_field<&Particle::x>(particles, i), charge.extent(1));
  charge.add((1 - y.share) * (1 - x.share), y.before, x.before);
  charge.add((1 - y.share) * x.share, y.before, x.behind);
  charge.add(y.share * (1 - x.share), y.behind, x.before);
  charge.add(y.share * x.share, y.behind, x.behind);
}

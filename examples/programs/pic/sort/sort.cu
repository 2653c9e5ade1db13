// Particles in the order of their cells: counted and scattered, gathered into arrays of this step's own, then put back.
#include "../../counting_sort/counting_sort.cuh"
#include "../particle.cuh"

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    cells(typename Policy::particles particles, typename Policy::cell_of cell_of, unsigned rows, unsigned columns) {
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i >= particles.extent(0)) return;
  const Particle own = particles.load(i);
  cell_of.store(between(own.y, rows).before * columns + between(own.x, columns).before, i);
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    gather(typename Policy::order order, typename Policy::particles particles, typename Policy::ids ids,
           typename Policy::moved moved, typename Policy::moved_ids moved_ids) {
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i >= order.extent(0)) return;
  const unsigned from = order.load(i);
  moved.store(particles.load(from), i);
  moved_ids.store(ids.load(from), i);
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    put_back(typename Policy::moved moved, typename Policy::moved_ids moved_ids,
             typename Policy::particles_after particles, typename Policy::ids_after ids) {
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i >= moved.extent(0)) return;
  particles.store(moved.load(i), i);
  ids.store(moved_ids.load(i), i);
}

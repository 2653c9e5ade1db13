// Atoms in another order: gathered into arrays of this step's own, then put back.
#include "autotune/array.cuh"

constexpr unsigned threads = 256;  // of a block, as in family.yaml

struct Position {
  float x, y, z;
  int kind;
};
struct Velocity {
  float x, y, z;
};

template <class Policy>
__global__ void __launch_bounds__(threads)
    gather(typename Policy::order order, typename Policy::positions positions, typename Policy::velocities velocities,
           typename Policy::ids ids, typename Policy::moved_positions moved_positions,
           typename Policy::moved_velocities moved_velocities, typename Policy::moved_ids moved_ids) {
  const unsigned i = blockIdx.x * threads + threadIdx.x;
  if (i >= order.extent(0)) return;
  const unsigned from = order.load(i);
  moved_positions.store(positions.load(from), i);
  moved_velocities.store(velocities.load(from), i);
  moved_ids.store(ids.load(from), i);
}

template <class Policy>
__global__ void __launch_bounds__(threads)
    put_back(typename Policy::moved_positions moved_positions, typename Policy::moved_velocities moved_velocities,
             typename Policy::moved_ids moved_ids, typename Policy::positions_after positions,
             typename Policy::velocities_after velocities, typename Policy::ids_after ids,
             typename Policy::order_after order) {
  const unsigned i = blockIdx.x * threads + threadIdx.x;
  if (i >= order.extent(0)) return;
  positions.store(moved_positions.load(i), i);
  velocities.store(moved_velocities.load(i), i);
  ids.store(moved_ids.load(i), i);
  order.store(i, i);
}

// A leapfrog step: velocities lie half a step before positions. An atom that leaves the periodic cube comes in on the
// other side. A thread reads its atom before it writes it: input and output may be the same array.
#include "autotune/array.cuh"

constexpr unsigned threads = 256;  // of a block, as in family.yaml

struct Position {
  float x, y, z;
  int kind;
};
struct Velocity {
  float x, y, z;
};
struct Force {
  float x, y, z, energy;
};

AUTOTUNE_DEVICE float wrapped(float coordinate, float box) { return coordinate - box * floorf(coordinate / box); }

template <class Policy>
__global__ void __launch_bounds__(threads)
    integrate(typename Policy::force force, typename Policy::positions positions,
              typename Policy::velocities velocities, typename Policy::positions_after positions_after,
              typename Policy::velocities_after velocities_after, float box, float dt) {
  const unsigned i = blockIdx.x * threads + threadIdx.x;
  if (i >= positions.extent(0)) return;
  const Force pull = force.load(i);
  Velocity velocity = velocities.load(i);
  velocity.x += dt * pull.x;
  velocity.y += dt * pull.y;
  velocity.z += dt * pull.z;
  velocities_after.store(velocity, i);
  Position position = positions.load(i);
  position.x = wrapped(position.x + dt * velocity.x, box);
  position.y = wrapped(position.y + dt * velocity.y, box);
  position.z = wrapped(position.z + dt * velocity.z, box);
  positions_after.store(position, i);
}

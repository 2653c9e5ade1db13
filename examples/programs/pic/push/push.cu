// A leapfrog step of electrons in the electric field between their four nodes; the grid is periodic. A thread reads its
// particle before it writes it: input and output may be the same array.
#include "../particle.cuh"

constexpr unsigned threads = 256;  // of a block, as in family.yaml

struct Field {
  float x, y;
};

AUTOTUNE_DEVICE float wrapped(float coordinate, float length) {
  return coordinate - length * floorf(coordinate / length);
}

template <class Policy>
__global__ void __launch_bounds__(threads) push(typename Policy::field field, typename Policy::particles particles,
                                                typename Policy::particles_after particles_after, float dt) {
  const unsigned i = blockIdx.x * threads + threadIdx.x;
  if (i >= particles.extent(0)) return;
  const unsigned rows = field.extent(0), columns = field.extent(1);
  Particle own = particles.load(i);
  const Between y = between(own.y, rows), x = between(own.x, columns);
  const Field near[4] = {field.load(y.before, x.before), field.load(y.before, x.behind), field.load(y.behind, x.before),
                         field.load(y.behind, x.behind)};
  const float share[4] = {(1 - y.share) * (1 - x.share), (1 - y.share) * x.share, y.share * (1 - x.share),
                          y.share * x.share};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    own.u -= dt * share[k] * near[k].x;
    own.v -= dt * share[k] * near[k].y;
  }
  own.x = wrapped(own.x + dt * own.u, columns);
  own.y = wrapped(own.y + dt * own.v, rows);
  particles_after.store(own, i);
}

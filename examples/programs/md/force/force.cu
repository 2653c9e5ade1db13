// Lennard-Jones forces and energies of a binary mixture (Kob, Andersen 1995) from Verlet lists: a pair acts by
// 4 epsilon ((sigma / r)^12 - (sigma / r)^6) up to a cutoff, and half of its energy is each atom's.
#include "autotune/array.cuh"

constexpr unsigned threads = 128;  // of a block, as in family.yaml

struct Position {
  float x, y, z;
  int kind;
};
struct Force {
  float x, y, z, energy;
};

// The shortest way between two coordinates of a periodic box.
AUTOTUNE_DEVICE float shortest(float apart, float box, float per_box) { return apart - box * rintf(apart * per_box); }

// epsilon and sigma^6 of a pair: of two first, of a first and a second, of two second atoms.
AUTOTUNE_DEVICE float epsilon_of(int kinds) { return kinds == 0 ? 1.0f : kinds == 1 ? 1.5f : 0.5f; }
AUTOTUNE_DEVICE float sigma6_of(int kinds) { return kinds == 0 ? 1.0f : kinds == 1 ? 0.262144f : 0.464404087f; }

template <class Policy>
__global__ void __launch_bounds__(threads)
    force(typename Policy::positions positions, typename Policy::counts counts, typename Policy::neighbours neighbours,
          typename Policy::force force, float box, float cutoff) {
  constexpr unsigned lanes = Policy::threads_per_atom;
  const unsigned thread = blockIdx.x * threads + threadIdx.x, lane = thread % lanes;
  const unsigned i = min(thread / lanes, positions.extent(0) - 1);  // no return: all lanes take part in the sum
  const Position own = positions.load(i);
  const unsigned count = counts.load(i);
  const float per_box = 1 / box;
  Force sum = {};
  for (unsigned k = lane; k < count; k += lanes) {
    const Position other = positions.load(neighbours.load(i, k));
    const float dx = shortest(own.x - other.x, box, per_box), dy = shortest(own.y - other.y, box, per_box),
                dz = shortest(own.z - other.z, box, per_box);
    const float square = dx * dx + dy * dy + dz * dz;
    if (square >= cutoff * cutoff) continue;
    const int kinds = own.kind + other.kind;
    const float inverse = 1 / square, near = sigma6_of(kinds) * inverse * inverse * inverse,
                depth = 4 * epsilon_of(kinds) * near;
    const float pull = 6 * depth * (2 * near - 1) * inverse;
    sum.x += pull * dx;
    sum.y += pull * dy;
    sum.z += pull * dz;
    sum.energy += 0.5f * depth * (near - 1);
  }
#pragma unroll
  for (int apart = lanes / 2; apart > 0; apart /= 2) {
    sum.x += __shfl_xor_sync(0xffffffffu, sum.x, apart);
    sum.y += __shfl_xor_sync(0xffffffffu, sum.y, apart);
    sum.z += __shfl_xor_sync(0xffffffffu, sum.z, apart);
    sum.energy += __shfl_xor_sync(0xffffffffu, sum.energy, apart);
  }
  if (lane == 0 && thread / lanes < positions.extent(0)) force.store(sum, i);
}

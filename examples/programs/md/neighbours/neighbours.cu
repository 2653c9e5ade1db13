// The Verlet list of each atom in a periodic cube, from atoms that are sorted into cells at least as wide as the reach.
#include "autotune/array.cuh"

constexpr unsigned threads = 128;  // of a block, as in family.yaml

struct Position {
  float x, y, z;
  int kind;
};

// The shortest way between two coordinates of a periodic box.
AUTOTUNE_DEVICE float shortest(float apart, float box, float per_box) { return apart - box * rintf(apart * per_box); }

AUTOTUNE_DEVICE unsigned cell_along(float coordinate, float scale, unsigned side) {
  return min(static_cast<unsigned>(coordinate * scale), side - 1);
}

template <class Policy>
__global__ void __launch_bounds__(threads)
    neighbours(typename Policy::positions positions, typename Policy::begins begins, typename Policy::order order,
               typename Policy::counts counts, typename Policy::neighbours neighbours, float box, unsigned side,
               float reach) {
  const unsigned i = blockIdx.x * threads + threadIdx.x;
  if (i >= positions.extent(0)) return;
  const Position own = positions.load(i);
  const float scale = side / box, per_box = 1 / box;
  const unsigned x = cell_along(own.x, scale, side), y = cell_along(own.y, scale, side),
                 z = cell_along(own.z, scale, side);
  unsigned found = 0;
  for (unsigned near = 0; near < 27; ++near) {
    const unsigned cell = ((z + side - 1 + near / 9) % side * side + (y + side - 1 + near / 3 % 3) % side) * side +
                          (x + side - 1 + near % 3) % side;
    const unsigned end = begins.load(cell + 1);
    for (unsigned k = begins.load(cell); k < end; ++k) {
      const unsigned j = order.load(k);
      const Position other = positions.load(j);
      const float dx = shortest(other.x - own.x, box, per_box), dy = shortest(other.y - own.y, box, per_box),
                  dz = shortest(other.z - own.z, box, per_box);
      if (j == i || dx * dx + dy * dy + dz * dz >= reach * reach || found == neighbours.extent(1)) continue;
      neighbours.store(j, i, found++);
    }
  }
  counts.store(found, i);
}

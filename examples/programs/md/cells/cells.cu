// Of side x side x side cells that a periodic cube is cut into, the one that each atom lies in.
#include "autotune/array.cuh"

constexpr unsigned threads = 256;  // of a block, as in family.yaml

struct Position {
  float x, y, z;
  int kind;
};

AUTOTUNE_DEVICE unsigned cell_along(float coordinate, float scale, unsigned side) {
  return min(static_cast<unsigned>(coordinate * scale), side - 1);
}

template <class Policy>
__global__ void __launch_bounds__(threads)
    cells(typename Policy::positions positions, typename Policy::cell_of cell_of, float box, unsigned side) {
  const unsigned i = blockIdx.x * threads + threadIdx.x;
  if (i >= positions.extent(0)) return;
  const Position own = positions.load(i);
  const float scale = side / box;
  const unsigned row = cell_along(own.z, scale, side) * side + cell_along(own.y, scale, side);
  cell_of.store(row * side + cell_along(own.x, scale, side), i);
}

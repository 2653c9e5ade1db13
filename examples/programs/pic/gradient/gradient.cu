// The electric field on the nodes of a periodic grid with cells 1 wide: central differences of the potential.
#include "autotune/array.cuh"

struct Field {
  float x, y;
};

template <class Policy>
__global__ void __launch_bounds__(256) gradient(typename Policy::potential potential, typename Policy::field field) {
  const unsigned rows = potential.extent(0), columns = potential.extent(1);
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= columns || y >= rows) return;
  const unsigned left = x == 0 ? columns - 1 : x - 1, right = x + 1 == columns ? 0 : x + 1;
  const unsigned above = y == 0 ? rows - 1 : y - 1, below = y + 1 == rows ? 0 : y + 1;
  field.store({0.5f * (potential.load(y, left) - potential.load(y, right)),
               0.5f * (potential.load(above, x) - potential.load(below, x))},
              y, x);
}

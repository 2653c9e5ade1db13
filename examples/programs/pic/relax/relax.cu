// A sweep of Jacobi's iteration for Poisson's equation on a periodic grid with cells 1 wide.
#include "autotune/array.cuh"

template <class Policy>
__global__ void __launch_bounds__(256) relax(typename Policy::charge charge, typename Policy::potential potential,
                                             typename Policy::relaxed relaxed, float weight) {
  const unsigned rows = potential.extent(0), columns = potential.extent(1);
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= columns || y >= rows) return;
  const unsigned left = x == 0 ? columns - 1 : x - 1, right = x + 1 == columns ? 0 : x + 1;
  const unsigned above = y == 0 ? rows - 1 : y - 1, below = y + 1 == rows ? 0 : y + 1;
  const float around =
      potential.load(y, left) + potential.load(y, right) + potential.load(above, x) + potential.load(below, x);
  relaxed.store(0.25f * (around + 1 - weight * charge.load(y, x)), y, x);
}

// A step of conjugate gradients along the directions. A thread reads its elements before it writes them: input and
// output may be the same array.
#include "../vectors.cuh"

template <class Policy>
__global__ void __launch_bounds__(threads)
    update(typename Policy::gradient gradient, typename Policy::curvature curvature,
           typename Policy::direction direction, typename Policy::product product, typename Policy::x x,
           typename Policy::residual residual, typename Policy::x_after x_after,
           typename Policy::residual_after residual_after) {
  const unsigned rows = x.extent(0), sides = x.extent(1);
  const Place own = place_of<Policy>(blockIdx.x * threads + threadIdx.x, rows, sides);
  if (own.row >= rows || own.side >= sides) return;
  const float curved = curvature.load(own.side), alpha = curved > 0 ? gradient.load(own.side) / curved : 0;
  x_after.store(x.load(own.row, own.side) + alpha * direction.load(own.row, own.side), own.row, own.side);
  residual_after.store(residual.load(own.row, own.side) - alpha * product.load(own.row, own.side), own.row, own.side);
}

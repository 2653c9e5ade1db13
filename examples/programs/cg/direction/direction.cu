// The directions of the next step of conjugate gradients. A thread reads its element before it writes it: input and
// output may be the same array.
#include "../vectors.cuh"

template <class Policy>
__global__ void __launch_bounds__(threads)
    next_direction(typename Policy::gradient gradient, typename Policy::gradient_before gradient_before,
                   typename Policy::preconditioned preconditioned, typename Policy::direction direction,
                   typename Policy::direction_after direction_after) {
  const unsigned rows = direction.extent(0), sides = direction.extent(1);
  const Place own = place_of<Policy>(blockIdx.x * threads + threadIdx.x, rows, sides);
  if (own.row >= rows || own.side >= sides) return;
  const float before = gradient_before.load(own.side), beta = before > 0 ? gradient.load(own.side) / before : 0;
  direction_after.store(preconditioned.load(own.row, own.side) + beta * direction.load(own.row, own.side), own.row,
                        own.side);
}

// Block Jacobi: each row of a residual times the inverse of its diagonal block. (In fewer bits: Anzt, Dongarra, Flegar,
// Higham, Quintana-Orti: Adaptive precision in block-Jacobi preconditioning, 2019.)
#include "../vectors.cuh"

template <class Policy>
__global__ void __launch_bounds__(threads)
    precondition(typename Policy::inverse inverse, typename Policy::residual residual,
                 typename Policy::preconditioned preconditioned) {
  const unsigned rows = residual.extent(0), sides = residual.extent(1), lines = inverse.extent(1);
  const Place own = place_of<Policy>(blockIdx.x * threads + threadIdx.x, rows, sides);
  if (own.row >= rows || own.side >= sides) return;
  const unsigned block = own.row / lines, line = own.row % lines, first = block * lines;
  const unsigned width = min(lines, rows - first);
  float sum = 0;
  for (unsigned k = 0; k < width; ++k) sum += inverse.load(block, line, k) * residual.load(first + k, own.side);
  preconditioned.store(sum, own.row, own.side);
}

// result = centre * point + side * (the six points beside it), zero outside the lattice.
//
// A thread owns one column of points along z, `march` of them. What it reads as the plane above is the point itself in
// the next step and the plane below in the one after, so of those three only one is loaded.
#include "autotune/array.cuh"

template <class Policy>
__global__ void __launch_bounds__(Policy::block_x* Policy::block_y)
    stencil(typename Policy::field field, typename Policy::result result, float centre, float side) {
  const unsigned planes = field.extent(0), rows = field.extent(1), columns = field.extent(2);
  const unsigned x = blockIdx.x * Policy::block_x + threadIdx.x;
  const unsigned y = blockIdx.y * Policy::block_y + threadIdx.y;
  const unsigned first = blockIdx.z * Policy::march;
  if (x >= columns || y >= rows) return;
  float below = first > 0 ? field.load(first - 1, y, x) : 0, here = field.load(first, y, x);
#pragma unroll
  for (unsigned step = 0; step < Policy::march; ++step) {
    const unsigned z = first + step;
    if (z >= planes) return;
    const float above = z + 1 < planes ? field.load(z + 1, y, x) : 0;
    float sum = below + above;
    if (y > 0) sum += field.load(z, y - 1, x);
    if (y + 1 < rows) sum += field.load(z, y + 1, x);
    if (x > 0) sum += field.load(z, y, x - 1);
    if (x + 1 < columns) sum += field.load(z, y, x + 1);
    result.store(centre * here + side * sum, z, y, x);
    below = here;
    here = above;
  }
}

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif

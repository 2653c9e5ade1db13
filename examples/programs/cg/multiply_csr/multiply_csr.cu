// Q = A P for a sparse matrix in CSR and several vectors: a row of one vector is one thread's, or shared by several.
#include "../vectors.cuh"

struct Entry {
  unsigned column;
  float value;
};

template <class Policy>
__global__ void __launch_bounds__(threads)
    multiply(typename Policy::offsets offsets, typename Policy::entries entries, typename Policy::direction direction,
             typename Policy::product product) {
  constexpr unsigned team = Policy::threads_per_row;
  const unsigned rows = product.extent(0), sides = product.extent(1);
  const unsigned thread = blockIdx.x * threads + threadIdx.x;
  const Place own = place_of<Policy>(thread / team, rows, sides);
  const unsigned lane = thread % team;
  float sum = 0;
  if (own.row < rows && own.side < sides) {
    const unsigned end = offsets.load(own.row + 1);
    for (unsigned k = offsets.load(own.row) + lane; k < end; k += team) {
      const Entry entry = entries.load(k);
      sum += entry.value * direction.load(entry.column, own.side);
    }
  }
#pragma unroll
  for (int apart = team / 2; apart > 0; apart /= 2) sum += __shfl_down_sync(0xffffffffu, sum, apart, team);
  if (own.row < rows && own.side < sides && lane == 0) product.store(sum, own.row, own.side);
}

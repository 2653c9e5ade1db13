// Q = A P for a sparse matrix in SELL-C-sigma (Kreutzer, Hager, Wellein, Fehske, Bishop 2014) and several vectors:
// slices of 32 rows of like lengths, the k-th entries of a slice's rows one behind the other.
#include "../vectors.cuh"

struct Entry {
  unsigned column;
  float value;
};

constexpr unsigned slice_rows = 32;

template <class Policy>
__global__ void __launch_bounds__(threads)
    multiply(typename Policy::slices slices, typename Policy::slots slots, typename Policy::row_of row_of,
             typename Policy::direction direction, typename Policy::product product) {
  const unsigned places = row_of.extent(0), sides = product.extent(1);
  const Place own = place_of<Policy>(blockIdx.x * threads + threadIdx.x, places, sides);
  if (own.row >= places || own.side >= sides) return;
  const unsigned row = row_of.load(own.row), slice = own.row / slice_rows, end = slices.load(slice + 1);
  if (row >= product.extent(0)) return;
  float sum = 0;
  for (unsigned k = slices.load(slice) + own.row % slice_rows; k < end; k += slice_rows) {
    const Entry entry = slots.load(k);
    sum += entry.value * direction.load(entry.column, own.side);
  }
  product.store(sum, row, own.side);
}

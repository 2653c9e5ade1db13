// The items of each cell, one cell after the other: count, scan, scatter. Atomics scatter in any order, so each cell is
// put into ascending order at the end, and the result is the same every time. Kernels of the families that sort.
#pragma once
#include "autotune/array.cuh"
#include "autotune/element.cuh"

constexpr unsigned chunk_cells = 1024, scan_threads = 256, cells_per_thread = chunk_cells / scan_threads;

// The sum of `value` over the threads of the block before this one; `all` is the block's.
AUTOTUNE_DEVICE unsigned sum_before(unsigned value, unsigned& all) {
  __shared__ unsigned sums[scan_threads];
  unsigned inclusive = value;
  for (unsigned apart = 1; apart < scan_threads; apart *= 2) {
    __syncthreads();
    sums[threadIdx.x] = inclusive;
    __syncthreads();
    if (threadIdx.x >= apart) inclusive += sums[threadIdx.x - apart];
  }
  __syncthreads();
  sums[threadIdx.x] = inclusive;
  __syncthreads();
  all = sums[scan_threads - 1];
  return inclusive - value;
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    count(typename Policy::cell_of cell_of, typename Policy::counts counts) {
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i < cell_of.extent(0)) counts.add(1u, cell_of.load(i));
}

template <class Policy>
__global__ void __launch_bounds__(scan_threads)
    sum_chunks(typename Policy::counts counts, typename Policy::totals totals) {
  unsigned sum = 0, all;
  for (unsigned k = threadIdx.x; k < chunk_cells; k += scan_threads) {
    const unsigned cell = blockIdx.x * chunk_cells + k;
    if (cell < counts.extent(0)) sum += counts.load(cell);
  }
  sum_before(sum, all);
  if (threadIdx.x == 0) totals.store(all, blockIdx.x);
}

// A block's chunk begins where all chunks before it end: few numbers, which each block adds up itself.
template <class Policy>
__global__ void __launch_bounds__(scan_threads) scan(typename Policy::counts counts, typename Policy::totals totals,
                                                     typename Policy::begins begins, typename Policy::next next) {
  const unsigned cells = counts.extent(0), first = blockIdx.x * chunk_cells + threadIdx.x * cells_per_thread;
  unsigned before = 0, sum = 0, chunk_begin, all;
  for (unsigned k = threadIdx.x; k < blockIdx.x; k += scan_threads) before += totals.load(k);
  sum_before(before, chunk_begin);
  for (unsigned k = 0; k < cells_per_thread; ++k)
    if (first + k < cells) sum += counts.load(first + k);
  unsigned begin = chunk_begin + sum_before(sum, all);
  for (unsigned k = 0; k < cells_per_thread; ++k) {
    if (first + k >= cells) return;
    begins.store(begin, first + k);
    next.store(begin, first + k);
    begin += counts.load(first + k);
    if (first + k + 1 == cells) begins.store(begin, cells);
  }
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    scatter(typename Policy::cell_of cell_of, typename Policy::next next, typename Policy::order order) {
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i < cell_of.extent(0)) order.store(i, atomicAdd(&autotune::element(next, cell_of.load(i)), 1u));
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    sort_cells(typename Policy::begins begins, typename Policy::order order) {
  const unsigned cell = blockIdx.x * Policy::block_size + threadIdx.x;
  if (cell + 1 >= begins.extent(0)) return;
  const unsigned begin = begins.load(cell), end = begins.load(cell + 1);
  for (unsigned i = begin + 1; i < end; ++i) {
    const unsigned item = order.load(i);
    unsigned place = i;
    for (; place > begin && order.load(place - 1) > item; --place) order.store(order.load(place - 1), place);
    order.store(item, place);
  }
}

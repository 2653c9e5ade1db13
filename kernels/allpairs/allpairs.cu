// All-pairs distance: D[i, j] = the number of attributes in which instances i and j differ.
// (Payne, Sinnott-Armstrong, Moore: the primer's kernels GPUnaive, GPUcoalesce, GPUchar, GPUregister and
// GPUshared are policies of the one kernel below; `autotune list allpairs` names them.)
//
// genotypes is (instances, packed attributes), distance is (instances, instances). A value of genotypes
// holds several attributes; the layout pads the last one with a value equal in all instances, so no tail
// needs a guard.
#include "autotune/array.cuh"
#include "differ.cuh"
#include "store_tile.cuh"
#include "tensor_tile.cuh"

enum class Accumulate { global_atomic, register_atomic, shared_memory, warp_shuffle, register_tile, tensor_tile };

// Calls visit(mask, packing) for every word of a and b: one bit of mask set per attribute that differs.
template <class Policy, class Value, class Visit>
AUTOTUNE_DEVICE void for_differences(const Value& a, const Value& b, Visit visit) {
  using Packing = typename Value::packing;
#pragma unroll
  for (int w = 0; w < Value::words; ++w) {
    unsigned mask = Packing::differ(a.word[w], b.word[w]);
    if constexpr (Policy::missing == Missing::masked) {
      const auto unknown = Packing::filled(missing_value);
      mask &= Packing::differ(a.word[w], unknown) & Packing::differ(b.word[w], unknown);
    }
    visit(mask);
  }
}

template <class Policy, class Value>
AUTOTUNE_DEVICE int count_differences(const Value& a, const Value& b) {
  int count = 0;
  for_differences<Policy>(a, b, [&](unsigned mask) { count += Value::packing::count(mask); });
  return count;
}

// The sum of `count` over the block, valid in thread 0.
template <class Policy>
AUTOTUNE_DEVICE int block_sum(int count) {
  const int thread = threadIdx.x;
  if constexpr (Policy::accumulate == Accumulate::shared_memory) {
    __shared__ int partial[Policy::block_size];
    partial[thread] = count;
    __syncthreads();
    if (thread == 0)
      for (int t = 1; t < Policy::block_size; ++t) count += partial[t];  // serial, as in the primer
  } else {
    __shared__ int partial[Policy::block_size / 32];
    for (int lanes = 16; lanes > 0; lanes /= 2) count += __shfl_down_sync(0xffffffffu, count, lanes);
    if (thread % 32 == 0) partial[thread / 32] = count;
    __syncthreads();
    if (thread == 0)
      for (int warp = 1; warp < Policy::block_size / 32; ++warp) count += partial[warp];
  }
  return count;
}

// A block owns one pair; its threads leapfrog over the attributes.
template <class Policy>
AUTOTUNE_DEVICE void block_owns_pair(typename Policy::genotypes genotypes, typename Policy::distance distance) {
  const unsigned i = blockIdx.x / genotypes.extent(0), j = blockIdx.x % genotypes.extent(0);
  int count = 0;
  for (unsigned k = threadIdx.x; k < genotypes.extent(1); k += Policy::block_size) {
    const auto a = genotypes.load(i, k), b = genotypes.load(j, k);
    if constexpr (Policy::accumulate == Accumulate::global_atomic) {
      for_differences<Policy>(a, b, [&](unsigned mask) {
        for (; mask; mask &= mask - 1) distance.add(1, i, j);
      });
    } else {
      count += count_differences<Policy>(a, b);
    }
  }
  if constexpr (Policy::accumulate == Accumulate::register_atomic) {
    if (count) distance.add(count, i, j);
  } else if constexpr (Policy::accumulate != Accumulate::global_atomic) {
    count = block_sum<Policy>(count);
    if (threadIdx.x == 0) distance.store(count, i, j);
  }
}

// A thread owns tile x tile pairs, their counts in registers. Its rows and columns lie a block apart, so
// that a warp's loads and stores are contiguous.
template <class Policy>
AUTOTUNE_DEVICE void thread_owns_tile(typename Policy::genotypes genotypes, typename Policy::distance distance) {
  constexpr int tile = Policy::tile, lanes = 16, rows = Policy::block_size / lanes;  // lanes run along a row of D
  const unsigned instances = genotypes.extent(0), tiles = (instances + lanes * tile - 1) / (lanes * tile);
  const Square square = square_of<Policy>(blockIdx.x, tiles);
  const unsigned first_row = square.down * (rows * tile) + threadIdx.x / lanes;
  const unsigned first_column = square.across * (lanes * tile) + threadIdx.x % lanes;
  unsigned row[tile], column[tile];
  int count[tile][tile] = {};
#pragma unroll
  for (int t = 0; t < tile; ++t) {  // past the edge: read the last instance again, store nothing
    row[t] = min(first_row + t * rows, instances - 1);
    column[t] = min(first_column + t * lanes, instances - 1);
  }
  for (unsigned k = 0; k < genotypes.extent(1); ++k) {
    typename Policy::genotypes::value_type b[tile];
#pragma unroll
    for (int t = 0; t < tile; ++t) b[t] = genotypes.load(column[t], k);
#pragma unroll
    for (int r = 0; r < tile; ++r) {
      const auto a = genotypes.load(row[r], k);
#pragma unroll
      for (int c = 0; c < tile; ++c) count[r][c] += count_differences<Policy>(a, b[c]);
    }
  }
#pragma unroll
  for (int r = 0; r < tile; ++r)
#pragma unroll
    for (int c = 0; c < tile; ++c)
      if (first_row + r * rows < instances && first_column + c * lanes < instances)
        distance.store(count[r][c], row[r], column[c]);
  if constexpr (Policy::pairs == Pairs::triangle) {  // mirrored through shared memory, 16 x 16 pairs at a time
    static_assert(rows == lanes, "half of the pairs are computed by square tiles");
    __shared__ int corner[rows][lanes + 1];
    if (!square.is_mirrored()) return;
    const unsigned down = threadIdx.x / lanes, along = threadIdx.x % lanes;
#pragma unroll
    for (int r = 0; r < tile; ++r)
#pragma unroll
      for (int c = 0; c < tile; ++c) {
        __syncthreads();
        corner[down][along] = count[r][c];
        __syncthreads();
        const unsigned i = first_row - down + r * rows + along, j = first_column - along + c * lanes + down;
        if (i < instances && j < instances) distance.store(corner[along][down], j, i);
      }
  }
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    allpairs(typename Policy::genotypes genotypes, typename Policy::distance distance) {
  if constexpr (Policy::accumulate == Accumulate::register_tile)
    thread_owns_tile<Policy>(genotypes, distance);
  else if constexpr (Policy::accumulate == Accumulate::tensor_tile)
    block_owns_square<Policy>(genotypes, distance);
  else
    block_owns_pair<Policy>(genotypes, distance);
}

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif

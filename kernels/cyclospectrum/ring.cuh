// What goes around: the masses, or their prefix sums, read past the end of the ring; and the list that the sums go to.
#pragma once
#include "autotune/block.cuh"

// operator()(i), i in 0 .. 2n - 1: mass i, or with prefix sums the sum of the i masses before it.
template <class Policy>
struct Circle {
  static constexpr bool prefix = Policy::generation == Generation::prefix;
  static constexpr bool doubled = Policy::wrap == Wrap::doubled;

  typename Policy::residues residues;
  typename Policy::ring ring;
  unsigned n, total;

  AUTOTUNE_DEVICE Circle(typename Policy::residues residues_, typename Policy::ring ring_, unsigned total_)
      : residues(residues_), ring(ring_), n(residues_.extent(0)), total(total_) {}

  AUTOTUNE_DEVICE unsigned operator()(unsigned i) const {
    if constexpr (doubled) return read(i);
    const unsigned around = i >= n ? 1 : 0;
    if (i >= n) i -= n;
    return prefix ? read(i) + around * total : read(i);
  }

 private:
  AUTOTUNE_DEVICE unsigned read(unsigned i) const {
    if constexpr (prefix || doubled)
      return ring.load(i);
    else
      return static_cast<unsigned>(residues.load(i));
  }
};

// The unsorted list, one sum at a time; row r holds the sums of r + 1 masses.
template <class Policy>
struct Sums {
  static_assert(sizeof(typename Policy::spectrum::value_type) == 4, "one output a store");
  typename Policy::spectrum list;
  unsigned n;

  AUTOTUNE_DEVICE void store(unsigned sum, unsigned start, unsigned row) const { list.store({{sum}}, row * n + start); }
  AUTOTUNE_DEVICE unsigned load(unsigned start, unsigned row) const { return list.load(row * n + start).word[0]; }
  // By one thread of the grid: the two that are no sum of a part.
  AUTOTUNE_DEVICE void store_ends(unsigned total) const {
    list.store({{0}}, n * (n - 1));
    list.store({{total}}, n * (n - 1) + 1);
  }
};

// The ring twice in a row, or the prefix sums of the ring twice in a row. One block.
template <class Policy>
__global__ void __launch_bounds__(1024) arrange(typename Policy::residues residues, typename Policy::ring ring) {
  const unsigned n = residues.extent(0);
  if constexpr (Policy::generation == Generation::prefix) {
    constexpr unsigned each = 4;  // neighbours of a thread
    unsigned total = 0;
    for (unsigned tile = 0; tile < n; tile += each * blockDim.x) {
      const unsigned first = tile + each * threadIdx.x;
      unsigned mass[each], sum = 0, whole;
#pragma unroll
      for (unsigned k = 0; k < each; ++k) sum += mass[k] = first + k < n ? residues.load(first + k) : 0;
      unsigned before = total + autotune::block::exclusive_sum(sum, whole);
#pragma unroll
      for (unsigned k = 0; k < each; ++k) {
        if (first + k < n) ring.store(before, first + k);
        before += mass[k];
      }
      total += whole;
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
      ring.store(ring.load(i) + total, n + i);  // less than 2^32: the total is less than 2^31
  } else {
    for (unsigned i = threadIdx.x; i < 2 * n; i += blockDim.x) ring.store(residues.load(i < n ? i : i - n), i);
  }
}

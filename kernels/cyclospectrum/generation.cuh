// Every way to make the sums. A kernel has a body in those configurations alone that launch it.
#pragma once
#include "ring.cuh"

// The post's two sequential programs: one thread.
template <class Policy>
__global__ void sequential(typename Policy::residues residues, typename Policy::ring ring,
                           typename Policy::spectrum spectrum, typename Policy::spare, unsigned, unsigned total) {
  constexpr bool is_brute = Policy::generation == Generation::sequential_brute;
  if constexpr (is_brute || Policy::generation == Generation::sequential_iterated) {
    const auto mass = Circle<Policy>(residues, ring, total);
    const Sums<Policy> sums{spectrum, mass.n};
    for (unsigned row = 0; row + 1 < mass.n; ++row)
      for (unsigned start = 0; start < mass.n; ++start) {
        unsigned sum = 0;
        if constexpr (is_brute) {
          for (unsigned i = start; i <= start + row; ++i) sum += mass(i);
        } else {
          sum = (row ? sums.load(start, row - 1) : 0) + mass(start + row);
        }
        sums.store(sum, start, row);
      }
    sums.store_ends(total);
  }
}

// The post's kernel: a thread adds up each of its sums anew.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    brute(typename Policy::residues residues, typename Policy::ring ring, typename Policy::spectrum spectrum,
          typename Policy::spare spare, unsigned into_spare, unsigned total) {
  if constexpr (Policy::generation == Generation::brute) {
    constexpr unsigned width = 16, height = Policy::block_size / width;
    constexpr int outputs = Policy::outputs_per_thread;
    const auto mass = Circle<Policy>(residues, ring, total);
    const Sums<Policy> sums{into_spare ? spare : spectrum, mass.n};
    const unsigned first = blockIdx.x * outputs * width + threadIdx.x, row = blockIdx.y * height + threadIdx.y;
    if (first == 0 && row == 0) sums.store_ends(total);
    if (first >= mass.n || row + 1 >= mass.n) return;
    unsigned sum[outputs] = {};
    for (unsigned i = 0; i <= row; ++i)
#pragma unroll
      for (int k = 0; k < outputs; ++k) sum[k] += mass(min(first + k * width, mass.n - 1) + i);
#pragma unroll
    for (int k = 0; k < outputs; ++k)
      if (first + k * width < mass.n) sums.store(sum[k], first + k * width, row);
  }
}

// The post's optimized kernel: a launch makes the sums of row + 1 masses from those that the launch before it made.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    iterated(typename Policy::residues residues, typename Policy::ring ring, typename Policy::spectrum spectrum,
             typename Policy::spare spare, unsigned into_spare, unsigned total, unsigned row) {
  if constexpr (Policy::generation == Generation::iterated) {
    const auto mass = Circle<Policy>(residues, ring, total);
    const Sums<Policy> sums{into_spare ? spare : spectrum, mass.n};
    const unsigned start = blockIdx.x * Policy::block_size + threadIdx.x;
    if (start == 0 && row == 0) sums.store_ends(total);
    if (start < mass.n && row + 1 < mass.n)
      sums.store((row ? sums.load(start, row - 1) : 0) + mass(start + row), start, row);
  }
}

// A sum is the difference of two prefix sums. A thread makes whole vectors, a block apart.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    differences(typename Policy::residues residues, typename Policy::ring ring, typename Policy::spectrum spectrum,
                typename Policy::spare spare, unsigned into_spare, unsigned total) {
  if constexpr (Policy::generation == Generation::prefix && Policy::finish != Finish::counting) {
    using Vector = typename Policy::spectrum::value_type;
    constexpr unsigned rounds = Policy::outputs_per_thread / Vector::words;
    const auto before = Circle<Policy>(residues, ring, total);
    const typename Policy::spectrum list = into_spare ? spare : spectrum;
    const unsigned n = before.n, sums = n * (n - 1);
    for (unsigned round = 0; round < rounds; ++round) {
      const unsigned place = (blockIdx.x * rounds + round) * Policy::block_size + threadIdx.x;
      if (place >= list.extent(0)) return;
      unsigned output = place * Vector::words, row = output / n, start = output % n;
      Vector vector;
#pragma unroll
      for (int k = 0; k < Vector::words; ++k, ++output) {
        vector.word[k] = output < sums ? before(start + row + 1) - before(start) : output == sums + 1 ? total : 0;
        if (++start == n) start = 0, ++row;
      }
      list.store(vector, place);
    }
  }
}

// What becomes of the integrals of a quartet: places in the list by canonical index, or their share of the Coulomb and
// exchange matrices. (ij|kl) stands for up to eight equal integrals; a matrix is summed up on one side and symmetrised
// after.
#pragma once
#include "pairs.cuh"
#include "quartet.cuh"

enum class Output { integrals, coulomb_exchange };

AUTOTUNE_DEVICE unsigned long long wide_triangle(unsigned long long a, unsigned long long b) {
  return a > b ? a * (a + 1) / 2 + b : b * (b + 1) / 2 + a;
}

// The numbers of the functions of a pair whose number in the pair is `number`, along axes that were turned.
struct Functions {
  unsigned i, j;
};

template <int MOMENTA>
AUTOTUNE_DEVICE Functions functions_of(unsigned first_i, unsigned first_j, unsigned number, unsigned turn) {
  if constexpr (MOMENTA == 0)
    return {first_i, first_j};
  else if constexpr (MOMENTA == 1)
    return {first_i + (number + turn) % 3, first_j};
  else
    return {first_i + (number / 3 + turn) % 3, first_j + (number % 3 + turn) % 3};
}

template <class Policy>
struct Digest {
  typename Policy::shells shells;
  typename Policy::density density;
  typename Policy::integrals integrals;
  typename Policy::coulomb_sum coulomb_sum;
  typename Policy::exchange_sum exchange_sum;

  template <int BRA, int KET>
  AUTOTUNE_DEVICE void take(const Pair& bra, const Pair& ket, const Quartet<Policy, BRA, KET>& quartet) const {
    const Functions first_bra = {shells.load(bra.i).function, shells.load(bra.j).function};
    const Functions first_ket = {shells.load(ket.i).function, shells.load(ket.j).function};
    if constexpr (Policy::output == Output::integrals)
      list<BRA, KET>(first_bra, first_ket, bra, ket, quartet);
    else
      contract<BRA, KET>(first_bra, first_ket, bra, ket, quartet);
  }

 private:
  // Each different one once: where shells or pairs are the same, that of the lower number.
  template <int BRA, int KET>
  AUTOTUNE_DEVICE void list(const Functions& first_bra, const Functions& first_ket, const Pair& bra, const Pair& ket,
                            const Quartet<Policy, BRA, KET>& quartet) const {
    const bool is_one_pair = bra.i == ket.i && bra.j == ket.j;
#pragma unroll
    for (int b = 0; b < quartet.bra_functions; ++b) {
      const Functions ij = functions_of<BRA>(first_bra.i, first_bra.j, b, quartet.turn);
      if (bra.i == bra.j && ij.i < ij.j) continue;
      const unsigned long long left = wide_triangle(ij.i, ij.j);
#pragma unroll
      for (int k = 0; k < quartet.ket_functions; ++k) {
        const Functions kl = functions_of<KET>(first_ket.i, first_ket.j, k, quartet.turn);
        if (ket.i == ket.j && kl.i < kl.j) continue;
        const unsigned long long right = wide_triangle(kl.i, kl.j);
        if (is_one_pair && left < right) continue;
        integrals.store(quartet.value[b][k], wide_triangle(left, right));
      }
    }
  }

  // J = (A + A^T) / 4 and K = (B + B^T) / 8 with A and B as added up here; the density is symmetric. What belongs to
  // one element of a matrix is added up in the thread first.
  template <int BRA, int KET>
  AUTOTUNE_DEVICE void contract(const Functions& first_bra, const Functions& first_ket, const Pair& bra,
                                const Pair& ket, const Quartet<Policy, BRA, KET>& quartet) const {
    constexpr int bras = functions(BRA), kets = quartet.ket_functions;
    constexpr int is = BRA == 0 ? 1 : 3, js = BRA == 2 ? 3 : 1, ls = KET == 2 ? 3 : 1, ks = kets / ls;
    const bool is_one_pair = bra.i == ket.i && bra.j == ket.j;
    const double times = (bra.i == bra.j ? 1 : 2) * (ket.i == ket.j ? 1 : 2) * (is_one_pair ? 1 : 2);
#pragma unroll
    for (int b = 0; b < bras; ++b) {
      const Functions ij = functions_of<BRA>(first_bra.i, first_bra.j, b, quartet.turn);
      double sum = 0;
#pragma unroll
      for (int k = 0; k < kets; ++k) {
        const Functions kl = functions_of<KET>(first_ket.i, first_ket.j, k, quartet.turn);
        sum = fma(quartet.value[b][k], density.load(kl.i, kl.j), sum);
      }
      coulomb_sum.add(times * sum, ij.i, ij.j);
    }
#pragma unroll
    for (int k = 0; k < kets; ++k) {
      const Functions kl = functions_of<KET>(first_ket.i, first_ket.j, k, quartet.turn);
      double sum = 0;
#pragma unroll
      for (int b = 0; b < bras; ++b) {
        const Functions ij = functions_of<BRA>(first_bra.i, first_bra.j, b, quartet.turn);
        sum = fma(quartet.value[b][k], density.load(ij.i, ij.j), sum);
      }
      coulomb_sum.add(times * sum, kl.i, kl.j);
    }
    // Of K: for one function of the bra and one of the ket, over the other two.
#pragma unroll
    for (int i = 0; i < is; ++i)
#pragma unroll
      for (int j = 0; j < js; ++j) {
        const Functions ij = functions_of<BRA>(first_bra.i, first_bra.j, i * js + j, quartet.turn);
#pragma unroll
        for (int k = 0; k < ks; ++k)
#pragma unroll
          for (int l = 0; l < ls; ++l) {
            const Functions kl = functions_of<KET>(first_ket.i, first_ket.j, k * ls + l, quartet.turn);
            const double value = times * quartet.value[i * js + j][k * ls + l];
            exchange_sum.add(value * density.load(ij.j, kl.j), ij.i, kl.i);
            exchange_sum.add(value * density.load(ij.i, kl.i), ij.j, kl.j);
            exchange_sum.add(value * density.load(ij.j, kl.i), ij.i, kl.j);
            exchange_sum.add(value * density.load(ij.i, kl.j), ij.j, kl.i);
          }
      }
  }
};

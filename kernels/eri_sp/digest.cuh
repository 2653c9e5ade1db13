// What becomes of the integrals of a quartet: places in the list by canonical index, or their share of the Coulomb and
// exchange matrices. (ij|kl) stands for up to eight equal integrals; a matrix is summed up on one side and symmetrised
// after.
#pragma once
#include "pairs.cuh"
#include "quartet.cuh"

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
  typename Policy::density density;
  typename Policy::integrals integrals;
  typename Policy::coulomb_sum coulomb_sum;
  typename Policy::exchange_sum exchange_sum;

  template <int BRA, int KET>
  AUTOTUNE_DEVICE void take(const typename Policy::shells& shells, const Pair& bra, const Pair& ket,
                            const Quartet<Policy, BRA, KET>& quartet) const {
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
    for (int b = 0; b < Quartet<Policy, BRA, KET>::bra_functions; ++b) {
      const Functions ij = functions_of<BRA>(first_bra.i, first_bra.j, b, quartet.turn);
      if (bra.i == bra.j && ij.i < ij.j) continue;
      const unsigned long long left = wide_triangle_of(ij.i, ij.j);
#pragma unroll
      for (int k = 0; k < Quartet<Policy, BRA, KET>::ket_functions; ++k) {
        const Functions kl = functions_of<KET>(first_ket.i, first_ket.j, k, quartet.turn);
        if (ket.i == ket.j && kl.i < kl.j) continue;
        const unsigned long long right = wide_triangle_of(kl.i, kl.j);
        if (is_one_pair && left < right) continue;
        integrals.store(quartet.value[b][k], wide_triangle_of(left, right));
      }
    }
  }

  // J = (A + A^T) / 4 and K = (B + B^T) / 8 with A and B as added up here; the density is symmetric. What belongs to
  // one element of a matrix is added up in the thread first.
  template <int BRA, int KET>
  AUTOTUNE_DEVICE void contract(const Functions& first_bra, const Functions& first_ket, const Pair& bra,
                                const Pair& ket, const Quartet<Policy, BRA, KET>& quartet) const {
    constexpr int bras = functions(BRA), kets = Quartet<Policy, BRA, KET>::ket_functions;
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
    exchange<BRA, KET, true, true>(first_bra, first_ket, times, quartet);
    exchange<BRA, KET, true, false>(first_bra, first_ket, times, quartet);
    exchange<BRA, KET, false, true>(first_bra, first_ket, times, quartet);
    exchange<BRA, KET, false, false>(first_bra, first_ket, times, quartet);
  }

  // Elements of B for functions of one shell of the bra and one of the ket, i or j and k or l: over those of the
  // others.
  template <int BRA, int KET, bool OF_I, bool OF_K>
  AUTOTUNE_DEVICE void exchange(const Functions& first_bra, const Functions& first_ket, double times,
                                const Quartet<Policy, BRA, KET>& quartet) const {
    constexpr int js = BRA == 2 ? 3 : 1, is = functions(BRA) / js;
    constexpr int ls = KET == 2 ? 3 : 1, ks = Quartet<Policy, BRA, KET>::ket_functions / ls;
#pragma unroll
    for (int b = 0; b < (OF_I ? is : js); ++b)
#pragma unroll
      for (int k = 0; k < (OF_K ? ks : ls); ++k) {
        const Functions ij = functions_of<BRA>(first_bra.i, first_bra.j, OF_I ? b * js : b, quartet.turn);
        const Functions kl = functions_of<KET>(first_ket.i, first_ket.j, OF_K ? k * ls : k, quartet.turn);
        double sum = 0;
#pragma unroll
        for (int c = 0; c < (OF_I ? js : is); ++c)
#pragma unroll
          for (int m = 0; m < (OF_K ? ls : ks); ++m) {
            const int left = OF_I ? b * js + c : c * js + b, right = OF_K ? k * ls + m : m * ls + k;
            const Functions bra = functions_of<BRA>(first_bra.i, first_bra.j, left, quartet.turn);
            const Functions ket = functions_of<KET>(first_ket.i, first_ket.j, right, quartet.turn);
            sum = fma(quartet.value[left][right], density.load(OF_I ? bra.j : bra.i, OF_K ? ket.j : ket.i), sum);
          }
        exchange_sum.add(times * sum, OF_I ? ij.i : ij.j, OF_K ? kl.i : kl.j);
      }
  }
};

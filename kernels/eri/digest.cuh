// What becomes of an integral: a place in the list by canonical index, or its share of the Coulomb and exchange
// matrices. (ij|kl) stands for up to eight equal integrals; a matrix is summed up on one side and symmetrised after.
#pragma once
#include "autotune/warp.cuh"
#include "pairs.cuh"

template <class Policy>
struct Digest {
  typename Policy::density density;
  typename Policy::integrals integrals;
  typename Policy::coulomb_sum coulomb_sum;
  typename Policy::exchange_sum exchange_sum;

  // The whole integral, once.
  AUTOTUNE_DEVICE void whole(const Pair& bra, const Pair& ket, double value) const {
    if constexpr (Policy::output == Output::integrals)
      integrals.store(value, target(bra, ket));
    else
      contract<true>(bra, ket, value);
  }

  // The same from every thread of a block with one bra, whether its ket is there or not: what a warp adds to the
  // bra's own element of the Coulomb matrix is added up first.
  AUTOTUNE_DEVICE void of_block(const Pair& bra, const Pair& ket, double value, bool is_there) const {
    if constexpr (Policy::output == Output::integrals) {
      if (is_there) integrals.store(value, target(bra, ket));
    } else {
      double sum = is_there ? times(bra, ket) * value * density.load(ket.i, ket.j) : 0;
      sum = autotune::warp::sum(sum);
      if (threadIdx.x % 32 == 0) coulomb_sum.add(sum, bra.i, bra.j);
      if (is_there) contract<false>(bra, ket, value);
    }
  }

  // A part of it; the list was cleared before.
  AUTOTUNE_DEVICE void part(const Pair& bra, const Pair& ket, double value) const {
    if constexpr (Policy::output == Output::integrals)
      integrals.add(value, target(bra, ket));
    else
      contract<true>(bra, ket, value);
  }

  // How many of the eight are different.
  AUTOTUNE_DEVICE static double times(const Pair& bra, const Pair& ket) {
    const bool same = bra.i == ket.i && bra.j == ket.j;
    return (bra.i == bra.j ? 1 : 2) * (ket.i == ket.j ? 1 : 2) * (same ? 1 : 2);
  }

 private:
  AUTOTUNE_DEVICE static unsigned long long target(const Pair& bra, const Pair& ket) {
    return wide_triangle_of(wide_triangle(bra.i, bra.j), wide_triangle(ket.i, ket.j));
  }

  // J = (A + A^T) / 4 and K = (B + B^T) / 8 with A and B as added up here; the density is symmetric.
  template <bool WITH_BRA>
  AUTOTUNE_DEVICE void contract(const Pair& bra, const Pair& ket, double value) const {
    const unsigned i = bra.i, j = bra.j, k = ket.i, l = ket.j;
    const double all = times(bra, ket) * value;
    if constexpr (WITH_BRA) coulomb_sum.add(all * density.load(k, l), i, j);
    coulomb_sum.add(all * density.load(i, j), k, l);
    exchange_sum.add(all * density.load(j, l), i, k);
    exchange_sum.add(all * density.load(i, k), j, l);
    exchange_sum.add(all * density.load(j, k), i, l);
    exchange_sum.add(all * density.load(i, l), j, k);
  }
};

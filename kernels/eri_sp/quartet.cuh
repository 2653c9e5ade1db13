// The integrals of one quartet of shells, or a thread's part of them: all functions of the bra with all of the ket, or
// where `parts` is 3 and the ket is pp, those of one of its first axes. Which axis that is is settled by turning the
// coordinates, so that threads with different parts run the same instructions.
#pragma once
#include "boys.cuh"
#include "hermite.cuh"
#include "pairs.cuh"

// When Hermite Gaussians of the bra become its functions: with each quartet of primitives, or once for each of the
// bra's primitive pairs, the ket's being added up before.
enum class BraTransform { each, once };

AUTOTUNE_DEVICE constexpr int functions(int momenta) { return momenta == 0 ? 1 : momenta == 1 ? 3 : 9; }

// Threads that have a quartet together lie in one warp: `parts` of them have different functions, and `split` times as
// many (1, 3 or 9), each with some of the bra's primitive pairs, are added up.
template <class Policy, int BRA, int KET>
struct Team {
  static constexpr unsigned parts = KET == 2 ? Policy::parts : 1;
  static constexpr unsigned split = BRA + KET > 2 ? Policy::split_heavy : Policy::split;
  static constexpr unsigned threads = parts * split, of_a_warp = 32 / threads,
                            of_a_block = Policy::block_size / 32 * of_a_warp;

  unsigned number, member;  // of the team in its block, or of_a_block for the lanes that are left over; in the team

  AUTOTUNE_DEVICE Team() {
    const unsigned lane = threadIdx.x % 32, team = lane / threads;
    number = team < of_a_warp ? threadIdx.x / 32 * of_a_warp + team : of_a_block;
    member = lane % threads;
  }
  AUTOTUNE_DEVICE unsigned turn() const { return member % parts; }
  AUTOTUNE_DEVICE unsigned share() const { return member / parts; }
};

template <class Policy, int BRA, int KET>
struct Quartet {
  static constexpr int order = BRA + KET;
  static constexpr int bra_functions = functions(BRA);
  static constexpr int ket_functions = functions(KET) / static_cast<int>(Team<Policy, BRA, KET>::parts);
  static constexpr int bra_hermites = hermites(BRA);

  const typename Policy::boys_table& boys_table;
  unsigned turn;
  double value[bra_functions][ket_functions] = {};

  // Add a primitive pair of the bra with the first `count` of the ket; ab and cd are between the shells of either,
  // turned.
  template <class Ket>
  AUTOTUNE_DEVICE void add(const PrimitivePair& left, const Vector& ab, const Ket& ket, unsigned count,
                           const Vector& cd) {
    const Expansion of_bra = expansion(left.weight, left.half, ab.x, ab.y, ab.z, false);
    const Vector p = turned({left.x, left.y, left.z}, turn);
    double held[ket_functions][bra_hermites] = {};
#pragma unroll 1
    for (unsigned n = 0; n < count; ++n) {
      const PrimitivePair right = ket[n];
      const Expansion of_ket = expansion(right.weight, right.half, cd.x, cd.y, cd.z, true);
      const Vector q = turned({right.x, right.y, right.z}, turn);
      double r[hermites(order)];
      integrate(left.exponent, right.exponent, left.factor * right.factor, {p.x - q.x, p.y - q.y, p.z - q.z}, r);
      of_the_ket<0, 0>(of_bra, of_ket, r, held);
    }
    if constexpr (Policy::bra_transform == BraTransform::once) of_the_bra<0, 0>(of_bra, held);
  }

  // The sum over the team, for the first of those that have the same functions. Every thread of a warp calls it.
  AUTOTUNE_DEVICE void add_up() {
    using Of = Team<Policy, BRA, KET>;
#pragma unroll
    for (unsigned apart = Of::threads / 3; apart >= Of::parts && Of::split > 1; apart /= 3)
#pragma unroll
      for (int b = 0; b < bra_functions; ++b)
#pragma unroll
        for (int k = 0; k < ket_functions; ++k) {
          double sum = value[b][k];
#pragma unroll
          for (unsigned m = 1; m < 3; ++m) sum += __shfl_down_sync(0xffffffffu, value[b][k], m * apart);
          value[b][k] = sum;
        }
  }

 private:
  using Held = double[ket_functions][bra_hermites];

  // Function K of the ket, for Hermite Gaussian H of the bra and all behind them.
  template <int K, int H>
  AUTOTUNE_DEVICE void of_the_ket(const Expansion& of_bra, const Expansion& of_ket, const double (&r)[hermites(order)],
                                  Held& held) {
    if constexpr (Policy::bra_transform == BraTransform::once)
      held[K][H] += expanded<KET, H, K>(of_ket, r);
    else
      held[K][H] = expanded<KET, H, K>(of_ket, r);
    if constexpr (H + 1 < bra_hermites) {
      of_the_ket<K, H + 1>(of_bra, of_ket, r, held);
    } else {
      if constexpr (Policy::bra_transform == BraTransform::each) with_function<K, 0>(of_bra, held);
      if constexpr (K + 1 < ket_functions) of_the_ket<K + 1, 0>(of_bra, of_ket, r, held);
    }
  }

  // Function B of the bra and all behind it, with function K of the ket.
  template <int K, int B>
  AUTOTUNE_DEVICE void with_function(const Expansion& of_bra, const Held& held) {
    value[B][K] += expanded<BRA, 0, B>(of_bra, held[K]);
    if constexpr (B + 1 < bra_functions) with_function<K, B + 1>(of_bra, held);
  }

  template <int K, int B>
  AUTOTUNE_DEVICE void of_the_bra(const Expansion& of_bra, const Held& held) {
    with_function<K, B>(of_bra, held);
    if constexpr (K + 1 < ket_functions) of_the_bra<K + 1, B>(of_bra, held);
  }

  // The Hermite integrals of exponents p and q at distance `between`: factor / sqrt(p + q) * (-2 alpha)^n Fn(alpha r^2)
  // with alpha = pq / (p + q), and what the recursion makes of them.
  AUTOTUNE_DEVICE void integrate(double p, double q, double factor, const Vector& between,
                                 double (&r)[hermites(order)]) const {
    const double root = autotune::reciprocal_root(p + q), alpha = p * q * (root * root);
    const double square = fma(between.x, between.x, fma(between.y, between.y, between.z * between.z));
    double base[order + 1];
    boys_functions<Policy, order>(alpha * square, boys_table, base);
    double scale = factor * root;
#pragma unroll
    for (int n = 0; n <= order; ++n) {
      base[n] *= scale;
      scale *= -2 * alpha;
    }
    hermite_integrals<order>(base, between.x, between.y, between.z, r);
  }
};

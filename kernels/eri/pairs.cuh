// Primitive pairs: the product of two Gaussians is one Gaussian. Loaded from a table, or computed where they are used.
#pragma once
#include "boys.cuh"

enum class PairTable { none, host, device };
enum class Roots { computed, inverse };

struct Shell {
  double x, y, z;  // bohr
  unsigned first, count;
};

struct Primitive {
  double exponent, coefficient;
  unsigned kind, spare;  // kind: which of the molecule's distinct exponents it is
};

// A pair of shells, i >= j: its `count` primitive pairs lie from `first` on; bound = sqrt((ij|ij)).
struct Pair {
  unsigned i, j, first, count;
  double bound;
};

// p = a + b at P = (a A + b B) / p; factor = sqrt(2 pi^2.5) c_a c_b exp(-ab/p |A-B|^2) / p.
struct PrimitivePair {
  double x, y, z, exponent, factor;
  unsigned kind, spare;  // kind: of roots `inverse` alone
};

// With roots `inverse`, a pair of primitives as the device's table has it: 1/p in place of p, the factor by
// sqrt(sqrt(pi)/2 / p), and as kind 28/p in single precision. A component is then
// factor factor' / sqrt(s) * F0(|P - Q|^2 / s) / (sqrt(pi)/2) with s = 1/p + 1/q, and beyond T = 28 that of two point
// charges, factor factor' / |P - Q|.
AUTOTUNE_DEVICE PrimitivePair inverted(const PrimitivePair& pair) {
  const double inverse = 1 / pair.exponent;
  const float reach = static_cast<float>(28 * inverse);
  return {
      pair.x, pair.y, pair.z, inverse, pair.factor * sqrt(half_root_pi * inverse), autotune::bit_cast<unsigned>(reach),
      0};
}

// Whether x >= y > 0, for x to its upper half: beside the pipe of double precision.
AUTOTUNE_DEVICE bool is_at_least(double x, float y) {
  return static_cast<int>(__double_as_longlong(x) >> 32) >=
         static_cast<int>((autotune::bit_cast<unsigned>(y) >> 3) + (896u << 20));
}
AUTOTUNE_DEVICE bool is_at_least(float x, float y) { return x >= y; }

constexpr double half_prefactor = 5.91496717279561288;  // sqrt(2 pi^2.5)

AUTOTUNE_DEVICE PrimitivePair product(const Shell& left, const Primitive& a, const Shell& right, const Primitive& b) {
  const double p = a.exponent + b.exponent, inverse = 1 / p;
  const double dx = left.x - right.x, dy = left.y - right.y, dz = left.z - right.z;
  const double square = dx * dx + dy * dy + dz * dz;
  const double decay = exp(-(a.exponent * b.exponent * inverse) * square);
  return {(a.exponent * left.x + b.exponent * right.x) * inverse,
          (a.exponent * left.y + b.exponent * right.y) * inverse,
          (a.exponent * left.z + b.exponent * right.z) * inverse,
          p,
          half_prefactor * a.coefficient * b.coefficient * decay * inverse,
          0,
          0};
}

// What an integral is made of, wherever it lives.
template <class Policy>
struct Molecule {
  typename Policy::shells shells;
  typename Policy::primitives primitives;
  typename Policy::pairs pairs;
  typename Policy::host_table host_table;
  typename Policy::device_table device_table;
  typename Policy::quotient quotient;

  AUTOTUNE_DEVICE PrimitivePair computed(const Pair& pair, unsigned m) const {
    const Shell left = shells.load(pair.i), right = shells.load(pair.j);
    return product(left, primitives.load(left.first + m / right.count), right,
                   primitives.load(right.first + m % right.count));
  }

  // Primitive pair m of a pair: the primitives of i slowest.
  AUTOTUNE_DEVICE PrimitivePair load(const Pair& pair, unsigned m) const {
    if constexpr (Policy::pair_table == PairTable::host)
      return host_table.load(pair.first + m);
    else if constexpr (Policy::pair_table == PairTable::device)
      return device_table.load(pair.first + m);
    else
      return computed(pair, m);
  }

  // The component (ab|cd) without the factors of bra and ket, for roots `inverse`.
  template <class Real>
  AUTOTUNE_DEVICE Real between(Real square, const PrimitivePair& bra, const PrimitivePair& ket) const {
    const float reach = autotune::bit_cast<float>(bra.kind) + autotune::bit_cast<float>(ket.kind);
    if (is_at_least(square, reach)) return reciprocal_root(square);
    const Real root = reciprocal_root(static_cast<Real>(bra.exponent) + static_cast<Real>(ket.exponent));
    return root * Real(1 / half_root_pi) * boys_near<Policy>(square * (root * root), quotient);
  }

  // The component (ab|cd) without the ket's factor: factor / sqrt(p + q) * F0(pq/(p + q) |P - Q|^2).
  template <class Real>
  AUTOTUNE_DEVICE Real component(const PrimitivePair& bra, const PrimitivePair& ket) const {
    const Real dx = static_cast<Real>(bra.x - ket.x), dy = static_cast<Real>(bra.y - ket.y),
               dz = static_cast<Real>(bra.z - ket.z);
    const Real square = fma(dx, dx, fma(dy, dy, dz * dz));
    const Real factor = static_cast<Real>(bra.factor);
    if constexpr (Policy::roots == Roots::inverse) {
      return factor * between(square, bra, ket);
    } else {
      const Real p = static_cast<Real>(bra.exponent), q = static_cast<Real>(ket.exponent);
      const Real root = reciprocal_root(p + q), reduced = p * q * (root * root);
      return factor * root * boys_function<Policy>(reduced * square, quotient);
    }
  }

  // (ij|kl), all components added up.
  template <class Real>
  AUTOTUNE_DEVICE double integral(const Pair& bra, const Pair& ket) const {
    double sum = 0;
    for (unsigned n = 0; n < ket.count; ++n) {
      const PrimitivePair right = load(ket, n);
      Real inner = 0;
      for (unsigned m = 0; m < bra.count; ++m) inner += component<Real>(load(bra, m), right);
      sum += inner * right.factor;
    }
    return sum;
  }
};

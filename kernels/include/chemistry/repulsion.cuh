// SPDX-License-Identifier: Apache-2.0
// What the families of repulsion integrals have in common. An integral is (ij|kl) over contracted Gaussians; ij and kl
// are pairs of shells, and the product of a primitive of each is one Gaussian.
#pragma once
#include "autotune/device.cuh"

enum class Output { integrals, coulomb_exchange };
enum class PairTable { none, host, device };

constexpr double half_root_pi = 0.88622692545275801365;
constexpr double half_prefactor = 5.91496717279561288;  // sqrt(2 pi^2.5)

// The product of two primitives: p = a + b, 1/p, b/p, A - B, and exp(-ab/p |A - B|^2).
struct Product {
  double exponent, inverse, weight, dx, dy, dz, decay;

  template <class Shell, class Primitive>
  AUTOTUNE_DEVICE Product(const Shell& left, const Primitive& a, const Shell& right, const Primitive& b) {
    exponent = a.exponent + b.exponent;
    inverse = 1 / exponent;
    weight = b.exponent * inverse;
    dx = left.x - right.x;
    dy = left.y - right.y;
    dz = left.z - right.z;
    const double square = dx * dx + dy * dy + dz * dz;
    decay = exp(-(a.exponent * b.exponent * inverse) * square);
  }

  // sqrt(2 pi^2.5) c_a c_b exp(-ab/p |A - B|^2) / p
  template <class Primitive>
  AUTOTUNE_DEVICE double factor(const Primitive& a, const Primitive& b) const {
    return half_prefactor * a.coefficient * b.coefficient * decay * inverse;
  }
};

// Primitive pair m of two shells: the primitives of the left one slowest.
template <class Shell, class Primitives>
AUTOTUNE_DEVICE auto product_of(const Shell& left, const Shell& right, const Primitives& primitives, unsigned m) {
  return product(left, primitives.load(left.first + m / right.count), right,
                 primitives.load(right.first + m % right.count));
}

// The place of a pair, or of a pair of pairs, in a triangle; `wide_triangle_of` takes its two numbers in any order.
AUTOTUNE_DEVICE unsigned long long wide_triangle(unsigned long long high, unsigned long long low) {
  return high * (high + 1) / 2 + low;
}
AUTOTUNE_DEVICE unsigned long long wide_triangle_of(unsigned long long a, unsigned long long b) {
  return a > b ? wide_triangle(a, b) : wide_triangle(b, a);
}

// By one thread: the output that was not asked for is a single zero.
template <class Policy>
AUTOTUNE_DEVICE void clear_other_output(const typename Policy::integrals& integrals,
                                        const typename Policy::coulomb& coulomb,
                                        const typename Policy::exchange& exchange) {
  if constexpr (Policy::output == Output::integrals) {
    coulomb.store(0, 0, 0);
    exchange.store(0, 0, 0);
  } else {
    integrals.store(0, 0);
  }
}

// The records, and the product of two primitives. A shell is three functions (x, y, z) where its momentum is 1, one
// where it is 0; `function` is the number of its first one. A pair has the shell of the higher momentum as i.
#pragma once
#include "chemistry/repulsion.cuh"

struct Shell {
  double x, y, z;
  unsigned first, count, function, momentum;
};

// The coefficient is that of exp(-a r^2) where the shell is s, of x exp(-a r^2) where it is p.
struct Primitive {
  double exponent, coefficient;
};

// `momenta` is the sum of both momenta: 0 for ss, 1 for ps, 2 for pp. The primitive pairs are count from first on.
// bound >= sqrt((ij|ij)) of every function of i with every one of j.
struct Pair {
  unsigned i, j, first, count, momenta;
  float bound;
};

// Centre P, exponent p, sqrt(2 pi^2.5) c_a c_b exp(-ab/p |A - B|^2) / p, b/p, which says where P is on the way from A
// to B, and 1/2p.
struct PrimitivePair {
  double x, y, z, exponent, factor, weight, half, spare;
};

struct Vector {
  double x, y, z;
};

// P = A + b/p (B - A) is A itself where both shells have one centre.
AUTOTUNE_DEVICE PrimitivePair product(const Shell& left, const Primitive& a, const Shell& right, const Primitive& b) {
  const Product made(left, a, right, b);
  return {fma(-made.weight, made.dx, left.x),
          fma(-made.weight, made.dy, left.y),
          fma(-made.weight, made.dz, left.z),
          made.exponent,
          made.factor(a, b),
          made.weight,
          0.5 * made.inverse,
          0};
}

// The axes turned so that axis `turn` is the first: x y z, y z x or z x y.
AUTOTUNE_DEVICE Vector turned(const Vector& v, unsigned turn) {
  return {turn == 0   ? v.x
          : turn == 1 ? v.y
                      : v.z,
          turn == 0   ? v.y
          : turn == 1 ? v.z
                      : v.x,
          turn == 0   ? v.z
          : turn == 1 ? v.x
                      : v.y};
}

// What the integrals are made of.
template <class Policy>
struct Molecule {
  typename Policy::shells shells;
  typename Policy::primitives primitives;
  typename Policy::pairs pairs;
  typename Policy::table table;

  // Primitive pair m of a pair: the primitives of i slowest.
  AUTOTUNE_DEVICE PrimitivePair load(const Pair& pair, unsigned m) const {
    if constexpr (Policy::pair_table == PairTable::device) {
      return table.load(pair.first + m);
    } else {
      const Shell left = shells.load(pair.i), right = shells.load(pair.j);
      return product_of(left, right, primitives, m);
    }
  }

  // From the centre of j to that of i.
  AUTOTUNE_DEVICE Vector between(const Pair& pair) const {
    const Shell left = shells.load(pair.i), right = shells.load(pair.j);
    return {left.x - right.x, left.y - right.y, left.z - right.z};
  }
};

// The primitive pairs of a pair where they are; those of a block's tile are an array of its own.
template <class Policy>
struct Primitives {
  const Molecule<Policy>& molecule;
  const Pair& pair;

  AUTOTUNE_DEVICE PrimitivePair operator[](unsigned m) const { return molecule.load(pair, m); }
};

// SPDX-License-Identifier: Apache-2.0
// What the families of electrostatic potentials have in common: V is the sum of q / sqrt(r * r + softening) over atoms.
#pragma once
#include "autotune/device.cuh"

// x, y, z in angstrom from the lattice's origin, q in elementary charges.
struct Atom {
  float x, y, z, q;
};

// Square angstrom. An atom exactly on a lattice point adds 10,000 q there and nothing is infinite; at half an angstrom
// it changes q / r by 2e-8 of it, less than float32 can tell.
constexpr float softening = 1e-8f;

// What rounding took from `sum`, which is `before` + `term` (Knuth's two-sum).
template <class Real>
AUTOTUNE_DEVICE Real lost(Real before, Real term, Real sum) {
  const Real taken = sum - before;
  return (before - (sum - taken)) + (term - taken);
}

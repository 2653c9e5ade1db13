// Atoms, the policies' words, and what float32 can take from a sum.
#pragma once
#include "autotune/array.cuh"
#include "chemistry/charges.cuh"

enum class Method { direct, expansions };
enum class Bounds { largest, points };

constexpr unsigned warp_size = 32;
constexpr double unit_roundoff = 5.9604644775390625e-8;  // of float32, 2^-24

// Near terms are added up in chains of so many, and these by an error-free sum.
constexpr unsigned chain = 8;

// The relative error of near terms: 5 roundings in r * r, half of them left in 1 / r, where the reciprocal square root
// unit adds 2^-22.9; then one rounding for each term of a chain. Products of these are less than the 0.05. What the
// error-free sums miss is rounded once a chain, and is itself at most 17 roundings of a sum, as tiles have 16 chains.
AUTOTUNE_DEVICE double near_rounding(unsigned atoms) {
  return (2.5 + 2.15 + chain + 0.05 + 17 * unit_roundoff * (atoms / chain + 1)) * unit_roundoff;
}
// Sums of sizes are added up plainly: the factor from one to what it may stand for.
AUTOTUNE_DEVICE double size_rounding(unsigned atoms) { return 1 + 2 * (140 + atoms / 64) * unit_roundoff; }

// The relative error of what expansions give, apart from what they leave out. float64 rounds by 2^-53. Atoms are added
// up in chains of at most atoms / 32 + 100, and the sizes of all terms are together at most 9 times |q| / r, as atoms
// are 1.6 radii away or more. A move from one middle to another adds up at most 289 terms, whose sizes are together at
// most 36 times that, and there are at most 6 moves; the polynomial of a column is no worse than one. That makes less
// than 1e-11 + 4e-17 atoms.
AUTOTUNE_DEVICE double far_rounding(unsigned atoms) { return 1e-9 + 1e-16 * atoms; }

// Numbers a little above and a little below what float32 or a few float64 operations make of them.
constexpr double above = 1 + 1e-5, below = 1 - 1e-5;

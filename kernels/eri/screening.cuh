// What is computed in single precision, and what is not computed at all.
#pragma once
#include "pairs.cuh"

enum class Accuracy { float64, mixed, float32 };
enum class Screening { none, schwarz };

constexpr double mixed_below = 1e-4;  // of the Schwarz bound: what is smaller is computed in single precision

// Whether a work-unit with this Schwarz bound is computed in single precision.
template <class Policy>
AUTOTUNE_DEVICE bool is_single(double bound) {
  return Policy::accuracy == Accuracy::float32 || (Policy::accuracy == Accuracy::mixed && bound < mixed_below);
}

template <class Policy>
AUTOTUNE_DEVICE bool is_negligible(const Pair& bra, const Pair& ket, double threshold) {
  return Policy::screening == Screening::schwarz && bra.bound * ket.bound < threshold;
}

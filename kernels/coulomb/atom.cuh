// What a policy means for one atom and one point: number types, and q / r by several ways to an inverse square root.
#pragma once
#include "autotune/array.cuh"
#include "cubic.cuh"

enum class Precalculate { none, slice, block, thread };
enum class Points { adjacent, strided, spread };
enum class Accumulate { read_first, shared, at_end };
enum class Staging { none, shared };
enum class Rsqrt { ieee, fast, cubic3 };
enum class Precision { float32, compensated, float64 };
enum class Edges { guarded, padded };
enum class SlicesPerLaunch { all };

// x, y, z in angstrom from the lattice's origin, q in elementary charges.
struct Atom {
  float x, y, z, q;
};

// Square angstrom. V is the sum of q / sqrt(r * r + softening), so an atom exactly on a lattice point adds 10,000 q
// there and nothing is infinite; at half an angstrom it changes q / r by 2e-8 of it, less than float32 can tell.
constexpr float softening = 1e-8f;

template <Precision>
struct Number {
  using type = float;
};
template <>
struct Number<Precision::float64> {
  using type = double;
};
template <class Policy>
using RealOf = typename Number<Policy::precision>::type;

// z, or where it is precalculated dz * dz + softening.
template <class Real>
struct alignas(16) PreparedAtom {
  Real x, y, z, q;
};

// Past the throughput of the reciprocal square root unit: every third point takes a cubic on the multiply-add pipe.
template <class Policy>
constexpr bool has_cubics = Policy::rsqrt == Rsqrt::cubic3;

// Whether a block makes dz * dz of its slices: it keeps an atom as SlicedAtom then, else as PreparedAtom.
template <class Policy>
constexpr bool block_has_slices = Policy::precalculate == Precalculate::block && Policy::points_z > 1;

// What a block keeps of an atom for several slices: dz * dz of each, and what cubics need.
template <class Policy>
struct alignas(16) SlicedAtom {
  using Real = RealOf<Policy>;
  Real x, y, q, weight, dz2[Policy::points_z];

  SlicedAtom() = default;
  AUTOTUNE_DEVICE SlicedAtom(const Atom& atom, Real step, const Real (&slice)[Policy::points_z])
      : x(atom.x), y(atom.y), q(atom.q), weight(has_cubics<Policy> ? cubic::weight(atom.q) : 0) {
#pragma unroll
    for (int z = 0; z < Policy::points_z; ++z) {
      const Real dz = fma(step, slice[z], -static_cast<Real>(atom.z));
      dz2[z] = dz * dz;
    }
  }
};

template <class Policy, bool = block_has_slices<Policy>>
struct AtomType {
  using type = PreparedAtom<RealOf<Policy>>;
};
template <class Policy>
struct AtomType<Policy, true> {
  using type = SlicedAtom<Policy>;
};
template <class Policy>
using AtomOf = typename AtomType<Policy>::type;

// What an atom's charge adds to the points of a thread, which have numbers: row after row of its slices.
template <class Policy>
struct Charge {
  using Real = RealOf<Policy>;
  Real q, weight = 0;
  unsigned signed_guess = 0;

  AUTOTUNE_DEVICE explicit Charge(const AtomOf<Policy>& atom) : q(atom.q) {
    if constexpr (has_cubics<Policy>) {
      weight = atom.weight;
      signed_guess = cubic::signed_guess(atom.q);
    }
  }

  AUTOTUNE_DEVICE static constexpr bool on_pipe(int point) { return has_cubics<Policy> && point % 3 == 2; }

  // The squared distance, as `added` wants it. The product is the same in all slices.
  AUTOTUNE_DEVICE Real squared(Real dxy2, Real dz2, int point) const {
    return on_pipe(point) ? fma(dz2, weight, dxy2 * weight) : dxy2 + dz2;
  }

  // Adds q / sqrt(s) to sum.
  AUTOTUNE_DEVICE Real added(Real sum, Real s, int point) const {
    if constexpr (Policy::precision == Precision::float64) {
      return fma(q, Policy::rsqrt == Rsqrt::ieee ? 1 / sqrt(s) : rsqrt(s), sum);
    } else if constexpr (Policy::rsqrt == Rsqrt::ieee) {
      return fma(q, 1 / sqrtf(s), sum);
    } else {
      if (on_pipe(point)) return cubic::added(sum, s, signed_guess);
      return fma(q, rsqrtf(s), sum);
    }
  }
};

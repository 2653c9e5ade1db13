// Counting by a transform. The counts are the autocorrelation of the places of the prefix sums, and a number-theoretic
// transform modulo a prime (prime.cuh) makes of an autocorrelation a square: forward, each value times that of the
// opposite frequency, back. Positions 0 .. T - 1 lie in a field of 2^bits >= 2 T - 1 elements, so none comes around.
//
// The forward transform leaves frequencies in bit-reversed order, and the way back starts from it, so nothing is put in
// order: columns (strided) first, then rows of neighbours, then columns again. The opposite of the frequency at place
// x > 0 is at x with all bits below the highest inverted. The square is symmetric, so the way back is the forward
// transform in the opposite order, divided by its length.
#pragma once
#include "autotune/shared.cuh"
#include "block_scan.cuh"
#include "prime.cuh"

// ---- roots of unity

// Of the table: all of order 2^level, x < 2^(level - 1), at 2^(level - 1) + x for level 1 .. 13; then some of order
// 2^22 and of order 2^30, so that a root of any order is a product of three. family.yaml has the size, too.
constexpr unsigned levels = 13, middle_root = 1u << levels, low_root = middle_root + 512, table_size = low_root + 256;

AUTOTUNE_DEVICE unsigned table_entry(unsigned place) {
  if (place >= low_root) return prime::power(prime::root(), place - low_root);
  if (place >= middle_root) return prime::power(prime::root(), (place - middle_root) << 8);
  if (place == 0) return prime::one;
  const unsigned level = 32 - __clz(place);
  return prime::power(prime::root(), (place - (1u << (level - 1))) << (30 - level));
}

// The root of order 2^30 to the power of exponent < 2^30.
template <class Roots>
AUTOTUNE_DEVICE unsigned root_power(const Roots& roots, unsigned exponent) {
  constexpr unsigned half = 1u << (levels - 1);
  const unsigned high = exponent >> 17;
  const unsigned upper = roots.load(half + high % half);
  const unsigned low =
      prime::product(roots.load(middle_root + (exponent >> 8) % 512), roots.load(low_root + exponent % 256));
  return prime::product(high < half ? upper : prime::modulus - upper, low);
}

AUTOTUNE_DEVICE unsigned reversed(unsigned x, unsigned bits) { return bits ? __brev(x) >> (32 - bits) : 0; }

// ---- a few stages in registers

// Stages level, level - 1, .. of a transform of 2^level elements, of which v has those at t + k 2^(level - STAGES).
template <unsigned STAGES, class Roots>
AUTOTUNE_DEVICE void forward_stages(unsigned (&v)[1 << STAGES], const Roots& roots, unsigned level, unsigned t) {
#pragma unroll
  for (unsigned s = 0; s < STAGES; ++s) {
    constexpr unsigned values = 1u << STAGES;
    const unsigned half = values >> (s + 1);
    const unsigned first = (1u << (level - s - 1)) + t;
#pragma unroll
    for (unsigned k = 0; k < values; ++k) {
      if (k & half) continue;
      const unsigned a = v[k], b = v[k + half];
      v[k] = prime::sum(a, b);
      v[k + half] = prime::product(prime::difference(a, b), roots.load(first + (k % half << (level - STAGES))));
    }
  }
}

// The same stages of the way back, in the opposite order.
template <unsigned STAGES, class Roots>
AUTOTUNE_DEVICE void back_stages(unsigned (&v)[1 << STAGES], const Roots& roots, unsigned level, unsigned t) {
#pragma unroll
  for (unsigned s = STAGES; s-- > 0;) {
    constexpr unsigned values = 1u << STAGES;
    const unsigned half = values >> (s + 1);
    const unsigned first = (1u << (level - s - 1)) + t;
#pragma unroll
    for (unsigned k = 0; k < values; ++k) {
      if (k & half) continue;
      const unsigned a = v[k], b = prime::product(v[k + half], roots.load(first + (k % half << (level - STAGES))));
      v[k] = prime::sum(a, b);
      v[k + half] = prime::difference(a, b);
    }
  }
}

// STAGES stages from level on of every transform of 2^level elements in a tile of 2^bits. `at` maps an element and a
// lane to its place in shared memory; WIDTH lanes have a column each (1: all share one).
template <class Policy, bool FORWARD, unsigned STAGES, class Tile, class Roots>
AUTOTUNE_DEVICE void tile_step(const Tile& tile, const Roots& roots, unsigned bits, unsigned level) {
  constexpr unsigned apart = Policy::block_size / Tile::width;
  const unsigned stride = level - STAGES, lane = threadIdx.x % Tile::width;
  for (unsigned item = threadIdx.x / Tile::width; item < 1u << (bits - STAGES); item += apart) {
    const unsigned t = item & ((1u << stride) - 1), first = (item >> stride << level) + t;
    unsigned v[1 << STAGES];
#pragma unroll
    for (unsigned k = 0; k < 1u << STAGES; ++k) v[k] = tile.at(first + (k << stride), lane);
    if constexpr (FORWARD)
      forward_stages<STAGES>(v, roots, level, t);
    else
      back_stages<STAGES>(v, roots, level, t);
#pragma unroll
    for (unsigned k = 0; k < 1u << STAGES; ++k) tile.at(first + (k << stride), lane) = v[k];
  }
  __syncthreads();
}

// All stages of transforms of 2^level elements, three at a time.
template <class Policy, bool FORWARD, class Tile, class Roots>
AUTOTUNE_DEVICE void tile_transform(const Tile& tile, const Roots& roots, unsigned bits, unsigned level) {
  const unsigned rest = level % 3;
  if constexpr (FORWARD)
    for (unsigned at = level; at > rest; at -= 3) tile_step<Policy, FORWARD, 3>(tile, roots, bits, at);
  if (rest == 2) tile_step<Policy, FORWARD, 2>(tile, roots, bits, 2);
  if (rest == 1) tile_step<Policy, FORWARD, 1>(tile, roots, bits, 1);
  if constexpr (!FORWARD)
    for (unsigned at = rest + 3; at <= level; at += 3) tile_step<Policy, FORWARD, 3>(tile, roots, bits, at);
}

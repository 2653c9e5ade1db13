// Counting by a transform. The counts are the autocorrelation of the places of the prefix sums, and a number-theoretic
// transform (prime.cuh) makes of an autocorrelation a square: forward, each value times that of the opposite
// frequency, back. Places 0 .. T - 1 lie in a field of 2^bits >= 2 T - 1 elements, so none comes around.
//
// The forward transform leaves frequencies in bit-reversed order, and the way back starts from it, so nothing is put in
// order: columns (strided) first, then rows of neighbours, then columns again. The opposite of the frequency at place
// x > 0 is at x with all bits below the highest inverted. The square is symmetric, so the way back is the forward
// transform in the opposite order, divided by its length.
#pragma once
#include "autotune/shared.cuh"
#include "prime.cuh"

// ---- roots of unity

// Of the table: all of order 2^level, x < 2^(level - 1), at 2^(level - 1) + x for level 1 .. 13; then some of order
// 2^22 and of the highest order, so that a root of any order is a product of three. family.yaml has the size, too.
constexpr unsigned levels = 13, middle_bits = 22, middle_root = 1u << levels, low_root = middle_root + 512,
                   table_size = low_root + 256;

template <class Prime>
AUTOTUNE_DEVICE unsigned table_entry(unsigned place) {
  constexpr unsigned bits = Prime::order_bits;
  if (place >= low_root) return power<Prime>(Prime::root, place - low_root);
  if (place >= middle_root) return power<Prime>(Prime::root, (place - middle_root) << (bits - middle_bits));
  if (place == 0) return Prime::one;
  const unsigned level = 32 - __clz(place);
  return power<Prime>(Prime::root, (place - (1u << (level - 1))) << (bits - level));
}

// The root of the highest order to the power of exponent, which is smaller than the order.
template <class Prime, class Roots>
AUTOTUNE_DEVICE unsigned root_power(const Roots& roots, unsigned exponent) {
  constexpr unsigned half = 1u << (levels - 1), low_bits = Prime::order_bits - middle_bits;
  const unsigned high = exponent >> (Prime::order_bits - levels);
  const unsigned upper = roots.load(half + high % half);
  const unsigned lower = Prime::product(roots.load(middle_root + (exponent >> low_bits) % 512),
                                        roots.load(low_root + exponent % (1u << low_bits)));
  return Prime::product(high < half ? upper : Prime::modulus - upper, lower);
}

AUTOTUNE_DEVICE unsigned reversed(unsigned x, unsigned bits) { return bits ? __brev(x) >> (32 - bits) : 0; }

// ---- a few stages in registers

// Stages level, level - 1, .. of a transform of 2^level elements, of which v has those at t + k 2^(level - STAGES).
template <class Prime, unsigned STAGES, class Roots>
AUTOTUNE_DEVICE void forward_stages(unsigned (&v)[1 << STAGES], const Roots& roots, unsigned level, unsigned t) {
#pragma unroll
  for (unsigned s = 0; s < STAGES; ++s) {
    const unsigned half = (1u << STAGES) >> (s + 1), first = (1u << (level - s - 1)) + t;
#pragma unroll
    for (unsigned k = 0; k < 1u << STAGES; ++k)
      if (!(k & half)) Prime::forward(v[k], v[k + half], roots.load(first + (k % half << (level - STAGES))));
  }
}

// The same stages of the way back, in the opposite order.
template <class Prime, unsigned STAGES, class Roots>
AUTOTUNE_DEVICE void back_stages(unsigned (&v)[1 << STAGES], const Roots& roots, unsigned level, unsigned t) {
#pragma unroll
  for (unsigned s = STAGES; s-- > 0;) {
    const unsigned half = (1u << STAGES) >> (s + 1), first = (1u << (level - s - 1)) + t;
#pragma unroll
    for (unsigned k = 0; k < 1u << STAGES; ++k)
      if (!(k & half)) Prime::back(v[k], v[k + half], roots.load(first + (k % half << (level - STAGES))));
    if (s == 0 || (STAGES - s) % 3 == 0) {  // one more would pass 32 bits
#pragma unroll
      for (unsigned k = 0; k < 1u << STAGES; ++k) v[k] = Prime::settled(v[k]);
    }
  }
}

// The last three stages, whose roots are of order 8 at most.
template <class Prime>
AUTOTUNE_DEVICE void forward_eight(unsigned (&v)[8]) {
  Prime::forward(v[0], v[4]);
  Prime::forward(v[1], v[5], Prime::eighth);
  Prime::forward(v[2], v[6], Prime::quarter);
  Prime::forward(v[3], v[7], Prime::three_eighths);
#pragma unroll
  for (unsigned k = 0; k < 8; k += 4) {
    Prime::forward(v[k], v[k + 2]);
    Prime::forward(v[k + 1], v[k + 3], Prime::quarter);
  }
#pragma unroll
  for (unsigned k = 0; k < 8; k += 2) Prime::forward(v[k], v[k + 1]);
}

// The same stages of the way back, in the opposite order.
template <class Prime>
AUTOTUNE_DEVICE void back_eight(unsigned (&v)[8]) {
#pragma unroll
  for (unsigned k = 0; k < 8; k += 2) Prime::template back<0>(v[k], v[k + 1]);
#pragma unroll
  for (unsigned k = 0; k < 8; k += 4) {
    Prime::template back<1>(v[k], v[k + 2]);
    Prime::back(v[k + 1], v[k + 3], Prime::quarter);
  }
  Prime::template back<2>(v[0], v[4]);
  Prime::back(v[1], v[5], Prime::eighth);
  Prime::back(v[2], v[6], Prime::quarter);
  Prime::back(v[3], v[7], Prime::three_eighths);
#pragma unroll
  for (unsigned k = 0; k < 8; ++k) v[k] = Prime::settled(v[k]);
}

template <class Prime, bool FORWARD, unsigned STAGES, class Roots>
AUTOTUNE_DEVICE void some_stages(unsigned (&v)[1 << STAGES], const Roots& roots, unsigned level, unsigned t) {
  if constexpr (FORWARD)
    forward_stages<Prime, STAGES>(v, roots, level, t);
  else
    back_stages<Prime, STAGES>(v, roots, level, t);
}

// ---- a few stages of all transforms in a tile

// Calls work(first, stride, t) for every group of a tile of 2^bits elements that goes through STAGES stages from level
// on: of a transform of 2^level, the elements first + k stride, k < 2^STAGES. `worker` of `workers` takes its share.
template <unsigned STAGES, class Work>
AUTOTUNE_DEVICE void each_group(unsigned bits, unsigned level, unsigned worker, unsigned workers, const Work& work) {
  const unsigned stride_bits = level - STAGES;
  for (unsigned item = worker; item < 1u << (bits - STAGES); item += workers) {
    const unsigned t = item & ((1u << stride_bits) - 1);
    work((item >> stride_bits << level) + t, 1u << stride_bits, t);
  }
}

// A tile of rows, one behind the other, or of 32 columns. A word is left out after every 32 of a row, so that threads a
// power of two apart meet other banks. Two places without a common bit may be added before or after.
template <unsigned THREADS>
struct Rows {
  static constexpr unsigned workers = THREADS;
  unsigned* base;
  AUTOTUNE_DEVICE static unsigned worker() { return threadIdx.x; }
  AUTOTUNE_DEVICE static unsigned padded(unsigned place) { return place + place / 32; }
  AUTOTUNE_DEVICE unsigned& at(unsigned place, unsigned more) const { return base[padded(place) + padded(more)]; }
};
template <unsigned THREADS>
struct Columns {
  static constexpr unsigned workers = THREADS / 32;
  unsigned* base;  // of this lane's column
  AUTOTUNE_DEVICE static unsigned worker() { return threadIdx.x / 32; }
  AUTOTUNE_DEVICE unsigned& at(unsigned place, unsigned more) const { return base[(place + more) * 32]; }
};

// The first three stages forward, of what load(first, more) has at first + more.
template <class Prime, class Tile, class Roots, class Load>
AUTOTUNE_DEVICE void first_stages(const Tile& tile, const Roots& roots, unsigned bits, unsigned stages,
                                  const Load& load) {
  each_group<3>(bits, stages, tile.worker(), tile.workers, [=](unsigned first, unsigned stride, unsigned t) {
    unsigned v[8];
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) v[k] = load(first, k * stride);
    forward_stages<Prime, 3>(v, roots, stages, t);
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) tile.at(first, k * stride) = v[k];
  });
  __syncthreads();
}

// The same three on the way back, of which store(value, first, more) takes the values.
template <class Prime, class Tile, class Roots, class Store>
AUTOTUNE_DEVICE void last_stages(const Tile& tile, const Roots& roots, unsigned bits, unsigned stages,
                                 const Store& store) {
  each_group<3>(bits, stages, tile.worker(), tile.workers, [=](unsigned first, unsigned stride, unsigned t) {
    unsigned v[8];
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) v[k] = tile.at(first, k * stride);
    back_stages<Prime, 3>(v, roots, stages, t);
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) store(v[k], first, k * stride);
  });
}

template <class Prime, bool FORWARD, unsigned STAGES, class Tile, class Roots>
AUTOTUNE_DEVICE void tile_stages(const Tile& tile, const Roots& roots, unsigned bits, unsigned level) {
  each_group<STAGES>(bits, level, tile.worker(), tile.workers, [=](unsigned first, unsigned stride, unsigned t) {
    unsigned v[1 << STAGES];
#pragma unroll
    for (unsigned k = 0; k < 1u << STAGES; ++k) v[k] = tile.at(first, k * stride);
    some_stages<Prime, FORWARD, STAGES>(v, roots, level, t);
#pragma unroll
    for (unsigned k = 0; k < 1u << STAGES; ++k) tile.at(first, k * stride) = v[k];
  });
  __syncthreads();
}

// What lies between the first three of `stages` and the last three: three at a time, and what that leaves, or with one
// stage left, four.
template <class Prime, bool FORWARD, class Tile, class Roots>
AUTOTUNE_DEVICE void inner_stages(const Tile& tile, const Roots& roots, unsigned bits, unsigned stages) {
  const unsigned rest = stages % 3 == 1 && stages > 7 ? 4 : stages % 3;
  if constexpr (FORWARD)
    for (unsigned level = stages - 3; level > rest + 3; level -= 3)
      tile_stages<Prime, true, 3>(tile, roots, bits, level);
  if (rest == 1) tile_stages<Prime, FORWARD, 1>(tile, roots, bits, 4);
  if (rest == 2) tile_stages<Prime, FORWARD, 2>(tile, roots, bits, 5);
  if (rest == 4) tile_stages<Prime, FORWARD, 4>(tile, roots, bits, 7);
  if constexpr (!FORWARD)
    for (unsigned level = rest + 6; level < stages; level += 3) tile_stages<Prime, false, 3>(tile, roots, bits, level);
}

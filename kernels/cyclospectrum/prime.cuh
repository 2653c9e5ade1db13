// Whole numbers modulo a prime, in 32 bits. Products are Montgomery's: a b / 2^32, so factors are kept times 2^32.
// Nothing is ever rounded, so a count that is smaller than the prime comes out as it is.
//
// A value is kept below `bound`; back() may leave it larger, for three stages at most, until settled() has it again.
#pragma once
#include "autotune/device.cuh"

// 3 * 2^30 + 1: more than any count of a list can be, with roots of unity of order 2^30.
struct WidePrime {
  static constexpr unsigned modulus = 3221225473u, order_bits = 30;
  static constexpr unsigned one = 0u - modulus;  // as a factor
  // As a factor: 125 = 5^3, and 5 generates all numbers but 0.
  static constexpr unsigned root = static_cast<unsigned>((125ull << 32) % modulus);

  AUTOTUNE_DEVICE static unsigned difference(unsigned a, unsigned b) {
    const unsigned d = a - b;
    return a < b ? d + modulus : d;
  }
  // One of the two may be any 32-bit number. The inverse of the prime modulo 2^32 is 1 + 2^30: a shift and an addition.
  AUTOTUNE_DEVICE static unsigned product(unsigned a, unsigned b) {
    const unsigned long long whole = static_cast<unsigned long long>(a) * b;
    const unsigned low = static_cast<unsigned>(whole), high = static_cast<unsigned>(whole >> 32);
    return difference(high, __umulhi(low + (low << 30), modulus));
  }
  AUTOTUNE_DEVICE static unsigned sum(unsigned a, unsigned b) { return difference(a, modulus - b); }
  AUTOTUNE_DEVICE static void forward(unsigned& a, unsigned& b, unsigned root_power) {
    const unsigned both = sum(a, b);
    b = product(difference(a, b), root_power);
    a = both;
  }
  AUTOTUNE_DEVICE static void back(unsigned& a, unsigned& b, unsigned root_power) {
    const unsigned c = product(b, root_power);
    b = difference(a, c);
    a = difference(a, modulus - c);
  }
  AUTOTUNE_DEVICE static unsigned settled(unsigned a) { return a; }
  AUTOTUNE_DEVICE static unsigned exact(unsigned a) { return a; }
};

// 7 * 2^26 + 1, a ninth of 2^32: sums need not be brought below the prime at each step. Roots of unity of order 2^26.
struct NarrowPrime {
  static constexpr unsigned modulus = 469762049u, order_bits = 26, bound = 2 * modulus;
  static constexpr unsigned inverse = 0u - 469762047u;  // of the prime, modulo 2^32
  static constexpr unsigned one = static_cast<unsigned>((1ull << 32) % modulus);
  // As a factor: 2187 = 3^7, and 3 generates all numbers but 0.
  static constexpr unsigned root = static_cast<unsigned>((2187ull << 32) % modulus);

  // Below `bound`, where a b < 2^32 times the prime: both are below `bound`, or one is below the prime.
  AUTOTUNE_DEVICE static unsigned product(unsigned a, unsigned b) {
    const unsigned long long whole = static_cast<unsigned long long>(a) * b;
    const unsigned low = static_cast<unsigned>(whole), high = static_cast<unsigned>(whole >> 32);
    return high - __umulhi(low * inverse, modulus) + modulus;
  }
  AUTOTUNE_DEVICE static unsigned sum(unsigned a, unsigned b) { return min(a + b, a + b - bound); }
  AUTOTUNE_DEVICE static void forward(unsigned& a, unsigned& b, unsigned root_power) {
    const unsigned both = sum(a, b);
    b = product(a - b + bound, root_power);
    a = both;
  }
  // b is brought below `bound`; both results are larger than a was by less than `bound`.
  AUTOTUNE_DEVICE static void back(unsigned& a, unsigned& b, unsigned root_power) {
    const unsigned c = product(b, root_power);
    b = a - c + bound;
    a = a + c;
  }
  // From below 4 times `bound`: 9 is 2^32 over the prime, rounded down, so the quotient is right or one too small.
  AUTOTUNE_DEVICE static unsigned settled(unsigned a) { return a - __umulhi(a, 9) * modulus; }
  AUTOTUNE_DEVICE static unsigned exact(unsigned a) { return min(a, a - modulus); }
};

// base^exponent, both powers as factors, below the prime.
template <class Prime>
AUTOTUNE_DEVICE unsigned power(unsigned base, unsigned exponent) {
  unsigned result = Prime::one;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) result = Prime::product(result, base);
    base = Prime::product(base, base);
  }
  return Prime::exact(result);
}

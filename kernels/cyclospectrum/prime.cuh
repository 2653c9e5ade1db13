// Whole numbers modulo a prime, in 32 bits. Products are Montgomery's: a b / 2^32, so factors are kept times 2^32.
// Nothing is ever rounded, so a count that is smaller than the prime comes out as it is.
//
// A value is kept below `bound`; back() may leave it larger, for three stages at most, until settled() has it again.
#pragma once
#include "autotune/device.cuh"

// The product of two factors, and a factor to the power of 2^times, modulo a prime; `inverse` is that of 2^32.
AUTOTUNE_DEVICE constexpr unsigned constant_product(unsigned a, unsigned b, unsigned modulus, unsigned inverse) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b % modulus * inverse % modulus);
}
AUTOTUNE_DEVICE constexpr unsigned constant_square(unsigned a, unsigned times, unsigned modulus, unsigned inverse) {
  for (; times > 0; --times) a = constant_product(a, a, modulus, inverse);
  return a;
}

// 3 * 2^30 + 1: more than any count of a list can be, with roots of unity of order 2^30.
struct WidePrime {
  static constexpr unsigned modulus = 3221225473u, order_bits = 30;
  static constexpr unsigned one = 0u - modulus;  // as a factor
  // As a factor: 125 = 5^3, and 5 generates all numbers but 0.
  static constexpr unsigned root = static_cast<unsigned>((125ull << 32) % modulus);
  // As factors: roots of order 8, of order 4, and the product of both.
  static constexpr unsigned word_inverse = 2415919104u;  // of 2^32, modulo the prime
  static constexpr unsigned eighth = constant_square(root, order_bits - 3, modulus, word_inverse);
  static constexpr unsigned quarter = constant_square(eighth, 1, modulus, word_inverse);
  static constexpr unsigned three_eighths = constant_product(eighth, quarter, modulus, word_inverse);

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
    b = product(b, root_power);
    forward(a, b);
  }
  // Where the root is 1.
  AUTOTUNE_DEVICE static void forward(unsigned& a, unsigned& b) {
    const unsigned both = sum(a, b);
    b = difference(a, b);
    a = both;
  }
  template <unsigned STAGE>
  AUTOTUNE_DEVICE static void back(unsigned& a, unsigned& b) {
    forward(a, b);
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
  // As factors: roots of order 8, of order 4, and the product of both.
  static constexpr unsigned word_inverse = 51380224u;  // of 2^32, modulo the prime
  static constexpr unsigned eighth = constant_square(root, order_bits - 3, modulus, word_inverse);
  static constexpr unsigned quarter = constant_square(eighth, 1, modulus, word_inverse);
  static constexpr unsigned three_eighths = constant_product(eighth, quarter, modulus, word_inverse);

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
  // Where the root is 1; on the way back in stage 0, 1 or 2 since a value was below `bound`.
  AUTOTUNE_DEVICE static void forward(unsigned& a, unsigned& b) {
    const unsigned both = sum(a, b);
    b = sum(a, bound - b);
    a = both;
  }
  template <unsigned STAGE>
  AUTOTUNE_DEVICE static void back(unsigned& a, unsigned& b) {
    unsigned c = b;
    if (STAGE == 2) c = min(c, c - 2 * bound);
    if (STAGE >= 1) c = min(c, c - bound);
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

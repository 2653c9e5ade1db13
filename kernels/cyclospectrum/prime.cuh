// Whole numbers modulo the prime 3 * 2^30 + 1, each in [0, prime). It has roots of unity of order 2^30, and no count of
// a spectrum reaches it, so a transform modulo the prime is exact: nothing is ever rounded.
#pragma once
#include "autotune/device.cuh"

namespace prime {

constexpr unsigned modulus = 3221225473u;
constexpr unsigned one = 0u - modulus;  // 2^32 modulo the prime: 1, as a factor of product()

AUTOTUNE_DEVICE unsigned difference(unsigned a, unsigned b) {
  const unsigned d = a - b;
  return a < b ? d + modulus : d;
}

AUTOTUNE_DEVICE unsigned sum(unsigned a, unsigned b) { return difference(a, modulus - b); }  // b may be 0: a < modulus

// a b / 2^32 (Montgomery's product; one of the two may be any 32-bit number). The inverse of the prime modulo 2^32 is
// 1 + 2^30, which is a shift and an addition.
AUTOTUNE_DEVICE unsigned product(unsigned a, unsigned b) {
  const unsigned long long whole = static_cast<unsigned long long>(a) * b;
  const unsigned low = static_cast<unsigned>(whole), high = static_cast<unsigned>(whole >> 32);
  return difference(high, __umulhi(low + (low << 30), modulus));
}

// base^exponent, both powers as factors of product().
AUTOTUNE_DEVICE unsigned power(unsigned base, unsigned exponent) {
  unsigned result = one;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) result = product(result, base);
    base = product(base, base);
  }
  return result;
}

// A root of unity of order 2^30, as a factor: 125 = 5^3, and 5 generates all numbers but 0.
AUTOTUNE_DEVICE unsigned root() { return static_cast<unsigned>((125ull << 32) % modulus); }

}  // namespace prime

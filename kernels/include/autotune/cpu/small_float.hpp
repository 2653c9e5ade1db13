// SPDX-License-Identifier: Apache-2.0
// Rounding to a floating point type of 16 bits, and back, by its bits.
#pragma once

#include "rounding.hpp"

namespace autotune::cpu {

// A sign, EXPONENT bits and MANTISSA bits.
template <int EXPONENT, int MANTISSA>
struct SmallFloat {
  static constexpr int bias = (1 << (EXPONENT - 1)) - 1;
  static constexpr unsigned short infinity = ((1 << EXPONENT) - 1) << MANTISSA, nan = 0x7fff, sign = 0x8000,
                                  one = bias << MANTISSA;

  // To nearest even, as most are.
  static AUTOTUNE_NUMBER_FUNCTION unsigned short rounded(float value) {
    constexpr int dropped = 23 - MANTISSA;
    const unsigned bits = same_bits<unsigned>(value), magnitude = bits & 0x7fffffffu;
    unsigned found;
    if (magnitude > 0x7f800000u) return nan;
    if (magnitude < static_cast<unsigned>(127 - bias + 1) << 23) {
      // Below the least normal number all have one unit: a float in which that is the last bit does the rounding.
      if constexpr (EXPONENT == 8) {
        found = (magnitude + (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1)) >> dropped;
      } else {
        constexpr unsigned aligned = static_cast<unsigned>(127 - bias + 1 + dropped) << 23;
        found = same_bits<unsigned>(same_bits<float>(magnitude) + same_bits<float>(aligned)) - aligned;
      }
    } else {
      const unsigned rebiased = magnitude - (static_cast<unsigned>(127 - bias) << 23);
      found = (rebiased + (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1)) >> dropped;
      if (found > infinity) found = infinity;
    }
    return static_cast<unsigned short>((bits >> 16 & sign) | found);
  }

  static AUTOTUNE_NUMBER_FUNCTION unsigned short rounded(double value, Rounding rounding = Rounding::nearest) {
    const unsigned long long bits = same_bits<unsigned long long>(value);
    const bool is_negative = bits >> 63;
    const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
    const unsigned long long mantissa = bits & ((1ull << 52) - 1);
    const unsigned short signed_zero = is_negative ? sign : 0;
    if (exponent == 0x7ff) return mantissa ? nan : static_cast<unsigned short>(signed_zero | infinity);
    const unsigned long long whole = exponent ? mantissa | 1ull << 52 : mantissa;
    // Of the bits of `whole` those below the unit of the result are dropped: 60 is as good as more.
    const int place = exponent - 1023, least = 1 - bias, normal = place > least ? place : least;
    const int below = normal - MANTISSA - (place - 52), dropped = below < 60 ? below : 60;
    const unsigned long long rest = whole & ((1ull << dropped) - 1), half = 1ull << (dropped - 1);
    unsigned long long found = whole >> dropped;
    const bool is_up = rounding == Rounding::nearest ? rest > half || (rest == half && found % 2)
                       : rounding == Rounding::up    ? rest && !is_negative
                       : rounding == Rounding::down  ? rest && is_negative
                                                     : false;
    found += is_up + (static_cast<unsigned long long>(normal - least) << MANTISSA);
    if (found >= infinity) {
      const bool stays = rounding == Rounding::zero || rounding == (is_negative ? Rounding::up : Rounding::down);
      found = stays ? infinity - 1 : infinity;
    }
    return static_cast<unsigned short>(signed_zero | found);
  }

  static AUTOTUNE_NUMBER_FUNCTION float widened(unsigned short bits) {
    if constexpr (EXPONENT == 8) {
      return same_bits<float>(static_cast<unsigned>(bits) << 16);
    } else {
      const unsigned high = static_cast<unsigned>(bits & sign) << 16, magnitude = bits & 0x7fffu;
      const unsigned placed = magnitude << (23 - MANTISSA);
      if (magnitude >= infinity) return same_bits<float>(high | 0x7f800000u | placed);
      if (magnitude < 1u << MANTISSA) {
        constexpr float unit = 1.0f / (1 << (bias - 1 + MANTISSA));
        return same_bits<float>(high | same_bits<unsigned>(static_cast<float>(magnitude) * unit));
      }
      return same_bits<float>(high | (placed + (static_cast<unsigned>(127 - bias) << 23)));
    }
  }

  // a * b + c, rounded once: the product is exact in double, and a sum that is not has its last bit set, so that no
  // tie is made by the rounding to double.
  static AUTOTUNE_NUMBER_FUNCTION unsigned short multiplied_and_added(float a, float b, float c) {
    const double product = static_cast<double>(a) * static_cast<double>(b), addend = static_cast<double>(c);
    const double sum = product + addend, part = sum - product;
    const double error = (product - (sum - part)) + (addend - part);
    unsigned long long bits = same_bits<unsigned long long>(sum);
    const bool is_inexact = error > 0 || error < 0;  // of infinities and NaN it is none
    if (is_inexact && bits % 2 == 0) bits += (error > 0) == (sum > 0) ? 1ull : ~0ull;
    return rounded(same_bits<double>(bits));
  }
};

// An integer as a double in which what is lost is a set last bit, so that it is rounded once in the end.
AUTOTUNE_NUMBER_FUNCTION double without_ties(unsigned long long value) {
  if (value >> 53) value = (value & ~0x7ffull) | (value & 0x7ff ? 0x800ull : 0);
  return static_cast<double>(value);
}
AUTOTUNE_NUMBER_FUNCTION double without_ties(long long value) {
  const unsigned long long magnitude = static_cast<unsigned long long>(value);
  return value < 0 ? -without_ties(0 - magnitude) : without_ties(magnitude);
}

}  // namespace autotune::cpu

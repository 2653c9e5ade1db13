// SPDX-License-Identifier: Apache-2.0
// How numbers of one type become those of another.
#pragma once

#define AUTOTUNE_NUMBER_FUNCTION __host__ __device__ inline

namespace autotune::cpu {

enum class Rounding { nearest, zero, down, up };

template <class To, class From>
AUTOTUNE_NUMBER_FUNCTION To same_bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "types of one size");
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

template <class Integer>
AUTOTUNE_NUMBER_FUNCTION auto widest(Integer value) {
  if constexpr (static_cast<Integer>(-1) < static_cast<Integer>(0))
    return static_cast<long long>(value);
  else
    return static_cast<unsigned long long>(value);
}

AUTOTUNE_NUMBER_FUNCTION float whole(float value, Rounding rounding) {
  return rounding == Rounding::nearest ? __builtin_rintf(value)
         : rounding == Rounding::zero  ? __builtin_truncf(value)
         : rounding == Rounding::down  ? __builtin_floorf(value)
                                       : __builtin_ceilf(value);
}
AUTOTUNE_NUMBER_FUNCTION double whole(double value, Rounding rounding) {
  return rounding == Rounding::nearest ? __builtin_rint(value)
         : rounding == Rounding::zero  ? __builtin_trunc(value)
         : rounding == Rounding::down  ? __builtin_floor(value)
                                       : __builtin_ceil(value);
}

// As the device converts: what is too large becomes the largest, and NaN zero, or the top bit alone where one of the
// types has 64 bits.
template <class Integer, class Float>
AUTOTUNE_NUMBER_FUNCTION Integer integer_of(Float value, Rounding rounding) {
  constexpr bool is_signed = static_cast<Integer>(-1) < static_cast<Integer>(0);
  constexpr int bits = 8 * static_cast<int>(sizeof(Integer)) - is_signed;
  constexpr Integer top = static_cast<Integer>(((1ull << (bits - 1)) - 1) * 2 + 1);
  constexpr Integer bottom = is_signed ? static_cast<Integer>(-top - 1) : 0;
  constexpr Float beyond = static_cast<Float>(2) * static_cast<Float>(1ull << (bits - 1));
  if (value != value) {
    const bool is_wide = sizeof(Integer) == 8 || (sizeof(Float) == 8 && sizeof(Integer) == 4);
    return is_wide ? static_cast<Integer>(1ull << (8 * sizeof(Integer) - 1)) : 0;
  }
  const Float found = whole(value, rounding);
  if (found >= beyond) return top;
  if (found < (is_signed ? -beyond : static_cast<Float>(0))) return bottom;
  return static_cast<Integer>(found);
}

// An integer as a floating point number. The nearest one is at most a step away.
template <class Float, class Integer>
AUTOTUNE_NUMBER_FUNCTION Float float_of(Integer value, Rounding rounding) {
  const Float nearest = static_cast<Float>(value);
  if (rounding == Rounding::nearest) return nearest;
  const long double exact = value, found = nearest;
  const bool is_up = rounding == Rounding::up || (rounding == Rounding::zero && value < 0);
  if (found == exact || (found > exact) == is_up) return nearest;
  if constexpr (sizeof(Float) == 8)
    return __builtin_nextafter(nearest, is_up ? __builtin_inf() : -__builtin_inf());
  else
    return __builtin_nextafterf(nearest, is_up ? __builtin_inff() : -__builtin_inff());
}

}  // namespace autotune::cpu

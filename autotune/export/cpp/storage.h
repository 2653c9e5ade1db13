// Numbers that are declared float or double, held in fewer bits: each rounded to the nearest, ties to even, as
// kernels/autotune/storage.cuh does it on the GPU.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

namespace tuned {

enum class Storage { declared, float32, float16, bfloat16, float8_e4m3, float8_e5m2, scaled_int16, scaled_int8 };

inline int code_bytes(Storage storage) {
  if (storage == Storage::float32) return 4;
  const bool is_narrowest =
      storage == Storage::float8_e4m3 || storage == Storage::float8_e5m2 || storage == Storage::scaled_int8;
  return is_narrowest ? 1 : 2;
}

// The largest of scaled integers; 0 for a float.
inline int largest_code(Storage storage) {
  return storage == Storage::scaled_int8 ? 127 : storage == Storage::scaled_int16 ? 32767 : 0;
}

// A format of 1 sign bit, `exponent` and `mantissa` bits; beyond the code `largest` a number becomes `overflow`.
struct SmallFloat {
  int exponent, mantissa;
  std::uint32_t largest, overflow, nan;
};

inline SmallFloat small_float(Storage storage) {
  if (storage == Storage::float16) return {5, 10, 0x7bff, 0x7c00, 0x7e00};
  if (storage == Storage::bfloat16) return {8, 7, 0x7f7f, 0x7f80, 0x7fc0};
  if (storage == Storage::float8_e4m3) return {4, 3, 0x7e, 0x7e, 0x7f};
  return {5, 2, 0x7b, 0x7b, 0x7f};
}

// The scale by which the largest code stands for `magnitude`: 1 for 0.
inline float scale_for(Storage storage, double magnitude) {
  if (magnitude == 0) return 1;
  const double wanted = magnitude / largest_code(storage), least = 1.17549435e-38;
  return static_cast<float>(wanted < least ? least : wanted);
}

inline std::uint32_t code_of(Storage storage, double number, float scale) {
  const float single = static_cast<float>(number);
  std::uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  if (storage == Storage::float32) return bits;
  if (const int most = largest_code(storage)) {
    const float quotient = std::nearbyint(single / scale);
    const int whole = std::isnan(quotient) ? 0
                      : quotient > most    ? most
                      : quotient < -most   ? -most
                                           : static_cast<int>(quotient);
    return static_cast<std::uint32_t>(whole);
  }
  if (storage == Storage::bfloat16 && std::isnan(number)) return (bits | 0x400000u) >> 16;
  const SmallFloat format = small_float(storage);
  const std::uint32_t sign = bits >> 31 << (format.exponent + format.mantissa);
  if (std::isnan(number)) return format.nan | sign;
  const double magnitude = std::fmin(std::fabs(number), 1e39);
  const int lowest = 2 - (1 << (format.exponent - 1));
  const int exponent = magnitude > 0 ? std::ilogb(magnitude) : lowest, place = exponent > lowest ? exponent : lowest;
  const double units = std::nearbyint(std::ldexp(magnitude, format.mantissa - place));
  const double code = std::ldexp(static_cast<double>(place - lowest), format.mantissa) + units;
  return (code > format.largest ? format.overflow : static_cast<std::uint32_t>(code)) | sign;
}

inline float number_of(Storage storage, std::uint32_t code, float scale) {
  if (storage == Storage::scaled_int8) return static_cast<float>(static_cast<std::int8_t>(code)) * scale;
  if (storage == Storage::scaled_int16) return static_cast<float>(static_cast<std::int16_t>(code)) * scale;
  if (storage == Storage::float32 || storage == Storage::bfloat16) {
    const std::uint32_t bits = storage == Storage::bfloat16 ? code << 16 : code;
    float number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
  }
  const SmallFloat format = small_float(storage);
  const std::uint32_t sign = 1u << (format.exponent + format.mantissa), magnitude = code & (sign - 1);
  const int field = static_cast<int>(magnitude >> format.mantissa), bias = (1 << (format.exponent - 1)) - 1;
  const std::uint32_t units = (magnitude & ((1u << format.mantissa) - 1)) + (field ? 1u << format.mantissa : 0);
  double number = std::ldexp(static_cast<double>(units), (field ? field : 1) - bias - format.mantissa);
  if (magnitude > format.largest) number = magnitude == 0x7c00 || magnitude == 0x7c ? INFINITY : NAN;
  return static_cast<float>(code & sign ? -number : number);
}

}  // namespace tuned

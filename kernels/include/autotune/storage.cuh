// SPDX-License-Identifier: Apache-2.0
// storage: numbers that are declared float or double, held in fewer bits. A load widens, a store rounds to the nearest
// (ties to even), so that a kernel reads and writes what is declared and never sees the code.
//
// The codes are converted by the GPU's own instructions where it has them (PTX ISA, "cvt"), else by whole-number
// arithmetic, which gives the same codes; no header of CUDA is needed.
#pragma once
#include "autotune/array.cuh"

namespace autotune {

namespace detail {

// A double becomes a float on the way to a code of fewer bits. It is rounded to odd there, towards 0 with the last bit
// set where anything was left out, so that the second rounding sees on which side of a tie it was and gives the nearest
// code (Boldo, Melquiond, IEEE Trans. Comput. 57, 462, 2008).
struct RoundedOnce {
  AUTOTUNE_DEVICE static float single(float number) { return number; }
  AUTOTUNE_DEVICE static float single(double number) {
    const float near = static_cast<float>(number);
    const double back = near;
    if (back == number) return near;
    const unsigned bits = bit_cast<unsigned>(near);
    return bit_cast<float>((fabs(back) > fabs(number) ? bits - 1 : bits) | 1u);
  }
};

// To the nearest float, which is the code, or which a scale divides.
struct OfFloat {
  template <class Number>
  AUTOTUNE_DEVICE static float single(Number number) {
    return static_cast<float>(number);
  }
};

// A format of 1 sign, EXPONENT and MANTISSA bits. Beyond the LARGEST code a number becomes OVERFLOW_CODE.
template <int EXPONENT, int MANTISSA, unsigned LARGEST, unsigned OVERFLOW_CODE, unsigned NAN_CODE>
struct SmallFloat {
  static constexpr int bias = (1 << (EXPONENT - 1)) - 1, shift = 23 - MANTISSA;
  static constexpr unsigned sign = 1u << (EXPONENT + MANTISSA), rebias = static_cast<unsigned>(127 - bias) << 23;

  AUTOTUNE_DEVICE static unsigned narrow(float number) {
    const unsigned bits = bit_cast<unsigned>(number), magnitude = bits & 0x7fffffffu;
    unsigned code;
    if (magnitude < rebias + (1u << 23)) {  // subnormal there: an addition rounds to its unit
      constexpr unsigned unit = rebias + (static_cast<unsigned>(1 + shift) << 23);
      code = bit_cast<unsigned>(bit_cast<float>(magnitude) + bit_cast<float>(unit)) - unit;
    } else {
      code = (magnitude - rebias + (1u << (shift - 1)) - 1 + (magnitude >> shift & 1)) >> shift;
    }
    if (code > LARGEST) code = OVERFLOW_CODE;
    if (magnitude > 0x7f800000u) code = NAN_CODE;
    return code | (bits & 0x80000000u ? sign : 0);
  }

  AUTOTUNE_DEVICE static float widen(unsigned code) {
    const unsigned magnitude = code & (sign - 1);
    unsigned bits = (magnitude << shift) + rebias;
    if (magnitude > LARGEST) {
      bits = magnitude == OVERFLOW_CODE ? 0x7f800000u : 0x7fc00000u;
    } else if (magnitude < 1u << MANTISSA) {
      bits = bit_cast<unsigned>(bit_cast<float>(bits + (1u << 23)) - bit_cast<float>(rebias + (1u << 23)));
    }
    return bit_cast<float>(bits | (code & sign ? 0x80000000u : 0));
  }
};

}  // namespace detail

struct Float16 : detail::RoundedOnce {
  using Code = unsigned short;
  using Portable = detail::SmallFloat<5, 10, 0x7bff, 0x7c00, 0x7e00>;
  AUTOTUNE_DEVICE static Code narrow(float number, float) {
#if defined(__CUDA_ARCH__)
    Code code;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(number));
    return code;
#elif defined(__F16C__) && defined(__FLT16_MANT_DIG__)
    return bit_cast<Code>(static_cast<_Float16>(number));
#else
    return static_cast<Code>(Portable::narrow(number));
#endif
  }
  AUTOTUNE_DEVICE static float widen(Code code, float) {
#if defined(__CUDA_ARCH__)
    float number;
    asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(code));
    return number;
#elif defined(__F16C__) && defined(__FLT16_MANT_DIG__)
    return static_cast<float>(bit_cast<_Float16>(code));
#else
    return Portable::widen(code);
#endif
  }
};

// The upper half of a float.
struct BFloat16 : detail::RoundedOnce {
  using Code = unsigned short;
  AUTOTUNE_DEVICE static Code narrow(float number, float) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    Code code;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(code) : "f"(number));
    return code;
#else
    const unsigned bits = bit_cast<unsigned>(number);
    const unsigned code = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return static_cast<Code>((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : code);
#endif
  }
  AUTOTUNE_DEVICE static float widen(Code code, float) { return bit_cast<float>(static_cast<unsigned>(code) << 16); }
};

// The two formats of 8 bits of the Open Compute Project (OFP8). What is too large becomes the largest number.
struct Float8E4M3 : detail::RoundedOnce {
  using Code = unsigned char;
  using Portable = detail::SmallFloat<4, 3, 0x7e, 0x7e, 0x7f>;
  AUTOTUNE_DEVICE static Code narrow(float number, float) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    unsigned short pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(number));
    return static_cast<Code>(pair);
#else
    return static_cast<Code>(Portable::narrow(number));
#endif
  }
  AUTOTUNE_DEVICE static float widen(Code code, float) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    unsigned pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<unsigned short>(code)));
    return Float16::widen(static_cast<unsigned short>(pair), 1.0f);
#else
    return Portable::widen(code);
#endif
  }
};

struct Float8E5M2 : detail::RoundedOnce {
  using Code = unsigned char;
  AUTOTUNE_DEVICE static Code narrow(float number, float) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    unsigned short pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(number));
    return static_cast<Code>(pair);
#else
    return static_cast<Code>(detail::SmallFloat<5, 2, 0x7b, 0x7b, 0x7f>::narrow(number));
#endif
  }
  // The upper half of a float16.
  AUTOTUNE_DEVICE static float widen(Code code, float) {
    return Float16::widen(static_cast<unsigned short>(code << 8), 1.0f);
  }
};

// float, of a double.
struct Float32 : detail::OfFloat {
  using Code = unsigned int;
  AUTOTUNE_DEVICE static Code narrow(float number, float) { return bit_cast<Code>(number); }
  AUTOTUNE_DEVICE static float widen(Code code, float) { return bit_cast<float>(code); }
};

namespace detail {

// Whole numbers of -LARGEST .. LARGEST times a scale; beyond them the nearest, and 0 for NaN.
template <class Whole, class Bits, int LARGEST>
struct ScaledInt : OfFloat {
  using Code = Bits;
  AUTOTUNE_DEVICE static Code narrow(float number, float scale) {
    const float most = LARGEST;
    float quotient = number / scale;
    quotient = quotient < most ? quotient : most;
    quotient = quotient > -most ? quotient : -most;
    if (number != number) quotient = 0.0f;
    return static_cast<Code>(static_cast<Whole>(rintf(quotient)));
  }
  AUTOTUNE_DEVICE static float widen(Code code, float scale) {
    return static_cast<float>(static_cast<Whole>(code)) * scale;
  }
};
}  // namespace detail

using ScaledInt8 = detail::ScaledInt<signed char, unsigned char, 127>;
using ScaledInt16 = detail::ScaledInt<short, unsigned short, 32767>;

// -- where a scale comes from -----------------------------------------------------------------------------------------

struct NoScale {
  template <class Codes, class... Indices>
  AUTOTUNE_DEVICE static float of(const Codes&, Indices...) {
    return 1.0f;
  }
};

// Of the declared range: a float's bits.
template <unsigned BITS>
struct FixedScale {
  template <class Codes, class... Indices>
  AUTOTUNE_DEVICE static float of(const Codes&, Indices...) {
    return bit_cast<float>(BITS);
  }
};

namespace detail {

// Scale number `row` of those that lie behind the elements, each in `unit` whole texels (layout.py: Layout.tail).
template <class Value, class Memory, class Mapping, class Dims, class Records, class Grouping>
AUTOTUNE_DEVICE float scale_behind(const Array<Value, Memory, Mapping, Dims, Records, Grouping>& codes, unsigned row) {
  using Codes = Array<Value, Memory, Mapping, Dims, Records, Grouping>;
  using Texel = typename Codes::Texel;
  using Offset = typename Codes::Offset;
  constexpr Offset unit = sizeof(Texel) < 4 ? 4 / sizeof(Texel) : 1, lanes = Records::lanes;
  const Offset runs = (codes.part_stride() - 1) / lanes + 1;  // an array has an element
  const Offset elements = runs * lanes * Codes::parts;
  const Offset begin = (elements + unit - 1) / unit * unit + row * unit;
  struct Texels {
    Texel texel[unit];
  } read;
#pragma unroll
  for (int t = 0; t < static_cast<int>(unit); ++t) read.texel[t] = codes.memory.template load<Dims>(begin + t);
  float scale;
  memcpy(&scale, &read, sizeof scale);
  return scale;
}

}  // namespace detail

// Of the array's content.
struct ArrayScale {
  template <class Codes, class... Indices>
  AUTOTUNE_DEVICE static float of(const Codes& codes, Indices...) {
    return detail::scale_behind(codes, 0);
  }
};

// Of the content at each index of the first extent.
struct RowScale {
  template <class Codes, class First, class... Others>
  AUTOTUNE_DEVICE static float of(const Codes& codes, First first, Others...) {
    return detail::scale_behind(codes, static_cast<unsigned>(first));
  }
};

// -- the accessor -----------------------------------------------------------------------------------------------------

// The numbers of one value as codes.
template <class Code, int NUMBERS>
struct CodesOf {
  Code code[NUMBERS];
};

// What a kernel receives where an array's numbers are stored as codes. Value: what the kernel reads, one Number or a
// record of them. Codes: the Array of as many codes.
template <class Value, class Number, class Codec, class Scale, class Codes>
struct Narrow {
  using value_type = Value;
  static constexpr int numbers = sizeof(Value) / sizeof(Number);
  using Coded = typename Codes::value_type;
  struct Numbers {
    Number number[numbers];
  };
  static_assert(sizeof(Coded) == numbers * sizeof(typename Codec::Code), "a code for each number");

  Codes codes;

  AUTOTUNE_DEVICE unsigned extent(int axis) const { return codes.extent(axis); }
  template <int AXIS>
  AUTOTUNE_DEVICE constexpr unsigned extent() const {
    return codes.template extent<AXIS>();
  }

  template <class... Indices>
  AUTOTUNE_DEVICE Value load(Indices... indices) const {
    Numbers wide;
    const Coded read = codes.load(indices...);
    const float scale = Scale::of(codes, indices...);
#pragma unroll
    for (int n = 0; n < numbers; ++n) wide.number[n] = static_cast<Number>(Codec::widen(read.code[n], scale));
    return autotune::bit_cast<Value>(wide);
  }

  template <class... Indices>
  AUTOTUNE_DEVICE void store(const Value& value, Indices... indices) const {
    const Numbers wide = autotune::bit_cast<Numbers>(value);
    const float scale = Scale::of(codes, indices...);
    Coded written;
#pragma unroll
    for (int n = 0; n < numbers; ++n) written.code[n] = Codec::narrow(Codec::single(wide.number[n]), scale);
    codes.store(written, indices...);
  }

  template <class Any, class... Indices>
  AUTOTUNE_DEVICE void add(Any, Indices...) const {
    static_assert(sizeof(Any) == 0, "add is atomic, and no atomic works on a code: leave this storage out");
  }
};

}  // namespace autotune

// Inverse square roots on the multiply-add pipe: a guess from the bits of s, made good by a cubic. It takes seven
// instructions with the addition to a sum; the relative error is below 7e-7.
#pragma once

namespace cubic {

// y = float(guess - bits(s) / 2) has s * y * y between 1.50025 and 1.68778 for every s: no other last bits of the guess
// keep that range as narrow. On it scale / sqrt(h) is (h + a) * ((h + a)^2 + b) + c to 4.1e-7 (by Remez' algorithm; a
// cubic without its square term takes one multiply-add less, a leading coefficient of 1 a multiplication).
constexpr unsigned guess = 0x5f600410u, sign = 0x80000000u;
constexpr float a = -2.231107388153759f, b = 2.8342219568258393f, c = -10.853290039595294f;
constexpr float scale = -16.30895553117788f;

// What s has to be multiplied with for the charge's size to be in its inverse root. A charge below 1e-12 counts as
// that, less than rounding takes away, so that the product is finite up to a tenth of a millimetre (1e6 angstrom).
AUTOTUNE_DEVICE float weight(float q) { return scale * scale / fmaxf(q * q, 1e-24f); }

// guess, with the charge's sign.
AUTOTUNE_DEVICE unsigned signed_guess(float q) { return guess | (__float_as_uint(q) & sign); }

// sum + q / sqrt(s), s given times weight(q). The cubic is negative where scale / sqrt(h) is: it is turned round.
AUTOTUNE_DEVICE float added(float sum, float weighted, unsigned signed_guess) {
  const float y = __uint_as_float(signed_guess - (__float_as_uint(weighted) >> 1));
  const float u = fmaf(weighted, y * y, a);
  return fmaf(y, fmaf(-u, fmaf(u, u, b), -c), sum);
}

}  // namespace cubic

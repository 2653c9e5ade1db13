// SPDX-License-Identifier: Apache-2.0
// 1/x and 1/sqrt(x) of a normal double x > 0, within 2 units in the last place: the hardware's approximation (about 20
// bits) and one step of third order. The library's own cost several times that, to get the last bit and the odd cases
// right.
#pragma once
#include "autotune/device.cuh"

namespace autotune {

#ifndef AUTOTUNE_CPU
AUTOTUNE_DEVICE double reciprocal(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  const double error = fma(-x, y, 1.0);
  return fma(y, fma(error, error, error), y);
}
AUTOTUNE_DEVICE double reciprocal_root(double x) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  const double error = fma(-x * y, y, 1.0);
  return fma(y * error, fma(error, 0.375, 0.5), y);
}
#endif

}  // namespace autotune

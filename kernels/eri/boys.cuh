// The Boys function F0(T) = 1/2 sqrt(pi/T) erf(sqrt T), T >= 0: by erf, or as a quotient of polynomials. boys.py says
// where the numbers are from.
#pragma once
#include "autotune/reciprocal.cuh"

enum class Boys { erf, rational, loaded_rational };

using autotune::reciprocal;
using autotune::reciprocal_root;
// In single precision the library's own cost no more than that.
AUTOTUNE_DEVICE float reciprocal(float x) { return 1 / x; }
AUTOTUNE_DEVICE float reciprocal_root(float x) { return rsqrtf(x); }

constexpr double half_root_pi = 0.88622692545275801365;

template <class Real>
AUTOTUNE_DEVICE Real boys_limit(Real t) {
  return Real(half_root_pi) * reciprocal_root(t);
}

template <class Real>
AUTOTUNE_DEVICE Real boys_erf(Real t) {
  const Real root = sqrt(t);
  return t < Real(1e-8) ? 1 - t / 3 : Real(half_root_pi) * erf(root) / root;
}

// The quotient; T < 28. Its coefficients are in the instructions, or loaded: from constant memory a multiply-add takes
// them as they are, while an immediate of 64 bits is two instructions of its own.
template <bool LOADED, class Real, class Quotient>
AUTOTUNE_DEVICE Real boys_rational(Real t, const Quotient& quotient) {
  constexpr double over[] = {1.0000000000000038,     0.19059990703002794,   0.05699415407646556,
                             0.005684996225030749,   0.0006864749941430533, 4.197700187322668e-05,
                             2.6536473871023296e-06, 9.437106588135566e-08, 2.983475422189279e-09,
                             3.054218816120821e-11,  3.021392219798155e-14};
  constexpr double under[] = {1.0,
                              0.5239332403636301,
                              0.13163856752777942,
                              0.02098071852281939,
                              0.002361162374979939,
                              0.00019716984650138876,
                              1.2445248424587656e-05,
                              5.889726917779794e-07,
                              1.992016228995648e-08,
                              4.211654819960866e-10,
                              1.6341601901138266e-12};
  constexpr int degree = 10;
  Real numerator = Real(over[degree]), denominator = Real(under[degree]);
#pragma unroll
  for (int power = degree - 1; power >= 0; --power) {
    if constexpr (LOADED) {
      numerator = fma(numerator, t, quotient.load(power));
      denominator = fma(denominator, t, quotient.load(degree + power));
    } else {
      numerator = fma(numerator, t, Real(over[power]));
      denominator = fma(denominator, t, Real(under[power]));
    }
  }
  return numerator * reciprocal(denominator);
}

AUTOTUNE_DEVICE bool is_far(float t) { return t >= 28.0f; }
// A positive number's upper half orders as the number does, and is compared beside the pipe of double precision.
AUTOTUNE_DEVICE bool is_far(double t) { return static_cast<int>(__double_as_longlong(t) >> 32) >= 0x403c0000; }

// F0 by the policy's method, T < 28. `quotient` is the accessor of the quotient's coefficients.
template <class Policy, class Real>
AUTOTUNE_DEVICE Real boys_near(Real t, const typename Policy::quotient& quotient) {
  if constexpr (Policy::boys == Boys::erf)
    return boys_erf(t);
  else
    return boys_rational<Policy::boys == Boys::loaded_rational && sizeof(Real) == 8>(t, quotient);
}

// The same for any T: erf is, and the others end at 28.
template <class Policy, class Real>
AUTOTUNE_DEVICE Real boys_function(Real t, const typename Policy::quotient& quotient) {
  if (Policy::boys != Boys::erf && is_far(t)) return boys_limit(t);
  return boys_near<Policy>(t, quotient);
}

// The arithmetic that sizes, grids and constraints are written in: whole numbers round downwards.
#pragma once
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

namespace tuned {

using Number = std::int64_t;

// The remainder has the sign of b.
template <class A, class B>
auto floor_mod(A a, B b) {
  if (b == 0) throw std::domain_error("division by zero");
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
    const Number rest = static_cast<Number>(a) % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  } else {
    const double rest = std::fmod(static_cast<double>(a), static_cast<double>(b));
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
}

template <class A, class B>
auto floor_div(A a, B b) {
  const auto rest = floor_mod(a, b);
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
    return (static_cast<Number>(a) - rest) / b;
  } else {
    return std::round((static_cast<double>(a) - rest) / static_cast<double>(b));  // whole but for rounding
  }
}

template <class A, class B>
double divide(A a, B b) {
  if (b == 0) throw std::domain_error("division by zero");
  return static_cast<double>(a) / static_cast<double>(b);
}

template <class A, class B>
auto ceil_div(A a, B b) {
  return -floor_div(-a, b);
}

template <class A, class B>
auto round_up(A a, B b) {
  return ceil_div(a, b) * b;
}

template <class A, class B>
auto smaller(A a, B b) {
  using Both = std::common_type_t<A, B>;
  return static_cast<Both>(b) < static_cast<Both>(a) ? static_cast<Both>(b) : static_cast<Both>(a);
}

template <class A, class B>
auto larger(A a, B b) {
  using Both = std::common_type_t<A, B>;
  return static_cast<Both>(a) < static_cast<Both>(b) ? static_cast<Both>(b) : static_cast<Both>(a);
}

template <class A>
Number bit_length(A a) {
  Number length = 0;
  for (Number rest = static_cast<Number>(a < 0 ? -a : a); rest != 0; rest /= 2) ++length;
  return length;
}

// A count. Throws std::domain_error where there is a fraction.
template <class A>
Number whole(A a) {
  if constexpr (!std::is_integral_v<A>) {
    if (!(std::floor(a) == a)) throw std::domain_error("a whole number is needed");
  }
  return static_cast<Number>(a);
}

}  // namespace tuned

// SPDX-License-Identifier: Apache-2.0
// An atomic variable, without the C++ library. Part of the runtime.
#pragma once

namespace autotune::cpu {

template <class T>
class Atomic {
 public:
  constexpr Atomic(T value) : value_(value) {}
  T load() const { return __atomic_load_n(&value_, __ATOMIC_ACQUIRE); }
  void store(T value) { __atomic_store_n(&value_, value, __ATOMIC_RELEASE); }
  // The value before.
  T add(T value) { return __atomic_fetch_add(&value_, value, __ATOMIC_ACQ_REL); }
  // Stores `value` if `expected` is there.
  void replace(T expected, T value) {
    __atomic_compare_exchange_n(&value_, &expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  }

 private:
  T value_;
};

}  // namespace autotune::cpu

// SPDX-License-Identifier: Apache-2.0
// Atomic read-modify-write on memory that the threads of all cores share; relaxed, as CUDA's are.
#pragma once

#define AUTOTUNE_ATOMIC_INTEGER(T)                                                                           \
  inline T atomicAdd(T* address, T value) { return __atomic_fetch_add(address, value, __ATOMIC_RELAXED); }   \
  inline T atomicSub(T* address, T value) { return __atomic_fetch_sub(address, value, __ATOMIC_RELAXED); }   \
  inline T atomicAnd(T* address, T value) { return __atomic_fetch_and(address, value, __ATOMIC_RELAXED); }   \
  inline T atomicOr(T* address, T value) { return __atomic_fetch_or(address, value, __ATOMIC_RELAXED); }     \
  inline T atomicXor(T* address, T value) { return __atomic_fetch_xor(address, value, __ATOMIC_RELAXED); }   \
  inline T atomicExch(T* address, T value) { return __atomic_exchange_n(address, value, __ATOMIC_RELAXED); } \
  inline T atomicCAS(T* address, T compare, T value) {                                                       \
    __atomic_compare_exchange_n(address, &compare, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);        \
    return compare;                                                                                          \
  }                                                                                                          \
  inline T atomicMin(T* address, T value) {                                                                  \
    T old = __atomic_load_n(address, __ATOMIC_RELAXED);                                                      \
    while (value < old &&                                                                                    \
           !__atomic_compare_exchange_n(address, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {   \
    }                                                                                                        \
    return old;                                                                                              \
  }                                                                                                          \
  inline T atomicMax(T* address, T value) {                                                                  \
    T old = __atomic_load_n(address, __ATOMIC_RELAXED);                                                      \
    while (old < value &&                                                                                    \
           !__atomic_compare_exchange_n(address, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {   \
    }                                                                                                        \
    return old;                                                                                              \
  }

AUTOTUNE_ATOMIC_INTEGER(int)
AUTOTUNE_ATOMIC_INTEGER(unsigned)
AUTOTUNE_ATOMIC_INTEGER(long long)
AUTOTUNE_ATOMIC_INTEGER(unsigned long long)
#undef AUTOTUNE_ATOMIC_INTEGER

// Through the word of the same size: the built-ins know no floating point.
#define AUTOTUNE_ATOMIC_FLOAT(T, WORD)                                                                      \
  inline T atomicAdd(T* address, T value) {                                                                 \
    WORD* const word = reinterpret_cast<WORD*>(address);                                                    \
    WORD old = __atomic_load_n(word, __ATOMIC_RELAXED), sum_word;                                           \
    T number;                                                                                               \
    do {                                                                                                    \
      memcpy(&number, &old, sizeof(T));                                                                     \
      const T sum = number + value;                                                                         \
      memcpy(&sum_word, &sum, sizeof(T));                                                                   \
    } while (!__atomic_compare_exchange_n(word, &old, sum_word, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); \
    return number;                                                                                          \
  }                                                                                                         \
  inline T atomicExch(T* address, T value) {                                                                \
    WORD word;                                                                                              \
    memcpy(&word, &value, sizeof(T));                                                                       \
    word = __atomic_exchange_n(reinterpret_cast<WORD*>(address), word, __ATOMIC_RELAXED);                   \
    memcpy(&value, &word, sizeof(T));                                                                       \
    return value;                                                                                           \
  }

AUTOTUNE_ATOMIC_FLOAT(float, unsigned)
AUTOTUNE_ATOMIC_FLOAT(double, unsigned long long)
#undef AUTOTUNE_ATOMIC_FLOAT

// SPDX-License-Identifier: Apache-2.0
// What a compiler's -fsanitize=thread calls at every access of memory: each is noted by the includer, which defines
// note(), and then done. `site` is the place in the code that accesses.
#pragma once

#define VISIBLE extern "C" __attribute__((visibility("default")))

namespace {

enum Kind : unsigned char { read_of, write_of, change_of };

void note(const volatile void* place, unsigned long bytes, Kind kind, const void* site);

}  // namespace

#define NOTE(PLACE, BYTES, KIND) note(PLACE, BYTES, KIND, __builtin_return_address(0))

VISIBLE void __tsan_init() {}
VISIBLE void __tsan_func_entry(void*) {}
VISIBLE void __tsan_func_exit() {}
VISIBLE void __tsan_vptr_update(void**, void*) {}
VISIBLE void __tsan_vptr_read(void**) {}
VISIBLE void __tsan_read_range(void* place, unsigned long bytes) { NOTE(place, bytes, read_of); }
VISIBLE void __tsan_write_range(void* place, unsigned long bytes) { NOTE(place, bytes, write_of); }
VISIBLE void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  NOTE(from, bytes, read_of);
  NOTE(to, bytes, write_of);
  return __builtin_memcpy(to, from, bytes);
}
VISIBLE void* __tsan_memset(void* to, int value, unsigned long bytes) {
  NOTE(to, bytes, write_of);
  return __builtin_memset(to, value, bytes);
}
VISIBLE void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
  NOTE(from, bytes, read_of);
  NOTE(to, bytes, write_of);
  return __builtin_memmove(to, from, bytes);
}

#define PLAIN(BYTES)                                                                                 \
  VISIBLE void __tsan_read##BYTES(void* place) { NOTE(place, BYTES, read_of); }                      \
  VISIBLE void __tsan_write##BYTES(void* place) { NOTE(place, BYTES, write_of); }                    \
  VISIBLE void __tsan_unaligned_read##BYTES(void* place) { NOTE(place, BYTES, read_of); }            \
  VISIBLE void __tsan_unaligned_write##BYTES(void* place) { NOTE(place, BYTES, write_of); }          \
  VISIBLE void __tsan_volatile_read##BYTES(void* place) { NOTE(place, BYTES, read_of); }             \
  VISIBLE void __tsan_volatile_write##BYTES(void* place) { NOTE(place, BYTES, write_of); }           \
  VISIBLE void __tsan_unaligned_volatile_read##BYTES(void* place) { NOTE(place, BYTES, read_of); }   \
  VISIBLE void __tsan_unaligned_volatile_write##BYTES(void* place) { NOTE(place, BYTES, write_of); } \
  VISIBLE void __tsan_read##BYTES##_pc(void* place, void*) { NOTE(place, BYTES, read_of); }          \
  VISIBLE void __tsan_write##BYTES##_pc(void* place, void*) { NOTE(place, BYTES, write_of); }        \
  VISIBLE void __tsan_read_write##BYTES(void* place) { NOTE(place, BYTES, change_of); }              \
  VISIBLE void __tsan_unaligned_read_write##BYTES(void* place) { NOTE(place, BYTES, change_of); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

#define CHANGE(BITS, T, NAME)                                               \
  VISIBLE T __tsan_atomic##BITS##_##NAME(volatile T* place, T value, int) { \
    NOTE(place, sizeof(T), change_of);                                      \
    return __atomic_##NAME(place, value, __ATOMIC_RELAXED);                 \
  }
#define EXCHANGE(BITS, T, NAME)                                                                             \
  VISIBLE int __tsan_atomic##BITS##_compare_exchange_##NAME(volatile T* place, T* old, T value, int, int) { \
    NOTE(place, sizeof(T), change_of);                                                                      \
    return __atomic_compare_exchange_n(place, old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);       \
  }
#define ATOMIC(BITS, T)                                                                               \
  VISIBLE T __tsan_atomic##BITS##_load(const volatile T* place, int) {                                \
    NOTE(place, sizeof(T), read_of);                                                                  \
    return __atomic_load_n(place, __ATOMIC_RELAXED);                                                  \
  }                                                                                                   \
  VISIBLE void __tsan_atomic##BITS##_store(volatile T* place, T value, int) {                         \
    NOTE(place, sizeof(T), write_of);                                                                 \
    __atomic_store_n(place, value, __ATOMIC_RELAXED);                                                 \
  }                                                                                                   \
  VISIBLE T __tsan_atomic##BITS##_exchange(volatile T* place, T value, int) {                         \
    NOTE(place, sizeof(T), change_of);                                                                \
    return __atomic_exchange_n(place, value, __ATOMIC_RELAXED);                                       \
  }                                                                                                   \
  CHANGE(BITS, T, fetch_add)                                                                          \
  CHANGE(BITS, T, fetch_sub)                                                                          \
  CHANGE(BITS, T, fetch_and)                                                                          \
  CHANGE(BITS, T, fetch_or)                                                                           \
  CHANGE(BITS, T, fetch_xor)                                                                          \
  EXCHANGE(BITS, T, strong)                                                                           \
  EXCHANGE(BITS, T, weak)                                                                             \
  VISIBLE T __tsan_atomic##BITS##_compare_exchange_val(volatile T* place, T old, T value, int, int) { \
    NOTE(place, sizeof(T), change_of);                                                                \
    __atomic_compare_exchange_n(place, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);       \
    return old;                                                                                       \
  }
ATOMIC(8, unsigned char)
ATOMIC(16, unsigned short)
ATOMIC(32, unsigned)
ATOMIC(64, unsigned long long)
VISIBLE void __tsan_atomic_thread_fence(int) {}
VISIBLE void __tsan_atomic_signal_fence(int) {}

// What a compiler's -fsanitize=thread calls at every access of memory: here it writes down those of a kernel's arrays,
// in their order. One thread runs at a time. An event is array (8 bits), kind (2), bytes (6), offset from the first
// guard (48).
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define VISIBLE extern "C" __attribute__((visibility("default")))

namespace {

struct Range {
  uintptr_t begin, end;
};

constexpr int most_ranges = 64;
enum Kind : uint64_t { read_of, write_of, change_of };

Range ranges[most_ranges];
int range_count = 0;
uintptr_t lowest = ~uintptr_t(0), highest = 0;
uint64_t *events = nullptr, capacity = 0, count = 0;
unsigned char outside[most_ranges];

void note(const void* place, uint64_t bytes, Kind kind) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(place);
  if (address < lowest || address >= highest) return;
  for (int i = 0; i < range_count; ++i) {
    if (address < ranges[i].begin || address >= ranges[i].end) continue;
    if (count < capacity)
      events[count] = uint64_t(i) << 56 | kind << 54 | (bytes & 63) << 48 | (address - ranges[i].begin);
    ++count;
    return;
  }
}

}  // namespace

VISIBLE void autotune_trace_begin(uint64_t* room, uint64_t size) {
  events = room;
  capacity = size;
  count = 0;
  range_count = 0;
  lowest = ~uintptr_t(0);
  highest = 0;
  memset(outside, 0, sizeof(outside));
}

VISIBLE void autotune_trace_range(uintptr_t begin, uintptr_t end) {
  if (range_count == most_ranges) abort();
  ranges[range_count++] = {begin, end};
  if (begin < lowest) lowest = begin;
  if (end > highest) highest = end;
}

VISIBLE uint64_t autotune_trace_count() { return count; }
VISIBLE int autotune_trace_left(int array) { return outside[array]; }
VISIBLE void autotune_trace_outside(int array, int axis) { outside[array] |= 1u << axis; }

VISIBLE void __tsan_init() {}
VISIBLE void __tsan_func_entry(void*) {}
VISIBLE void __tsan_func_exit() {}
VISIBLE void __tsan_vptr_update(void**, void*) {}
VISIBLE void __tsan_vptr_read(void**) {}
VISIBLE void __tsan_read_range(void* place, size_t bytes) { note(place, bytes, read_of); }
VISIBLE void __tsan_write_range(void* place, size_t bytes) { note(place, bytes, write_of); }
VISIBLE void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
  note(from, bytes, read_of);
  note(to, bytes, write_of);
  return memcpy(to, from, bytes);
}
VISIBLE void* __tsan_memset(void* to, int value, size_t bytes) {
  note(to, bytes, write_of);
  return memset(to, value, bytes);
}
VISIBLE void* __tsan_memmove(void* to, const void* from, size_t bytes) {
  note(from, bytes, read_of);
  note(to, bytes, write_of);
  return memmove(to, from, bytes);
}

#define PLAIN(BYTES)                                                                                 \
  VISIBLE void __tsan_read##BYTES(void* place) { note(place, BYTES, read_of); }                      \
  VISIBLE void __tsan_write##BYTES(void* place) { note(place, BYTES, write_of); }                    \
  VISIBLE void __tsan_unaligned_read##BYTES(void* place) { note(place, BYTES, read_of); }            \
  VISIBLE void __tsan_unaligned_write##BYTES(void* place) { note(place, BYTES, write_of); }          \
  VISIBLE void __tsan_volatile_read##BYTES(void* place) { note(place, BYTES, read_of); }             \
  VISIBLE void __tsan_volatile_write##BYTES(void* place) { note(place, BYTES, write_of); }           \
  VISIBLE void __tsan_unaligned_volatile_read##BYTES(void* place) { note(place, BYTES, read_of); }   \
  VISIBLE void __tsan_unaligned_volatile_write##BYTES(void* place) { note(place, BYTES, write_of); } \
  VISIBLE void __tsan_read##BYTES##_pc(void* place, void*) { note(place, BYTES, read_of); }          \
  VISIBLE void __tsan_write##BYTES##_pc(void* place, void*) { note(place, BYTES, write_of); }        \
  VISIBLE void __tsan_read_write##BYTES(void* place) { note(place, BYTES, change_of); }              \
  VISIBLE void __tsan_unaligned_read_write##BYTES(void* place) { note(place, BYTES, change_of); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

#define CHANGE(BITS, T, NAME)                                               \
  VISIBLE T __tsan_atomic##BITS##_##NAME(volatile T* place, T value, int) { \
    note(const_cast<T*>(place), sizeof(T), change_of);                      \
    return __atomic_##NAME(place, value, __ATOMIC_RELAXED);                 \
  }
#define ATOMIC(BITS, T)                                                                                       \
  VISIBLE T __tsan_atomic##BITS##_load(const volatile T* place, int) {                                        \
    note(const_cast<T*>(place), sizeof(T), read_of);                                                          \
    return __atomic_load_n(place, __ATOMIC_RELAXED);                                                          \
  }                                                                                                           \
  VISIBLE void __tsan_atomic##BITS##_store(volatile T* place, T value, int) {                                 \
    note(const_cast<T*>(place), sizeof(T), write_of);                                                         \
    __atomic_store_n(place, value, __ATOMIC_RELAXED);                                                         \
  }                                                                                                           \
  VISIBLE T __tsan_atomic##BITS##_exchange(volatile T* place, T value, int) {                                 \
    note(const_cast<T*>(place), sizeof(T), change_of);                                                        \
    return __atomic_exchange_n(place, value, __ATOMIC_RELAXED);                                               \
  }                                                                                                           \
  CHANGE(BITS, T, fetch_add)                                                                                  \
  CHANGE(BITS, T, fetch_sub)                                                                                  \
  CHANGE(BITS, T, fetch_and)                                                                                  \
  CHANGE(BITS, T, fetch_or)                                                                                   \
  CHANGE(BITS, T, fetch_xor)                                                                                  \
  VISIBLE int __tsan_atomic##BITS##_compare_exchange_strong(volatile T* place, T* old, T value, int, int) {   \
    note(const_cast<T*>(place), sizeof(T), change_of);                                                        \
    return __atomic_compare_exchange_n(place, old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);         \
  }                                                                                                           \
  VISIBLE int __tsan_atomic##BITS##_compare_exchange_weak(volatile T* place, T* old, T value, int a, int b) { \
    return __tsan_atomic##BITS##_compare_exchange_strong(place, old, value, a, b);                            \
  }                                                                                                           \
  VISIBLE T __tsan_atomic##BITS##_compare_exchange_val(volatile T* place, T old, T value, int a, int b) {     \
    __tsan_atomic##BITS##_compare_exchange_strong(place, &old, value, a, b);                                  \
    return old;                                                                                               \
  }
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
VISIBLE void __tsan_atomic_thread_fence(int) {}
VISIBLE void __tsan_atomic_signal_fence(int) {}

// SPDX-License-Identifier: Apache-2.0
// Writes down every access of a kernel's arrays, in their order, as tsan.hpp notes it. One thread runs at a time. An
// event is array (8 bits), kind (2), bytes (6), offset from the first guard (48).
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/trace/tsan.hpp"

namespace {

struct Range {
  uintptr_t begin, end;
};

constexpr int most_ranges = 64;

Range ranges[most_ranges];
int range_count = 0;
uintptr_t lowest = ~uintptr_t(0), highest = 0;
uint64_t *events = nullptr, capacity = 0, count = 0;
unsigned char outside[most_ranges];

void note(const volatile void* place, unsigned long bytes, Kind kind, const void*) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(place);
  if (address < lowest || address >= highest) return;
  for (int i = 0; i < range_count; ++i) {
    if (address < ranges[i].begin || address >= ranges[i].end) continue;
    if (count < capacity)
      events[count] =
          uint64_t(i) << 56 | uint64_t(kind) << 54 | uint64_t(bytes & 63) << 48 | (address - ranges[i].begin);
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

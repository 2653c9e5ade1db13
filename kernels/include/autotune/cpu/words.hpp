// SPDX-License-Identifier: Apache-2.0
// Values of any size through functions that take words.
#pragma once

namespace autotune::cpu {

// What `exchange` makes of each word of the value.
template <class T, class Exchange>
__device__ inline T lane_value(T value, Exchange exchange) {
  constexpr unsigned long words = (sizeof(T) + 7) / 8;
  unsigned long long word[words] = {};
  __builtin_memcpy(word, &value, sizeof(T));
  for (unsigned long i = 0; i < words; ++i) word[i] = exchange(word[i]);
  __builtin_memcpy(&value, word, sizeof(T));
  return value;
}

}  // namespace autotune::cpu

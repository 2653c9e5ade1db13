// A table of the words of a text; tables.py says what it holds, and calls this.
#include <stdint.h>

// table: 4^letters + 1 zeros.
extern "C" __attribute__((visibility("default"))) void tables_count(const uint8_t* text, uint64_t length,
                                                                    uint32_t letters, uint32_t* table) {
  const uint64_t words = uint64_t{1} << 2 * letters;
  uint64_t word = words - 1;  // at the position behind, filled up with T
  for (uint64_t i = length; i-- > 0;) {
    word = text[i] < 4 ? text[i] * (words / 4) + word / 4 : words - 1;
    if (text[i] < 4) ++table[word + 1];
  }
  for (uint64_t i = 0; i < words; ++i) table[i + 1] += table[i];
}

// Matches to lines. lines.py, which calls these, allocates all memory and says what they are for.
//
// It needs the C library only. All of it may run in many threads at once, each with memory of its own to write to.
#include <stdint.h>
#include <string.h>

namespace {

// lines.py: _Column. Whole numbers of 4 bytes, not signed, or of 8 bytes, signed.
struct Column {
  const char* values;
  int64_t stride;  // in bytes
  int64_t bytes;

  int64_t at(int64_t row) const {
    const char* const place = values + row * stride;
    if (bytes == 8) {
      int64_t value;
      memcpy(&value, place, 8);
      return value;
    }
    uint32_t value;
    memcpy(&value, place, 4);
    return value;
  }
};

// lines.py: _Strand. Read i has the rows bounds[i] to bounds[i + 1].
struct Strand {
  Column positions, starts, lengths;
  const int64_t* bounds;
};

// lines.py: _Block.
struct Block {
  const char* headers;
  const int64_t* header_bounds;
  int64_t records;
  const int64_t* record_starts;
  const char* names;   // of the records, as they stand at the start of rows
  int64_t name_width;  // 0 where they are left out
  int64_t strands;
  Strand strand[2];
};

constexpr uint64_t column_width = 8;
constexpr uint64_t narrow = 100000000;  // numbers below fill a column at most

// All eight digits at once: halves, then pairs, then digits lie side by side in one word, the first one lowest.
char* put_number(char* text, uint64_t number) {
  if (number < narrow) {
    uint64_t digits = number / 10000 | number % 10000 << 32;
    const uint64_t hundreds = digits * 10486 >> 20 & 0x0000007F0000007F;
    digits = hundreds | (digits - 100 * hundreds) << 16;
    const uint64_t tens = digits * 103 >> 10 & 0x000F000F000F000F;
    digits = tens | (digits - 10 * tens) << 8;
    // '0' is a blank and one bit more, which the zeros in front do not get. The last digit is never in front.
    const int leading = __builtin_ctzll(digits | uint64_t{1} << 56) & ~7;
    digits |= 0x2020202020202020 | uint64_t{0x1010101010101010} << leading;
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) digits = __builtin_bswap64(digits);
    memcpy(text, &digits, column_width);
    return text + column_width;
  }
  int width = 0;
  for (uint64_t rest = number; rest; rest /= 10) ++width;
  for (int place = width; place-- > 0; number /= 10) text[place] = static_cast<char>('0' + number % 10);
  return text + width;
}

char* put(char* text, const char* what, int64_t length) {
  memcpy(text, what, length);
  return text + length;
}

bool is_blank(char letter) { return letter == ' ' || (letter >= '\t' && letter <= '\r'); }

char* put_first_word(char* text, const char* header, const char* end) {
  while (header < end && is_blank(*header)) ++header;
  while (header < end && !is_blank(*header)) *text++ = *header++;
  return text;
}

// The record that has a position; `guess` is one of them.
int64_t record_of(const Block& block, int64_t position, int64_t guess) {
  const int64_t* const starts = block.record_starts;
  if (starts[guess] <= position && (guess + 1 == block.records || position < starts[guess + 1])) return guess;
  int64_t low = 0, high = block.records;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (starts[middle] <= position)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// Both by value: what is written could be a part of them otherwise, and they would be read anew for every number.
char* put_rows(char* text, const Block block, const Strand strand, int64_t first, int64_t last) {
  int64_t record = 0;
  for (int64_t row = first; row < last; ++row) {
    const int64_t position = strand.positions.at(row);
    if (block.name_width) {
      record = record_of(block, position, record);
      text = put(text, block.names + record * block.name_width, block.name_width);
    }
    text = put_number(text, position - block.record_starts[record] + 1);
    text = put(text, "  ", 2);
    text = put_number(text, strand.starts.at(row) + 1);
    text = put(text, "  ", 2);
    text = put_number(text, strand.lengths.at(row));
    *text++ = '\n';
  }
  return text;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// Where the rows of each read begin, for the reads after that of row first - 1, up to that of row last - 1. Returns 1
// where the rows are not in the order of reads, 2 where a read is not one of `count`, else 0.
EXPORT int lines_bounds(const Column* reads, int64_t first, int64_t last, int64_t count, int64_t* bounds) {
  int64_t before = first ? reads->at(first - 1) : -1;
  if (first && before < 0) return 2;
  for (int64_t row = first; row < last; ++row) {
    const int64_t read = reads->at(row);
    if (row && read < before) return 1;
    if (read < 0 || read >= count) return 2;
    while (before < read) bounds[++before] = row;
  }
  return 0;
}

// The lines of reads first to last; how many bytes they are.
EXPORT int64_t lines_put(const Block* block, int64_t first, int64_t last, char* text) {
  char* const begin = text;
  for (int64_t read = first; read < last; ++read) {
    const char* const header = block->headers + block->header_bounds[read];
    const char* const end = block->headers + block->header_bounds[read + 1];
    for (int64_t number = 0; number < block->strands; ++number) {
      const Strand& strand = block->strand[number];
      text = put_first_word(put(text, "> ", 2), header, end);
      text = number ? put(text, " Reverse\n", 9) : put(text, "\n", 1);
      text = put_rows(text, *block, strand, strand.bounds[read], strand.bounds[read + 1]);
    }
  }
  return text - begin;
}

// FASTA and FASTQ to codes, and matches to lines. text.py, which calls these, allocates all memory and says what they
// are for.
//
// It needs the C library only. All of it may run in many threads at once, each with memory of its own to write to.
#include <stdint.h>
#include <string.h>

namespace {

constexpr uint8_t other = 4;  // the codes above are no sequence
constexpr uint8_t blank = 5;

// ---- text to codes

// text.py: _Part. The text has `records` whole records, and every line of it ends with a newline.
struct Part {
  const uint8_t* text;
  int64_t length;
  int64_t records;
  const uint8_t* code_of_byte;
  uint8_t* codes;
  int64_t* offsets;
  uint8_t* headers;
  int64_t* bounds;
  int64_t unmarked, unequal;  // the first record that is so, or as they were
  int64_t is_spoilt;          // whether a code is above other
};

constexpr int64_t at_once = 16;
typedef uint8_t Letters __attribute__((vector_size(at_once)));

// Sixteen letters to codes. False where one is none of A, C, G and T: then the codes mean nothing.
bool translate_letters(const uint8_t* text, uint8_t* codes) {
  Letters letters;
  memcpy(&letters, text, at_once);
  letters |= 0x20;  // lower case
  const auto is_base = (letters == 'a') | (letters == 'c') | (letters == 'g') | (letters == 't');
  // Their bits 1 and 2 are 0, 1, 3 and 2.
  const Letters bits = (letters >> 1) & 3;
  const Letters translated = bits ^ (bits >> 1);
  memcpy(codes, &translated, at_once);
  uint64_t are_bases[2];
  memcpy(are_bases, &is_base, at_once);
  return (are_bases[0] & are_bases[1]) == ~uint64_t{0};
}

// The codes of [text, end), with or without blanks; where they end. There is room for as many as there are bytes.
template <bool keep_blanks>
uint8_t* translate(const uint8_t* text, const uint8_t* end, uint8_t* codes, Part& part) {
  while (text < end) {
    if (end - text >= at_once && translate_letters(text, codes)) {
      text += at_once;
      codes += at_once;
      continue;
    }
    const uint8_t* const stop = end - text >= at_once ? text + at_once : end;
    for (; text < stop; ++text) {
      const uint8_t code = part.code_of_byte[*text];
      if (!keep_blanks && code == blank) continue;
      part.is_spoilt |= code > other;
      *codes++ = code;
    }
  }
  return codes;
}

const uint8_t* line_end(const uint8_t* text, const uint8_t* end) {
  return static_cast<const uint8_t*>(memchr(text, '\n', end - text));
}

// A header line without its mark and its end, which may be that of Windows.
uint8_t* copy_header(const uint8_t* line, const uint8_t* end, uint8_t* headers) {
  ++line;
  if (end > line && end[-1] == '\r') --end;
  if (end > line) memcpy(headers, line, end - line);
  return end > line ? headers + (end - line) : headers;
}

// ---- matches to lines

// text.py: _Column. Whole numbers of 4 bytes, not signed, or of 8 bytes, signed.
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

// text.py: _Strand. Read i has the rows bounds[i] to bounds[i + 1].
struct Strand {
  Column positions, starts, lengths;
  const int64_t* bounds;
};

// text.py: _Block.
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

// How many lines of the text begin with '>'.
EXPORT int64_t text_count_headers(const uint8_t* text, int64_t length) {
  int64_t count = 0;
  const uint8_t* const end = text + length;
  for (const uint8_t* at = text; at < end; ++at) {
    at = static_cast<const uint8_t*>(memchr(at, '>', end - at));
    if (!at) break;
    count += at == text || at[-1] == '\n';
  }
  return count;
}

// The text begins with a '>'.
EXPORT void text_fasta(Part* part) {
  const uint8_t* const end = part->text + part->length;
  uint8_t* codes = part->codes;
  uint8_t* headers = part->headers;
  int64_t record = 0;
  for (const uint8_t* line = part->text; line < end;) {
    const uint8_t* const stop = line_end(line, end);
    if (*line == '>') {
      part->offsets[record] = codes - part->codes;
      part->bounds[record++] = headers - part->headers;
      headers = copy_header(line, stop, headers);
    } else {
      codes = translate<false>(line, stop, codes, *part);
    }
    line = stop + 1;
  }
  part->offsets[record] = codes - part->codes;
  part->bounds[record] = headers - part->headers;
}

// Records of four lines; what follows them in the text is left alone.
EXPORT void text_fastq(Part* part) {
  const uint8_t* const end = part->text + part->length;
  uint8_t* codes = part->codes;
  uint8_t* headers = part->headers;
  const uint8_t* at = part->text;
  for (int64_t record = 0; record < part->records; ++record) {
    const uint8_t *line[4], *stop[4];
    for (int i = 0; i < 4; ++i) {
      line[i] = at;
      stop[i] = line_end(at, end);
      at = stop[i] + 1;
    }
    if (part->unmarked < 0 && (*line[0] != '@' || *line[2] != '+')) part->unmarked = record;
    for (int i = 1; i < 4; i += 2)
      while (stop[i] > line[i] && part->code_of_byte[stop[i][-1]] == blank) --stop[i];
    if (part->unequal < 0 && stop[1] - line[1] != stop[3] - line[3]) part->unequal = record;
    part->offsets[record] = codes - part->codes;
    part->bounds[record] = headers - part->headers;
    headers = copy_header(line[0], stop[0], headers);
    codes = translate<true>(line[1], stop[1], codes, *part);
  }
  part->offsets[part->records] = codes - part->codes;
  part->bounds[part->records] = headers - part->headers;
}

// Where the rows of each read begin, for the reads after that of row first - 1, up to that of row last - 1. Returns 1
// where the rows are not in the order of reads, 2 where a read is not one of `count`, else 0.
EXPORT int text_bounds(const Column* reads, int64_t first, int64_t last, int64_t count, int64_t* bounds) {
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
EXPORT int64_t text_lines(const Block* block, int64_t first, int64_t last, char* text) {
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

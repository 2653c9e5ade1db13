// FASTA and FASTQ to codes. text.py, which calls these, allocates all memory and says what they are for.
//
// It needs the C library only. All of it may run in many threads at once, each with memory of its own to write to.
#include <stdint.h>
#include <string.h>

namespace {

constexpr uint8_t other = 4;  // the codes above are no sequence
constexpr uint8_t blank = 5;

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

// FASTA and FASTQ to codes, and codes to what the device reads. text.py, which calls these, allocates all memory and
// says what it is for. A text is cut into pieces, which threads take; their sizes are counted first, so that each is
// written to its place at once.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "threads.hpp"

namespace {

constexpr uint8_t other = 4;  // the codes above are no sequence
constexpr uint8_t blank = 5;

// text.py: _PIECE. What begins and ends here; `first_*` is what is in front of it.
struct Piece {
  int64_t begin, end;
  int64_t lines;  // newlines; FASTQ alone
  int64_t records, bases, letters;
  int64_t first_record, first_base, first_letter;
  int64_t unmarked, unequal;  // the first record that is so, -1 for none
  int64_t is_spoilt;          // whether a code is above other
};

// text.py: _Part. The text has `records` whole records, and every line of it ends with a newline; FASTA may also begin
// or end within a line of sequence.
struct Part {
  const uint8_t* text;
  int64_t length;
  int64_t records;       // of FASTQ; less than 0 for FASTA, where they are counted
  int64_t is_within;     // whether FASTA begins within a line
  int64_t is_separated;  // whether `other` goes in front of every record of FASTA
  int64_t threads;
  int64_t piece_bytes;
  int64_t count;  // of pieces
  Piece* pieces;
  const uint8_t* code_of_byte;
  uint8_t* codes;
  int64_t* offsets;
  uint8_t* headers;
  int64_t* bounds;
};

constexpr int64_t at_once = 16;
typedef uint8_t Letters __attribute__((vector_size(at_once)));

template <class Vector>
bool is_all(const Vector& mask) {
  uint64_t halves[2];
  memcpy(halves, &mask, at_once);
  return (halves[0] & halves[1]) == ~uint64_t{0};
}

// Sixteen letters to codes. False where one is none of A, C, G and T: then nothing is written, as there is room only
// for the codes of what is no blank.
bool translate_letters(const uint8_t* text, uint8_t* codes) {
  Letters letters;
  memcpy(&letters, text, at_once);
  letters |= 0x20;  // lower case
  const auto is_base = (letters == 'a') | (letters == 'c') | (letters == 'g') | (letters == 't');
  if (!is_all(is_base)) return false;
  // Their bits 1 and 2 are 0, 1, 3 and 2.
  const Letters bits = (letters >> 1) & 3;
  const Letters translated = bits ^ (bits >> 1);
  memcpy(codes, &translated, at_once);
  return true;
}

// The codes of [text, end), with or without blanks; where they end.
template <bool keep_blanks>
uint8_t* translate(const uint8_t* text, const uint8_t* end, uint8_t* codes, const uint8_t* code_of_byte,
                   int64_t& is_spoilt) {
  while (text < end) {
    if (end - text >= at_once && translate_letters(text, codes)) {
      text += at_once;
      codes += at_once;
      continue;
    }
    const uint8_t* const stop = end - text >= at_once ? text + at_once : end;
    for (; text < stop; ++text) {
      const uint8_t code = code_of_byte[*text];
      if (!keep_blanks && code == blank) continue;
      is_spoilt |= code > other;
      *codes++ = code;
    }
  }
  return codes;
}

// How many of [text, end) are no blanks.
int64_t count_bases(const uint8_t* text, const uint8_t* end, const uint8_t* code_of_byte) {
  int64_t count = 0;
  while (text < end) {
    if (end - text >= at_once) {
      Letters letters;
      memcpy(&letters, text, at_once);
      if (is_all(letters > ' ')) {
        text += at_once;
        count += at_once;
        continue;
      }
    }
    const uint8_t* const stop = end - text >= at_once ? text + at_once : end;
    for (; text < stop; ++text) count += code_of_byte[*text] != blank;
  }
  return count;
}

const uint8_t* line_end(const uint8_t* text, const uint8_t* end) {
  return static_cast<const uint8_t*>(memchr(text, '\n', end - text));
}

// Behind the last newline before `at`.
const uint8_t* line_begin(const uint8_t* text, const uint8_t* at) {
  const void* const newline = memrchr(text, '\n', at - text);
  return newline ? static_cast<const uint8_t*>(newline) + 1 : text;
}

// A header line without its mark and its end, which may be that of Windows.
int64_t header_letters(const uint8_t* line, const uint8_t* end) {
  const int64_t letters = end > line ? end - line - 1 : 0;
  return letters - (letters && end[-1] == '\r');
}

// Whether a line begins at `at`.
bool begins_line(const Part& part, const uint8_t* at) { return at == part.text ? !part.is_within : at[-1] == '\n'; }

// Calls header(line, end) and sequence(text, end) in turn. A piece may begin within a line of sequence.
template <class Header, class Sequence>
void each_line(const Part& part, const Piece& piece, const Header& header, const Sequence& sequence) {
  const uint8_t* const stop = part.text + piece.end;
  bool is_whole = begins_line(part, part.text + piece.begin);
  for (const uint8_t* line = part.text + piece.begin; line < stop; is_whole = true) {
    const uint8_t* end = line_end(line, stop);
    if (!end) end = stop;  // the line goes on in the next piece
    if (is_whole && *line == '>')
      header(line, end);
    else
      sequence(line, end);
    line = end + 1;
  }
}

// The four lines of a record without blanks in front of the ends of the second and the fourth.
struct Record {
  const uint8_t *line[4], *stop[4];

  Record(const uint8_t* at, const uint8_t* end, const uint8_t* code_of_byte) {
    for (int i = 0; i < 4; ++i) {
      line[i] = at;
      stop[i] = line_end(at, end);
      at = stop[i] + 1;
    }
    behind = at;
    for (int i = 1; i < 4; i += 2)
      while (stop[i] > line[i] && code_of_byte[stop[i][-1]] == blank) --stop[i];
  }

  const uint8_t* behind;
};

template <class Visit>
void each_record(const Part& part, const Piece& piece, const Visit& visit) {
  const uint8_t* at = part.text + piece.begin;
  for (int64_t number = 0; number < piece.records; ++number) {
    const Record record(at, part.text + part.length, part.code_of_byte);
    visit(record, piece.first_record + number);
    at = record.behind;
  }
}

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Pieces of equal size, then of whole headers.
void cut_fasta(const Part& part) {
  const uint8_t *const text = part.text, *const end = text + part.length;
  in_threads(part.threads, part.count, [&](int64_t number, Nothing&) {
    const uint8_t* at = text + least(number * part.piece_bytes, part.length);
    if (number) {
      const uint8_t* const line = line_begin(text, at);
      if (line < end && *line == '>' && at > line) at = line_end(line, end) + 1;
    }
    part.pieces[number].begin = at - text;
  });
  for (int64_t i = 0; i < part.count; ++i) {
    Piece& piece = part.pieces[i];
    piece.end = i + 1 < part.count ? part.pieces[i + 1].begin : part.length;
    if (piece.end < piece.begin) piece.end = piece.begin;
  }
}

void count_lines(const Part& part) {
  in_threads(part.threads, part.count, [&](int64_t number, Nothing&) {
    const uint8_t* at = part.text + number * part.piece_bytes;
    const uint8_t* const end = part.text + least((number + 1) * part.piece_bytes, part.length);
    int64_t lines = 0;
    for (; at < end && (at = line_end(at, end)); ++at) ++lines;
    part.pieces[number].lines = lines;
  });
}

// Pieces of whole records: every fourth line begins one.
void cut_fastq(const Part& part) {
  count_lines(part);
  int64_t lines = 0;
  for (int64_t i = 0; i < part.count; ++i) {
    part.pieces[i].first_record = least((lines + 3) / 4, part.records);
    part.pieces[i].begin = lines;
    lines += part.pieces[i].lines;
  }
  in_threads(part.threads, part.count, [&](int64_t number, Nothing&) {
    Piece& piece = part.pieces[number];
    const int64_t next = number + 1 < part.count ? part.pieces[number + 1].first_record : part.records;
    piece.records = next - piece.first_record;
    const uint8_t* at = part.text + number * part.piece_bytes;
    if (!piece.records) return;
    int64_t line = piece.begin;
    if (line == 4 * piece.first_record) at = line_begin(part.text, at);
    for (; line < 4 * piece.first_record; ++line) at = line_end(at, part.text + part.length) + 1;
    piece.begin = at - part.text;
  });
}

bool is_fastq(const Part& part) { return part.records >= 0; }

void count(const Part& part) {
  in_threads(part.threads, part.count, [&](int64_t number, Nothing&) {
    Piece& piece = part.pieces[number];
    piece.bases = piece.letters = 0;
    if (is_fastq(part)) {
      each_record(part, piece, [&](const Record& record, int64_t) {
        piece.bases += record.stop[1] - record.line[1];
        piece.letters += header_letters(record.line[0], record.stop[0]);
      });
      return;
    }
    piece.records = 0;
    each_line(
        part, piece,
        [&](const uint8_t* line, const uint8_t* end) {
          ++piece.records;
          piece.letters += header_letters(line, end);
        },
        [&](const uint8_t* text, const uint8_t* end) { piece.bases += count_bases(text, end, part.code_of_byte); });
    if (part.is_separated) piece.bases += piece.records;
  });
}

void parse_fasta(const Part& part, Piece& piece) {
  uint8_t *codes = part.codes + piece.first_base, *headers = part.headers + piece.first_letter;
  int64_t record = piece.first_record;
  each_line(
      part, piece,
      [&](const uint8_t* line, const uint8_t* end) {
        if (part.is_separated) *codes++ = other;
        part.offsets[record] = codes - part.codes;
        part.bounds[record++] = headers - part.headers;
        const int64_t letters = header_letters(line, end);
        memcpy(headers, line + 1, letters);
        headers += letters;
      },
      [&](const uint8_t* text, const uint8_t* end) {
        codes = translate<false>(text, end, codes, part.code_of_byte, piece.is_spoilt);
      });
}

void parse_fastq(const Part& part, Piece& piece) {
  uint8_t *codes = part.codes + piece.first_base, *headers = part.headers + piece.first_letter;
  each_record(part, piece, [&](const Record& record, int64_t number) {
    if (piece.unmarked < 0 && (*record.line[0] != '@' || *record.line[2] != '+')) piece.unmarked = number;
    if (piece.unequal < 0 && record.stop[1] - record.line[1] != record.stop[3] - record.line[3]) piece.unequal = number;
    part.offsets[number] = codes - part.codes;
    part.bounds[number] = headers - part.headers;
    const int64_t letters = header_letters(record.line[0], record.stop[0]);
    memcpy(headers, record.line[0] + 1, letters);
    headers += letters;
    codes = translate<true>(record.line[1], record.stop[1], codes, part.code_of_byte, piece.is_spoilt);
  });
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// The pieces, with their sizes and what is in front of each.
EXPORT void text_count(const Part* part) {
  if (is_fastq(*part))
    cut_fastq(*part);
  else
    cut_fasta(*part);
  count(*part);
  int64_t records = 0, bases = 0, letters = 0;
  for (int64_t i = 0; i < part->count; ++i) {
    Piece& piece = part->pieces[i];
    piece.first_record = records;
    piece.first_base = bases;
    piece.first_letter = letters;
    records += piece.records;
    bases += piece.bases;
    letters += piece.letters;
  }
}

// What was counted, to its place; the ends behind the last record too.
EXPORT void text_parse(const Part* part) {
  in_threads(part->threads, part->count, [&](int64_t number, Nothing&) {
    Piece& piece = part->pieces[number];
    piece.unmarked = piece.unequal = -1;
    piece.is_spoilt = 0;
    if (is_fastq(*part))
      parse_fastq(*part, piece);
    else
      parse_fasta(*part, piece);
  });
  const Piece& last = part->pieces[part->count - 1];
  const int64_t records = last.first_record + last.records;
  part->offsets[records] = last.first_base + last.bases;
  part->bounds[records] = last.first_letter + last.letters;
}

// Bytes of a file from `begin` on, as many as are there; or less 0 and the error's number.
EXPORT int64_t text_read(int file, int64_t begin, int64_t length, uint8_t* text, int64_t threads) {
  constexpr int64_t bytes_at_once = 1 << 20;
  int64_t read = 0, problem = 0;
  in_threads(threads, (length + bytes_at_once - 1) / bytes_at_once, [&](int64_t number, Nothing&) {
    const int64_t first = number * bytes_at_once, last = least(first + bytes_at_once, length);
    for (int64_t at = first; at < last;) {
      const int64_t got = pread(file, text + at, last - at, begin + at);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) __atomic_store_n(&problem, errno, __ATOMIC_RELAXED);
      if (got <= 0) return;
      at += got;
      __atomic_fetch_add(&read, got, __ATOMIC_RELAXED);
    }
  });
  return problem ? -problem : read;
}

// Where the last record of FASTA begins, 0 where none but the first does.
EXPORT int64_t text_last_fasta(const uint8_t* text, int64_t length) {
  for (const uint8_t* at = text + length; (at = static_cast<const uint8_t*>(memrchr(text, '>', at - text)));)
    if (at == text || at[-1] == '\n') return at - text;
  return 0;
}

// Up to where FASTA can be parsed before what follows is there: to its end, but for a header line that has none.
// A line may be as long as the text, so threads look for its begin, from the end on.
EXPORT int64_t text_cut_fasta(const uint8_t* text, int64_t length, int64_t threads) {
  constexpr int64_t bytes_at_once = 1 << 20;
  int64_t line = 0;
  in_threads(threads, (length + bytes_at_once - 1) / bytes_at_once, [&](int64_t number, Nothing&) {
    const int64_t last = length - number * bytes_at_once, first = last < bytes_at_once ? 0 : last - bytes_at_once;
    int64_t known = __atomic_load_n(&line, __ATOMIC_RELAXED);
    if (known >= last) return;
    const int64_t found = line_begin(text + first, text + last) - text;
    if (found == first) return;  // none, or a line that the piece before it finds
    while (known < found &&
           !__atomic_compare_exchange_n(&line, &known, found, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  });
  return line < length && text[line] == '>' ? line : length;
}

// Where the whole records of FASTQ end, and how many there are. part has text, length, threads and pieces.
EXPORT int64_t text_whole_fastq(Part* part) {
  count_lines(*part);
  int64_t lines = 0;
  for (int64_t i = 0; i < part->count; ++i) lines += part->pieces[i].lines;
  part->records = lines / 4;
  const uint8_t* end = part->text + part->length;
  if (!part->records) return 0;
  for (int64_t left = lines % 4 + 1; left; --left)
    end = static_cast<const uint8_t*>(memrchr(part->text, '\n', end - part->text));
  return end + 1 - part->text;
}

// Eight codes in a word, the first in the lowest bits; what is behind the last is `other`.
EXPORT void text_pack(const uint8_t* codes, int64_t count, uint32_t* words, int64_t room, int64_t threads) {
  constexpr int64_t words_at_once = 1 << 16;
  in_threads(threads, (room + words_at_once - 1) / words_at_once, [&](int64_t number, Nothing&) {
    const int64_t last = least((number + 1) * words_at_once, room);
    for (int64_t word = number * words_at_once; word < last; ++word) {
      uint64_t eight = 0x0404040404040404;
      const int64_t left = count - 8 * word;
      if (left > 0) memcpy(&eight, codes + 8 * word, least(left, 8));
      // Pairs of bytes, then of pairs, move together.
      eight = (eight | eight >> 4) & 0x00FF00FF00FF00FF;
      eight = (eight | eight >> 8) & 0x0000FFFF0000FFFF;
      words[word] = static_cast<uint32_t>(eight | eight >> 16);
    }
  });
}

// Each read reversed and complemented in its place.
EXPORT void text_turn(const uint8_t* codes, const int64_t* offsets, int64_t reads, uint8_t* turned, int64_t threads) {
  constexpr int64_t reads_at_once = 1 << 12;
  in_threads(threads, (reads + reads_at_once - 1) / reads_at_once, [&](int64_t number, Nothing&) {
    const int64_t last = least((number + 1) * reads_at_once, reads);
    for (int64_t read = number * reads_at_once; read < last; ++read) {
      const uint8_t* from = codes + offsets[read + 1];
      for (int64_t at = offsets[read]; at < offsets[read + 1]; ++at) {
        const uint8_t code = *--from;
        turned[at] = code < other ? code ^ 3 : other;
      }
    }
  });
}

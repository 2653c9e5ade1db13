// Matches to lines, and lines to a file. lines.py, which calls these, allocates all memory and says what it is for.
// It needs the C library only.
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../threads.hpp"

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
  int64_t is_narrow;  // whether no number is known to need more than a column's width
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

constexpr int64_t column_width = 8;
constexpr uint64_t narrow = 100000000;  // numbers below fill a column at most
constexpr int64_t gap = 2;
constexpr int64_t most_digits = 20;

int64_t digits(uint64_t number) {
  if (number < narrow) return column_width;
  int64_t width = 0;
  for (; number; number /= 10) ++width;
  return width;
}

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
  const int64_t width = digits(number);
  for (int64_t place = width; place-- > 0; number /= 10) text[place] = static_cast<char>('0' + number % 10);
  return text + width;
}

char* put(char* text, const char* what, int64_t length) {
  memcpy(text, what, length);
  return text + length;
}

bool is_blank(char letter) { return letter == ' ' || (letter >= '\t' && letter <= '\r'); }

struct Word {
  const char* begin;
  int64_t length;
};

// As mummer has it: what is in front of the first blank, nothing where a blank comes first.
Word name_of(const Block& block, int64_t read) {
  const char* const begin = block.headers + block.header_bounds[read];
  const char* const stop = block.headers + block.header_bounds[read + 1];
  const char* end = begin;
  while (end < stop && !is_blank(*end)) ++end;
  return {begin, end - begin};
}

constexpr char mark[] = "> ", forward[] = "\n", reverse[] = " Reverse\n";

int64_t header_size(const Word& name, int64_t strand) {
  return sizeof mark - 1 + name.length + (strand ? sizeof reverse : sizeof forward) - 1;
}

char* put_header(char* text, const Word& name, int64_t strand) {
  text = put(put(text, mark, sizeof mark - 1), name.begin, name.length);
  return strand ? put(text, reverse, sizeof reverse - 1) : put(text, forward, sizeof forward - 1);
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
    text = put(text, "  ", gap);
    text = put_number(text, strand.starts.at(row) + 1);
    text = put(text, "  ", gap);
    text = put_number(text, strand.lengths.at(row));
    *text++ = '\n';
  }
  return text;
}

int64_t rows_size(const Block& block, const Strand& strand, int64_t first, int64_t last) {
  const int64_t around = block.name_width + 2 * gap + 1;
  if (strand.is_narrow) return (last - first) * (around + 3 * column_width);
  int64_t size = (last - first) * around, record = 0;
  for (int64_t row = first; row < last; ++row) {
    const int64_t position = strand.positions.at(row);
    record = record_of(block, position, record);
    size += digits(position - block.record_starts[record] + 1) + digits(strand.starts.at(row) + 1) +
            digits(strand.lengths.at(row));
  }
  return size;
}

// Text that goes to memory.
struct Memory {
  char* at;
  bool failed = false;
  char* room(int64_t) { return at; }
  void filled(char* to) { at = to; }
};

// Text that goes to a file, from a place in it on; it waits in a thread's own memory, which stays near its core.
struct File {
  struct Own {
    char* text = nullptr;
    int64_t size = 0;
    ~Own() { free(text); }
  };
  static constexpr int64_t least = 1 << 20;

  Own& own;
  sem_t& gate;
  int file;
  int64_t place, waiting = 0;
  int problem = 0;
  bool failed = false;

  char* room(int64_t size) {
    if (waiting + size > own.size) flush();
    if (size > own.size) {
      free(own.text);
      own.size = size > least ? size : least;
      own.text = static_cast<char*>(malloc(own.size));
      if (!own.text) {
        own.size = 0;
        stop(ENOMEM);
        return nullptr;
      }
    }
    return own.text + waiting;
  }
  void filled(char* to) { waiting = to - own.text; }
  void flush() {
    while (sem_wait(&gate)) {
    }
    write_waiting();
    sem_post(&gate);
  }
  void write_waiting() {
    for (int64_t done = 0; done < waiting && !failed;) {
      const int64_t wrote = pwrite(file, own.text + done, waiting - done, place + done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return stop(wrote ? errno : ENOSPC);
      done += wrote;
    }
    place += waiting;
    waiting = 0;
  }
  void stop(int number) {
    problem = number;
    failed = true;
  }
};

// The lines of reads first to last.
template <class Sink>
void put_lines(const Block& block, int64_t first, int64_t last, Sink& sink) {
  constexpr int64_t rows_at_once = 1 << 12;
  const int64_t row_room = block.name_width + 3 * most_digits + 2 * gap + 1;
  for (int64_t read = first; read < last; ++read) {
    const Word name = name_of(block, read);
    for (int64_t number = 0; number < block.strands; ++number) {
      const Strand& strand = block.strand[number];
      char* const text = sink.room(header_size(name, number));
      if (sink.failed) return;
      sink.filled(put_header(text, name, number));
      const int64_t end = strand.bounds[read + 1];
      for (int64_t row = strand.bounds[read]; row < end; row += rows_at_once) {
        const int64_t stop = end - row < rows_at_once ? end : row + rows_at_once;
        char* const rows = sink.room((stop - row) * row_room);
        if (sink.failed) return;
        sink.filled(put_rows(rows, block, strand, row, stop));
      }
    }
  }
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

enum { no_fault, not_in_order, not_in_block };

// Read i of `count` has the rows bounds[i] to bounds[i + 1]; whether all numbers are narrow. Returns what is wrong.
EXPORT int lines_bounds(const Column* reads, int64_t rows, int64_t count, Strand* strand, int64_t* bounds,
                        int64_t rows_at_once, int64_t threads) {
  int fault = no_fault;
  int64_t is_narrow = 1;
  in_threads(threads, (rows + rows_at_once - 1) / rows_at_once, [&](int64_t number, Nothing&) {
    const int64_t first = number * rows_at_once, last = rows - first < rows_at_once ? rows : first + rows_at_once;
    int64_t before = first ? reads->at(first - 1) : -1;
    uint64_t largest = 0;
    int wrong = first && before < 0 ? not_in_block : no_fault;
    for (int64_t row = first; row < last && !wrong; ++row) {
      const int64_t read = reads->at(row);
      if (row && read < before) wrong = not_in_order;
      if (!wrong && (read < 0 || read >= count)) wrong = not_in_block;
      if (wrong) break;
      while (before < read) bounds[++before] = row;
      const uint64_t bits = strand->positions.at(row) | strand->starts.at(row) | strand->lengths.at(row);
      if (bits > largest) largest = bits;
    }
    if (wrong) __atomic_store_n(&fault, wrong, __ATOMIC_RELAXED);
    if (largest + 1 >= narrow) __atomic_store_n(&is_narrow, 0, __ATOMIC_RELAXED);
  });
  if (fault) return fault;
  for (int64_t read = rows ? reads->at(rows - 1) + 1 : 0; read <= count; ++read) bounds[read] = rows;
  strand->bounds = bounds;
  strand->is_narrow = is_narrow;
  return no_fault;
}

// sizes[i]: of the lines of reads cuts[i] to cuts[i + 1].
EXPORT void lines_sizes(const Block* block, const int64_t* cuts, int64_t groups, int64_t* sizes, int64_t threads) {
  in_threads(threads, groups, [&](int64_t group, Nothing&) {
    int64_t size = 0;
    for (int64_t number = 0; number < block->strands; ++number) {
      const Strand& strand = block->strand[number];
      for (int64_t read = cuts[group]; read < cuts[group + 1]; ++read)
        size += header_size(name_of(*block, read), number);
      size += rows_size(*block, strand, strand.bounds[cuts[group]], strand.bounds[cuts[group + 1]]);
    }
    sizes[group] = size;
  });
}

// The lines of each group from its place on.
EXPORT void lines_put(const Block* block, const int64_t* cuts, int64_t groups, const int64_t* places, char* text,
                      int64_t threads) {
  in_threads(threads, groups, [&](int64_t group, Nothing&) {
    Memory memory = {text + places[group]};
    put_lines(*block, cuts[group], cuts[group + 1], memory);
  });
}

// The same in a file, which is written to by so many threads at a time: more would wait for each other in the kernel.
// Returns the number of the error, 0 for none.
EXPORT int lines_write(const Block* block, const int64_t* cuts, int64_t groups, const int64_t* places, int file,
                       int64_t threads, int64_t writers) {
  // Room at once, where the file system can tell: it is faster, and a full disk shows before anything is written.
  if (fallocate(file, 0, places[0], places[groups] - places[0]) && errno == ENOSPC) return ENOSPC;
  int problem = 0;
  sem_t gate;
  sem_init(&gate, 0, static_cast<unsigned>(writers));
  in_threads<File::Own>(threads, groups, [&](int64_t group, File::Own& own) {
    if (__atomic_load_n(&problem, __ATOMIC_RELAXED)) return;
    File to = {own, gate, file, places[group]};
    put_lines(*block, cuts[group], cuts[group + 1], to);
    if (!to.failed) to.flush();
    if (to.failed) __atomic_store_n(&problem, to.problem, __ATOMIC_RELAXED);
  });
  sem_destroy(&gate);
  return problem;
}

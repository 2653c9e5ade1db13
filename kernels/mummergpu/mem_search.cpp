// Maximal exact matches by equal words. mem_search.py, which calls these, allocates all memory and says what they are
// for. Independent of the kernels and of the suffix tree: it looks up words and compares letters, nothing else.
//
// It needs the C library only. All but mem_search_index may run in many threads at once.
#include <stdint.h>

namespace {

constexpr uint8_t other = 4;  // this code and those above are no letters
constexpr uint32_t no_rank = 0xFFFFFFFF;
// Most of the time goes into waiting for random accesses: they are asked for this many steps before they are needed.
constexpr uint64_t ahead = 32;
constexpr int batch = 64;

// mem_search.py: _WORD. A word of the reference.
struct Word {
  uint64_t number;    // its letters, two bits each, the first one highest
  uint32_t position;  // where it starts
  uint32_t before;    // the code in front of it; other at the start of the reference
};

// mem_search.py: _Index. Words of equal numbers stand together and in the order that matches are given in.
struct Index {
  uint64_t characters;  // of the reference
  uint64_t count;       // of words
  uint32_t letters;     // of a word: 1 to 32
  uint32_t leading;  // the words that begin with the same so many letters are words[bounds[i]] to words[bounds[i + 1]]
  const uint8_t* reference;
  Word* words;
  uint32_t* bounds;

  uint64_t bucket(uint64_t number) const { return number >> (2 * (letters - leading)); }
};

// mem_search.py: _Reads.
struct Reads {
  const uint8_t* codes;
  const int64_t* offsets;  // read i is from offsets[i] to offsets[i + 1]
};

// mem_search.py: _Mems.
struct Mems {
  uint32_t *reads, *positions, *starts, *lengths;
};

uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

// The first of words[low] to words[high], which ascend, that is not below the number.
uint64_t first_not_below(const Word* words, uint64_t low, uint64_t high, uint64_t number) {
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (words[middle].number < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// visit(start, position) for every place where a word of the read, which starts at first up to last, and one of the
// reference are equal and the letters before them are not: by start, then in the order of the index.
template <class Visit>
void for_left_maximal(const Index& index, const uint8_t* read, uint64_t first, uint64_t last, const Visit& visit) {
  struct {
    uint64_t number, start, low, high;
  } wanted[batch];
  int filled = 0;
  const auto look_up = [&] {
    for (int i = 0; i < filled; ++i) {
      const uint32_t* const bounds = index.bounds + index.bucket(wanted[i].number);
      wanted[i].low = bounds[0];
      wanted[i].high = bounds[1];
      __builtin_prefetch(index.words + wanted[i].low);
    }
    for (int i = 0; i < filled; ++i) {
      const uint64_t number = wanted[i].number, start = wanted[i].start, high = wanted[i].high;
      const uint32_t before = start ? read[start - 1] : other;
      const Word* const words = index.words;
      for (uint64_t at = first_not_below(words, wanted[i].low, high, number); at < high && words[at].number == number;
           ++at)
        if (words[at].before != before || before >= other) visit(start, words[at].position);
    }
    filled = 0;
  };

  const uint64_t mask = ~uint64_t{0} >> (64 - 2 * index.letters);
  uint64_t number = 0;
  uint32_t letters = 0;  // since the last code that is none
  for (uint64_t i = first; i < last + index.letters; ++i) {
    letters = read[i] < other ? letters + 1 : 0;
    number = (number << 2 | (read[i] & 3)) & mask;
    if (letters < index.letters) continue;
    __builtin_prefetch(index.bounds + index.bucket(number));
    wanted[filled].number = number;
    wanted[filled++].start = i + 1 - index.letters;
    if (filled == batch) look_up();
  }
  look_up();
}

bool is_known(const Index& index, const uint8_t* word) {
  uint64_t number = 0;
  for (uint32_t i = 0; i < index.letters; ++i) {
    if (word[i] >= other) return false;
    number = number << 2 | word[i];
  }
  const uint32_t* const bounds = index.bounds + index.bucket(number);
  const uint64_t at = first_not_below(index.words, bounds[0], bounds[1], number);
  return at < bounds[1] && index.words[at].number == number;
}

// The same for every place in the read where a match of the minimum may start. Words begin in it at `step` places one
// after another, so one of them is a multiple of step: where the reference does not have that word, those in front of
// it need not be looked up.
template <class Visit>
void for_candidates(const Index& index, const uint8_t* read, uint64_t length, uint64_t minimum, const Visit& visit) {
  if (length < minimum) return;
  if (minimum == index.letters) {
    for_left_maximal(index, read, 0, length - minimum, visit);
    return;
  }
  const uint64_t step = minimum - index.letters + 1;
  for (uint64_t place = 0; place + index.letters <= length; place += step)
    if (is_known(index, read + place)) for_left_maximal(index, read, place ? place - step + 1 : 0, place, visit);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// Whether the suffixes are every letter of the text once, ordered by A, C, G, T and the end of a record, and those
// that are equal up to there by position. It is enough that neighbours are in order by their first letters and, where
// these are equal, by the places of what follows them. ranks[position] becomes the place of the suffix there.
EXPORT int mem_search_is_order(const uint8_t* text, uint64_t length, const uint32_t* suffixes, uint64_t count,
                               uint32_t* ranks) {
  uint64_t letters = 0;
  for (uint64_t i = 0; i < length; ++i) {
    letters += text[i] < other;
    ranks[i] = no_rank;
  }
  if (letters != count || text[length - 1] < other) return 0;
  for (uint64_t rank = 0; rank < count; ++rank) {
    __builtin_prefetch(ranks + suffixes[least(rank + ahead, count - 1)], 1);
    const uint32_t position = suffixes[rank];
    if (position >= length || text[position] >= other || ranks[position] != no_rank) return 0;
    ranks[position] = static_cast<uint32_t>(rank);
  }
  for (uint64_t rank = 1; rank < count; ++rank) {
    const uint32_t later = suffixes[least(rank + ahead, count - 1)];
    __builtin_prefetch(text + later);
    __builtin_prefetch(ranks + later + 1);
    const uint32_t a = suffixes[rank - 1], b = suffixes[rank];
    if (text[a] < text[b]) continue;
    // At an end, ranks has no_rank, which is above all ranks.
    const uint32_t after_a = ranks[a + 1], after_b = ranks[b + 1];
    if (text[a] > text[b] || after_a > after_b || (after_a == after_b && a > b)) return 0;
  }
  return 1;
}

// Fills words, for which there is room for one at every letter, and bounds, and sets count. ranks is as
// mem_search_is_order leaves it. What the end of a record cuts short is no word.
EXPORT void mem_search_index(Index* index, uint64_t letters, const uint32_t* ranks) {
  Word* const words = index->words;
  const uint8_t* const text = index->reference;
  const uint32_t first_letter = 2 * (index->letters - 1);
  constexpr uint32_t too_short = 0xFF;
  uint64_t number = 0;
  uint32_t room = 0;  // letters from here to the next end
  for (uint64_t i = index->characters; i-- > 0;) {
    const uint32_t coming = ranks[i > ahead ? i - ahead : 0];
    if (coming != no_rank) __builtin_prefetch(words + coming, 1);
    number = number >> 2 | static_cast<uint64_t>(text[i] & 3) << first_letter;
    room = text[i] < other ? room + 1 : 0;
    if (!room) continue;
    const uint32_t before = i ? text[i - 1] : other;
    words[ranks[i]] = {number, static_cast<uint32_t>(i), room < index->letters ? too_short : before};
  }
  uint64_t count = 0, bucket = 0;
  for (uint64_t rank = 0; rank < letters; ++rank) {
    if (words[rank].before == too_short) continue;
    while (bucket <= index->bucket(words[rank].number)) index->bounds[bucket++] = static_cast<uint32_t>(count);
    words[count++] = words[rank];
  }
  while (bucket <= uint64_t{1} << (2 * index->leading)) index->bounds[bucket++] = static_cast<uint32_t>(count);
  index->count = count;
}

// The matches of reads first to last: their number, and from place at on, where mems is given, the matches.
EXPORT uint64_t mem_search_find(const Index* index, const Reads* reads, uint64_t first, uint64_t last, uint64_t minimum,
                                const Mems* mems, uint64_t at) {
  const uint8_t* const reference = index->reference;
  const uint64_t begin = at;
  for (uint64_t number = first; number < last; ++number) {
    const uint8_t* const read = reads->codes + reads->offsets[number];
    const uint64_t length = reads->offsets[number + 1] - reads->offsets[number];
    for_candidates(*index, read, length, minimum, [&](uint64_t start, uint64_t position) {
      uint64_t equal = index->letters;
      if (mems || equal < minimum) {
        const uint64_t room = least(length - start, index->characters - position);
        while (equal < room && read[start + equal] == reference[position + equal] && read[start + equal] < other)
          ++equal;
        if (equal < minimum) return;
      }
      if (mems) {
        mems->reads[at] = static_cast<uint32_t>(number);
        mems->positions[at] = static_cast<uint32_t>(position);
        mems->starts[at] = static_cast<uint32_t>(start);
        mems->lengths[at] = static_cast<uint32_t>(equal);
      }
      ++at;
    });
  }
  return at - begin;
}

// The order of a text's suffixes. suffix_array.py, which calls these in their order here, allocates what is as long as
// the text and gives each function a range of positions, words or groups; ranges may run at the same time.
//
// Suffixes are dealt out by their first word of letters, sorted within a word by as many letters as a key holds, and
// what is then still equal, a group, by the ranks of the suffixes behind, which doubles the letters each time (Larsson
// and Sadakane). A separator ends a suffix and comes after every letter, the first separator before the others.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr uint8_t separator = 4;
constexpr uint64_t block = 64;        // positions whose separators are marked in one word
constexpr uint64_t key_letters = 29;  // of two bits, above six that say how many are missing
constexpr unsigned missing_bits = 6;
constexpr uint64_t few = 24;
constexpr uint64_t ahead = 24;  // so many steps later an address is wanted

// suffix_array.py: _Sort.
struct Sort {
  uint64_t length;        // characters; the last is a separator
  uint64_t word_letters;  // of a first word
  uint64_t depth;         // letters by which the suffixes of a group are equal
  const uint8_t* text;
  uint64_t* packed;    // the first of 32 letters in the highest bits; two words more than are needed
  uint64_t* marks;     // the first position of each block in the lowest bit; one word more
  uint32_t* places;    // by word: where its next suffix goes
  uint32_t* suffixes;  // by rank
  uint32_t* ranks;     // by position: of the first suffix equal so far; behind all others at separators
  uint32_t* heads;     // by rank: the same, until every group is sorted
};

// Suffixes that are equal so far: ranks [first, end).
struct Group {
  uint32_t first, end;
};

// suffix_array.py: _Groups.
struct Groups {
  Group* all;
  uint64_t count, room;
};

struct Pair {
  uint64_t key;
  uint32_t position;
};

bool add(Groups& groups, Group group) {
  if (groups.count == groups.room) {
    const uint64_t room = groups.room ? 2 * groups.room : 64;
    Group* const all = static_cast<Group*>(realloc(groups.all, room * sizeof(Group)));
    if (!all) return false;
    groups.all = all;
    groups.room = room;
  }
  groups.all[groups.count++] = group;
  return true;
}

// How many letters there are from a position on, of which no more than 64 count.
uint64_t letters_at(const Sort& sort, uint64_t position) {
  const uint64_t shift = position % block, at = position / block;
  const uint64_t marks = sort.marks[at] >> shift | (shift ? sort.marks[at + 1] << (block - shift) : 0);
  return marks ? __builtin_ctzll(marks) : block;
}

// The 32 letters from a position on, whatever they are behind a separator.
uint64_t packed_at(const Sort& sort, uint64_t position) {
  const uint64_t shift = position % 32 * 2, at = position / 32;
  return shift ? sort.packed[at] << shift | sort.packed[at + 1] >> (64 - shift) : sort.packed[at];
}

// The first letters of a suffix; what ends before counts as if the last letter followed.
uint64_t word_at(const Sort& sort, uint64_t position) {
  const uint64_t found = letters_at(sort, position), word = packed_at(sort, position);
  const uint64_t filled = found < 32 ? word | ~uint64_t{0} >> 2 * found : word;
  return filled >> (64 - 2 * sort.word_letters);
}

// By what follows the first word. A suffix that has ended is behind those that go on with the last letter, and the
// sooner it has the further.
uint64_t key_at(const Sort& sort, uint64_t position) {
  const uint64_t wanted = sort.word_letters + key_letters, all = letters_at(sort, position);
  const uint64_t found = all < wanted ? all : wanted;
  uint64_t letters = ~uint64_t{0};
  if (found > sort.word_letters) {
    letters = packed_at(sort, position + sort.word_letters);
    if (found < wanted) letters |= ~uint64_t{0} >> 2 * (found - sort.word_letters);
  }
  return letters >> missing_bits << missing_bits | (wanted - found);
}

bool has_ended(uint64_t key) { return key & ((1u << missing_bits) - 1); }

// By key, equal ones in any order: dealt out by the highest byte in which any two differ, until few are together. spare
// has as much room.
void sort_pairs(Pair* pairs, uint64_t count, Pair* spare) {
  if (count <= few) {
    for (uint64_t i = 1; i < count; ++i) {
      const Pair held = pairs[i];
      uint64_t to = i;
      for (; to && pairs[to - 1].key > held.key; --to) pairs[to] = pairs[to - 1];
      pairs[to] = held;
    }
    return;
  }
  uint64_t unequal = 0;
  for (uint64_t i = 1; i < count; ++i) unequal |= pairs[i].key ^ pairs[0].key;
  if (!unequal) return;
  const unsigned shift = (63 - __builtin_clzll(unequal)) / 8 * 8;
  const auto byte = [&](const Pair& pair) { return pair.key >> shift & 255; };
  uint64_t ends[256] = {};
  for (uint64_t i = 0; i < count; ++i) ++ends[byte(pairs[i])];
  uint64_t before = 0;
  for (uint64_t& end : ends) {
    const uint64_t here = end;
    end = before;
    before += here;
  }
  for (uint64_t i = 0; i < count; ++i) spare[ends[byte(pairs[i])]++] = pairs[i];
  memcpy(pairs, spare, count * sizeof(Pair));
  uint64_t begin = 0;
  for (const uint64_t end : ends) {
    if (end - begin > 1) sort_pairs(pairs + begin, end - begin, spare);
    begin = end;
  }
}

// Room for pairs, and as much to sort them.
struct Pairs {
  Pair* all = nullptr;
  uint64_t room = 0;
  bool has(uint64_t count) {
    if (count <= room) return true;
    free(all);
    room = count;
    all = static_cast<Pair*>(malloc(2 * room * sizeof(Pair)));
    return all;
  }
  void sort(uint64_t first, uint64_t count) { sort_pairs(all + first, count, all + room); }
  ~Pairs() { free(all); }
};

// Sorted pairs to the ranks from `first` on. ends(key): whether it is no one else's, but for the order of positions.
// Runs of equal keys become groups.
template <class Ends>
bool place(const Sort& sort, Pairs& sorted, uint64_t count, uint32_t first, const Ends& ends, Groups& groups) {
  Pair* const pairs = sorted.all;
  for (uint64_t begin = 0, end; begin < count; begin = end) {
    for (end = begin + 1; end < count && pairs[end].key == pairs[begin].key;) ++end;
    const bool is_group = end - begin > 1 && !ends(pairs[begin].key);
    if (end - begin > 1 && !is_group) {
      for (uint64_t i = begin; i < end; ++i) pairs[i].key = pairs[i].position;
      sorted.sort(begin, end - begin);
    }
    for (uint64_t i = begin; i < end; ++i) {
      sort.suffixes[first + i] = pairs[i].position;
      sort.heads[first + i] = static_cast<uint32_t>(first + (is_group ? begin : i));
    }
    if (is_group && !add(groups, {static_cast<uint32_t>(first + begin), static_cast<uint32_t>(first + end)}))
      return false;
  }
  return true;
}

// Calls visit(word, position, count) for each run of positions with the same first word.
template <class Visit>
void for_words(const Sort& sort, uint64_t begin, uint64_t end, const Visit& visit) {
  uint64_t from = begin, word = ~uint64_t{0};
  for (uint64_t i = begin; i < end; ++i) {
    const uint64_t next = sort.text[i] == separator ? ~uint64_t{0} : word_at(sort, i);
    if (next == word) continue;
    if (~word) visit(word, from, i - from);
    word = next;
    from = i;
  }
  if (~word) visit(word, from, end - from);
}

}  // namespace

// ---- all positions, in ranges that begin with a block

EXPORT void suffix_array_pack(const Sort* sort, uint64_t begin, uint64_t end) {
  for (uint64_t first = begin; first < end; first += block) {
    uint64_t marks = 0, packed[2] = {0, 0};
    for (uint64_t i = 0; i < block && first + i < sort->length; ++i) {
      const uint64_t code = sort->text[first + i];
      marks |= (code >> 2) << i;
      packed[i / 32] |= (code & 3) << (62 - i % 32 * 2);
    }
    sort->marks[first / block] = marks;
    sort->packed[first / 32] = packed[0];
    sort->packed[first / 32 + 1] = packed[1];
  }
}

EXPORT void suffix_array_count(const Sort* sort, uint64_t begin, uint64_t end) {
  for_words(*sort, begin, end, [&](uint64_t word, uint64_t, uint64_t count) {
    __atomic_fetch_add(&sort->places[word], static_cast<uint32_t>(count), __ATOMIC_RELAXED);
  });
}

EXPORT void suffix_array_places(const Sort* sort) {
  uint32_t before = 0;
  for (uint64_t word = 0; word < uint64_t{1} << 2 * sort->word_letters; ++word) {
    const uint32_t count = sort->places[word];
    sort->places[word] = before;
    before += count;
  }
}

EXPORT void suffix_array_deal(const Sort* sort, uint64_t begin, uint64_t end) {
  for_words(*sort, begin, end, [&](uint64_t word, uint64_t position, uint64_t count) {
    const uint32_t to = __atomic_fetch_add(&sort->places[word], static_cast<uint32_t>(count), __ATOMIC_RELAXED);
    for (uint64_t i = 0; i < count; ++i) sort->suffixes[to + i] = static_cast<uint32_t>(position + i);
  });
}

// ---- groups; each of these returns 0, or 1 where there is no memory left

// places have the end of each word by now.
EXPORT int suffix_array_words(const Sort* sort, uint64_t begin, uint64_t end, Groups* groups) {
  Pairs pairs;
  const auto ends = [](uint64_t key) { return has_ended(key); };
  for (uint64_t word = begin; word < end; ++word) {
    const uint32_t first = word ? sort->places[word - 1] : 0, count = sort->places[word] - first;
    if (!pairs.has(count)) return 1;
    if (count > 1)
      for (uint32_t i = 0; i < count; ++i) {
        const uint32_t position = sort->suffixes[first + i];
        pairs.all[i] = {key_at(*sort, position), position};
      }
    else if (count)
      pairs.all[0] = {0, sort->suffixes[first]};
    pairs.sort(0, count);
    if (!place(*sort, pairs, count, first, ends, *groups)) return 1;
    for (uint32_t i = first; i < first + count; ++i) sort->ranks[sort->suffixes[i]] = sort->heads[i];
  }
  return 0;
}

// Groups that are still equal become those of `left`. ranks stay as they are.
EXPORT int suffix_array_split(const Sort* sort, const Groups* groups, Groups* left) {
  Pairs pairs;
  left->count = 0;
  const auto ends = [](uint64_t) { return false; };
  for (uint64_t g = 0; g < groups->count; ++g) {
    const Group group = groups->all[g];
    const uint32_t count = group.end - group.first;
    if (!pairs.has(count)) return 1;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t soon = group.first + i + ahead;
      if (soon < group.end) __builtin_prefetch(sort->ranks + sort->suffixes[soon] + sort->depth);
      const uint32_t position = sort->suffixes[group.first + i];
      pairs.all[i] = {sort->ranks[position + sort->depth], position};
    }
    pairs.sort(0, count);
    if (!place(*sort, pairs, count, group.first, ends, *left)) return 1;
  }
  return 0;
}

EXPORT void suffix_array_rank(const Sort* sort, const Groups* groups) {
  for (uint64_t g = 0; g < groups->count; ++g)
    for (uint32_t i = groups->all[g].first; i < groups->all[g].end; ++i)
      sort->ranks[sort->suffixes[i]] = sort->heads[i];
}

EXPORT void suffix_array_free(Groups* groups) {
  free(groups->all);
  *groups = {};
}

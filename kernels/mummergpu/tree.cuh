// What the kernels read and write: the records of the suffix tree, of reads, matches and MEMs. family.yaml declares
// the same fields; suffix_tree.py says what those of the tree hold.
#pragma once
#include "autotune/array.cuh"

constexpr unsigned root = 0;   // and, as a child, none
constexpr unsigned other = 4;  // the code that matches nothing: any letter but A, C, G, T, and the end of a record
constexpr unsigned no_position = 0xFFFFFFFFu;

// What matching reads of a node, in two records of one access each. A suffix link never leads to a leaf of a chain,
// from which no search could go on, but to the node that spells the same.
struct Node {
  unsigned suffix_link, edge_start, edge_length, parent;
};

struct Children {
  unsigned a, c, g, t;
  // Not an array: an index that is known only at run time would send it to local memory.
  AUTOTUNE_DEVICE unsigned at(unsigned letter) const {
    if (letter >= other) return root;
    return letter & 2 ? (letter & 1 ? t : g) : (letter & 1 ? c : a);
  }
  // The letter after that of `child`, which is one of them.
  AUTOTUNE_DEVICE unsigned after(unsigned child) const { return child == a ? 1 : child == c ? 2 : child == g ? 3 : 4; }
};

// What only printing needs of a node. A chain of leaves that end at a node begins with its end_child and goes on
// with theirs.
struct Tail {
  unsigned end_child, depth, leaf_position, preceding;
};

// A leaf by its place in the order of the tree, and the leaves below a node or behind a word.
struct Leaf {
  unsigned position, preceding;
};

struct Range {
  unsigned first, count;
};

// family.yaml: policies: search, emit.
enum class Search { tree, coarse_table, fine_table };
enum class Emit { walk, ranges };

// Where a read's bases and its slots begin.
struct Offset {
  unsigned base, slot;
};

// The longest match of a read from a start on: it ends at `node` or on the edge into it. The root where there is none.
struct Match {
  unsigned node, length;
};

// Of four starts, as many as are written at once: to change a part of a sector costs reading it. A read has slots for a
// multiple of four.
struct MatchQuad {
  Match first, second, third, fourth;
  AUTOTUNE_DEVICE Match at(unsigned index) const {
    return index & 2 ? (index & 1 ? fourth : third) : (index & 1 ? second : first);
  }
};

struct Mem {
  unsigned query, position, start, length;
};

constexpr unsigned letters_at_once = 8;

// The code of one base of a text that has eight in a word.
template <class Text>
AUTOTUNE_DEVICE unsigned letter(const Text& text, unsigned base) {
  using Word = typename Text::value_type;
  static_assert(Word::elements == letters_at_once, "family.yaml: packing: bits4");
  return Word::packing::element(text.load(base / Word::elements).word[0], static_cast<int>(base % Word::elements));
}

// The codes of eight bases from `base` on, the first in the lowest bits; anything behind the end of the text.
template <class Text>
AUTOTUNE_DEVICE unsigned letters(const Text& text, unsigned base) {
  const unsigned last = text.extent(0) - 1, word = min(base / letters_at_once, last);
  const unsigned long long low = text.load(word).word[0], high = text.load(min(word + 1, last)).word[0];
  return static_cast<unsigned>((high << 32 | low) >> base % letters_at_once * 4);
}

// How many letters are equal from the first on; `other` equals nothing.
AUTOTUNE_DEVICE unsigned equal_letters(unsigned a, unsigned b) {
  const unsigned unequal = (a ^ b) | (a & 0x44444444u);
  return unequal ? (__ffs(static_cast<int>(unequal)) - 1) / 4 : letters_at_once;
}

// The same from the last of eight backwards.
AUTOTUNE_DEVICE unsigned equal_letters_back(unsigned a, unsigned b) {
  const unsigned unequal = (a ^ b) | (a & 0x44444444u);
  return unequal ? __clz(static_cast<int>(unequal)) / 4 : letters_at_once;
}

// The codes of the eight bases before `base`, the last in the highest bits; zeros before the start of the text.
template <class Text>
AUTOTUNE_DEVICE unsigned letters_before(const Text& text, unsigned base) {
  if (base >= letters_at_once) return letters(text, base - letters_at_once);
  return base ? letters(text, 0) << (letters_at_once - base) * 4 : 0;
}

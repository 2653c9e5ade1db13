// What the suffix_tree*.cpp share: the tree as suffix_tree.py holds it, which says what each field is, and what is
// known of it while it is made. The records Node, Children and Tail are those of tree.cuh.
//
// They need the C library only, like the runtime library of the cpu device. Nodes and positions are uint32_t; what
// counts nodes in an order is wider.
#pragma once
#include <stdint.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr uint32_t separator = 4;
constexpr uint32_t root = 0;
constexpr uint32_t no_position = 0xFFFFFFFF;
// Most of the time goes into waiting for random accesses: the address wanted this many steps later is known by now.
constexpr uint64_t ahead = 16;

struct Node {
  uint32_t suffix_link, edge_start, edge_length, parent;
};

struct Children {
  uint32_t at[4];
};

struct Tail {
  uint32_t end_child, depth, leaf_position, preceding;
};

// suffix_tree.py: _LEAVES.
struct Leaf {
  uint32_t position, preceding;
};

struct Range {
  uint32_t first, count;
};

// suffix_tree.py: _Tree.
struct Tree {
  Node* nodes;
  Children* children;
  Tail* tails;
};

// What is known of the suffix at a position; side by side, as it is wanted at the same random places.
struct Place {
  uint32_t leaf_or_start;  // the leaf's number; once its edge is known, where that starts
  uint32_t parent;
  uint32_t head;  // the node at which an earlier suffix is left; where this one makes it, its index in `made`
};

// An internal node, as suffixes in lexicographic order make it.
struct Made {
  uint32_t first;  // the least position below it
  uint32_t depth, edge_start, parent;
  Children children;
};

// suffix_tree.py: _Work.
struct Work {
  uint64_t length;    // characters of the text; the last is a separator
  uint64_t letters;   // of them not separators: leaves
  uint64_t internal;  // internal nodes; the root is the last of `made`
  uint64_t floor;     // subtrees of so many letters are made apart from each other
  const uint8_t* text;
  const uint32_t* suffixes;  // by rank
  uint32_t* shared;          // by position: the one before it by rank; then how many letters both share
  uint32_t* forks;           // the same by rank, below letters
  uint8_t* makes;            // by position: whether a node is made before the leaf; 0 at separators
  uint8_t* chained;          // by position: whether the leaf is in a chain; 0 at separators
  Place* places;             // by position
  Made* made;
  Tree tree;
};

uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

}  // namespace

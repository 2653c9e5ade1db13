// The nodes of the suffix tree from what neighbours in the suffixes' order share. A node is a run of suffixes whose
// neighbours share at least its depth, and some of them no more; the first of those stands for it: shared[rank] is what
// the suffixes at rank - 1 and rank share, and the node's fork is the lowest such rank. Suffixes that end at a node
// come last below it, the first in the text first.
//
// Nodes are numbered as suffix_tree.py says: the leaf of each position, and before it the node that its suffix makes:
// the one of which, of the least positions below each child, its own is the second least.
#pragma once
#include "nearest.hpp"
#include "prefixes.hpp"

constexpr unsigned root = 0;
constexpr unsigned no_fork = nowhere;

// nodes.py: _Tree. What is known of the text, and what of the tree.
struct Tree {
  const unsigned char* text;
  const unsigned* separators;  // their positions
  const unsigned* suffixes;    // by rank
  const unsigned* ranks;       // by position
  Leasts shared;               // by rank; one more than there are suffixes
  Leasts positions;            // suffixes
  const unsigned* forks;       // by rank: of the node of what this one and the one before it share
  const unsigned* firsts;      // by fork: the least position below the node
  const unsigned* numbers;     // by fork: the node's
  const unsigned* leaves;      // by position: the leaf's number
  unsigned length, letters, separator_count;
};

// ---- forks

// Of each rank the fork of its node; no_fork where nothing is shared.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) find_forks(Leasts shared, unsigned* forks, unsigned letters) {
  const unsigned long long place = place_in_grid<Policy>();
  if (place >= letters) return;
  const unsigned rank = static_cast<unsigned>(place), depth = shared[rank];
  unsigned fork = no_fork;
  if (depth) {
    fork = rank;
    // Nothing is shared at rank 0, so something is below.
    const unsigned before = previous_below(shared, rank, depth + 1);
    if (shared[before] == depth) fork = next_below(shared, previous_below(shared, before, depth) + 1, depth + 1);
  }
  forks[rank] = fork;
}

// The suffixes below a fork: ranks [first, end).
struct Ranks {
  unsigned first, end;
};

AUTOTUNE_DEVICE Ranks ranks_below(const Leasts& shared, unsigned fork) {
  const unsigned depth = shared[fork];
  return {previous_below(shared, fork, depth), next_below(shared, fork + 1, depth)};
}

// The fork of the node in which the suffixes of [first, end) lie with others.
AUTOTUNE_DEVICE unsigned fork_above(const Leasts& shared, const unsigned* forks, const Ranks& ranks) {
  return forks[shared[ranks.first] >= shared[ranks.end] ? ranks.first : ranks.end];
}

// By fork its first, and room in seconds.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    find_firsts(Leasts shared, Leasts positions, const unsigned* forks, unsigned* firsts, unsigned* seconds,
                unsigned letters) {
  const unsigned long long place = place_in_grid<Policy>();
  if (place >= letters) return;
  const unsigned fork = static_cast<unsigned>(place);
  firsts[fork] = seconds[fork] = no_position;
  if (forks[fork] != fork) return;
  const Ranks ranks = ranks_below(shared, fork);
  firsts[fork] = least_of(positions, ranks.first, ranks.end);
}

// seconds: the least position below any child of the fork but the one that has its first.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    find_seconds(Leasts shared, const unsigned* suffixes, const unsigned* forks, const unsigned* firsts,
                 unsigned* seconds, unsigned letters) {
  const unsigned long long place = place_in_grid<Policy>();
  if (place >= letters) return;
  const unsigned rank = static_cast<unsigned>(place);
  const auto offer = [&](const Ranks& ranks, unsigned position) {
    const unsigned above = fork_above(shared, forks, ranks);
    if (above != no_fork && firsts[above] != position) atomicMin(&seconds[above], position);
  };
  offer({rank, rank + 1}, suffixes[rank]);
  if (forks[rank] == rank) offer(ranks_below(shared, rank), firsts[rank]);
}

// ---- numbers

// made[position]: how many nodes begin with it, the leaf and what its suffix makes.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    count_leaves(const unsigned char* text, unsigned* made, unsigned length) {
  const unsigned long long position = place_in_grid<Policy>();
  if (position < length) made[position] = text[position] != separator;
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    count_forks(const unsigned* forks, const unsigned* seconds, unsigned* made, unsigned letters) {
  const unsigned long long fork = place_in_grid<Policy>();
  if (fork < letters && forks[fork] == fork) made[seconds[fork]] = 2;
}

// made are running sums by now, and so the numbers of leaves. Numbers take the place of seconds.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    number_forks(const unsigned* forks, unsigned* seconds, const unsigned* made, unsigned letters) {
  const unsigned long long fork = place_in_grid<Policy>();
  if (fork < letters && forks[fork] == fork) seconds[fork] = made[seconds[fork]] - 1;
}

// ---- records; see tree.cuh

struct Node {
  unsigned suffix_link, edge_start, edge_length, parent;
};

struct Tail {
  unsigned end_child, depth, leaf_position, preceding;
};

struct Leaf {
  unsigned position, preceding;
};

struct Range {
  unsigned first, count;
};

// nodes.py: Records. Nodes and children lie `stride` records of 16 bytes apart. Ranges may be left out.
struct Records {
  uint4* nodes;
  unsigned* children;
  uint4* tails;
  Range* ranges;
  unsigned long long stride;

  AUTOTUNE_DEVICE void put(unsigned number, const Node& node, const Tail& tail, const Range& range) const {
    nodes[number * stride] = {node.suffix_link, node.edge_start, node.edge_length, node.parent};
    tails[number] = {tail.end_child, tail.depth, tail.leaf_position, tail.preceding};
    if (ranges) ranges[number] = range;
  }
  AUTOTUNE_DEVICE void adopt(unsigned parent, unsigned letter, unsigned child) const {
    children[parent * stride * 4 + letter] = child;
  }
  AUTOTUNE_DEVICE void has_no_children(unsigned number) const {
    *reinterpret_cast<uint4*>(children + number * stride * 4) = {0, 0, 0, 0};
  }
};

AUTOTUNE_DEVICE unsigned number_of(const Tree& tree, unsigned fork) {
  return fork == no_fork ? root : tree.numbers[fork];
}

AUTOTUNE_DEVICE unsigned depth_of(const Tree& tree, unsigned fork) { return fork == no_fork ? 0 : tree.shared[fork]; }

// How many letters there are from a position on to the next separator.
AUTOTUNE_DEVICE unsigned letters_from(const Tree& tree, unsigned position) {
  unsigned low = 0, high = tree.separator_count - 1;
  while (low < high) {
    const unsigned middle = low + (high - low) / 2;
    if (tree.separators[middle] < position)
      low = middle + 1;
    else
      high = middle;
  }
  return tree.separators[low] - position;
}

AUTOTUNE_DEVICE unsigned preceding(const unsigned char* text, unsigned position) {
  return position ? text[position - 1] : separator;
}

// The fork under which the leaf at a rank is.
AUTOTUNE_DEVICE unsigned fork_of_leaf(const Tree& tree, unsigned rank) {
  return fork_above(tree.shared, tree.forks, {rank, rank + 1});
}

// Before any record: a child is entered by itself.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) clear_children(Records records, unsigned nodes) {
  const unsigned long long number = place_in_grid<Policy>();
  if (number < nodes) records.has_no_children(static_cast<unsigned>(number));
}

// A leaf of a chain is no child; its end_child is the next one.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) write_leaves(Tree tree, Records records) {
  const unsigned long long place = place_in_grid<Policy>();
  if (place >= tree.length || tree.text[place] == separator) return;
  const unsigned position = static_cast<unsigned>(place), number = tree.leaves[position], rank = tree.ranks[position];
  const unsigned fork = fork_of_leaf(tree, rank), above = depth_of(tree, fork), parent = number_of(tree, fork);
  const unsigned depth = letters_from(tree, position), start = position + above;
  const bool is_chained = above == depth;
  unsigned next = 0;
  if (is_chained && tree.shared[rank + 1] == depth) next = tree.leaves[tree.suffixes[rank + 1]];
  if (!is_chained) records.adopt(parent, tree.text[start], number);
  // A leaf of a chain spells the same as its parent, and only from there a search can go on.
  unsigned link = root;
  if (depth > 1) {
    const unsigned following = fork_of_leaf(tree, tree.ranks[position + 1]);
    link = depth_of(tree, following) == depth - 1 ? number_of(tree, following) : tree.leaves[position + 1];
  }
  records.put(number, {link, start, depth - above, parent}, {next, depth, position, preceding(tree.text, position)},
              {rank, 1});
}

// The first leaf of the chain at a node of so many letters, root where there is none: those that end come last.
AUTOTUNE_DEVICE unsigned first_of_chain(const Tree& tree, const Ranks& ranks, unsigned depth) {
  const auto ends = [&](unsigned rank) { return letters_from(tree, tree.suffixes[rank]) == depth; };
  if (!ends(ranks.end - 1)) return root;
  unsigned low = ranks.first, high = ranks.end - 1;
  while (low < high) {
    const unsigned middle = low + (high - low) / 2;
    if (ends(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return tree.leaves[tree.suffixes[low]];
}

// Where the suffixes of a node lead that have their first letter taken away: to the node around any of them that has
// one letter less, which is always there.
AUTOTUNE_DEVICE unsigned link_of(const Tree& tree, unsigned fork, unsigned depth) {
  if (depth == 1) return root;
  const unsigned rank = tree.ranks[tree.suffixes[fork] + 1];
  const unsigned first = previous_below(tree.shared, rank + 1, depth - 1);
  return tree.numbers[next_below(tree.shared, first + 1, depth)];
}

// All but the leaves. The root, which has no fork, is the first thread's.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) write_forks(Tree tree, Records records) {
  const unsigned long long place = place_in_grid<Policy>();
  if (place == 0) records.put(root, {root, 0, 0, root}, {0, 0, no_position, separator}, {0, tree.letters});
  if (place >= tree.letters || tree.forks[place] != place) return;
  const unsigned fork = static_cast<unsigned>(place), number = tree.numbers[fork], depth = tree.shared[fork];
  const Ranks ranks = ranks_below(tree.shared, fork);
  const unsigned around = fork_above(tree.shared, tree.forks, ranks);
  const unsigned parent = number_of(tree, around), above = depth_of(tree, around);
  const unsigned start = tree.firsts[fork] + above;
  records.adopt(parent, tree.text[start], number);
  records.put(number, {link_of(tree, fork, depth), start, depth - above, parent},
              {first_of_chain(tree, ranks, depth), depth, no_position, separator},
              {ranks.first, ranks.end - ranks.first});
}

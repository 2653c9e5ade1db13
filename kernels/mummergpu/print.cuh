// From longest matches to MEMs: every leaf below a match is an occurrence; those that the base before does not
// prolong are maximal. Counted first, so that each is given its place. One thread a match walks, or a block goes
// through ranges of leaves.
#pragma once
#include "ranges.cuh"

// Calls visit(position, length) for the MEMs of at least min_match_length bases that begin where `match` does, in the
// order of the tree: A, C, G, T, end. Depth first with no stack: parents lead back up.
template <class Policy, class Visit>
AUTOTUNE_DEVICE void for_mems(const typename Policy::arguments& a, const Match& match, unsigned first_base,
                              bool is_first, Visit visit) {
  const unsigned before = is_first ? other : letter(a.queries, first_base - 1);
  const auto leaf = [&](const Tail& tail, unsigned length) {
    if (before == other || tail.preceding != before) visit(tail.leaf_position, length);
  };
  // Occurrences that share less than the whole match with the read are found from higher up.
  unsigned top = match.node, depth = a.tails.load(top).depth;
  for (Node node = a.nodes.load(top); depth - node.edge_length >= a.min_match_length; node = a.nodes.load(top)) {
    depth -= node.edge_length;
    top = node.parent;
  }
  // How many edges this node is away from the path of the read, counted from 1 at the match and below it: there the
  // length stays what it is. On the path, `away` is 0 and `length` the node's depth.
  unsigned node = top, away = top == match.node;
  unsigned length = away ? match.length : depth;
  for (;;) {
    const Tail tail = a.tails.load(node);
    if (!away) length = tail.depth;
    bool inner = tail.leaf_position == no_position;
    Children below = {};
    if (inner)
      below = a.children.load(node);
    else
      leaf(tail, length);
    unsigned branch = 0, child = root;
    for (;;) {
      if (inner) {
        for (; branch < other; ++branch)
          if ((child = below.at(branch)) != root) break;
        if (child != root) break;
        for (unsigned end = a.tails.load(node).end_child; end != root;) {
          const Tail chained = a.tails.load(end);
          leaf(chained, length);
          end = chained.end_child;
        }
      }
      if (node == top) return;
      const unsigned parent = a.nodes.load(node).parent;
      below = a.children.load(parent);
      branch = below.after(node);
      node = parent;
      inner = true;
      if (away) --away;
      if (!away) length = a.tails.load(node).depth;
    }
    if (away || branch != letter(a.queries, first_base + length)) {
      ++away;
    } else if (child == match.node) {
      away = 1;
      length = match.length;
    }
    node = child;
  }
}

// counts[slot] MEMs begin where the slot's match does, or have their seed there; tile_sums has their sum over each
// block.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) print_count(typename Policy::arguments a) {
  const unsigned slot = blockIdx.x * Policy::block_size + threadIdx.x;
  unsigned count = 0;
  if constexpr (Policy::emit == Emit::ranges) {
    const unsigned all = counted<Policy>(a);
    const Origin own = own_origin<Policy>(a, all);
    count = count_leaves<Policy>(a, own, step_of<Policy>(a));
    if (slot < all) a.counts.store(count, slot);
  } else if (slot < a.slots) {
    const Match match = a.matches.load(slot / 4).at(slot % 4);
    if (match.node != root) {
      const Place place = place_of<Policy>(a, slot);
      for_mems<Policy>(a, match, place.base, place.start == 0, [&](unsigned, unsigned) { ++count; });
    }
    a.counts.store(count, slot);
  }
  unsigned long long total;
  exclusive_sum<Policy::block_size>(static_cast<unsigned long long>(count), total);
  if (threadIdx.x == 0) a.tile_sums.store(limited(total), blockIdx.x);
}

// The MEMs themselves, by read, start in the read, and order of the tree: those from number first_mem on for which
// there is room. It waits for memory most of the time, so it has no more registers than let 2048 threads run at once.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size, 2048 / Policy::block_size)
    print_emit(typename Policy::arguments a) {
  const unsigned slot = blockIdx.x * Policy::block_size + threadIdx.x;
  const unsigned room = a.mems.extent(0);
  if constexpr (Policy::emit == Emit::ranges) {
    const unsigned all = counted<Policy>(a);
    const unsigned count = slot < all ? a.counts.load(slot) : 0;
    unsigned total;
    const unsigned before = exclusive_sum<Policy::block_size>(count, total);
    if (total == 0) return;
    const unsigned number = first_of_tile<Policy>(a);
    if (number + total <= a.first_mem || (number >= a.first_mem && number - a.first_mem >= room)) return;
    Origin own = {};
    if (count) own = own_origin<Policy>(a, all);
    emit_leaves<Policy>(a, own, count, before, number, step_of<Policy>(a));
  } else {
    const unsigned count = slot < a.slots ? a.counts.load(slot) : 0;
    unsigned total;
    unsigned number = exclusive_sum<Policy::block_size>(count, total);
    if (count == 0) return;
    number += first_of_tile<Policy>(a);
    if (number + count <= a.first_mem || (number >= a.first_mem && number - a.first_mem >= room)) return;
    const Place place = place_of<Policy>(a, slot);
    for_mems<Policy>(a, a.matches.load(slot / 4).at(slot % 4), place.base, place.start == 0,
                     [&](unsigned position, unsigned length) {
                       if (number >= a.first_mem && number - a.first_mem < room)
                         a.mems.store(Mem{place.query, position, place.start, length}, number - a.first_mem);
                       ++number;
                     });
  }
}

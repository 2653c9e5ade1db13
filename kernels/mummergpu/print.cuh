// From longest matches to MEMs: every leaf below a match is an occurrence; those that the base before does not
// prolong are maximal. Counted first, so that each is given its place. One thread a match walks, or a block goes
// through ranges of leaves.
#pragma once
#include "ranges.cuh"

// Calls visit(position, length) for the MEMs of at least `minimum` bases that begin where `match` does, in the order
// of the tree: A, C, G, T, end. Depth first with no stack: parents lead back up.
template <class Policy, class Visit>
AUTOTUNE_DEVICE void for_mems(const typename Policy::nodes& nodes, const typename Policy::children& children,
                              const typename Policy::tails& tails, const typename Policy::queries& queries,
                              const Match& match, unsigned first_base, bool is_first, unsigned minimum, Visit visit) {
  const unsigned before = is_first ? other : letter(queries, first_base - 1);
  const auto leaf = [&](const Tail& tail, unsigned length) {
    if (before == other || tail.preceding != before) visit(tail.leaf_position, length);
  };
  // Occurrences that share less than the whole match with the read are found from higher up.
  unsigned top = match.node, depth = tails.load(top).depth;
  for (Node node = nodes.load(top); depth - node.edge_length >= minimum; node = nodes.load(top)) {
    depth -= node.edge_length;
    top = node.parent;
  }
  // How many edges this node is away from the path of the read, counted from 1 at the match and below it: there the
  // length stays what it is. On the path, `away` is 0 and `length` the node's depth.
  unsigned node = top, away = top == match.node;
  unsigned length = away ? match.length : depth;
  for (;;) {
    const Tail tail = tails.load(node);
    if (!away) length = tail.depth;
    bool inner = tail.leaf_position == no_position;
    Children below = {};
    if (inner)
      below = children.load(node);
    else
      leaf(tail, length);
    unsigned branch = 0, child = root;
    for (;;) {
      if (inner) {
        for (; branch < other; ++branch)
          if ((child = below.at(branch)) != root) break;
        if (child != root) break;
        for (unsigned end = tails.load(node).end_child; end != root;) {
          const Tail chained = tails.load(end);
          leaf(chained, length);
          end = chained.end_child;
        }
      }
      if (node == top) return;
      const unsigned parent = nodes.load(node).parent;
      below = children.load(parent);
      branch = below.after(node);
      node = parent;
      inner = true;
      if (away) --away;
      if (!away) length = tails.load(node).depth;
    }
    if (away || branch != letter(queries, first_base + length)) {
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
__global__ void __launch_bounds__(Policy::block_size)
    print_count(typename Policy::nodes nodes, typename Policy::children children, typename Policy::tails tails,
                typename Policy::ranges ranges, typename Policy::leaves leaves,
                typename Policy::coarse_table coarse_table, typename Policy::fine_table fine_table,
                typename Policy::reference reference, typename Policy::queries queries,
                typename Policy::offsets offsets, typename Policy::matches matches, typename Policy::seeds seeds,
                typename Policy::tile_queries tile_queries, typename Policy::counts counts,
                typename Policy::tile_sums tile_sums, unsigned slots, unsigned min_match_length) {
  const unsigned slot = blockIdx.x * Policy::block_size + threadIdx.x;
  unsigned count = 0;
  if constexpr (Policy::emit == Emit::ranges) {
    const unsigned all = counted<Policy>(coarse_table, fine_table, offsets, slots, min_match_length);
    const Origin own = own_origin<Policy>(nodes, tails, ranges, coarse_table, fine_table, queries, offsets, matches,
                                          seeds, tile_queries, all, min_match_length);
    count = count_leaves<Policy>(leaves, reference, queries, own,
                                 step_of<Policy>(coarse_table, fine_table, min_match_length), min_match_length);
    if (slot < all) counts.store(count, slot);
  } else if (slot < slots) {
    const Match match = matches.load(slot / 4).at(slot % 4);
    if (match.node != root) {
      const Place place = place_of<Policy>(offsets, tile_queries, slot);
      for_mems<Policy>(nodes, children, tails, queries, match, place.base, place.start == 0, min_match_length,
                       [&](unsigned, unsigned) { ++count; });
    }
    counts.store(count, slot);
  }
  unsigned long long total;
  exclusive_sum<Policy::block_size>(static_cast<unsigned long long>(count), total);
  if (threadIdx.x == 0) tile_sums.store(limited(total), blockIdx.x);
}

// The MEMs themselves, by read, start in the read, and order of the tree: those from number first_mem on for which
// there is room.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    print_emit(typename Policy::nodes nodes, typename Policy::children children, typename Policy::tails tails,
               typename Policy::ranges ranges, typename Policy::leaves leaves,
               typename Policy::coarse_table coarse_table, typename Policy::fine_table fine_table,
               typename Policy::reference reference, typename Policy::queries queries, typename Policy::offsets offsets,
               typename Policy::matches matches, typename Policy::seeds seeds,
               typename Policy::tile_queries tile_queries, typename Policy::counts counts,
               typename Policy::tile_sums tile_sums, typename Policy::group_sums group_sums, typename Policy::mems mems,
               unsigned slots, unsigned first_mem, unsigned min_match_length) {
  const unsigned slot = blockIdx.x * Policy::block_size + threadIdx.x;
  const unsigned room = mems.extent(0);
  if constexpr (Policy::emit == Emit::ranges) {
    const unsigned all = counted<Policy>(coarse_table, fine_table, offsets, slots, min_match_length);
    const unsigned count = slot < all ? counts.load(slot) : 0;
    unsigned total;
    const unsigned before = exclusive_sum<Policy::block_size>(count, total);
    if (total == 0) return;
    const unsigned number = first_of_tile<Policy>(tile_sums, group_sums);
    if (number + total <= first_mem || (number >= first_mem && number - first_mem >= room)) return;
    Origin own = {};
    if (count)
      own = own_origin<Policy>(nodes, tails, ranges, coarse_table, fine_table, queries, offsets, matches, seeds,
                               tile_queries, all, min_match_length);
    emit_leaves<Policy>(leaves, reference, queries, mems, own, count, before, number, first_mem,
                        step_of<Policy>(coarse_table, fine_table, min_match_length), min_match_length);
  } else {
    const unsigned count = slot < slots ? counts.load(slot) : 0;
    unsigned total;
    unsigned number = exclusive_sum<Policy::block_size>(count, total);
    if (count == 0) return;
    number += first_of_tile<Policy>(tile_sums, group_sums);
    if (number + count <= first_mem || (number >= first_mem && number - first_mem >= room)) return;
    const Place place = place_of<Policy>(offsets, tile_queries, slot);
    for_mems<Policy>(nodes, children, tails, queries, matches.load(slot / 4).at(slot % 4), place.base, place.start == 0,
                     min_match_length, [&](unsigned position, unsigned length) {
                       if (number >= first_mem && number - first_mem < room)
                         mems.store(Mem{place.query, position, place.start, length}, number - first_mem);
                       ++number;
                     });
  }
}
